/**
 * A client of the ledger: it writes unique values and increments one counter, remembers what was acknowledged, and how long it
 * was without an acknowledgement.
 *
 * How it finds the master is its `Finder`; on any error it asks again and reconnects at once. No library in between: what is
 * measured is the server side.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Address } from '../../src/sentinel/wire/address.js';
import { RespReplyDecoder } from '../../src/sentinel/wire/resp-decoder.js';
import { encodeCommand } from '../../src/sentinel/wire/resp-encoder.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';

export const COUNTER = 'counter';
const CONNECT_LIMIT_MS = 1_000;
/** Longer than any pause of writes that ends well. */
const ANSWER_LIMIT_MS = 10_000;
const REFUSED_PAUSE_MS = 1;

export interface Finder {
  /** The address to connect to now; null = nobody says. */
  find(): Promise<Address | null>;
  /** Told whenever clients are sent elsewhere, for those who listen. */
  onMove?(moved: (to: Address) => void): void;
}

export interface WriterSpec {
  readonly name: string;
  readonly finder: Finder;
  /** Between two writes. */
  readonly everyMs: number;
  /** Before it tries again after a refusal (READONLY): a pinned client need not hurry. */
  readonly refusedPauseMs?: number;
  /** How many values go out together this time (at least 1), each of them acknowledged for itself; default 1. */
  readonly batch?: () => number;
  /** Each pair of writes is a transaction that stays open for a while. */
  readonly transactions?: boolean;
}

/** One connection; replies come in order. */
export class Wire {
  readonly #socket: Socket;
  readonly #decoder = new RespReplyDecoder();
  readonly #waiting: { take: (reply: RespValue) => void; fail: (reason: Error) => void }[] = [];
  isOpen = true;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (bytes) => {
      for (const reply of this.#decoder.push(bytes)) this.#waiting.shift()?.take(reply);
    });
    socket.on('error', () => this.close());
    socket.on('close', () => this.close());
  }

  static open({ host, port }: Address): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, noDelay: true });
      const late = setTimeout(() => socket.destroy(new Error('connect takes too long')), CONNECT_LIMIT_MS);
      socket.once('error', reject);
      socket.once('close', () => clearTimeout(late));
      socket.once('connect', () => {
        clearTimeout(late);
        resolve(new Wire(socket));
      });
    });
  }

  /** Sends together, resolves with the replies that came before the connection was lost, or `limitMs` were over. */
  async ask(commands: readonly string[][], limitMs = ANSWER_LIMIT_MS): Promise<RespValue[]> {
    const replies = commands.map(() => new Promise<RespValue>((take, fail) => this.#waiting.push({ take, fail })));
    this.#socket.write(Buffer.concat(commands.map((argv) => encodeCommand(argv))));
    const late = setTimeout(() => this.close(), limitMs);
    try {
      const settled = await Promise.allSettled(replies);
      return settled.filter((each) => each.status === 'fulfilled').map(({ value }) => value);
    } finally {
      clearTimeout(late);
    }
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#socket.destroy();
    for (const { fail } of this.#waiting.splice(0)) fail(new Error('connection lost'));
  }
}

const TRANSACTION_MS = 5;

/** The replies inside EXEC's; none when the connection was lost on the way (a MULTI that is not executed changes nothing). */
async function transact(wire: Wire, commands: readonly string[][]): Promise<readonly RespValue[]> {
  await wire.ask([['MULTI']]);
  await sleep(TRANSACTION_MS);
  if (!wire.isOpen) return [];
  const replies = await wire.ask([...commands, ['EXEC']]);
  const outcome = replies[commands.length];
  return outcome === undefined ? [] : outcome.kind === 'array' ? outcome.items : commands.map(() => outcome);
}

export class Writer {
  /** Numbers whose SET was acknowledged. */
  readonly acknowledged: number[] = [];
  increments = 0;
  /** Sent, but nobody said whether it was done. */
  unanswered = 0;
  refused = 0;
  reconnects = 0;
  #next = 0;
  #lastAckMs = performance.now();
  #longestGapMs = 0;
  #moved = false;
  #wanted: Address | null = null;
  #stopped = false;
  #running: Promise<void> | null = null;

  constructor(readonly spec: WriterSpec) {
    spec.finder.onMove?.((to) => {
      this.#wanted = to;
      this.#moved = true;
    });
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  /** Begins a new measurement of {@link longestGapMs}. */
  mark(): void {
    this.#lastAckMs = Math.max(this.#lastAckMs, performance.now() - this.spec.everyMs);
    this.#longestGapMs = 0;
  }

  /** The longest time without an acknowledgement since `mark`, one that still lasts included. */
  get longestGapMs(): number {
    return Math.max(this.#longestGapMs, performance.now() - this.#lastAckMs);
  }

  /** Numbers up to this one, exclusive, may have been written. */
  get sent(): number {
    return this.#next;
  }

  keyOf(number: number): string {
    return `value:${this.spec.name}:${number}`;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const address = this.#wanted ?? (await this.spec.finder.find());
      this.#wanted = null;
      this.#moved = false;
      const wire = address === null ? null : await Wire.open(address).catch(() => null);
      if (wire === null) {
        await sleep(REFUSED_PAUSE_MS);
        continue;
      }
      this.reconnects++;
      await this.#serve(wire);
      wire.close();
    }
  }

  async #serve(wire: Wire): Promise<void> {
    while (!this.#stopped && !this.#moved && wire.isOpen) {
      const numbers = Array.from({ length: this.spec.batch?.() ?? 1 }, () => this.#next++);
      const writes = [['INCR', COUNTER], ...numbers.map((number) => ['SET', this.keyOf(number), String(number)])];
      const [increment, ...sets] = await (this.spec.transactions === true ? transact(wire, writes) : wire.ask(writes));
      const isRefused = this.#note(numbers, increment, sets);
      if (isRefused) {
        await sleep(this.spec.refusedPauseMs ?? REFUSED_PAUSE_MS);
        return;
      }
      await sleep(this.spec.everyMs);
    }
  }

  /** True when anything was refused. */
  #note(numbers: readonly number[], increment: RespValue | undefined, sets: readonly RespValue[]): boolean {
    if (increment?.kind === 'integer') this.increments++;
    numbers.forEach((number, index) => void (sets[index]?.kind === 'simple' && this.acknowledged.push(number)));
    if (sets[0]?.kind === 'simple') {
      const nowMs = performance.now();
      this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#lastAckMs);
      this.#lastAckMs = nowMs;
    }
    if (increment === undefined || sets.length < numbers.length) this.unanswered++;
    const isRefused = [increment, ...sets].some((reply) => reply?.kind === 'error');
    if (isRefused) this.refused++;
    return isRefused;
  }
}
