/**
 * Virtual time: a heap of things to do, in order of their instant and, within one millisecond, of their lane and their making.
 *
 * Nothing here looks at a real clock, so a life of minutes runs in the time that its computations take.
 */

/** Within one millisecond faults come first, then operators, then what ends a fault, then everything else. */
export type Lane = 'faults' | 'words' | 'ends' | 'rest';

const LANES: Readonly<Record<Lane, number>> = { faults: 0, words: 1, ends: 2, rest: 3 };

interface Entry {
  readonly atMs: number;
  readonly lane: number;
  readonly sequence: number;
  readonly run: () => void;
}

/** The one clock of a simulated world, and everything that is going to happen in it. */
export class EventQueue {
  readonly #heap: Entry[] = [];
  #sequence = 0;
  #nowMs: number;

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Runs `run` at an instant; one in the past counts as now. */
  at(atMs: number, run: () => void, lane: Lane = 'rest'): void {
    const heap = this.#heap;
    const entry = { atMs: Math.max(atMs, this.#nowMs), lane: LANES[lane], sequence: this.#sequence++, run };
    let hole = heap.length;
    heap.push(entry);
    while (hole > 0) {
      const up = (hole - 1) >> 1;
      const parent = heap[up] as Entry;
      if (!isBefore(entry, parent)) break;
      heap[hole] = parent;
      hole = up;
    }
    heap[hole] = entry;
  }

  after(delayMs: number, run: () => void): void {
    this.at(this.#nowMs + delayMs, run);
  }

  /** Runs everything up to and including `untilMs`; the clock then stands there. */
  runUntil(untilMs: number): void {
    for (let first = this.#heap[0]; first !== undefined && first.atMs <= untilMs; first = this.#heap[0]) this.#runFirst(first);
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  #runFirst(first: Entry): void {
    const heap = this.#heap;
    const last = heap.pop() as Entry;
    if (heap.length > 0) {
      let hole = 0;
      for (;;) {
        let down = 2 * hole + 1;
        if (down >= heap.length) break;
        if (down + 1 < heap.length && isBefore(heap[down + 1] as Entry, heap[down] as Entry)) down++;
        if (!isBefore(heap[down] as Entry, last)) break;
        heap[hole] = heap[down] as Entry;
        hole = down;
      }
      heap[hole] = last;
    }
    this.#nowMs = first.atMs;
    first.run();
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs;
  return a.lane < b.lane || (a.lane === b.lane && a.sequence < b.sequence);
}
