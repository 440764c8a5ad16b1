/**
 * A persistent table from wire names to values: a change gives a new table that shares all but one bucket with the old one.
 *
 * Looked up straight in a received message: hash over the lower-cased bytes, then every byte verified, so no string is made
 * per query and a clash of hashes costs one more comparison.
 */
import { LOWER_CASE } from './name.js';

interface Entry<T> {
  readonly hash: number;
  readonly name: Buffer;
  readonly value: T;
}

type Bucket<T> = readonly Entry<T>[];

export class NameTable<T> {
  readonly #buckets: readonly (Bucket<T> | undefined)[];
  readonly size: number;

  private constructor(buckets: readonly (Bucket<T> | undefined)[], size: number) {
    this.#buckets = buckets;
    this.size = size;
  }

  /** An empty table; `buckets` is a power of two, about the number of names expected, at most some hundred. */
  static empty<T>(buckets: number): NameTable<T> {
    return new NameTable<T>(new Array<Bucket<T> | undefined>(buckets).fill(undefined), 0);
  }

  /** The value at the name `bytes[from, to)`, compared without case. */
  find(bytes: Buffer, from: number, to: number): T | null {
    const hash = hashName(bytes, from, to);
    const bucket = this.#buckets[hash & (this.#buckets.length - 1)];
    if (bucket === undefined) return null;
    for (const entry of bucket) {
      if (entry.hash === hash && equalsIgnoringCase(entry.name, bytes, from, to)) return entry.value;
    }
    return null;
  }

  get(name: Buffer): T | null {
    return this.find(name, 0, name.length);
  }

  /** A table that holds `value` at `name` (lower-cased). */
  with(name: Buffer, value: T): NameTable<T> {
    return this.#replace(name, { hash: hashName(name, 0, name.length), name, value });
  }

  without(name: Buffer): NameTable<T> {
    return this.get(name) === null ? this : this.#replace(name, null);
  }

  *entries(): IterableIterator<readonly [Buffer, T]> {
    for (const bucket of this.#buckets) for (const { name, value } of bucket ?? []) yield [name, value];
  }

  #replace(name: Buffer, entry: Entry<T> | null): NameTable<T> {
    const slot = hashName(name, 0, name.length) & (this.#buckets.length - 1);
    const old = this.#buckets[slot] ?? [];
    const kept = old.filter((other) => !other.name.equals(name));
    const buckets = this.#buckets.slice();
    buckets[slot] = entry === null ? kept : [...kept, entry];
    return new NameTable(buckets, this.size - old.length + kept.length + (entry === null ? 0 : 1));
  }
}

/** FNV-1a over lower-cased bytes, its upper half folded in since the lowest bits choose the bucket. */
function hashName(bytes: Buffer, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ (LOWER_CASE[bytes[at] ?? 0] ?? 0), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** Whether `bytes[from, to)` is `name`, which is lower-cased. */
export function equalsIgnoringCase(name: Buffer, bytes: Buffer, from: number, to: number): boolean {
  if (name.length !== to - from) return false;
  for (let at = 0; at < name.length; at++) {
    if (name[at] !== LOWER_CASE[bytes[from + at] ?? 0]) return false;
  }
  return true;
}
