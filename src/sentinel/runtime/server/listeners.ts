/**
 * The sockets that are listened on: the addresses of `bind`, and a unix socket.
 *
 * Mirrors listenToPort in server.c: all or nothing, except an address with a leading `-` that this machine does not have.
 */
import { rm, stat } from 'node:fs/promises';
import type { Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { EXIT, FatalError } from '../../../errors.js';
import { formatAddress } from '../../wire/address.js';
import { ipFamily } from '../../wire/ip.js';
import type { ServerOptions } from './options.js';

/** One place that answers; a unix socket has its path as address and port 0. */
export interface ListeningAt {
  readonly address: string;
  readonly port: number;
}

/** Failures that a leading `-` forgives: the machine has no such address or family. */
const FORGIVEN: readonly (string | undefined)[] = ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EPROTONOSUPPORT', 'ENOPROTOOPT', 'EINVAL'];
const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'address already in use',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'permission denied',
};

export class Listeners {
  readonly #servers: Server[] = [];
  readonly #options: ServerOptions;
  readonly #accept: (socket: Socket, isUnix: boolean) => void;

  constructor(options: ServerOptions, accept: (socket: Socket, isUnix: boolean) => void) {
    this.#options = options;
    this.#accept = accept;
  }

  /** @throws FatalError PORT_IN_USE or LISTEN_FAILED; then nothing is listened on. */
  async open(): Promise<ListeningAt[]> {
    const places: ListeningAt[] = [];
    try {
      const { bind, port, unixSocket } = this.#options;
      for (const word of port === 0 ? [] : bind) {
        const place = await this.#openTcp(word.replace(/^-/, ''), word.startsWith('-'));
        if (place !== null) places.push(place);
      }
      if (unixSocket !== undefined && unixSocket !== '') places.push(await this.#openUnix(unixSocket));
      if (places.length === 0 && port !== 0) throw refusal(`port ${port}`, undefined);
      return places;
    } catch (fault) {
      await this.close();
      throw fault;
    }
  }

  /** Accepts no more; open connections stay. */
  async close(): Promise<void> {
    await Promise.all(this.#servers.splice(0).map((server) => new Promise<void>((resolve) => server.close(() => resolve()))));
  }

  async #openTcp(name: string, forgiving: boolean): Promise<ListeningAt | null> {
    const { port, tcpBacklog: backlog } = this.#options;
    const host = name === '*' ? '0.0.0.0' : name === '::*' ? '::' : name;
    try {
      const server = await this.#listen({ host, port, backlog, ipv6Only: ipFamily(host) === 6 }, false);
      const bound = server.address();
      return typeof bound === 'object' && bound !== null ? { address: bound.address, port: bound.port } : { address: host, port };
    } catch (cause) {
      if (forgiving && FORGIVEN.includes(codeOf(cause))) return null;
      throw refusal(formatAddress({ host, port }), cause);
    }
  }

  async #openUnix(path: string): Promise<ListeningAt> {
    try {
      // Left behind by a process that was killed; only a socket is taken away, never a file.
      const left = await stat(path).catch(() => null);
      if (left?.isSocket() === true) await rm(path);
      await this.#listen({ path, backlog: this.#options.tcpBacklog }, true);
      return { address: path, port: 0 };
    } catch (cause) {
      throw refusal(path, cause);
    }
  }

  #listen(where: { host?: string; port?: number; path?: string; backlog: number; ipv6Only?: boolean }, isUnix: boolean): Promise<Server> {
    return new Promise((resolve, reject) => {
      const server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket, isUnix));
      server.once('error', reject);
      server.listen(where, () => {
        server.off('error', reject);
        server.on('error', (fault) => this.#options.log.warn({ cause: fault.message }, 'a connection could not be accepted'));
        this.#servers.push(server);
        resolve(server);
      });
    });
  }
}

function codeOf(cause: unknown): string | undefined {
  return (cause as NodeJS.ErrnoException | undefined)?.code;
}

function refusal(where: string, cause: unknown): FatalError {
  const code = codeOf(cause);
  const reason = REASONS[code ?? ''] ?? (cause instanceof Error ? cause.message : 'no address of bind is this machine\'s');
  const message = `sentinel cannot listen on ${where}: ${reason}`;
  return new FatalError(code === 'EADDRINUSE' ? 'PORT_IN_USE' : 'LISTEN_FAILED', message, EXIT.portInUse, { where }, { cause });
}
