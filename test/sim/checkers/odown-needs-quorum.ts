/**
 * ODOWN is the word of a quorum: so many sentinels, the one that says it included, see this very node down, or have done so since the one
 * that says it does. And without ODOWN nobody tries a failover, unless an operator has ordered it.
 */
import type { Effect, Input } from '../../../src/sentinel/index.js';
import { formatAddress } from '../../../src/sentinel/wire/address.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';
import { masterInEvent, mastersOf } from './checker.js';

const seenKey = (host: SentinelHost, group: string, address: string): string => `${host.name} ${group} ${address}`;

/** The address in an event about a master: `master <name> <ip> <port> …`; the step may have gone on to another one. */
function addressIn(effect: Extract<Effect, { kind: 'event' }>): string {
  const [, , host = '', port] = effect.payload.split(' ');
  return formatAddress({ host, port: Number(port) });
}

export class OdownNeedsQuorum implements Checker {
  readonly name = 'ODOWN needs a quorum';
  /** When a sentinel was last seen to hold a master down, and since when it does without a break. */
  readonly #lastMs = new Map<string, number>();
  readonly #sinceMs = new Map<string, number>();

  constructor(readonly world: World) {}

  stepped(host: SentinelHost, input: Input, effects: readonly Effect[]): Verdict {
    const { nowMs } = this.world.clock;
    for (const master of mastersOf(host)) {
      // Seen, judged and over within one turn: the event tells.
      const began = effects.some((effect) => effect.kind === 'event' && effect.name === '+sdown' && masterInEvent(effect) === master.name);
      const isDown = began || master.sdownSinceMs !== null;
      if (isDown || this.#sinceMs.size > 0) this.#noteDown(seenKey(host, master.name, formatAddress(master.address)), isDown, began);
      // The target of a silent move is a replica to some and the master to others.
      for (const { sdownSinceMs, address } of master.replicas.values()) {
        if (sdownSinceMs !== null) this.#lastMs.set(seenKey(host, master.name, formatAddress(address)), nowMs);
      }
    }
    for (const effect of effects) {
      if (effect.kind !== 'event' || (effect.name !== '+odown' && effect.name !== '+try-failover')) continue;
      const master = host.state?.masters.get(masterInEvent(effect));
      const isOrdered = input.kind === 'command' && input.argv[1]?.toUpperCase() === 'FAILOVER';
      if (master === undefined || isOrdered) continue;
      const address = addressIn(effect);
      const sinceMs = this.#sinceMs.get(seenKey(host, master.name, address)) ?? nowMs;
      const lastMs = (each: SentinelHost): number => this.#lastMs.get(seenKey(each, master.name, address)) ?? -1;
      const witnesses = this.world.hosts.filter((each) => each === host || lastMs(each) >= sinceMs);
      if (witnesses.length >= master.quorum) continue;
      const names = witnesses.map(({ name }) => name).join(' ');
      return `${host.name} says ${effect.name} of ${master.name} at ${address}, which only ${names} saw down; quorum ${master.quorum}`;
    }
    return null;
  }

  #noteDown(key: string, isDown: boolean, began: boolean): void {
    const { nowMs } = this.world.clock;
    if (!isDown) {
      this.#sinceMs.delete(key);
      return;
    }
    this.#lastMs.set(key, nowMs);
    if (began || !this.#sinceMs.has(key)) this.#sinceMs.set(key, nowMs);
  }
}
