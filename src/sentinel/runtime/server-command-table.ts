/**
 * The commands that a sentinel knows: arity, flags, ACL categories and the words of COMMAND DOCS.
 *
 * Mirrors the sentinel-mode rows of the server's command table (7.2): 15 names, everything else is unknown. What the
 * server tolerates beyond them (QUIT, SELECT 0, ECHO) is not listed, nor is what the server that we present does not have.
 */
import { SENTINEL_SUBCOMMANDS, deprecationOf } from '../core/commands/subcommands.js';
import type { Origin, ServerIdentity } from '../wire/identity.js';
import { isIn } from '../wire/identity.js';

/** One command or subcommand. */
export interface CommandEntry {
  /** Lower case; a subcommand as `container|sub`. */
  readonly fullName: string;
  /** Exact number of words of the request, or, negative, the least number. */
  readonly arity: number;
  readonly flags: readonly string[];
  /** ACL categories without the `@`, in the order of {@link ACL_CATEGORIES}. */
  readonly categories: readonly string[];
  readonly tips: readonly string[];
  readonly summary: string;
  readonly since: string;
  readonly group: string;
  readonly complexity: string | null;
  /** `name`, with `?` where optional and `*` where repeatable. */
  readonly args: readonly string[];
  /** Whose it is, and since which of its versions ({@link since}). What the server we present lacks works, but is not shown. */
  readonly origin: Origin;
  /** By their own lower-case names; empty when this is no container. */
  readonly subcommands: ReadonlyMap<string, CommandEntry>;
}

/** All category names that ACL CAT lists, in its order. */
export const ACL_CATEGORIES: readonly string[] = [
  'keyspace', 'read', 'write', 'set', 'sortedset', 'list', 'hash', 'string', 'bitmap', 'hyperloglog', 'geo', 'stream', 'pubsub',
  'admin', 'fast', 'slow', 'blocking', 'dangerous', 'connection', 'transaction', 'scripting',
];

interface Row {
  readonly name: string;
  readonly arity: number;
  /** Blank separated. */
  readonly flags: string;
  readonly since: string;
  readonly summary: string;
  readonly complexity?: string;
  /** Blank separated, see {@link CommandEntry.args}. */
  readonly args?: string;
  readonly tips?: string;
  readonly origin?: Origin;
  readonly subcommands?: readonly Row[];
  /** Categories that the flags do not imply. */
  readonly extra?: string;
}

const OPEN = 'noscript loading stale';
const ADMIN = `admin ${OPEN}`;
const READ = 'loading stale';
const SPREAD = 'nondeterministic_output';
const UNORDERED = 'nondeterministic_output_order';

const ACL_ROWS: readonly Row[] = [
  { name: 'cat', arity: -2, flags: OPEN, since: '6.0.0', summary: 'Names the ACL categories, or the commands of one.', args: 'category?' },
  { name: 'deluser', arity: -3, flags: ADMIN, since: '6.0.0', summary: 'Removes users and ends their connections.', args: 'username*' },
  {
    name: 'dryrun', arity: -4, flags: ADMIN, since: '7.0.0',
    summary: 'Tells whether a user may run a command.', args: 'username command arg?*',
  },
  { name: 'genpass', arity: -2, flags: OPEN, since: '6.0.0', summary: 'Draws a password from strong randomness.', args: 'bits?' },
  { name: 'getuser', arity: 3, flags: ADMIN, since: '6.0.0', summary: 'Tells the rules of one user.', args: 'username' },
  { name: 'help', arity: 2, flags: READ, since: '6.0.0', summary: 'Lists the subcommands.' },
  { name: 'list', arity: 2, flags: ADMIN, since: '6.0.0', summary: 'Tells all users as lines of an ACL file.' },
  { name: 'load', arity: 2, flags: ADMIN, since: '6.0.0', summary: 'Reads the ACL file again.' },
  { name: 'log', arity: -2, flags: ADMIN, since: '6.0.0', summary: 'Shows or forgets what was refused lately.', args: 'count-or-reset?' },
  { name: 'save', arity: 2, flags: ADMIN, since: '6.0.0', summary: 'Writes the users to the ACL file.' },
  { name: 'setuser', arity: -3, flags: ADMIN, since: '6.0.0', summary: 'Makes or changes a user.', args: 'username rule?*' },
  { name: 'users', arity: 2, flags: ADMIN, since: '6.0.0', summary: 'Lists the user names.' },
  { name: 'whoami', arity: 2, flags: OPEN, since: '6.0.0', summary: 'Tells the user of this connection.' },
];

const CLIENT_ROWS: readonly Row[] = [
  { name: 'caching', arity: 3, flags: OPEN, since: '6.0.0', summary: 'Tracks, or not, the keys of the next command.', args: 'mode' },
  { name: 'getname', arity: 2, flags: OPEN, since: '2.6.9', summary: 'Tells the name of this connection.' },
  { name: 'getredir', arity: 2, flags: OPEN, since: '6.0.0', summary: 'Tells where tracking notices of this connection go.' },
  { name: 'help', arity: 2, flags: READ, since: '5.0.0', summary: 'Lists the subcommands.' },
  { name: 'id', arity: 2, flags: OPEN, since: '5.0.0', summary: 'Tells the number of this connection.' },
  { name: 'info', arity: 2, flags: OPEN, since: '6.2.0', summary: 'Describes this connection.', tips: SPREAD },
  { name: 'kill', arity: -3, flags: ADMIN, since: '2.4.0', summary: 'Ends the connections that fit all filters.', args: 'filter*' },
  { name: 'list', arity: -2, flags: ADMIN, since: '2.4.0', summary: 'Describes the open connections.', args: 'filter?*', tips: SPREAD },
  { name: 'no-evict', arity: 3, flags: ADMIN, since: '7.0.0', summary: 'Shields this connection from eviction.', args: 'enabled' },
  { name: 'pause', arity: -3, flags: ADMIN, since: '2.9.50', summary: 'Is accepted and holds nobody back.', args: 'timeout mode?' },
  { name: 'reply', arity: 3, flags: OPEN, since: '3.2.0', summary: 'Turns replies on, off, or skips the next.', args: 'action' },
  {
    name: 'setinfo', arity: 4, flags: OPEN, since: '7.2.0',
    summary: 'Tells name or version of the client library.', args: 'attribute value',
    tips: 'request_policy:all_nodes response_policy:all_succeeded',
  },
  { name: 'setname', arity: 3, flags: OPEN, since: '2.6.9', summary: 'Names this connection.', args: 'connection-name' },
  { name: 'tracking', arity: -3, flags: OPEN, since: '6.0.0', summary: 'Turns key tracking on or off.', args: 'status option?*' },
  { name: 'trackinginfo', arity: 2, flags: OPEN, since: '6.2.0', summary: 'Tells how key tracking is set.' },
  {
    name: 'unblock', arity: -3, flags: ADMIN, since: '5.0.0',
    summary: 'Wakes a client that waits in a command.', args: 'client-id unblock-type?',
  },
  { name: 'unpause', arity: 2, flags: ADMIN, since: '6.2.0', summary: 'Ends a pause.' },
];

const COMMAND_ROWS: readonly Row[] = [
  { name: 'count', arity: 2, flags: READ, since: '2.8.13', summary: 'Counts the commands.' },
  {
    name: 'docs', arity: -2, flags: READ, since: '7.0.0',
    summary: 'Tells what commands are for.', args: 'command-name?*', tips: UNORDERED,
  },
  { name: 'getkeys', arity: -3, flags: READ, since: '2.8.13', summary: 'Finds the keys in a command.', args: 'command arg?*' },
  {
    name: 'getkeysandflags', arity: -3, flags: READ, since: '7.0.0',
    summary: 'Finds the keys in a command, and their use.', args: 'command arg?*',
  },
  { name: 'help', arity: 2, flags: READ, since: '5.0.0', summary: 'Lists the subcommands.' },
  {
    name: 'info', arity: -2, flags: READ, since: '2.8.13',
    summary: 'Tells arity, flags and categories.', args: 'command-name?*', tips: UNORDERED,
  },
  { name: 'list', arity: -2, flags: READ, since: '7.0.0', summary: 'Lists the command names.', args: 'filterby?*', tips: UNORDERED },
];

const SENTINEL_ROWS: readonly Row[] = SENTINEL_SUBCOMMANDS.map(({ name, arity, args, summary, since, origin }) => ({
  name,
  arity,
  since,
  summary,
  flags: name === 'help' ? READ : 'admin',
  args: plainArgs(args),
  origin,
}));

/** `<name> [<value> ...]` → `name value?*`; what alternates stays one word. */
function plainArgs(usage: string): string {
  const seen = new Map<string, string>();
  for (const [, bracket, word = ''] of usage.matchAll(/(\[)?<?([\w|-]+)>?/g)) {
    const repeats = seen.has(word);
    seen.set(word, repeats ? `${(seen.get(word) ?? '').replace('*', '')}*` : bracket === undefined ? word : `${word}?`);
  }
  return [...seen.values()].join(' ');
}

const ROWS: readonly (Row & { readonly group: string })[] = [
  { name: 'acl', group: 'server', arity: -2, flags: '', since: '6.0.0', summary: 'Users and what they may do.', subcommands: ACL_ROWS },
  {
    name: 'auth', group: 'connection', arity: -2, flags: `${OPEN} fast no_auth allow_busy`, since: '1.0.0', extra: 'connection',
    summary: 'Proves who this connection is.', complexity: 'O(N) for N passwords of the user', args: 'username? password',
  },
  {
    name: 'client', group: 'connection', arity: -2, flags: '', since: '2.4.0',
    summary: 'Connections of clients.', subcommands: CLIENT_ROWS,
  },
  {
    name: 'command', group: 'server', arity: -1, flags: READ, since: '2.8.13', summary: 'Describes the commands.', extra: 'connection',
    tips: UNORDERED, subcommands: COMMAND_ROWS,
  },
  {
    name: 'hello', group: 'connection', arity: -1, flags: `${OPEN} fast no_auth allow_busy`, since: '6.0.0', extra: 'connection',
    summary: 'Agrees on the protocol version and tells who we are.', args: 'protover? option?*',
  },
  {
    name: 'info', group: 'server', arity: -1, flags: READ, since: '1.0.0',
    summary: 'Numbers and settings of this server.', extra: 'dangerous',
    args: 'section?*', tips: 'nondeterministic_output request_policy:all_shards response_policy:special',
  },
  {
    name: 'ping', group: 'connection', arity: -1, flags: 'fast', since: '1.0.0',
    summary: 'Tells whether the server answers.', extra: 'connection',
    args: 'message?', tips: 'request_policy:all_shards response_policy:all_succeeded',
  },
  {
    name: 'psubscribe', group: 'pubsub', arity: -2, flags: `pubsub ${OPEN}`, since: '2.0.0',
    summary: 'Listens to channels that fit patterns.', args: 'pattern*',
  },
  {
    name: 'publish', group: 'pubsub', arity: 3, flags: `pubsub ${READ} fast`, since: '2.0.0',
    summary: 'Takes a hello of a peer.', args: 'channel message',
  },
  {
    name: 'punsubscribe', group: 'pubsub', arity: -1, flags: `pubsub ${OPEN}`, since: '2.0.0',
    summary: 'Ends listening to patterns.', args: 'pattern?*',
  },
  {
    name: 'role', group: 'server', arity: 1, flags: `${OPEN} fast`, since: '2.8.12',
    summary: 'Tells the role and the masters.', extra: 'admin dangerous',
  },
  {
    name: 'sentinel', group: 'sentinel', arity: -2, flags: 'admin', since: '2.8.4', summary: 'Masters, their replicas and peers.',
    subcommands: SENTINEL_ROWS,
  },
  {
    name: 'shutdown', group: 'server', arity: -1, flags: `${ADMIN} no_multi allow_busy`, since: '1.0.0', summary: 'Ends this sentinel.',
    args: 'option?*',
  },
  {
    name: 'subscribe', group: 'pubsub', arity: -2, flags: `pubsub ${OPEN}`, since: '2.0.0',
    summary: 'Listens to channels.', args: 'channel*',
  },
  {
    name: 'unsubscribe', group: 'pubsub', arity: -1, flags: `pubsub ${OPEN}`, since: '2.0.0',
    summary: 'Ends listening to channels.', args: 'channel?*',
  },
];

/** Top-level commands by lower-case name, in alphabetical order. */
export const COMMANDS: ReadonlyMap<string, CommandEntry> = new Map(ROWS.map((row) => [row.name, entry(row, row.group, null)]));

/** All commands and subcommands, containers before what they contain. */
export const ALL_COMMANDS: readonly CommandEntry[] = [...COMMANDS.values()].flatMap((command) => [
  command,
  ...command.subcommands.values(),
]);

/** Whether COMMAND and ACL CAT of the server that we present show it. */
export function isListed(identity: ServerIdentity, command: CommandEntry): boolean {
  return isIn(identity, command.since, command.origin);
}

/** All commands and subcommands that the server we present has. */
export function listedCommands(identity: ServerIdentity): readonly CommandEntry[] {
  return ALL_COMMANDS.filter((command) => isListed(identity, command));
}

/** Since when a command of the server we present is deprecated, and by what it is replaced; null when it is not. */
export function commandDeprecation(identity: ServerIdentity, { fullName }: CommandEntry): ReturnType<typeof deprecationOf> {
  const [container, sub] = fullName.split('|');
  return container === 'sentinel' && sub !== undefined ? deprecationOf(identity, sub) : null;
}

const BY_FULL_NAME: ReadonlyMap<string, CommandEntry> = new Map(ALL_COMMANDS.map((command) => [command.fullName, command]));

/** A command or subcommand by its name in any case, `ping` or `CLIENT|ID`; undefined when there is none. */
export function findCommand(fullName: string): CommandEntry | undefined {
  return BY_FULL_NAME.get(fullName.toLowerCase());
}

function words(text: string | undefined): string[] {
  return (text ?? '').split(' ').filter((word) => word !== '');
}

function entry(row: Row, group: string, container: string | null): CommandEntry {
  const flags = words(row.flags);
  const subcommands = row.subcommands ?? [];
  const implied = new Set([
    ...words(row.extra),
    ...(flags.includes('admin') ? ['admin', 'dangerous'] : []),
    ...(flags.includes('pubsub') ? ['pubsub'] : []),
    flags.includes('fast') ? 'fast' : 'slow',
    // The container `client` itself carries no category but its speed.
    ...(container === 'client' || container === 'command' ? ['connection'] : []),
  ]);
  return {
    fullName: container === null ? row.name : `${container}|${row.name}`,
    arity: row.arity,
    flags,
    categories: ACL_CATEGORIES.filter((category) => implied.has(category)),
    tips: words(row.tips),
    summary: row.summary,
    since: row.since,
    group,
    complexity: row.complexity ?? (subcommands.length > 0 ? 'Depends on subcommand.' : null),
    args: words(row.args),
    origin: row.origin ?? 'redis',
    subcommands: new Map(subcommands.map((sub) => [sub.name, entry(sub, group, row.name)])),
  };
}
