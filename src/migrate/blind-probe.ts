/**
 * A client of the move's own: it asks a sentinel where the master is, writes the marker key there, and notes how long it got no
 * acknowledgement. What it writes in the window is what the last check looks for on every node.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentError } from '../errors.js';
import type { Address } from '../sentinel/wire/address.js';
import type { Links } from './links.js';
import { Refusal } from './links.js';

const EVERY_MS = 20;
const ANSWER_LIMIT_MS = 10_000;
const LIFETIME_SECONDS = '86400';

export class BlindProbe {
  readonly #links: Links;
  readonly #master: string;
  readonly #sentinels: readonly Address[];
  readonly #key: string;
  #running: Promise<void> | null = null;
  #stopped = false;
  #lastAckMs = 0;
  /** Higher than whatever an earlier run of the same move has written. */
  #count = Date.now();
  longestGapMs = 0;
  /** The highest number that was acknowledged, and by whom. */
  acknowledged = 0;
  lastAddress: Address | null = null;

  constructor(links: Links, master: string, sentinels: readonly Address[], key: string) {
    this.#links = links;
    this.#master = master;
    this.#sentinels = sentinels;
    this.#key = key;
  }

  get key(): string {
    return this.#key;
  }

  start(): void {
    this.#lastAckMs = performance.now();
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
    this.#running = null;
    this.#stopped = false;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const address = await this.#find();
      if (address !== null) await this.#write(address);
      await sleep(EVERY_MS);
    }
  }

  async #find(): Promise<Address | null> {
    for (const sentinel of this.#sentinels) {
      const reply = await this.#links.ask(sentinel, ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.#master], 1_000).catch(() => null);
      if (Array.isArray(reply) && reply.length === 2) return { host: String(reply[0]), port: Number(reply[1]) };
    }
    return null;
  }

  async #write(address: Address): Promise<void> {
    const number = ++this.#count;
    try {
      await this.#links.ask(address, ['SET', this.#key, String(number), 'EX', LIFETIME_SECONDS], ANSWER_LIMIT_MS);
    } catch (fault) {
      // READONLY, a cut connection: what every client would see; it asks again and goes on.
      if (fault instanceof Refusal || fault instanceof AgentError) return;
      throw fault;
    }
    const nowMs = performance.now();
    this.longestGapMs = Math.max(this.longestGapMs, nowMs - this.#lastAckMs);
    this.#lastAckMs = nowMs;
    this.acknowledged = number;
    this.lastAddress = address;
  }
}
