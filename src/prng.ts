/**
 * The only randomness of the pure half: a small seeded generator whose state is a value.
 *
 * sfc32: 128 bits of state, good statistics, and the same sequence on every machine, so that a seed reproduces a whole life
 * of a cluster. Not for secrets; run ids of a real process come from node:crypto at the gate.
 */

/** Mutable generator state; lives inside the state it serves. */
export interface Prng {
  a: number;
  b: number;
  c: number;
  counter: number;
}

/** A generator seeded with a 32-bit (or wider, folded) integer. */
export function createPrng(seed: number): Prng {
  const prng: Prng = { a: seed | 0, b: Math.floor(seed / 0x1_0000_0000) | 0, c: 0x9e3779b9 | 0, counter: 1 };
  for (let round = 0; round < 12; round++) nextUint32(prng);
  return prng;
}

/** The next 32 random bits as an unsigned integer. */
export function nextUint32(prng: Prng): number {
  const sum = (((prng.a + prng.b) | 0) + prng.counter) | 0;
  prng.counter = (prng.counter + 1) | 0;
  prng.a = prng.b ^ (prng.b >>> 9);
  prng.b = (prng.c + (prng.c << 3)) | 0;
  prng.c = ((prng.c << 21) | (prng.c >>> 11)) + sum | 0;
  return sum >>> 0;
}

/** An integer in `[0, bound)`; `bound` is a positive integer below 2^32. */
export function nextBelow(prng: Prng, bound: number): number {
  return Math.floor((nextUint32(prng) / 0x1_0000_0000) * bound);
}

/** A number in `[0, 1)`. */
export function nextUnit(prng: Prng): number {
  return nextUint32(prng) / 0x1_0000_0000;
}

/** `digits` lower-case hexadecimal characters, as in run ids. */
export function nextHex(prng: Prng, digits: number): string {
  let text = '';
  while (text.length < digits) text += nextUint32(prng).toString(16).padStart(8, '0');
  return text.slice(0, digits);
}
