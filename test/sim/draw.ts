/**
 * Drawing from the seed in the shapes that the simulator needs: ranges, choices, chances, shuffles.
 */
import { must } from '../../src/assert.js';
import type { Prng } from '../../src/prng.js';
import { createPrng, nextBelow, nextHex, nextUint32, nextUnit } from '../../src/prng.js';

/** A stream of draws. Parts of the world have one each, so that a change in one leaves the others' luck alone. */
export class Draw {
  readonly #prng: Prng;

  constructor(seed: number) {
    this.#prng = createPrng(seed);
  }

  /** An integer from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + nextBelow(this.#prng, high - low + 1);
  }

  chance(probability: number): boolean {
    return nextUnit(this.#prng) < probability;
  }

  /** One of the items; an item listed twice is twice as likely. */
  oneOf<T>(items: readonly T[]): T {
    return must(items[nextBelow(this.#prng, items.length)], 'nothing to choose from');
  }

  /** Waiting time of mean `meanMs`, as for events that don't know of each other. */
  waitMs(meanMs: number): number {
    return Math.round(-Math.log(1 - nextUnit(this.#prng)) * meanMs);
  }

  shuffled<T>(items: readonly T[]): T[] {
    const left = [...items];
    const result: T[] = [];
    while (left.length > 0) result.push(...left.splice(nextBelow(this.#prng, left.length), 1));
    return result;
  }

  hex(digits: number): string {
    return nextHex(this.#prng, digits);
  }

  seed(): number {
    return nextUint32(this.#prng);
  }

  /** A stream of its own for another part. */
  fork(): Draw {
    return new Draw(this.seed());
  }
}
