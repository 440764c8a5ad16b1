/**
 * Warnings that a stranger can cause at will: one line in ten seconds, with the number of those held back.
 */
import type { ServerLog } from './options.js';

const EVERY_MS = 10_000;

export class LogThrottle {
  readonly #log: ServerLog;
  #nextMs = 0;
  #heldBack = 0;

  constructor(log: ServerLog) {
    this.#log = log;
  }

  warn(fields: object, message: string, nowMs: number = performance.now()): void {
    if (nowMs < this.#nextMs) {
      this.#heldBack++;
      return;
    }
    this.#log.warn({ ...fields, heldBack: this.#heldBack }, message);
    this.#nextMs = nowMs + EVERY_MS;
    this.#heldBack = 0;
  }
}
