/**
 * How much a subscriber may leave unread: 32 MB at any time, or 8 MB for a minute (client-output-buffer-limit pubsub).
 */

const HARD_BYTES = 32 * 1024 * 1024;
const SOFT_BYTES = 8 * 1024 * 1024;
const SOFT_MS = 60_000;

export class OutputLimit {
  #softSinceMs: number | null = null;

  /** Takes the bytes unread now; what is too much, in words, or null. */
  judge(unreadBytes: number, nowMs: number): string | null {
    if (unreadBytes <= SOFT_BYTES) {
      this.#softSinceMs = null;
      return null;
    }
    this.#softSinceMs ??= nowMs;
    if (unreadBytes > HARD_BYTES) return `${unreadBytes} bytes of output waited, more than ${HARD_BYTES}`;
    return nowMs - this.#softSinceMs > SOFT_MS ? `more than ${SOFT_BYTES} bytes of output waited for ${SOFT_MS / 1000} s` : null;
  }
}
