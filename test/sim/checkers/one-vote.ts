/**
 * I4: a sentinel votes once per (master, epoch), also over restarts: looks at the answers it really sent, and at its
 * announced votes (its own candidacies among them). Who lost its disk, or was told to REMOVE the master, may vote again.
 */
import type { Effect, Input } from '../../../src/sentinel/index.js';
import type { RespValue } from '../../../src/sentinel/wire/resp-value.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { Checker, GroupOf, IsPast, SpokenVote, Verdict } from './checker.js';
import { mastersOf, spokenVote } from './checker.js';

export class OneVote implements Checker {
  readonly name = 'I4 one vote per epoch';
  readonly #votes = new Map<string, string>();
  readonly #announced = new WeakMap<Effect, SpokenVote>();

  constructor(readonly groupOf: GroupOf, readonly isPast: IsPast) {}

  stepped(host: SentinelHost, _input: Input, effects: readonly Effect[]): Verdict {
    for (const effect of effects) {
      if (effect.kind !== 'event' || effect.name !== '+vote-for-leader') continue;
      for (const { name, leader, leaderEpoch } of mastersOf(host)) {
        if (leader === null || effect.payload !== `${leader} ${leaderEpoch}`) continue;
        this.#announced.set(effect, { group: name, leader, epoch: leaderEpoch });
      }
    }
    return null;
  }

  carriedOut(host: SentinelHost, effect: Effect): Verdict {
    const vote = this.#announced.get(effect);
    return vote === undefined ? null : this.#count(host, vote);
  }

  replied(host: SentinelHost, argv: readonly string[], value: RespValue): Verdict {
    const vote = spokenVote(this.groupOf, argv, value);
    return vote === null ? null : this.#count(host, vote);
  }

  forgot(host: SentinelHost, group: string | null): void {
    for (const key of this.#votes.keys()) if (key.startsWith(group === null ? `${host.name} ` : `${host.name} ${group}/`)) this.#votes.delete(key);
  }

  #count(host: SentinelHost, { group, leader, epoch }: SpokenVote): Verdict {
    if (this.isPast(host, group)) return null;
    const key = `${host.name} ${group}/${epoch}`;
    const before = this.#votes.get(key) ?? leader;
    this.#votes.set(key, before);
    return before === leader ? null : `${key}: voted for ${before.slice(0, 8)} and for ${leader.slice(0, 8)}`;
  }
}
