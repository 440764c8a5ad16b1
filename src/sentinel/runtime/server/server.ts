/**
 * The RESP server: accepts clients, runs their commands, and tells subscribers what happens.
 *
 * What concerns the sentinel (SENTINEL, ROLE, hellos) goes through the {@link CommandGate} and is answered by {@link SentinelServer.reply};
 * everything about connections is settled here. Mirrors networking.c in what a client sees.
 */
import type { Socket } from 'node:net';
import { FatalError, EXIT, messageOf } from '../../../errors.js';
import type { RequestLimits } from '../../wire/request-decoder.js';
import { DEFAULT_LIMITS, UNAUTHENTICATED_LIMITS } from '../../wire/request-decoder.js';
import { encodeReply } from '../../wire/resp-encoder.js';
import type { RespValue } from '../../wire/resp-value.js';
import { error } from '../../wire/resp-value.js';
import { Acl } from './acl.js';
import type { ClientHost } from './client.js';
import { Client } from './client.js';
import type { ServerContext } from './context.js';
import { execute, mustAuthenticate } from './dispatch.js';
import type { ListeningAt } from './listeners.js';
import { Listeners } from './listeners.js';
import type { CommandGate, ServerOptions } from './options.js';
import { PubSub } from './pubsub.js';
import { RateMeter, newStats } from './stats.js';
import { LogThrottle } from './log-throttle.js';

export type { CommandGate, ServerLog, ServerOptions } from './options.js';
export { DEFAULT_BIND } from './options.js';

const HOUSEKEEPING_MS = 1000;
const PROTECTED = error(
  'DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. ' +
    'Only clients of this machine are served. To serve others, set a password for the default user (requirepass, or ACL SETUSER ' +
    'default >password), or set protected-mode to no where the network keeps strangers out.',
);
const TOO_MANY = error('ERR max number of clients reached');

export class SentinelServer {
  readonly #options: ServerOptions;
  readonly #context: ServerContext;
  readonly #listeners: Listeners;
  readonly #host: ClientHost;
  readonly #clients = new Map<number, Client>();
  readonly #shutdownCallbacks: (() => void)[] = [];
  readonly #usersCallbacks: (() => void)[] = [];
  #nextId = 1;
  #housekeeping: NodeJS.Timeout | null = null;
  #closed = false;

  /** @throws FatalError when a user line is faulty. */
  constructor(options: ServerOptions, gate: CommandGate) {
    this.#options = options;
    const { users, aclFile, requirePass } = options;
    const context: ServerContext = {
      options,
      gate,
      acl: new Acl({ users, aclFile, requirePass }),
      pubsub: new PubSub(),
      stats: newStats(),
      meter: new RateMeter(performance.now()),
      garbage: new LogThrottle(options.log),
      clients: this.#clients,
      startedAtMs: performance.now(),
      usersChanged: () => this.#usersCallbacks.forEach((callback) => callback()),
      shutdown: () => this.#shutdownCallbacks.forEach((callback) => callback()),
    };
    this.#context = context;
    this.#host = {
      stats: context.stats,
      // Divergence D36: 1 MB for a request at most, where the server takes 512 MB for each of its arguments.
      limitsFor: (client): RequestLimits => (mustAuthenticate(context, client) ? UNAUTHENTICATED_LIMITS : DEFAULT_LIMITS),
      execute: (client, argv) => execute(context, client, argv),
      protocolFault: (client, text) => context.garbage.warn({ client: client.address, user: client.userName }, text),
      closed: (client, reason) => this.#forget(client, reason),
    };
    this.#listeners = new Listeners(options, (socket, isUnix) => this.#accept(socket, isUnix));
  }

  /**
   * Reads the ACL file, if there is one, and starts to listen; where, one entry for each address of `bind`.
   *
   * @throws FatalError when the ACL file is faulty (CONFIG_INVALID) or an address can't be had (PORT_IN_USE, LISTEN_FAILED).
   */
  async listen(): Promise<ListeningAt[]> {
    const { acl } = this.#context;
    const fault = acl.aclFile === null ? null : await acl.load();
    if (fault !== null) throw new FatalError('CONFIG_INVALID', `aclfile: ${fault}`, EXIT.badConfig);
    const places = await this.#listeners.open();
    this.#housekeeping = setInterval(() => this.#keepHouse(performance.now()), HOUSEKEEPING_MS);
    this.#housekeeping.unref();
    return places;
  }

  /** Answers the command that `client` waits for. A client that is gone is no mistake. */
  reply(client: number, value: RespValue): void {
    this.#clients.get(client)?.settle(value);
  }

  /** Tells the subscribers of `channel`, and those of patterns that fit it. */
  publish(channel: string, payload: string): void {
    this.#context.pubsub.publish(channel, payload);
  }

  /** Changes the password of the user `default`; null: none. Connections that are logged in stay so. */
  setRequirePass(password: string | null): void {
    this.#context.acl.setRequirePass(password);
  }

  /** The `user ...` lines for sentinel.conf; none when an ACL file holds the users. */
  userLines(): string[] {
    return this.#context.acl.userLines();
  }

  /** That of the user `default` while requirepass says it all. */
  impliedUserLine(): string {
    return this.#context.acl.impliedLine;
  }

  /** Called when ACL SETUSER or DELUSER changed a user. */
  onUsersChanged(callback: () => void): void {
    this.#usersCallbacks.push(callback);
  }

  /** Called when a client says SHUTDOWN. */
  onShutdown(callback: () => void): void {
    this.#shutdownCallbacks.push(callback);
  }

  /** Stops listening and ends all connections. Safe to call twice. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#housekeeping !== null) clearInterval(this.#housekeeping);
    const closed = this.#listeners.close();
    for (const client of [...this.#clients.values()]) client.destroy('sentinel stops');
    await closed;
  }

  #accept(socket: Socket, isUnix: boolean): void {
    const { stats, acl } = this.#context;
    stats.connections++;
    const refusal = this.#closed ? TOO_MANY : this.#whyNotWelcome(socket, isUnix);
    if (refusal !== null) {
      stats.rejected++;
      socket.on('error', (fault) => this.#options.log.debug({ cause: messageOf(fault) }, 'a refused client went away'));
      socket.end(encodeReply(refusal, 2));
      socket.destroySoon();
      return;
    }
    const id = this.#nextId++;
    const client = new Client(id, socket, this.#host, isUnix ? this.#options.unixSocket ?? '' : null, acl.isOpen);
    this.#clients.set(id, client);
    this.#options.log.debug({ client: client.address, id }, 'client connected');
  }

  #whyNotWelcome(socket: Socket, isUnix: boolean): RespValue | null {
    if (this.#clients.size >= this.#options.maxClients) return TOO_MANY;
    const isLocal = isUnix || /^(?:::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '');
    return this.#options.protectedMode && this.#context.acl.default.nopass && !isLocal ? PROTECTED : null;
  }

  #forget(client: Client, reason: string): void {
    if (reason.startsWith('did not read')) {
      this.#context.stats.slowSubscribers++;
      this.#options.log.warn({ client: client.address, name: client.name, reason }, 'subscriber dropped');
    }
    this.#context.pubsub.remove(client);
    this.#clients.delete(client.id);
    this.#options.log.debug({ client: client.address, id: client.id, reason }, 'client gone');
  }

  #keepHouse(nowMs: number): void {
    this.#context.meter.sample(this.#context.stats, nowMs);
    const idleMs = this.#options.timeoutSeconds * 1000;
    for (const client of [...this.#clients.values()]) {
      client.checkOutput(nowMs);
      if (idleMs > 0 && client.subscriptions === 0 && nowMs - client.lastActiveMs > idleMs) client.destroy('idle');
    }
  }
}
