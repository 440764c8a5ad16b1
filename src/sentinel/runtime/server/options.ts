/**
 * What the RESP server is told at its start, and the door through which it reaches the sentinel.
 */
import type { ServerIdentity } from '../../wire/identity.js';
import type { RespValue } from '../../wire/resp-value.js';
import type { TlsListenOptions } from '../tls-settings.js';

/** The part of a pino logger that the server uses. */
export interface ServerLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface ServerOptions {
  /** Addresses to listen on: `*` and `::*` mean all of a family; a leading `-` forgives one that this machine lacks. */
  readonly bind: readonly string[];
  /** 0: no TCP. */
  readonly port: number;
  /** A second port, at the same addresses, that speaks TLS. */
  readonly tls?: TlsListenOptions;
  readonly unixSocket?: string;
  /** Octal mode of the unix socket. */
  readonly unixSocketMode?: number;
  /** Password of the user `default`; null or empty: none. */
  readonly requirePass: string | null;
  /** `user <name> <rule> ...` lines of sentinel.conf. */
  readonly users: readonly string[];
  readonly aclFile?: string;
  readonly protectedMode: boolean;
  readonly maxClients: number;
  readonly tcpBacklog: number;
  /** Ends clients that were idle so long, subscribers excepted; 0: never. */
  readonly timeoutSeconds: number;
  /** As which server we present ourselves. */
  readonly identity: ServerIdentity;
  /** 40 hex digits of this process; not the sentinel's own id. */
  readonly processRunId: string;
  /** Shown in INFO. */
  readonly configFile?: string;
  readonly log: ServerLog;
}

/** `bind` as the server has it when sentinel.conf says nothing. */
export const DEFAULT_BIND: readonly string[] = ['*', '-::*'];

export interface CommandGate {
  /**
   * Hands over a SENTINEL command, ROLE, or PUBLISH to the hello channel, already checked for existence, arity and permission.
   * Exactly one `SentinelServer.reply(client, value)` must follow, now or later; until then that client's next commands wait.
   */
  execute(client: number, argv: readonly string[]): void;
  /** The section of INFO from `# Sentinel` on, lines ended by CRLF. */
  infoSentinel(): string;
}

/** The channel whose messages are hellos. */
export const HELLO_CHANNEL = '__sentinel__:hello';

/**
 * What running a command came to: a reply, `none` (nothing more to say), `pending` (the gate replies later), or a promise of a
 * reply that never rejects.
 */
export type Outcome = RespValue | 'none' | 'pending' | Promise<RespValue>;
