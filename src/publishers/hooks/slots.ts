/**
 * At most so many scripts at once over all masters (stock: 16), first come, first served.
 */

export class Slots {
  #free: number;
  readonly #queue: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves with a function that gives the slot back; rejects with the signal's reason when it aborts first. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#wait(signal);
    let held = true;
    return () => {
      if (held) this.#release();
      held = false;
    };
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((grant, refuse) => {
      const turn = (): void => {
        signal.removeEventListener('abort', leave);
        grant();
      };
      const leave = (): void => {
        this.#queue.splice(this.#queue.indexOf(turn), 1);
        refuse(signal.reason as Error);
      };
      this.#queue.push(turn);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  #release(): void {
    const next = this.#queue.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
