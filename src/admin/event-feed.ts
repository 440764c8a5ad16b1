/**
 * What happens, as it happens: journal entries and sentinel events, for whoever listens on the admin port (`pointsman watch`).
 *
 * Nothing is kept: who comes late has the journal. A listener that does not read is dropped rather than buffered for.
 */
import type { ServerResponse } from 'node:http';
import type { JournalEntry } from '../publishers/journal.js';

/** A sentinel event as a subscriber of the sentinel port would get it. */
export interface SentinelEvent {
  readonly kind: 'event';
  /** ISO 8601, UTC. */
  readonly at: string;
  /** e.g. `+switch-master`. */
  readonly name: string;
  readonly payload: string;
}

export type FeedEntry = JournalEntry | SentinelEvent;

/** Bytes that one listener may be behind. */
const MAX_BEHIND = 1 << 20;
const MAX_LISTENERS = 64;

export class EventFeed {
  readonly #listeners = new Set<ServerResponse>();

  get listeners(): number {
    return this.#listeners.size;
  }

  /** Sends every later entry as a line of JSON; false when there are too many listeners already. */
  add(response: ServerResponse): boolean {
    if (this.#listeners.size >= MAX_LISTENERS) return false;
    response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
    response.flushHeaders();
    this.#listeners.add(response);
    response.on('close', () => this.#listeners.delete(response));
    return true;
  }

  push(entry: FeedEntry): void {
    if (this.#listeners.size === 0) return;
    const line = `${JSON.stringify(entry)}\n`;
    for (const response of this.#listeners) {
      if (response.writableLength > MAX_BEHIND) response.destroy();
      else response.write(line);
    }
  }
}
