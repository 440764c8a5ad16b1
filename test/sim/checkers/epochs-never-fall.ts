/**
 * I2: currentEpoch, configEpoch and vote epochs of a sentinel never fall; over a restart they are compared with what it had
 * persisted and with what it had said aloud. Who lost its disk, or was told to REMOVE the master, begins anew.
 */
import type { Effect } from '../../../src/sentinel/index.js';
import { parseHello } from '../../../src/sentinel/wire/hello.js';
import type { LoadedConf } from '../../../src/sentinel/wire/sentinel-conf.js';
import type { RespValue } from '../../../src/sentinel/wire/resp-value.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { Checker, GroupOf, IsPast, Verdict } from './checker.js';
import { spokenVote } from './checker.js';

/** Highest values so far: `current`, `config <master>`, `leader <master>`. */
type Heights = Map<string, number>;

/** The same of a living process, by master: looked at after every step. */
interface Living {
  current: number;
  readonly masters: Map<string, { config: number; leader: number }>;
}

export class EpochsNeverFall implements Checker {
  readonly name = 'I2 epochs never fall';
  /** In this life of the process. */
  readonly #living = new Map<string, Living>();
  /** On disk or said aloud, over all lives. */
  readonly #bound = new Map<string, Heights>();

  constructor(readonly groupOf: GroupOf, readonly isPast: IsPast) {}

  started(host: SentinelHost, conf: LoadedConf): Verdict {
    this.#living.set(host.name, { current: 0, masters: new Map() });
    for (const [what, value] of heightsOfConf(conf)) {
      const before = this.#bound.get(host.name)?.get(what) ?? 0;
      if (value < before) return `${host.name} restarts with ${what} epoch ${value}, but had saved or said ${before}`;
    }
    return null;
  }

  forgot(host: SentinelHost, group: string | null): void {
    const living = this.#living.get(host.name);
    const bound = this.#bound.get(host.name);
    if (group === null) {
      this.#living.set(host.name, { current: 0, masters: new Map() });
      return bound?.clear();
    }
    living?.masters.delete(group);
    bound?.delete(`config ${group}`);
    bound?.delete(`leader ${group}`);
  }

  stepped(host: SentinelHost): Verdict {
    const living = this.#living.get(host.name);
    if (living === undefined || host.state === null) return null;
    const { currentEpoch, masters } = host.state;
    if (currentEpoch < living.current) return fallen('current', host, living.current, currentEpoch);
    living.current = currentEpoch;
    for (const { name, configEpoch, leaderEpoch } of masters.values()) {
      const before = living.masters.get(name);
      if (before === undefined) {
        living.masters.set(name, { config: configEpoch, leader: leaderEpoch });
        continue;
      }
      if (configEpoch < before.config) return fallen(`config ${name}`, host, before.config, configEpoch);
      if (leaderEpoch < before.leader) return fallen(`leader ${name}`, host, before.leader, leaderEpoch);
      before.config = configEpoch;
      before.leader = leaderEpoch;
    }
    return null;
  }

  saved(host: SentinelHost, conf: LoadedConf): Verdict {
    for (const [what, value] of heightsOfConf(conf)) {
      const [, group] = what.split(' ');
      if (group === undefined || !this.isPast(host, group)) this.#bind(host, what, value);
    }
    return null;
  }

  carriedOut(host: SentinelHost, effect: Effect): Verdict {
    if (effect.kind !== 'send' || effect.argv[0] !== 'PUBLISH') return null;
    const hello = parseHello(effect.argv[2] ?? '');
    if (hello === null) return `${host.name} published something that is no hello: ${effect.argv[2]}`;
    this.#bind(host, 'current', hello.currentEpoch);
    if (!this.isPast(host, hello.masterName)) this.#bind(host, `config ${hello.masterName}`, hello.configEpoch);
    return null;
  }

  replied(host: SentinelHost, argv: readonly string[], value: RespValue): Verdict {
    const vote = spokenVote(this.groupOf, argv, value);
    if (vote !== null && !this.isPast(host, vote.group)) this.#bind(host, `leader ${vote.group}`, vote.epoch);
    return null;
  }

  #bind(host: SentinelHost, what: string, value: number): void {
    const heights = this.#bound.get(host.name) ?? new Map<string, number>();
    this.#bound.set(host.name, heights);
    heights.set(what, Math.max(value, heights.get(what) ?? 0));
  }
}

function* heightsOfConf(conf: LoadedConf): Generator<[string, number]> {
  yield ['current', conf.globals.currentEpoch];
  for (const master of conf.masters) {
    yield [`config ${master.name}`, master.configEpoch];
    yield [`leader ${master.name}`, master.leaderEpoch];
  }
}

function fallen(what: string, host: SentinelHost, before: number, value: number): string {
  return `${what} epoch of ${host.name} fell from ${before} to ${value}`;
}
