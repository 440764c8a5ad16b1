/**
 * The persist barrier, judged by its purpose: what a sentinel says aloud (hello, vote, question, +switch-master) is on its
 * disk already. Silent only while its last write failed: then it goes on without, as stock does.
 */
import type { Effect, Input } from '../../../src/sentinel/index.js';
import { parseHello } from '../../../src/sentinel/wire/hello.js';
import type { LoadedConf } from '../../../src/sentinel/wire/sentinel-conf.js';
import type { RespValue } from '../../../src/sentinel/wire/resp-value.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { Checker, GroupOf, IsPast, Verdict } from './checker.js';
import { masterInEvent, spokenVote } from './checker.js';

export class SavedBeforeSpoken implements Checker {
  readonly name = 'saved before spoken';
  readonly #files = new Map<string, LoadedConf>();
  readonly #switchEpochs = new WeakMap<Effect, number>();

  constructor(readonly groupOf: GroupOf, readonly isPast: IsPast) {}

  started(host: SentinelHost, conf: LoadedConf): Verdict {
    this.#files.set(host.name, conf);
    return null;
  }

  saved(host: SentinelHost, conf: LoadedConf): Verdict {
    this.#files.set(host.name, conf);
    return null;
  }

  stepped(host: SentinelHost, _input: Input, effects: readonly Effect[]): Verdict {
    for (const effect of effects) {
      if (effect.kind !== 'event' || effect.name !== '+switch-master') continue;
      const group = masterInEvent(effect);
      this.#switchEpochs.set(effect, host.state?.masters.get(group)?.configEpoch ?? 0);
    }
    return null;
  }

  carriedOut(host: SentinelHost, effect: Effect): Verdict {
    if (effect.kind === 'event' && effect.name === '+switch-master') {
      const group = masterInEvent(effect);
      return this.#need(host, `config ${group}`, this.#switchEpochs.get(effect) ?? 0, '+switch-master');
    }
    if (effect.kind !== 'send') return null;
    const { argv } = effect;
    if (argv[1] === 'is-master-down-by-addr') return this.#need(host, 'current', Number(argv[4]), 'a question');
    const hello = argv[0] === 'PUBLISH' ? parseHello(argv[2] ?? '') : null;
    if (hello === null) return null;
    const { currentEpoch, configEpoch, masterName } = hello;
    return this.#need(host, 'current', currentEpoch, 'a hello') ?? this.#need(host, `config ${masterName}`, configEpoch, 'a hello');
  }

  replied(host: SentinelHost, argv: readonly string[], value: RespValue): Verdict {
    const vote = spokenVote(this.groupOf, argv, value);
    return vote === null ? null : this.#need(host, `leader ${vote.group}`, vote.epoch, 'a vote');
  }

  #need(host: SentinelHost, what: string, epoch: number, where: string): Verdict {
    const file = this.#files.get(host.name);
    if (file === undefined || host.disk.lastWriteFailed) return null;
    const [kind, name] = what.split(' ');
    if (name !== undefined && this.isPast(host, name)) return null;
    const master = file.masters.find((entry) => entry.name === name);
    const ofMaster = (kind === 'config' ? master?.configEpoch : master?.leaderEpoch) ?? 0;
    const saved = kind === 'current' ? file.globals.currentEpoch : ofMaster;
    return saved >= epoch ? null : `${host.name} says ${what} epoch ${epoch} in ${where}, but its disk knows ${saved} only`;
  }
}
