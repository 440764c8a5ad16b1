/**
 * The ledger: a plain client that finds the master by name, writes numbers, and remembers every one that was acknowledged.
 *
 * Writing number N sets bit N of one key, so that "what does the master hold?" is one GET, however many there are. The client is
 * what an application without Sentinel support would be: it asks DNS when it connects, and connects again on any error.
 * A reign is the time on one address; a number lost in an earlier reign went down with that master (asynchronous replication),
 * one lost in the present reign is a fault.
 */
import { Redis } from 'ioredis';
import { sameAddress } from '../sentinel/wire/address.js';
import type { Address } from '../sentinel/wire/address.js';
import { pause } from './wait.js';

export const LEDGER_KEY = 'ledger';
const TICK_MS = 4;
const RETRY_MS = 10;
const MOST_PER_BATCH = 64;
const BATCHES_IN_FLIGHT = 8;
const CONNECT_LIMIT_MS = 500;
const ANSWER_LIMIT_MS = 1000;

export interface Reign {
  readonly address: Address;
  /** When its first write was acknowledged, by performance.now(). */
  readonly firstWriteMs: number;
}

/** Numbers `first..last` were acknowledged together. */
interface Receipt {
  readonly first: number;
  readonly last: number;
  readonly reign: number;
  readonly atMs: number;
}

/** Numbers `first..last` that one batch brought through; both times by the wall clock, in ms. */
export interface WrittenRun {
  readonly first: number;
  readonly last: number;
  readonly master: Address;
  readonly sentMs: number;
  readonly acknowledgedMs: number;
}

export interface LedgerOptions {
  /** Several ledgers on one master need a key each; default {@link LEDGER_KEY}. */
  readonly key?: string;
  /** Hears of everything that is acknowledged, for those who judge losses themselves. */
  readonly onWritten?: (run: WrittenRun) => void;
}

/** Losses that no earlier audit has counted. */
export interface Audit {
  /** Acknowledged by an earlier master. */
  readonly lostBefore: number;
  /** When the oldest of them was acknowledged, by performance.now(); null = none. */
  readonly oldestLossMs: number | null;
  /** Acknowledged by the present one. */
  readonly lostNow: number;
}

export class Ledger {
  readonly #resolve: () => Promise<Address | null>;
  readonly #perSecond: number;
  readonly #key: string;
  readonly #onWritten: ((run: WrittenRun) => void) | undefined;
  readonly #receipts: Receipt[] = [];
  readonly #reigns: Reign[] = [];
  readonly #counted = new Set<number>();
  readonly #stop = new AbortController();
  #next = 0;
  #running: Promise<void> | null = null;
  acknowledged = 0;
  /** Writes that were refused or not answered. */
  refusedWrites = 0;
  /** Attempts to connect that failed. */
  failedConnects = 0;

  /** `resolve` gives the address behind the name, or null when DNS has none. */
  constructor(resolve: () => Promise<Address | null>, perSecond: number, options: LedgerOptions = {}) {
    this.#resolve = resolve;
    this.#perSecond = perSecond;
    this.#key = options.key ?? LEDGER_KEY;
    this.#onWritten = options.onWritten;
  }

  /** The addresses written to so far, in order; the last one is the present. */
  get reigns(): readonly Reign[] {
    return this.#reigns;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when no write is under way any more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /**
   * Compares what has been acknowledged before the call with what the node at `master` holds.
   *
   * Rejects when the node can't be read.
   */
  async audit(master: Address): Promise<Audit> {
    const settled = this.#receipts.length;
    const present = this.#reigns.length - 1;
    const held = await readLedger(master, this.#key);
    const audit = { lostBefore: 0, oldestLossMs: null as number | null, lostNow: 0 };
    for (const receipt of this.#receipts.slice(0, settled)) {
      for (let number = receipt.first; number <= receipt.last; number++) {
        if (isHeld(held, number) || this.#counted.has(number)) continue;
        this.#counted.add(number);
        if (receipt.reign === present) audit.lostNow++;
        else audit.lostBefore++;
        if (receipt.reign !== present) audit.oldestLossMs = Math.min(audit.oldestLossMs ?? Infinity, receipt.atMs);
      }
    }
    return audit;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const master = await this.#resolve();
      if (master !== null) await this.#serve(master, signal);
      if (!signal.aborted) await pause(RETRY_MS);
    }
  }

  /** Writes to one address until something goes wrong, or `signal` says that it is enough. */
  async #serve(master: Address, signal: AbortSignal): Promise<void> {
    const redis = connectPlainly(master);
    try {
      await redis.connect();
    } catch {
      this.failedConnects++;
      redis.disconnect();
      return;
    }
    const underWay = new Set<Promise<boolean>>();
    let healthy = true;
    let dueSinceMs = performance.now();
    let due = 0;
    while (healthy && !signal.aborted) {
      due = Math.min(MOST_PER_BATCH, due + ((performance.now() - dueSinceMs) * this.#perSecond) / 1000);
      dueSinceMs = performance.now();
      if (due >= 1 && underWay.size < BATCHES_IN_FLIGHT) {
        const batch = this.#writeBatch(redis, master, Math.floor(due));
        due -= Math.floor(due);
        underWay.add(batch);
        void batch.then((accepted) => {
          underWay.delete(batch);
          healthy &&= accepted;
        });
      }
      await pause(TICK_MS);
    }
    // While stopping, what is under way may still be acknowledged; a broken connection has nothing more to say.
    if (!healthy) redis.disconnect();
    await Promise.all(underWay);
    redis.disconnect();
  }

  /** Whether every number of the batch was accepted. Never rejects. */
  async #writeBatch(redis: Redis, master: Address, count: number): Promise<boolean> {
    const first = this.#next;
    this.#next += count;
    const sentMs = Date.now();
    const commands = Array.from({ length: count }, (_, index) => ['setbit', this.#key, first + index, 1]);
    const replies = await redis.pipeline(commands).exec().catch(() => null);
    // No replies at all: every one is refused.
    const refused = commands.map((_, index) => replies?.[index]?.[0] !== null);
    for (let index = 0; index < count; index++) {
      if (refused[index] === true) this.refusedWrites++;
      else this.#acknowledge(first + index, master);
    }
    this.#tell(first, refused, master, sentMs);
    return !refused.includes(true);
  }

  /** Runs of accepted numbers between refused ones. */
  #tell(first: number, refused: readonly boolean[], master: Address, sentMs: number): void {
    if (this.#onWritten === undefined) return;
    const acknowledgedMs = Date.now();
    for (let start = refused.indexOf(false); start >= 0; ) {
      const next = refused.indexOf(true, start);
      const end = next < 0 ? refused.length : next;
      this.#onWritten({ first: first + start, last: first + end - 1, master, sentMs, acknowledgedMs });
      start = refused.indexOf(false, end);
    }
  }

  #acknowledge(number: number, master: Address): void {
    const atMs = performance.now();
    this.acknowledged++;
    const present = this.#reigns.at(-1);
    if (present === undefined || !sameAddress(present.address, master)) this.#reigns.push({ address: master, firstWriteMs: atMs });
    const reign = this.#reigns.length - 1;
    const last = this.#receipts.at(-1);
    // Numbers of one batch are acknowledged in one go: one receipt.
    const joins = last !== undefined && last.reign === reign && last.last === number - 1 && atMs - last.atMs < 1;
    if (joins) this.#receipts[this.#receipts.length - 1] = { ...last, last: number };
    else this.#receipts.push({ first: number, last: number, reign, atMs });
  }
}

/** Whether a ledger's value, as GET gives it, has the number. */
export function isHeld(value: Buffer, number: number): boolean {
  // Redis counts bits from the most significant one.
  return ((value[number >> 3] ?? 0) & (0x80 >> (number & 7))) !== 0;
}

/** No retries, no queue, a deadline on everything: the ledger decides itself what an error means. */
function connectPlainly({ host, port }: Address): Redis {
  const redis = new Redis({
    host, port, lazyConnect: true, enableOfflineQueue: false, enableReadyCheck: false, maxRetriesPerRequest: 0, retryStrategy: () => null,
    connectTimeout: CONNECT_LIMIT_MS, commandTimeout: ANSWER_LIMIT_MS, disableClientInfo: true, protocol: 2,
  });
  // Every failure also reaches the caller as a rejection.
  redis.on('error', () => undefined);
  return redis;
}

async function readLedger(master: Address, key: string): Promise<Buffer> {
  const redis = connectPlainly(master);
  try {
    await redis.connect();
    return (await redis.getBuffer(key)) ?? Buffer.alloc(0);
  } finally {
    redis.disconnect();
  }
}
