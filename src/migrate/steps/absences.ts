/**
 * Which nodes do not answer any more: they are not waited for, but left to the sentinels. One that is merely busy (it loads, or drops what
 * it had) does not count.
 */
import type { Address } from '../../sentinel/wire/address.js';
import { formatAddress } from '../../sentinel/wire/address.js';
import type { Links } from '../links.js';

const ABSENT_LIMIT_MS = 5_000;

export class Absences {
  /** Nodes that are given up, as `ip:port`. */
  readonly names = new Set<string>();
  readonly #since = new Map<string, number>();

  constructor(readonly links: Pick<Links, 'isAlive'>) {}

  answered(address: Address): void {
    this.#since.delete(formatAddress(address));
  }

  /** A question had no answer: whether the node is given up by now. */
  async isGivenUp(address: Address): Promise<boolean> {
    const name = formatAddress(address);
    const startMs = this.#since.get(name) ?? performance.now();
    this.#since.set(name, startMs);
    if (performance.now() - startMs <= ABSENT_LIMIT_MS || (await this.links.isAlive(address))) return false;
    this.names.add(name);
    return true;
  }

  /** What is left over because of them. */
  problems(): string[] {
    return [...this.names].map((name) => `${name} does not answer: when it is back, the sentinels make it follow and copy`);
  }
}
