/**
 * Host name look-ups beside the core: never blocking, few at a time, one at a time per name.
 *
 * getaddrinfo runs on the same small thread pool that writes the state file, so slow name servers must not fill it.
 */
import { lookup } from 'node:dns/promises';

const MAX_RUNNING = 2;

export class Resolver {
  readonly #onResolved: (host: string, ip: string | null) => void;
  readonly #waiting: string[] = [];
  readonly #running = new Set<string>();

  constructor(onResolved: (host: string, ip: string | null) => void) {
    this.#onResolved = onResolved;
  }

  /** Asks for a name unless that is under way; the answer goes to the listener, null when there is none. */
  resolve(host: string): void {
    if (this.#running.has(host) || this.#waiting.includes(host)) return;
    this.#waiting.push(host);
    this.#next();
  }

  #next(): void {
    if (this.#running.size >= MAX_RUNNING) return;
    const host = this.#waiting.shift();
    if (host === undefined) return;
    this.#running.add(host);
    void lookupOrNull(host).then((ip) => {
      this.#running.delete(host);
      this.#onResolved(host, ip);
      this.#next();
    });
    this.#next();
  }
}

/** The first address of a name, or null. */
export async function lookupOrNull(host: string): Promise<string | null> {
  try {
    return (await lookup(host)).address;
  } catch {
    // Not found, no name server, or a malformed name: all mean "no address now", and the caller keeps the last one.
    return null;
  }
}
