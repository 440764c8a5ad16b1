/**
 * A persistent table from wire names to values: a change gives a new table that shares all but one path with the old one.
 *
 * A trie over the hash, 32 ways a level. Looked up straight in a received message: hash over the lower-cased bytes, then every
 * byte verified, so no string is made per query and a clash of hashes costs one more comparison.
 */
import { LOWER_CASE } from './name.js';

interface Entry<T> {
  readonly hash: number;
  /** The name's bytes as a latin1 string: one object in memory where a Buffer is three. */
  readonly key: string;
  readonly value: T;
  /** Another name with the same hash. */
  readonly next: Entry<T> | null;
}

type Branch<T> = readonly (Branch<T> | Entry<T> | null)[];
type Slot<T> = Branch<T> | Entry<T> | null;

/** One name in two tables; null where it is not there. */
export interface Change<T> {
  readonly name: Buffer;
  readonly before: T | null;
  readonly after: T | null;
}

const WAYS = 32;
const BITS = 5;
const EMPTY_BRANCH: readonly null[] = new Array<null>(WAYS).fill(null);

export class NameTable<T> {
  readonly #root: Branch<T>;

  private constructor(root: Branch<T>) {
    this.#root = root;
  }

  static empty<T>(): NameTable<T> {
    return new NameTable<T>(EMPTY_BRANCH);
  }

  /** A table of these names (lower-cased); of two alike the later one counts. */
  static of<T>(entries: Iterable<readonly [Buffer, T]>): NameTable<T> {
    let root: Branch<T> = EMPTY_BRANCH;
    for (const [name, value] of entries) root = replaced(root, 0, hashName(name, 0, name.length), name.toString('latin1'), value, true);
    return new NameTable(root);
  }

  /** The value at the name `bytes[from, to)`, compared without case. */
  find(bytes: Buffer, from: number, to: number): T | null {
    const hash = hashName(bytes, from, to);
    let slot: Slot<T> = this.#root;
    for (let shift = 0; isBranch(slot); shift += BITS) slot = slot[(hash >>> shift) & (WAYS - 1)] ?? null;
    for (let entry: Entry<T> | null = slot; entry !== null; entry = entry.next) {
      if (entry.hash === hash && isSpelled(entry.key, bytes, from, to)) return entry.value;
    }
    return null;
  }

  get(name: Buffer): T | null {
    return this.find(name, 0, name.length);
  }

  /** A table that holds `value` at `name` (lower-cased). */
  with(name: Buffer, value: T): NameTable<T> {
    return new NameTable(replaced(this.#root, 0, hashName(name, 0, name.length), name.toString('latin1'), value, true));
  }

  /** A table without `name`; the same one when it is not there. */
  without(name: Buffer): NameTable<T> {
    if (this.get(name) === null) return this;
    return new NameTable(replaced<T>(this.#root, 0, hashName(name, 0, name.length), name.toString('latin1'), null, false));
  }

  *entries(): IterableIterator<readonly [Buffer, T]> {
    yield* entriesOf(this.#root);
  }

  /** The names whose value is not the same object as in `older`; what both tables share is not looked at. */
  *changesSince(older: NameTable<T>): IterableIterator<Change<T>> {
    yield* changesOf(older.#root, this.#root);
  }
}

function isBranch<T>(slot: Slot<T>): slot is Branch<T> {
  return Array.isArray(slot);
}

function* entriesOf<T>(slot: Slot<T>): IterableIterator<readonly [Buffer, T]> {
  if (isBranch(slot)) {
    for (const child of slot) yield* entriesOf(child);
    return;
  }
  for (let entry = slot; entry !== null; entry = entry.next) yield [Buffer.from(entry.key, 'latin1'), entry.value];
}

function* changesOf<T>(before: Slot<T>, after: Slot<T>): IterableIterator<Change<T>> {
  if (before === after) return;
  if (isBranch(before) && isBranch(after)) {
    for (let index = 0; index < WAYS; index++) yield* changesOf(before[index] ?? null, after[index] ?? null);
    return;
  }
  const old = new Map([...entriesOf(before)].map(([name, value]) => [name.toString('latin1'), value]));
  for (const [name, value] of entriesOf(after)) {
    const key = name.toString('latin1');
    const was = old.get(key) ?? null;
    old.delete(key);
    if (was !== value) yield { name, before: was, after: value };
  }
  for (const [key, value] of old) yield { name: Buffer.from(key, 'latin1'), before: value, after: null };
}

/** `branch` with the entry of `key` put in (`present`) or taken out; copies one path. */
function replaced<T>(branch: Branch<T>, shift: number, hash: number, key: string, value: T | null, present: boolean): Branch<T> {
  const index = (hash >>> shift) & (WAYS - 1);
  const slot = branch[index] ?? null;
  const copy = branch.slice();
  if (isBranch(slot)) {
    copy[index] = replaced(slot, shift + BITS, hash, key, value, present);
  } else if (slot === null || slot.hash === hash) {
    copy[index] = chained(slot, hash, key, value, present);
  } else if (present) {
    // Another hash lives here: both move one level down, where they part sooner or later, since they differ in some bit.
    const below: (Branch<T> | Entry<T> | null)[] = EMPTY_BRANCH.slice();
    below[(slot.hash >>> (shift + BITS)) & (WAYS - 1)] = slot;
    copy[index] = replaced(below, shift + BITS, hash, key, value, true);
  }
  return copy;
}

/** The entries of one hash, that of `key` first. */
function chained<T>(chain: Entry<T> | null, hash: number, key: string, value: T | null, present: boolean): Entry<T> | null {
  let rest: Entry<T> | null = null;
  for (let entry = chain; entry !== null; entry = entry.next) {
    if (entry.key !== key) rest = { ...entry, next: rest };
  }
  return present ? { hash, key, value: value as T, next: rest } : rest;
}

/** FNV-1a over lower-cased bytes, its upper half folded in since the lowest bits choose first. */
function hashName(bytes: Buffer, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ (LOWER_CASE[bytes[at] ?? 0] ?? 0), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

function isSpelled(key: string, bytes: Buffer, from: number, to: number): boolean {
  if (key.length !== to - from) return false;
  for (let at = 0; at < key.length; at++) {
    if (key.charCodeAt(at) !== LOWER_CASE[bytes[from + at] ?? 0]) return false;
  }
  return true;
}

/** Whether `bytes[from, to)` is `name`, which is lower-cased. */
export function equalsIgnoringCase(name: Buffer, bytes: Buffer, from: number, to: number): boolean {
  if (name.length !== to - from) return false;
  for (let at = 0; at < name.length; at++) {
    if (name[at] !== LOWER_CASE[bytes[from + at] ?? 0]) return false;
  }
  return true;
}
