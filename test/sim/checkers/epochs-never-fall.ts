/**
 * I2: currentEpoch, configEpoch and vote epochs of a sentinel never fall; over a restart they are compared with what it had
 * persisted and with what it had said aloud. Who lost its disk, or was told to REMOVE the master, begins anew.
 */
import type { Effect, SentinelState } from '../../../src/sentinel/index.js';
import { parseHello } from '../../../src/sentinel/wire/hello.js';
import type { LoadedConf } from '../../../src/sentinel/wire/sentinel-conf.js';
import type { RespValue } from '../../../src/sentinel/wire/resp-value.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { Checker, GroupOf, Verdict } from './checker.js';
import { spokenVote } from './checker.js';

/** Highest values so far: `current`, `config <master>`, `leader <master>`. */
type Heights = Map<string, number>;

export class EpochsNeverFall implements Checker {
  readonly name = 'I2 epochs never fall';
  /** In this life of the process. */
  readonly #living = new Map<string, Heights>();
  /** On disk or said aloud, over all lives. */
  readonly #bound = new Map<string, Heights>();

  constructor(readonly groupOf: GroupOf) {}

  started(host: SentinelHost, conf: LoadedConf): Verdict {
    this.#living.set(host.name, new Map());
    for (const [what, value] of heightsOfConf(conf)) {
      const before = this.#bound.get(host.name)?.get(what) ?? 0;
      if (value < before) return `${host.name} restarts with ${what} epoch ${value}, but had saved or said ${before}`;
    }
    return null;
  }

  forgot(host: SentinelHost, group: string | null): void {
    for (const heights of [this.#living.get(host.name), this.#bound.get(host.name)]) {
      if (group === null) heights?.clear();
      heights?.delete(`config ${group}`);
      heights?.delete(`leader ${group}`);
    }
  }

  stepped(host: SentinelHost): Verdict {
    const heights = this.#living.get(host.name);
    if (heights === undefined || host.state === null) return null;
    for (const [what, value] of heightsOfState(host.state)) {
      const before = heights.get(what) ?? 0;
      if (value < before) return `${what} epoch of ${host.name} fell from ${before} to ${value}`;
      heights.set(what, value);
    }
    return null;
  }

  saved(host: SentinelHost, conf: LoadedConf): Verdict {
    for (const [what, value] of heightsOfConf(conf)) this.#bind(host, what, value);
    return null;
  }

  carriedOut(host: SentinelHost, effect: Effect): Verdict {
    if (effect.kind !== 'send' || effect.argv[0] !== 'PUBLISH') return null;
    const hello = parseHello(effect.argv[2] ?? '');
    if (hello === null) return `${host.name} published something that is no hello: ${effect.argv[2]}`;
    this.#bind(host, 'current', hello.currentEpoch);
    this.#bind(host, `config ${hello.masterName}`, hello.configEpoch);
    return null;
  }

  replied(host: SentinelHost, argv: readonly string[], value: RespValue): Verdict {
    const vote = spokenVote(this.groupOf, argv, value);
    if (vote !== null) this.#bind(host, `leader ${vote.group}`, vote.epoch);
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

function* heightsOfState(state: SentinelState): Generator<[string, number]> {
  yield ['current', state.currentEpoch];
  for (const master of state.masters.values()) {
    yield [`config ${master.name}`, master.configEpoch];
    yield [`leader ${master.name}`, master.leaderEpoch];
  }
}
