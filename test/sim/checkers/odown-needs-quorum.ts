/**
 * ODOWN is the word of a quorum: so many sentinels, the one that says it included, have seen the master down lately. And without
 * ODOWN nobody tries a failover, unless an operator has ordered it.
 */
import type { Effect, Input } from '../../../src/sentinel/index.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';
import { masterInEvent, mastersOf } from './checker.js';

/** An opinion may be as old as this when it counts: held for 5 ask periods, and longer on its way through a cut network. */
const FRESH_MS = 40_000;

export class OdownNeedsQuorum implements Checker {
  readonly name = 'ODOWN needs a quorum';
  readonly #seenMs = new Map<string, number>();

  constructor(readonly world: World) {}

  stepped(host: SentinelHost, input: Input, effects: readonly Effect[]): Verdict {
    const { nowMs } = this.world.clock;
    for (const master of mastersOf(host)) if (master.sdownSinceMs !== null) this.#seenMs.set(`${host.name}/${master.name}`, nowMs);
    for (const effect of effects) {
      // Seen, judged and over within one turn.
      if (effect.kind === 'event' && effect.name === '+sdown') this.#seenMs.set(`${host.name}/${masterInEvent(effect)}`, nowMs);
      if (effect.kind !== 'event' || (effect.name !== '+odown' && effect.name !== '+try-failover')) continue;
      const group = masterInEvent(effect);
      const master = host.state?.masters.get(group);
      const isOrdered = input.kind === 'command' && input.argv[1]?.toUpperCase() === 'FAILOVER';
      if (master === undefined || isOrdered) continue;
      const witnesses = this.world.hosts.filter(({ name }) => nowMs - (this.#seenMs.get(`${name}/${group}`) ?? 0) < FRESH_MS);
      if (witnesses.length >= master.quorum) continue;
      return `${host.name} says ${effect.name} of ${group}, which only ${witnesses.map(({ name }) => name).join(' ')} saw down; quorum ${master.quorum}`;
    }
    return null;
  }
}
