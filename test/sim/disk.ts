/**
 * A sentinel's disk: one file, replaced whole. A write takes time, may fail, and a crash in between keeps either version.
 */
import type { EventQueue } from './clock.js';
import type { Draw } from './draw.js';

export interface DiskOptions {
  readonly maxWriteMs: number;
}

export class Disk {
  /** Added to every write while the disk is in trouble. */
  slowMs = 0;
  isFailing = false;
  /** Whether the last finished write failed: what the sentinel knows is then safe nowhere. */
  lastWriteFailed = false;
  #pending: string | null = null;
  #life = 0;

  constructor(
    readonly clock: EventQueue,
    readonly draw: Draw,
    readonly options: DiskOptions,
    public text: string,
  ) {}

  write(text: string, done: (saved: boolean) => void): void {
    this.#pending = text;
    const life = this.#life;
    this.clock.after(this.draw.between(0, this.options.maxWriteMs) + this.slowMs, () => {
      if (life !== this.#life) return;
      this.#pending = null;
      this.lastWriteFailed = this.isFailing;
      if (!this.isFailing) this.text = text;
      done(!this.isFailing);
    });
  }

  /** The process died: a write under way is either on disk, unknown to anyone, or never happened. */
  crash(): void {
    this.#life++;
    if (this.#pending !== null && !this.isFailing && this.draw.chance(0.5)) this.text = this.#pending;
    this.#pending = null;
    this.lastWriteFailed = false;
  }
}
