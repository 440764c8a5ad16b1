/**
 * The sockets that are listened on: the addresses of `bind`, plain and with TLS, and a unix socket.
 *
 * Mirrors listenToPort in server.c: all or nothing, except an address with a leading `-` that this machine does not have.
 */
import { chmod, rm, stat } from 'node:fs/promises';
import type { Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { EXIT, FatalError } from '../../../errors.js';
import { formatAddress } from '../../wire/address.js';
import { ipFamily } from '../../wire/ip.js';
import type { TlsListenOptions } from '../tls-settings.js';
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
      const { bind, port, tls, unixSocket } = this.#options;
      for (const word of bind) {
        const [name, forgiving] = [word.replace(/^-/, ''), word.startsWith('-')];
        for (const place of [
          port === 0 ? null : await this.#openTcp(name, port, forgiving, null),
          tls === undefined ? null : await this.#openTcp(name, tls.port, forgiving, tls),
        ]) {
          if (place !== null) places.push(place);
        }
      }
      if (unixSocket !== undefined && unixSocket !== '') places.push(await this.#openUnix(unixSocket));
      if (places.length === 0 && (port !== 0 || tls !== undefined)) throw refusal(`port ${port === 0 ? tls?.port : port}`, undefined);
      return places;
    } catch (fault) {
      await this.close();
      throw fault;
    }
  }

  #tlsServer(tls: TlsListenOptions): Server {
    const { log } = this.#options;
    const server = createTlsServer({ ...tls.options, allowHalfOpen: true }, (socket) => {
      if (!isUnwelcome(socket, tls)) return this.#accept(socket, false);
      log.warn({ client: socket.remoteAddress, cause: String(socket.authorizationError) }, 'a client with a bad certificate was refused');
      socket.on('error', (fault) => log.debug({ cause: fault.message }, 'a refused client went away'));
      socket.destroy();
    });
    server.on('tlsClientError', (fault, socket) => {
      log.debug({ client: socket.remoteAddress, cause: fault.message }, 'TLS handshake failed');
      socket.destroy();
    });
    return server;
  }

  /** Accepts no more; open connections stay. */
  async close(): Promise<void> {
    await Promise.all(this.#servers.splice(0).map((server) => new Promise<void>((resolve) => server.close(() => resolve()))));
  }

  async #openTcp(name: string, port: number, forgiving: boolean, tls: TlsListenOptions | null): Promise<ListeningAt | null> {
    const { tcpBacklog: backlog } = this.#options;
    const host = name === '*' ? '0.0.0.0' : name === '::*' ? '::' : name;
    try {
      const server = await this.#listen({ host, port, backlog, ipv6Only: ipFamily(host) === 6 }, false, tls);
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
      await this.#listen({ path, backlog: this.#options.tcpBacklog }, true, null);
      if (this.#options.unixSocketMode !== undefined) await chmod(path, this.#options.unixSocketMode);
      return { address: path, port: 0 };
    } catch (cause) {
      throw refusal(path, cause);
    }
  }

  #listen(where: Where, isUnix: boolean, tls: TlsListenOptions | null): Promise<Server> {
    return new Promise((resolve, reject) => {
      const server = tls === null ? createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket, isUnix)) : this.#tlsServer(tls);
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

interface Where {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly backlog: number;
  readonly ipv6Only?: boolean;
}

/** tls-auth-clients optional: no certificate is fine, one that leads to nobody we know is not. */
function isUnwelcome(socket: TLSSocket, { certificateOptional }: TlsListenOptions): boolean {
  return certificateOptional && !socket.authorized && Object.keys(socket.getPeerCertificate()).length > 0;
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
