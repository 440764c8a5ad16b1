/**
 * Sees what others do to a master's key and entries: blocking queries of our own, since the package's Watch keeps its index after
 * errors, spins when the index flaps and stops on a 400.
 *
 * It only reports: the newest snapshot after a quiet moment, and that Consul can be reached again. What to do is decided by whoever
 * listens; nothing here writes. All queries of one master share one limit of two a second.
 */
import type { Log } from '../../log.js';
import type { Answer, ConsulClient, ReadOptions } from './client.js';
import type { Entry, KeyState, Snapshot } from './entry.js';
import { ConsulError } from './fault.js';
import type { MasterNames } from './naming.js';
import { pause } from './pause.js';
import { MIN_SPACING_MS, WAIT_MS, nextIndex, watchBackoffMs } from './watch-index.js';

export interface WatcherOptions {
  readonly names: MasterNames;
  /** A client of its own: its time-outs must not cut the connections of writes. */
  readonly client: ConsulClient;
  readonly log: Log;
  readonly random: () => number;
  /** False where the token may have no right to the key (agent mode); it then counts as absent. */
  readonly watchesKey: boolean;
  /** All three parts are known and one of them has changed. */
  readonly onSnapshot: (snapshot: Snapshot) => void;
  /** The first answer after a failure. */
  readonly onReachable: () => void;
}

/** Our own write shows in three answers that come one after the other: judge when they are all there. */
const SETTLE_MIN_MS = 50;
const SETTLE_SPREAD_MS = 200;

export class Watcher {
  readonly #options: WatcherOptions;
  readonly #stop = new AbortController();
  readonly #loops: Promise<void>[];
  #key: KeyState | null;
  #entries: readonly Entry[] | null = null;
  #replicaEntries: readonly Entry[] | null = null;
  #nextSlotMs = 0;
  #failing = 0;
  #settling: NodeJS.Timeout | null = null;

  constructor(options: WatcherOptions) {
    this.#options = options;
    const { client, names, watchesKey } = options;
    this.#key = watchesKey ? null : { fence: null, index: 0, unreadable: false };
    this.#loops = [
      ...(watchesKey ? [this.#watch((read) => client.readKey(names.key, read), (key) => { this.#key = key; })] : []),
      this.#watch((read) => client.readEntries(names.service, read), (entries) => { this.#entries = entries; }),
      this.#watch((read) => client.readEntries(names.replicaService, read), (entries) => { this.#replicaEntries = entries; }),
    ];
  }

  async close(): Promise<void> {
    this.#stop.abort();
    if (this.#settling !== null) clearTimeout(this.#settling);
    await Promise.all(this.#loops);
    this.#options.client.close();
  }

  async #watch<T>(ask: (options: ReadOptions) => Promise<Answer<T>>, keep: (value: T) => void): Promise<void> {
    const { signal } = this.#stop;
    let index = 0;
    let failures = 0;
    let last = '';
    while (!signal.aborted) {
      await this.#slot();
      if (signal.aborted) return;
      try {
        const answer = await ask({ signal, newerThan: index, waitMs: WAIT_MS });
        index = nextIndex(index, answer, WAIT_MS);
        if (failures > 0) this.#reached();
        failures = 0;
        const text = JSON.stringify(answer.value);
        if (text !== last) {
          last = text;
          keep(answer.value);
          this.#changed();
        }
      } catch (error) {
        if (signal.aborted) return;
        index = 0;
        failures++;
        this.#failed(error, failures);
        const isBusy = error instanceof ConsulError && error.kind === 'busy';
        await pause(watchBackoffMs(failures, isBusy) * (0.75 + this.#options.random() / 4), signal);
      }
    }
  }

  /** Waits for this master's next query to be due. */
  async #slot(): Promise<void> {
    const now = performance.now();
    const atMs = Math.max(now, this.#nextSlotMs);
    this.#nextSlotMs = atMs + MIN_SPACING_MS;
    if (atMs > now) await pause(atMs - now, this.#stop.signal);
  }

  #failed(error: unknown, failures: number): void {
    const { log, names } = this.#options;
    if (failures === 1) this.#failing++;
    if (failures === 1 && this.#failing === 1) log.warn({ master: names.master, err: error }, 'consul watch failed, trying on');
  }

  #reached(): void {
    this.#failing--;
    const { log, names, onReachable } = this.#options;
    if (this.#failing === 0) log.info({ master: names.master }, 'consul watch goes on');
    onReachable();
  }

  #changed(): void {
    if (this.#settling !== null) clearTimeout(this.#settling);
    this.#settling = setTimeout(() => {
      const [key, entries, replicaEntries] = [this.#key, this.#entries, this.#replicaEntries];
      if (key !== null && entries !== null && replicaEntries !== null) this.#options.onSnapshot({ key, entries, replicaEntries });
    }, SETTLE_MIN_MS + SETTLE_SPREAD_MS * this.#options.random());
  }
}
