/**
 * Received bytes that wait to be decoded: append at the end, look, skip at the front.
 *
 * Costs are linear however the bytes arrive: a search goes on where the last one gave up, room grows by doubling, and
 * a buffer that once held much is let go as soon as it is empty.
 */

const SMALLEST_ROOM = 256;
const LARGEST_IDLE_ROOM = 64 * 1024;

export class ByteQueue {
  #buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  /** Bytes after the start that hold no match of the search in progress. */
  #searched = 0;

  /** Bytes that wait. */
  get length(): number {
    return this.#end - this.#start;
  }

  /** Copies `chunk` to the end; the caller may reuse it. */
  append(chunk: Uint8Array): void {
    this.#makeRoom(chunk.length);
    this.#buffer.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /** Offset of the first `byte`, or -1. Until the next {@link skip} it must be asked for the same byte again. */
  indexOf(byte: number): number {
    const found = this.#buffer.subarray(this.#start + this.#searched, this.#end).indexOf(byte);
    if (found < 0) this.#searched = this.length;
    return found < 0 ? -1 : this.#searched + found;
  }

  /** The byte at `offset`, or -1 outside. */
  at(offset: number): number {
    return offset >= 0 && offset < this.length ? this.#buffer[this.#start + offset] ?? -1 : -1;
  }

  /** The bytes in `[from, to)` as UTF-8 text. */
  text(from: number, to: number): string {
    return this.#buffer.toString('utf8', this.#start + from, this.#start + to);
  }

  /** Forgets the first `count` bytes. */
  skip(count: number): void {
    this.#start += count;
    this.#searched = 0;
    if (this.#start < this.#end) return;
    this.#start = this.#end = 0;
    if (this.#buffer.length > LARGEST_IDLE_ROOM) this.#buffer = Buffer.alloc(0);
  }

  /** Forgets everything. */
  clear(): void {
    this.skip(this.length);
  }

  #makeRoom(count: number): void {
    if (this.#end + count <= this.#buffer.length) return;
    const needed = this.length + count;
    // Moving within the same buffer pays off only where at least half of it is free: each byte then moves O(1) times.
    const target = needed * 2 <= this.#buffer.length ? this.#buffer : Buffer.allocUnsafe(Math.max(SMALLEST_ROOM, needed * 2));
    this.#buffer.copy(target, 0, this.#start, this.#end);
    this.#end -= this.#start;
    this.#start = 0;
    this.#buffer = target;
  }
}
