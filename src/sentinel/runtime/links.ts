/**
 * The connections that the core asks for, through ioredis: one client per connection attempt, never reconnecting by itself.
 *
 * When to connect again is the core's decision (monitor.ts), so every automatism of the library is off. What happens on a
 * connection comes back as inputs that carry its id; after `close`, or once it is down, nothing comes any more.
 */
import { Command, Redis } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import { messageOf } from '../../errors.js';
import type { ReplyTag } from '../core/input.js';
import type { ChannelKind, ConnectionId } from '../core/state.js';
import { formatAddress } from '../wire/address.js';
import { encodeCommand } from '../wire/resp-encoder.js';
import type { RespValue } from '../wire/resp-value.js';
import { array, bulk, error, integer, NULL, simple } from '../wire/resp-value.js';
import { boundConnector } from './bound-connector.js';

/** What the outside of a link tells its owner; each maps to one input of the core. */
export interface LinkListener {
  connectionUp(connection: ConnectionId, localIp: string): void;
  connectionDown(connection: ConnectionId, reason: string): void;
  reply(connection: ConnectionId, tag: ReplyTag, reply: RespValue): void;
  message(connection: ConnectionId, channel: string, payload: string): void;
  /** The node answers, but does not take our commands (password, ACL). Said once until it takes that kind of command again. */
  refused(address: string, text: string): void;
}

export interface LinkOptions {
  readonly tls?: RedisOptions['tls'];
  /** This end's address (bind-source-addr). */
  readonly sourceAddress?: string;
}

/** A peer that swallows SYNs is given up after this; the core has judged it long before. */
const CONNECT_TIMEOUT_MS = 10_000;
/** What a server says to somebody it does not know, or who must not. */
const REFUSAL = /^(?:NOAUTH|WRONGPASS|NOPERM|ERR .*\bAUTH\b)/;

/** What one step says to a node leaves in one write: a transaction is then one wake-up of the server instead of one a word. */
function gather({ stream }: Redis): void {
  if (stream === undefined || stream.destroyed || stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

export class Links {
  readonly #clients = new Map<ConnectionId, Redis>();
  /** Address → kinds of commands that it refuses at present. */
  readonly #refusals = new Map<string, Set<ReplyTag['kind']>>();
  readonly #listener: LinkListener;
  readonly #options: Pick<RedisOptions, 'tls' | 'Connector'>;

  constructor(listener: LinkListener, options: LinkOptions = {}) {
    this.#listener = listener;
    const { tls, sourceAddress } = options;
    this.#options = { ...(tls === undefined ? {} : { tls }), ...(sourceAddress === undefined ? {} : { Connector: boundConnector(sourceAddress) }) };
  }

  /** Starts a connect to `host:port`; returns at once. */
  open(connection: ConnectionId, channel: ChannelKind, host: string, port: number): void {
    const client = new Redis({
      host,
      port,
      lazyConnect: true,
      protocol: 2,
      retryStrategy: null,
      reconnectOnError: null,
      maxRetriesPerRequest: null,
      enableReadyCheck: false,
      enableOfflineQueue: true,
      autoResubscribe: false,
      autoResendUnfulfilledCommands: false,
      disableClientInfo: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      noDelay: true,
      ...this.#options,
    });
    this.#clients.set(connection, client);
    let reason = 'connection closed by the other side';
    client.on('error', (fault: Error) => (reason = fault.message));
    client.on('connect', () => this.#up(connection, client));
    client.on('close', () => this.#down(connection, reason));
    client.on('end', () => this.#down(connection, reason));
    if (channel === 'pubsub') {
      client.on('message', (name: string, payload: string) => {
        if (this.#clients.get(connection) === client) this.#listener.message(connection, name, payload);
      });
    }
    client.connect().catch((fault: unknown) => this.#down(connection, messageOf(fault)));
  }

  /** Queues a command; its reply comes to the listener unless the connection goes first. */
  send(connection: ConnectionId, argv: readonly string[], tag: ReplyTag): void {
    const client = this.#clients.get(connection);
    const [name, ...args] = argv;
    if (client === undefined || name === undefined) return;
    gather(client);
    const answer = tag.kind === 'subscribe' ? subscribeAs(client, name, args) : client.call(name, ...args);
    answer.then(
      (value: unknown) => this.#reply(connection, client, tag, toRespValue(value, tag)),
      (fault: unknown) => {
        // Only the server's own words are a reply; a broken connection is reported as such.
        if (fault instanceof Error && fault.name === 'ReplyError') this.#reply(connection, client, tag, error(fault.message));
      },
    );
  }

  /** Drops a connection without an echo. */
  close(connection: ConnectionId): void {
    const client = this.#clients.get(connection);
    this.#clients.delete(connection);
    client?.disconnect();
  }

  closeAll(): void {
    for (const connection of [...this.#clients.keys()]) this.close(connection);
  }

  /** How further connections to a node are made. */
  get connectionOptions(): Pick<RedisOptions, 'tls' | 'Connector'> {
    return this.#options;
  }

  get count(): number {
    return this.#clients.size;
  }

  #up(connection: ConnectionId, client: Redis): void {
    if (this.#clients.get(connection) !== client) return;
    this.#listener.connectionUp(connection, plainIp(client.stream.localAddress ?? ''));
  }

  #down(connection: ConnectionId, reason: string): void {
    if (!this.#clients.delete(connection)) return;
    this.#listener.connectionDown(connection, reason);
  }

  #reply(connection: ConnectionId, client: Redis, tag: ReplyTag, reply: RespValue): void {
    if (this.#clients.get(connection) !== client) return;
    this.#noteRefusal(formatAddress({ host: client.options.host ?? '', port: client.options.port ?? 0 }), tag.kind, reply);
    this.#listener.reply(connection, tag, reply);
  }

  #noteRefusal(address: string, command: ReplyTag['kind'], reply: RespValue): void {
    const refused = this.#refusals.get(address) ?? new Set();
    if (reply.kind === 'error' && REFUSAL.test(reply.text)) {
      if (refused.size === 0) this.#listener.refused(address, reply.text);
      this.#refusals.set(address, refused.add(command));
    } else if (refused.delete(command) && refused.size === 0) this.#refusals.delete(address);
  }
}

/** SUBSCRIBE under the name that the server knows it by; to the library, which reads messages by what was sent, it is SUBSCRIBE. */
function subscribeAs(client: Redis, name: string, channels: readonly string[]): Promise<unknown> {
  const command = new Command('subscribe', [...channels], { replyEncoding: 'utf8' });
  command.toWritable = () => encodeCommand([name, ...channels]);
  void client.sendCommand(command);
  return command.promise;
}

/** An IPv4 address of a dual-stack socket comes as `::ffff:10.0.0.1`. */
function plainIp(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}

/** The library hands out bare values; whether a text was a simple string shows only in what was asked. */
function toRespValue(value: unknown, tag: ReplyTag): RespValue {
  if (typeof value === 'string') return tag.kind === 'ping' ? simple(value) : bulk(value);
  if (typeof value === 'number') return integer(value);
  if (typeof value === 'bigint') return integer(Number(value));
  if (Array.isArray(value)) return array(value.map((item) => toRespValue(item, tag)));
  if (value instanceof Error) return error(value.message);
  return value === null || value === undefined ? NULL : bulk(String(value));
}
