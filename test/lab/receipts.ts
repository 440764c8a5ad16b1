/**
 * What the clients were promised, read from their output as they write it, and how long each was without a promise.
 */
import type { Receipt } from './lineage.js';
import { linesFrom, type Client } from './site.js';

/** Runs of one client that lie so close together are judged as one. */
const TOGETHER_MS = 20;
/** A shorter time without an acknowledged write is no event. */
const SHORTEST_GAP_MS = 1_000;

export interface Gap {
  readonly client: string;
  readonly host: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export class Receipts {
  readonly #offsets = new Map<Client, number>();
  readonly #gaps: Gap[] = [];
  readonly #lastMs = new Map<Client, number>();
  readonly all: Receipt[] = [];
  /** What the clients complained of, a line each. */
  readonly complaints: string[] = [];
  acknowledged = 0;

  constructor(readonly clients: readonly Client[]) {}

  /** Takes what has been written since the last call. */
  read(): void {
    for (const client of this.clients) {
      const { lines, offset } = linesFrom(client.child.logPath, this.#offsets.get(client) ?? 0);
      this.#offsets.set(client, offset);
      for (const line of lines) {
        if (line.startsWith('{')) this.#take(client, JSON.parse(line) as Receipt);
        else this.complaints.push(`${client.name}: ${line}`);
      }
    }
  }

  /** The times, longest first, in which a client had nothing acknowledged, its start left out; `endMs` closes those that last. */
  gaps(endMs: number): Gap[] {
    const open = this.clients.map((client) => this.#gapOf(client, endMs)).filter((gap) => gap !== null);
    return [...this.#gaps, ...open].sort((a, b) => b.toMs - b.fromMs - (a.toMs - a.fromMs));
  }

  /** How many clients had a write acknowledged after `sinceMs`. */
  writing(sinceMs: number): number {
    return this.clients.filter((client) => (this.#lastMs.get(client) ?? 0) > sinceMs).length;
  }

  #gapOf(client: Client, toMs: number): Gap | null {
    const fromMs = this.#lastMs.get(client);
    return fromMs === undefined || toMs - fromMs < SHORTEST_GAP_MS ? null : { client: client.name, host: client.host, fromMs, toMs };
  }

  #take(client: Client, receipt: Receipt): void {
    const gap = this.#gapOf(client, receipt.acknowledgedMs);
    if (gap !== null) this.#gaps.push(gap);
    this.#lastMs.set(client, receipt.acknowledgedMs);
    this.acknowledged += receipt.last - receipt.first + 1;
    const previous = this.all.findLast(({ key }) => key === receipt.key);
    const joins = previous !== undefined && previous.host === receipt.host && previous.last === receipt.first - 1
      && receipt.acknowledgedMs - previous.sentMs < TOGETHER_MS;
    if (joins) this.all[this.all.lastIndexOf(previous)] = { ...previous, last: receipt.last, acknowledgedMs: receipt.acknowledgedMs };
    else this.all.push(receipt);
  }
}
