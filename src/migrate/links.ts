/**
 * Connections to nodes and sentinels while a move runs: one per address, opened when needed, a deadline on every answer.
 *
 * Connections are cut by the very moves that use them (CLIENT KILL TYPE normal), so a question that lost its connection before the
 * answer is put once more, on a new one: all that is asked here may be asked twice.
 */
import { Redis } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import { AgentError, messageOf } from '../errors.js';
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress } from '../sentinel/wire/address.js';

/** How this program's connections are called, so that it does not cut itself off. */
export const OWN_NAME = 'pointsman-migrate';
/** The probe is a client like any other: it is cut, too, and its held write must not wait for the end of a barrier. */
export const PROBE_NAME = 'pointsman-probe';
const CONNECT_LIMIT_MS = 2_000;
const ANSWER_LIMIT_MS = 5_000;

export interface Credentials {
  readonly username?: string;
  readonly password?: string;
}

export interface LinkSettings {
  readonly nodes: Credentials;
  readonly sentinels: Credentials;
  readonly tls?: RedisOptions['tls'];
}

/** A server's own words of refusal. Its message is the text alone. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}

export class Links {
  readonly #settings: LinkSettings;
  readonly #name: string;
  readonly #clients = new Map<string, Redis>();
  readonly #opening = new Map<string, Promise<Redis>>();
  readonly #sentinels = new Set<string>();

  constructor(settings: LinkSettings, name = OWN_NAME) {
    this.#settings = settings;
    this.#name = name;
  }

  /** Says that an address is a sentinel's: other credentials. */
  isSentinel(address: Address): void {
    this.#sentinels.add(formatAddress(address));
  }

  /** Texts, numbers and lists, as they come. Rejects with {@link Refusal}, or with AgentError LINK_FAILED. */
  async ask(address: Address, argv: readonly string[], limitMs = ANSWER_LIMIT_MS): Promise<unknown> {
    try {
      return await this.#askOnce(address, argv, limitMs);
    } catch (fault) {
      if (!(fault instanceof AgentError) || fault.context['lost'] !== true) throw fault;
      return this.#askOnce(address, argv, limitMs);
    }
  }


  async text(address: Address, ...argv: string[]): Promise<string> {
    const reply = await this.ask(address, argv);
    return reply === null || reply === undefined ? '' : String(reply);
  }

  /** Whether there is an answer at all. */
  async isAlive(address: Address): Promise<boolean> {
    return this.ask(address, ['PING'], 1_000).then(() => true, (fault: unknown) => fault instanceof Refusal);
  }

  close(): void {
    for (const client of this.#clients.values()) client.disconnect();
    this.#clients.clear();
  }

  async #askOnce(address: Address, argv: readonly string[], limitMs: number): Promise<unknown> {
    const [name = '', ...args] = argv;
    const about = `${formatAddress(address)} ${argv.slice(0, 2).join(' ')}`;
    const failed = (text: string, lost: boolean, cause?: unknown): AgentError =>
      new AgentError('LINK_FAILED', `${about}: ${text}`, { lost }, { cause });
    const client = await this.#client(address).catch((fault: unknown) => {
      if (isReplyError(fault)) throw new Refusal(fault.message);
      throw failed(messageOf(fault), false, fault);
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        // What comes now would be taken for the answer to something else.
        this.#drop(address, client);
        reject(failed(`no answer in ${limitMs} ms`, false));
      }, limitMs);
    });
    try {
      return await Promise.race([client.call(name, ...args), late]);
    } catch (fault) {
      if (isReplyError(fault)) throw new Refusal(fault.message);
      if (fault instanceof AgentError) throw fault;
      this.#drop(address, client);
      throw failed(messageOf(fault), true, fault);
    } finally {
      clearTimeout(timer);
    }
  }

  #client(address: Address): Promise<Redis> {
    const key = formatAddress(address);
    const known = this.#clients.get(key);
    if (known !== undefined && known.status === 'ready') return Promise.resolve(known);
    if (known !== undefined) this.#drop(address, known);
    const opening = this.#opening.get(key) ?? this.#open(address).finally(() => this.#opening.delete(key));
    this.#opening.set(key, opening);
    return opening;
  }

  async #open(address: Address): Promise<Redis> {
    const key = formatAddress(address);
    const isSentinel = this.#sentinels.has(key);
    const { nodes, sentinels, tls } = this.#settings;
    const client = new Redis({
      ...address, ...(isSentinel ? sentinels : nodes), ...(tls === undefined ? {} : { tls }),
      ...{ protocol: 2, lazyConnect: true, enableReadyCheck: false, enableOfflineQueue: false, maxRetriesPerRequest: 0, retryStrategy: () => null },
      ...{ connectTimeout: CONNECT_LIMIT_MS, connectionName: this.#name, disableClientInfo: true, noDelay: true, autoResendUnfulfilledCommands: false },
    });
    let reason: Error | null = null;
    client.on('error', (fault: Error) => (reason = fault));
    await client.connect().catch((fault: unknown) => {
      client.disconnect();
      throw reason ?? fault;
    });
    this.#clients.set(key, client);
    return client;
  }

  #drop(address: Address, client: Redis): void {
    const key = formatAddress(address);
    if (this.#clients.get(key) === client) this.#clients.delete(key);
    client.disconnect();
  }
}

const isReplyError = (fault: unknown): fault is Error => fault instanceof Error && fault.name === 'ReplyError';
