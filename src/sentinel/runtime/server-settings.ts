/**
 * The server's share of sentinel.conf: bind, port, passwords, users, limits.
 */
import { randomBytes } from 'node:crypto';
import type { Log } from '../../log.js';
import { LIMITS } from '../core/limits.js';
import type { LogLevelName } from '../core/state.js';
import type { ServerIdentity } from '../wire/identity.js';
import type { ConfLine } from '../wire/sentinel-conf.js';
import { quoteArg } from '../wire/sentinel-conf.js';
import type { ConfFile } from './conf-file.js';
import type { LinkOptions } from './links.js';
import type { ServerOptions } from './server/options.js';
import { DEFAULT_BIND } from './server/options.js';
import type { TlsListenOptions, TlsSettings } from './tls-settings.js';

export function serverOptionsOf(file: ConfFile, identity: ServerIdentity, tls: TlsListenOptions | null, log: Log): ServerOptions {
  const { server } = file.conf;
  const last = (name: string): readonly string[] | undefined => server.get(name)?.at(-1);
  const word = (name: string): string | undefined => last(name)?.[0];
  const number = (name: string, standard: number): number => Number(word(name) ?? standard);
  const unixSocket = word('unixsocket');
  const aclFile = word('aclfile');
  const mode = Number.parseInt(word('unixsocketperm') ?? '', 8);
  return {
    bind: last('bind') ?? DEFAULT_BIND,
    port: number('port', LIMITS.defaultPort),
    requirePass: word('requirepass') || null,
    users: (server.get('user') ?? []).map((args) => ['user', ...args].map(quoteArg).join(' ')),
    // Off unless asked for: sentinels must reach each other (8.4).
    protectedMode: word('protected-mode')?.toLowerCase() === 'yes',
    maxClients: number('maxclients', 10_000),
    tcpBacklog: number('tcp-backlog', 511),
    timeoutSeconds: number('timeout', 0),
    identity,
    processRunId: randomBytes(20).toString('hex'),
    configFile: file.path,
    log,
    ...(tls === null ? {} : { tls }),
    ...(unixSocket === undefined ? {} : { unixSocket }),
    ...(Number.isNaN(mode) ? {} : { unixSocketMode: mode }),
    ...(aclFile === undefined ? {} : { aclFile }),
  };
}

export function linkOptionsOf({ conf }: ConfFile, tls: TlsSettings): LinkOptions {
  const sourceAddress = conf.server.get('bind-source-addr')?.at(-1)?.[0] ?? '';
  return { ...(tls.links === null ? {} : { tls: tls.links }), ...(sourceAddress === '' ? {} : { sourceAddress }) };
}

/** `user` lines as they are now; `implied`: what `default` needs no line for. */
export interface UsersNow {
  readonly lines: readonly string[];
  readonly implied: string;
}

/**
 * The server's lines in the state file that commands can change: users and the log level.
 *
 * Divergence D76: users are written as soon as ACL SETUSER or DELUSER changed them, and `default` only where it is more than what
 * requirepass says; stock waits for the next flush, and always writes `default`, which then beats a requirepass changed by hand.
 */
export function serverLines(
  users: UsersNow | null,
  logLevel: LogLevelName,
): { readonly lines: readonly ConfLine[]; readonly handled: readonly string[] } {
  const own = (users?.lines ?? []).filter((text) => text !== users?.implied).map((text): ConfLine => ({ key: 'user', text }));
  const implied = users === null ? [] : [{ key: 'user', text: users.implied, onlyInPlace: true }];
  // The implied one last, so that it takes no other one's place.
  const lines = own.length === users?.lines.length ? own : [...own, ...implied];
  const level: ConfLine = { key: 'loglevel', text: `loglevel ${logLevel}`, onlyInPlace: logLevel === 'notice' };
  return { lines: [level, ...lines], handled: users === null ? [] : ['user'] };
}
