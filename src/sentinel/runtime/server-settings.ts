/**
 * The server's share of sentinel.conf: bind, port, passwords, users, limits.
 */
import { randomBytes } from 'node:crypto';
import type { Log } from '../../log.js';
import { LIMITS } from '../core/limits.js';
import type { ServerIdentity } from '../wire/identity.js';
import { quoteArg } from '../wire/sentinel-conf.js';
import type { ConfFile } from './conf-file.js';
import type { ServerOptions } from './server/options.js';
import { DEFAULT_BIND } from './server/options.js';

export function serverOptionsOf(file: ConfFile, identity: ServerIdentity, log: Log): ServerOptions {
  const { server } = file.conf;
  const last = (name: string): readonly string[] | undefined => server.get(name)?.at(-1);
  const word = (name: string): string | undefined => last(name)?.[0];
  const number = (name: string, standard: number): number => Number(word(name) ?? standard);
  const unixSocket = word('unixsocket');
  const aclFile = word('aclfile');
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
    ...(unixSocket === undefined ? {} : { unixSocket }),
    ...(aclFile === undefined ? {} : { aclFile }),
  };
}
