/**
 * Three ways to feed a decoder from one row of a table: whole, byte by byte, and split at random places by a seed.
 */
import { createPrng, nextBelow } from '../../../../src/prng.js';

export type Feeding = 'whole' | 'byte by byte' | 'split at random';
export const FEEDINGS: readonly Feeding[] = ['whole', 'byte by byte', 'split at random'];

/** `bytes` in the chunks of a feeding; together they are always `bytes`. */
export function chunksOf(bytes: Buffer, feeding: Feeding, seed = bytes.length): Buffer[] {
  const prng = createPrng(seed);
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = feeding === 'whole' ? bytes.length : feeding === 'byte by byte' ? 1 : 1 + nextBelow(prng, 7);
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}
