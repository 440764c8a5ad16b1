/**
 * Where the last zone serial survives a restart. Losing it costs little: serials start from the clock (see zone.ts); it
 * matters only where the zone changed more often than once a second, or the clock was set back.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';

export interface SerialStore {
  /** The last serial given out, 0 when none is known. */
  load(): number;
  /** May throw; the zone then goes on with the serial it has. */
  save(serial: number): void;
}

/** One decimal number in one file, replaced by renaming so that no reader ever sees half of it. */
export class FileSerialStore implements SerialStore {
  readonly #path: string;

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

  save(serial: number): void {
    const temporary = `${this.#path}.tmp-${process.pid}`;
    writeFileSync(temporary, `${serial}\n`);
    renameSync(temporary, this.#path);
  }
}
