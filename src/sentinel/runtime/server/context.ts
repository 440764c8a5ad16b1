/**
 * What a command may touch: the parts of the server, handed to every handler.
 */
import type { RespValue } from '../../wire/resp-value.js';
import type { CommandEntry } from '../server-command-table.js';
import type { Acl } from './acl.js';
import type { AclLogEntry } from './acl-log.js';
import type { Client } from './client.js';
import type { LogThrottle } from './log-throttle.js';
import type { CommandGate, Outcome, ServerOptions } from './options.js';
import type { PubSub } from './pubsub.js';
import type { RateMeter, ServerStats } from './stats.js';

export interface ServerContext {
  readonly options: ServerOptions;
  readonly gate: CommandGate;
  readonly acl: Acl;
  readonly pubsub: PubSub;
  readonly stats: ServerStats;
  readonly meter: RateMeter;
  /** For warnings that any stranger can cause. */
  readonly garbage: LogThrottle;
  /** Open connections by id, oldest first. */
  readonly clients: ReadonlyMap<number, Client>;
  /** `performance.now()` of the start. */
  readonly startedAtMs: number;
  /** Users were changed by a command: tells the owner, who keeps them in sentinel.conf. */
  usersChanged(): void;
  /** SHUTDOWN: tells the owner; the server itself goes on until it is closed. */
  shutdown(): void;
}

/** Runs one command that was found, counted and permitted. `argv` is the whole request. */
export type Handler = (context: ServerContext, client: Client, argv: readonly string[], command: CommandEntry) => Outcome;

/** A handler that replies at once. */
export type PlainHandler = (context: ServerContext, client: Client, argv: readonly string[], command: CommandEntry) => RespValue;

/** Counts a refusal and remembers it for ACL LOG. */
export function noteRefusal(context: ServerContext, client: Client, refusal: Pick<AclLogEntry, 'reason' | 'object' | 'username'>): void {
  const counter = ({ auth: 'deniedAuth', command: 'deniedCommand', channel: 'deniedChannel' } as const)[refusal.reason];
  context.stats[counter]++;
  context.acl.log.add({ ...refusal, clientInfo: describeClient(client, performance.now()) }, Date.now());
}

/** The line of CLIENT LIST and CLIENT INFO, without its line end. */
export function describeClient(client: Client, nowMs: number): string {
  const seconds = (sinceMs: number): number => Math.floor((nowMs - sinceMs) / 1000);
  const unread = client.unreadBytes;
  const fields: readonly (readonly [string, string | number])[] = [
    ['id', client.id],
    ['addr', client.address],
    ['laddr', client.localAddress],
    ['fd', client.descriptor],
    ['name', client.name],
    ['age', seconds(client.connectedAtMs)],
    ['idle', seconds(client.lastActiveMs)],
    ['flags', clientFlags(client)],
    ['db', 0],
    ['sub', client.channels.size],
    ['psub', client.patterns.size],
    ['ssub', 0],
    ['multi', -1],
    ['qbuf', 0],
    ['qbuf-free', 0],
    ['argv-mem', 0],
    ['multi-mem', 0],
    ['rbs', 0],
    ['rbp', 0],
    ['obl', 0],
    ['oll', unread > 0 ? 1 : 0],
    ['omem', unread],
    ['tot-mem', unread],
    ['events', unread > 0 ? 'rw' : 'r'],
    ['cmd', client.lastCommand],
    ['user', client.userName],
    ['redir', client.tracking.on ? client.tracking.redirect : -1],
    ['resp', client.protocol],
    ['lib-name', client.libName],
    ['lib-ver', client.libVersion],
  ];
  return fields.map(([key, value]) => `${key}=${value}`).join(' ');
}

function clientFlags(client: Client): string {
  const { tracking } = client;
  const flags = [
    client.subscriptions > 0 ? 'P' : '',
    tracking.on ? 't' : '',
    tracking.on && tracking.mode === 'bcast' ? 'B' : '',
    client.isClosing ? 'c' : '',
    client.isUnix ? 'U' : '',
    client.noEvict ? 'e' : '',
  ].join('');
  return flags === '' ? 'N' : flags;
}
