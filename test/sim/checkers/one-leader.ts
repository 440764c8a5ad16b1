/**
 * I3: at most one sentinel is elected per (master, epoch). Counts once the election has left the sentinel (its event is out),
 * since a crash before that undoes it. Exempt: worlds with plain SENTINEL FAILOVER, which needs no election and collides with anything.
 * Where sentinels are made to forget their peers, two majorities of different lists end the life of that world (class Accepted).
 */
import type { Effect, Input } from '../../../src/sentinel/index.js';
import type { SentinelHost } from '../sentinel-host.js';
import { Accepted } from '../trace.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';
import { masterInEvent } from './checker.js';

export class OneLeader implements Checker {
  readonly name = 'I3 one leader per epoch';
  readonly #epochs = new WeakMap<Effect, number>();
  readonly #leaders = new Map<string, string>();

  constructor(readonly world: World) {}

  stepped(host: SentinelHost, _input: Input, effects: readonly Effect[]): Verdict {
    for (const effect of effects) {
      if (effect.kind === 'event' && effect.name === '+elected-leader') this.#epochs.set(effect, host.state?.currentEpoch ?? 0);
    }
    return null;
  }

  carriedOut(host: SentinelHost, effect: Effect): Verdict {
    const epoch = this.#epochs.get(effect);
    if (epoch === undefined || effect.kind !== 'event') return null;
    const key = `${masterInEvent(effect)}/${epoch}`;
    const leader = this.#leaders.get(key) ?? host.name;
    this.#leaders.set(key, leader);
    if (leader === host.name || this.world.hasForced) return null;
    if (this.world.isForgetful) throw new Accepted(`${key} has two leaders, with different lists of peers`);
    return `${leader} and ${host.name} were both elected for ${key}`;
  }
}
