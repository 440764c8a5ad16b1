/**
 * Six clients of a ledger that live through planned moves: two pools that find the master by DNS, one pinned to an address, a
 * subscriber, a consumer that is blocked in BLPOP, and one that is always in the middle of a transaction.
 *
 * All but the pinned one ask DNS again when their connection goes. What each was told is compared with what the nodes hold.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { audit, type Audit } from '../../bench/moves/audit.js';
import { Wire, Writer, type Finder } from '../../bench/moves/writer.js';
import { DnsProbe } from '../../src/demo/dns-probe.js';
import type { Address } from '../../src/sentinel/wire/address.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import { NAME } from './lab.js';
import type { SilentLab } from './silent-lab.js';

const POOL_SIZE = 3;
const WRITE_EVERY_MS = 7;
const PINNED_PAUSE_MS = 50;
/** Longer than a test: the connection is blocked, or listens, until somebody cuts it. */
const WAIT_LIMIT_MS = 3_600_000;

/** Waits on one connection for what never comes, and reconnects by name when it is cut. */
class Waiter {
  cuts = 0;
  refused = 0;
  at: Address | null = null;
  #stopped = false;
  #wire: Wire | null = null;
  #running: Promise<void> | null = null;

  constructor(readonly name: string, readonly finder: Finder, readonly commands: readonly string[][]) {}

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wire?.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const address = await this.finder.find();
      this.#wire = address === null ? null : await Wire.open(address).catch(() => null);
      if (this.#wire === null) {
        await sleep(10);
        continue;
      }
      this.at = address;
      const replies: RespValue[] = await this.#wire.ask(this.commands, WAIT_LIMIT_MS);
      if (replies.some(({ kind }) => kind === 'error')) this.refused++;
      // A subscriber's answer comes at once; what it waits for is the end of its connection.
      while (this.#wire.isOpen && !this.#stopped) await sleep(10);
      this.cuts++;
    }
  }
}

export interface ClientReport {
  readonly name: string;
  /** Commands that got an error, or no answer. */
  readonly errors: number;
  /** Longest time without an acknowledgement, ms; null for those who only wait. */
  readonly blindMs: number | null;
}

export interface ClientLoad {
  /** Values that a connection of a pool sends at a time; default 1. */
  readonly batch?: number;
  /** Of one more client by DNS; default 0: there is none. */
  readonly writesPerSecond?: number;
}

const LOAD_EVERY_MS = 5;
/** What may have been held up for longer than this is dropped. */
const MAX_LOAD_BATCH = 5_000;

/** How many writes are due, at so many per second. */
function dueAt(perSecond: number): () => number {
  let lastMs = performance.now();
  return () => {
    const nowMs = performance.now();
    const due = Math.min(MAX_LOAD_BATCH, Math.round(((nowMs - lastMs) * perSecond) / 1_000));
    lastMs = nowMs;
    return Math.max(1, due);
  };
}

export class MigrateClients {
  readonly writers: readonly Writer[];
  readonly pools: readonly (readonly Writer[])[];
  /** Null: nobody knows a fixed address. */
  readonly pinned: Writer | null;
  readonly transactions: Writer;
  readonly load: Writer | null;
  readonly waiters: readonly Waiter[];
  readonly #probes: readonly DnsProbe[];
  readonly #errors = new Map<Writer, number>();

  constructor(site: SilentLab, pinnedTo: Address | null, { batch = 1, writesPerSecond = 0 }: ClientLoad = {}) {
    const { port } = site.node(0).address;
    this.#probes = site.agents.map(({ dnsPort }) => new DnsProbe({ host: '127.0.0.1', port: dnsPort ?? 0 }, NAME));
    const finderAt = (index: number): Finder => ({
      find: async () => {
        for (const probe of [...this.#probes.slice(index), ...this.#probes]) {
          const host = await probe.askHost();
          if (host !== null) return { host, port };
        }
        return null;
      },
    });
    this.pools = [0, 1].map((pool) => Array.from({ length: POOL_SIZE }, (_, index) =>
      new Writer({ name: `pool${pool}-${index}`, finder: finderAt(pool), everyMs: WRITE_EVERY_MS, batch: () => batch })));
    const fixed: Finder = { find: () => Promise.resolve(pinnedTo) };
    this.pinned = pinnedTo === null ? null : new Writer({ name: 'pinned', finder: fixed, everyMs: WRITE_EVERY_MS, refusedPauseMs: PINNED_PAUSE_MS });
    this.transactions = new Writer({ name: 'multi', finder: finderAt(2), everyMs: 1, transactions: true });
    this.load = writesPerSecond === 0 ? null : new Writer({ name: 'load', finder: finderAt(0), everyMs: LOAD_EVERY_MS, batch: dueAt(writesPerSecond) });
    const lone = [this.pinned, this.transactions, this.load].filter((writer) => writer !== null);
    this.writers = [...this.pools.flat(), ...lone];
    this.waiters = [
      new Waiter('subscriber', finderAt(0), [['SUBSCRIBE', 'news']]),
      new Waiter('blpop', finderAt(1), [['BLPOP', 'never:pushed', '0']]),
    ];
  }

  start(): void {
    for (const each of [...this.writers, ...this.waiters]) each.start();
  }

  /** A new measurement of gaps and errors. */
  mark(): void {
    for (const writer of this.writers) {
      writer.mark();
      this.#errors.set(writer, writer.unanswered + writer.refused);
    }
  }

  report(): ClientReport[] {
    const errors = (writer: Writer): number => writer.unanswered + writer.refused - (this.#errors.get(writer) ?? 0);
    const pool = (name: string, writers: readonly Writer[]): ClientReport => ({
      name,
      errors: writers.reduce((sum, writer) => sum + errors(writer), 0),
      blindMs: Math.round(Math.max(...writers.map((writer) => writer.longestGapMs))),
    });
    return [
      ...this.pools.map((writers, index) => pool(`pool ${index + 1} by DNS`, writers)),
      ...(this.pinned === null ? [] : [pool('pinned', [this.pinned])]),
      pool('MULTI loop', [this.transactions]),
      ...(this.load === null ? [] : [pool('load by DNS', [this.load])]),
      ...this.waiters.map(({ name, refused }): ClientReport => ({ name, errors: refused, blindMs: null })),
    ];
  }

  async stop(): Promise<void> {
    await Promise.all([...this.writers, ...this.waiters].map((each) => each.stop()));
    for (const probe of this.#probes) probe.close();
  }

  audit(nodes: readonly Address[]): Promise<Audit> {
    return audit(this.writers, nodes);
  }
}
