/**
 * What happened, a line each: hashed whole (same seed, same hash), kept for the last few hundred lines, echoed on demand.
 */

/** The diary of one simulated world. */
export class Trace {
  static readonly kept = 200;
  readonly #ring: string[] = [];
  #count = 0;
  #low = 0x811c9dc5;
  #high = 0x1b873593;

  constructor(
    readonly nowMs: () => number,
    readonly echo: ((line: string) => void) | null = null,
  ) {}

  add(who: string, text: string): void {
    const line = `${(this.nowMs() / 1000).toFixed(3).padStart(9)} ${who.padEnd(4)} ${text}`;
    for (let i = 0; i < line.length; i++) {
      const code = line.charCodeAt(i);
      this.#low = Math.imul(this.#low ^ code, 0x01000193);
      this.#high = Math.imul(this.#high ^ code, 0x85ebca6b) ^ (this.#high >>> 13);
    }
    this.#ring[this.#count++ % Trace.kept] = line;
    this.echo?.(line);
  }

  get lines(): number {
    return this.#count;
  }

  hash(): string {
    return (this.#low >>> 0).toString(16).padStart(8, '0') + (this.#high >>> 0).toString(16).padStart(8, '0');
  }

  /** The last {@link Trace.kept} lines, oldest first. */
  tail(): string[] {
    const at = this.#count % Trace.kept;
    return this.#count <= Trace.kept ? [...this.#ring] : [...this.#ring.slice(at), ...this.#ring.slice(0, at)];
  }
}

/** Something happened that the rules accept and that makes the rest of this life meaningless. */
export class Accepted extends Error {
  override readonly name = 'Accepted';
}
