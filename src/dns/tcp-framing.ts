/**
 * Cuts a TCP byte stream into DNS messages: two bytes of length, then the message (RFC 1035 4.2.2, RFC 7766 8).
 *
 * Bytes are copied once into a buffer of the announced size, so a peer that drips them one by one costs no more than another.
 */
export class MessageFramer {
  #length: number | null = null;
  #firstLengthByte: number | null = null;
  #partial: Buffer | null = null;
  #filled = 0;

  /** Whether a message has begun and not ended. */
  get isInside(): boolean {
    return this.#firstLengthByte !== null || this.#length !== null;
  }

  /** Takes bytes from `chunk[at…]` up to the end of one message. Returns the new offset and that message, if it is complete. */
  take(chunk: Buffer, at: number): { readonly at: number; readonly message: Buffer | null } {
    let next = at;
    while (this.#length === null && next < chunk.length) {
      const byte = chunk[next] ?? 0;
      next += 1;
      if (this.#firstLengthByte === null) this.#firstLengthByte = byte;
      else this.#length = this.#firstLengthByte * 256 + byte;
    }
    if (this.#length === null) return { at: next, message: null };

    // The common case: the whole message lies in this chunk and needs no copy.
    if (this.#partial === null && chunk.length - next >= this.#length) {
      const message = chunk.subarray(next, next + this.#length);
      next += this.#length;
      this.#reset();
      return { at: next, message };
    }
    this.#partial ??= Buffer.allocUnsafe(this.#length);
    const copied = chunk.copy(this.#partial, this.#filled, next);
    this.#filled += copied;
    if (this.#filled < this.#length) return { at: next + copied, message: null };
    const message = this.#partial;
    this.#reset();
    return { at: next + copied, message };
  }

  #reset(): void {
    this.#length = null;
    this.#firstLengthByte = null;
    this.#partial = null;
    this.#filled = 0;
  }
}
