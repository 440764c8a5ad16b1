/**
 * The barrier: writes at the old master are held by short pauses, each renewed long before it ends.
 *
 * A pause has its own deadline, so whatever happens to this program, writes flow again soon after it is gone.
 */
import type { Address } from '../sentinel/wire/address.js';
import type { Links } from './links.js';

export class WriteHold {
  readonly #links: Links;
  readonly #address: Address;
  readonly #lengthMs: number;
  #timer: NodeJS.Timeout | null = null;

  /** `downAfterMs`: a pause must be over before a sentinel whose PING waits behind a held PUBLISH loses its patience. */
  constructor(links: Links, address: Address, downAfterMs: number) {
    this.#links = links;
    this.#address = address;
    this.#lengthMs = Math.max(100, Math.min(2_000, Math.floor(downAfterMs / 2)));
  }

  get isHeld(): boolean {
    return this.#timer !== null;
  }

  /** Resolves when the first pause is in force. */
  async start(): Promise<void> {
    if (this.#timer !== null) return;
    await this.#pause();
    this.#timer = setInterval(() => void this.#pause().catch(() => undefined), this.#lengthMs / 3);
  }

  /** No renewals any more; `release`: writes flow at once. */
  async stop(release: boolean): Promise<void> {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
    // A node that can't be reached lets them flow by itself.
    if (release) await this.#links.ask(this.#address, ['CLIENT', 'UNPAUSE']).catch(() => undefined);
  }

  async #pause(): Promise<void> {
    await this.#links.ask(this.#address, ['CLIENT', 'PAUSE', String(this.#lengthMs), 'WRITE']);
  }
}
