/**
 * Where the last zone serial survives a restart. Losing it costs little: serials start from the clock (see zone.ts); it
 * matters only where the zone changed more often than once a second, or the clock was set back.
 */
import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';

export interface SerialStore {
  /** The last serial given out, 0 when none is known. */
  load(): number;
  /** Nobody waits for it before an answer changes: a slow disk must not hold a failover up. May reject; the zone goes on with the serial it has. */
  save(serial: number): Promise<void>;
}

/** One decimal number in one file, replaced by renaming so that no reader ever sees half of it. */
export class FileSerialStore implements SerialStore {
  readonly #path: string;
  #wanted = 0;
  #writing: Promise<void> | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  load(): number {
    try {
      const text = readFileSync(this.#path, 'utf8').trim();
      return /^\d{1,10}$/.test(text) ? Math.min(Number(text), 0xffff_ffff) : 0;
    } catch {
      // No file yet, or an unreadable one: the clock alone is good enough.
      return 0;
    }
  }

  /** Serials that come while one is being written are skipped, but for the last. */
  save(serial: number): Promise<void> {
    this.#wanted = serial;
    this.#writing ??= this.#write().finally(() => (this.#writing = null));
    return this.#writing;
  }

  async #write(): Promise<void> {
    const temporary = `${this.#path}.tmp-${process.pid}`;
    for (let written = -1; written !== this.#wanted;) {
      written = this.#wanted;
      await writeFile(temporary, `${written}\n`);
      await rename(temporary, this.#path);
    }
  }
}
