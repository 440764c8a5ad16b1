/**
 * The journal: what happened to every master and every output, one JSON line each, in a file that rotates by size (rule 8).
 *
 * It is evidence, not state: nothing is ever read back to decide something, a failing disk is said once in the log and costs
 * nothing else, and writing waits for nobody. A line that a crash cut off is closed at the next start and skipped by readers.
 */
import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { messageOf } from '../errors.js';
import type { Log } from '../log.js';
import { sameRoute } from '../route/route.js';
import type { Route } from '../route/route.js';
import { formatAddress } from '../sentinel/wire/address.js';
import type { OutputResult } from './reconciler.js';

/** A Route that differs from the one before. */
export interface RouteEntry {
  readonly kind: 'route';
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly master: string;
  readonly epoch: number;
  readonly order: number;
  readonly phase: Route['phase'];
  /** Why, in one or a few words, e.g. `+switch-master`; empty where nobody said. */
  readonly reason: string;
  /** Where clients went before; null where nobody knew. */
  readonly from: string | null;
  readonly to: string | null;
  /** Who made it so: this agent as leader, or another one (`observer`), or the words the caller gave. */
  readonly actor: string;
  readonly trusted: boolean;
  readonly confirmed: boolean;
  readonly healthyReplicas: number;
}

/** What came of telling one output. */
export interface OutputEntry {
  readonly kind: 'output';
  readonly at: string;
  readonly master: string;
  readonly output: string;
  readonly outcome: OutputResult['outcome'];
  readonly epoch: number;
  readonly order: number;
  readonly phase: Route['phase'];
  readonly to: string | null;
  readonly publishedOrder: number | null;
  readonly attempts: number;
  readonly latencyMs: number;
  readonly detail: string;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export type JournalEntry = RouteEntry | OutputEntry;

export interface JournalOptions {
  /** Null: nothing is written, listeners are told all the same. */
  readonly path: string | null;
  readonly log: Log;
  /** Size at which the file becomes `path.1`. */
  readonly maxBytes?: number;
  /** How many rotated files stay. */
  readonly keep?: number;
  readonly now?: () => number;
  /** Told of every entry, at once. */
  readonly onEntry?: (entry: JournalEntry) => void;
}

/** Lines that may wait for a slow disk; beyond it the newest are dropped and counted. */
const MAX_WAITING = 10_000;

export class Journal {
  readonly #path: string;
  readonly #isWritten: boolean;
  readonly #onEntry: (entry: JournalEntry) => void;
  readonly #log: Log;
  readonly #maxBytes: number;
  readonly #keep: number;
  readonly #now: () => number;
  readonly #lastRoutes = new Map<string, Route>();
  #waiting: string[] = [];
  #writing: Promise<void> | null = null;
  #file: { readonly handle: FileHandle; size: number } | null = null;
  #failing = false;
  #dropped = 0;
  #closed = false;

  constructor({ path, log, maxBytes = 10 * 1024 * 1024, keep = 5, now = Date.now, onEntry = () => undefined }: JournalOptions) {
    this.#path = path ?? '';
    this.#isWritten = path !== null;
    this.#onEntry = onEntry;
    this.#log = log;
    this.#maxBytes = maxBytes;
    this.#keep = keep;
    this.#now = now;
  }

  /** Lines that could not be written since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Notes a Route if it differs from the master's last one. */
  route(route: Route, { reason = '', actor = actorOf(route) }: { readonly reason?: string; readonly actor?: string } = {}): void {
    const before = this.#lastRoutes.get(route.master);
    if (before !== undefined && sameRoute(before, route)) return;
    this.#lastRoutes.set(route.master, route);
    const moved = before !== undefined && textOf(before) !== textOf(route);
    this.#append({
      kind: 'route', at: this.#at(), master: route.master, epoch: route.configEpoch, order: route.order, phase: route.phase, reason,
      from: moved ? textOf(before) : route.previous === null ? null : formatAddress(route.previous), to: textOf(route), actor,
      trusted: route.trusted, confirmed: route.confirmed, healthyReplicas: route.replicas.filter((replica) => replica.healthy).length,
    });
  }

  /** Notes an output's result; a re-check that found everything as it was is no news. */
  output(result: OutputResult): void {
    if (result.recheck && result.outcome === 'published') return;
    const { route, error } = result;
    this.#append({
      kind: 'output', at: this.#at(), master: result.master, output: result.output, outcome: result.outcome, epoch: route.configEpoch,
      order: route.order, phase: route.phase, to: textOf(route), publishedOrder: result.publishedOrder, attempts: result.attempts,
      latencyMs: result.latencyMs, detail: result.detail, error: error === null ? null : { code: error.code, message: error.message },
    });
  }

  /** The master is gone; the next Route of that name is news again. */
  forget(master: string): void {
    this.#lastRoutes.delete(master);
  }

  /** Resolves when everything noted so far is on its way to the disk (written, not synced) or dropped. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.flush();
    await this.#closeFile();
  }

  #at(): string {
    return new Date(this.#now()).toISOString();
  }

  #append(entry: JournalEntry): void {
    this.#onEntry(entry);
    if (!this.#isWritten) return;
    if (this.#closed || this.#waiting.length >= MAX_WAITING) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(`${JSON.stringify(entry)}\n`);
    this.#writing ??= this.#drain();
  }

  async #drain(): Promise<void> {
    // Let everything that is noted in this turn go out in one write.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      this.#waiting = [];
      try {
        await this.#write(lines);
        if (this.#failing) this.#log.info({ path: this.#path, dropped: this.#dropped }, 'journal is written again');
        this.#failing = false;
      } catch (error) {
        this.#dropped += lines.length;
        if (!this.#failing) this.#log.error({ path: this.#path, err: error }, `journal cannot be written: ${messageOf(error)}`);
        this.#failing = true;
        await this.#closeFile();
      }
    }
    this.#writing = null;
  }

  async #write(lines: readonly string[]): Promise<void> {
    let batch: string[] = [];
    let batchBytes = 0;
    for (const line of lines) {
      const { size } = (this.#file ??= await this.#openFile());
      const bytes = Buffer.byteLength(line);
      if (size + batchBytes > 0 && size + batchBytes + bytes > this.#maxBytes) {
        await this.#put(batch, batchBytes);
        [batch, batchBytes] = [[], 0];
        await this.#rotate();
      }
      batch.push(line);
      batchBytes += bytes;
    }
    await this.#put(batch, batchBytes);
  }

  async #put(lines: readonly string[], bytes: number): Promise<void> {
    if (bytes === 0) return;
    const file = (this.#file ??= await this.#openFile());
    await file.handle.appendFile(lines.join(''));
    file.size += bytes;
  }

  async #openFile(): Promise<{ handle: FileHandle; size: number }> {
    await mkdir(dirname(this.#path), { recursive: true });
    const handle = await open(this.#path, 'a+', 0o640);
    const { size } = await handle.stat();
    if (size === 0) return { handle, size };
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
    if (buffer[0] === 0x0a) return { handle, size };
    await handle.appendFile('\n');
    return { handle, size: size + 1 };
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    try {
      await file?.handle.close();
    } catch (error) {
      this.#log.debug({ err: error }, 'journal file did not close cleanly');
    }
  }

  /** `path` → `path.1` → `path.2` …; the oldest goes. */
  async #rotate(): Promise<void> {
    await this.#closeFile();
    const nameOf = (generation: number): string => (generation === 0 ? this.#path : `${this.#path}.${generation}`);
    await rm(nameOf(this.#keep), { force: true });
    for (let generation = this.#keep - 1; generation >= 0; generation--) {
      const exists = await stat(nameOf(generation)).then(() => true, () => false);
      if (exists) await rename(nameOf(generation), nameOf(generation + 1));
    }
  }
}

const actorOf = (route: Route): string => (route.role === 'leader' ? 'this agent' : 'observer');
const textOf = (route: Route): string | null => (route.primary === null ? null : formatAddress(route.primary));

/** All entries that can still be read, oldest first, rotated files included. Broken lines are skipped; no file is no entry. */
export async function* readJournal(path: string): AsyncGenerator<JournalEntry> {
  const exists = (name: string): Promise<boolean> => stat(name).then((found) => found.isFile(), () => false);
  const names: string[] = [];
  for (let generation = 1; await exists(`${path}.${generation}`); generation++) names.unshift(`${path}.${generation}`);
  if (await exists(path)) names.push(path);
  for (const name of names) {
    for await (const line of createInterface({ input: createReadStream(name, 'utf8'), crlfDelay: Infinity })) {
      const entry = parseEntry(line);
      if (entry !== null) yield entry;
    }
  }
}

function parseEntry(line: string): JournalEntry | null {
  try {
    const entry: unknown = JSON.parse(line);
    const known = typeof entry === 'object' && entry !== null && 'kind' in entry && (entry.kind === 'route' || entry.kind === 'output');
    return known ? (entry as JournalEntry) : null;
  } catch {
    // Cut off by a crash or a full disk; the entries around it still count.
    return null;
  }
}
