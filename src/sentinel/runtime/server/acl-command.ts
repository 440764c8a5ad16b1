/**
 * ACL: the users, their rules, and what was refused.
 *
 * Mirrors aclCommand in acl.c (7.2). Whoever loses the user or a channel that he listens to is disconnected, as in the server; a user
 * that is merely switched off keeps the connections he has.
 */
import { randomBytes } from 'node:crypto';
import { messageOf } from '../../../errors.js';
import type { ServerIdentity } from '../../wire/identity.js';
import type { RespValue } from '../../wire/resp-value.js';
import { NULL, OK, array, bulk, bulks, error, integer, map } from '../../wire/resp-value.js';
import { ACL_CATEGORIES, findCommand, listedCommands } from '../server-command-table.js';
import type { AclLogEntry } from './acl-log.js';
import type { AclSelector } from './acl-selector.js';
import { describeChannels, describeCommands, describeKeys } from './acl-selector.js';
import { describeFlags, describeUser, maySubscribe, whyDenied } from './acl-user.js';
import { isUserName } from './acl.js';
import type { Client } from './client.js';
import type { Handler, ServerContext } from './context.js';
import { NOT_AN_INTEGER, helpReply, integerOf, wrongArity } from './replies.js';

const HELP = [
  'CAT [<category>]', '    The categories, or the commands of one.',
  'DELUSER <username> [<username> ...]', '    Remove users.',
  'DRYRUN <username> <command> [<arg> ...]', '    Whether the user might run that command.',
  'GETUSER <username>', '    The rules of a user.',
  'GENPASS [<bits>]', '    Draw a password, of 256 bits or as many as asked for.',
  'LIST', '    All users, as in an ACL file.',
  'LOAD', '    Read the ACL file.',
  'LOG [<count> | RESET]', '    What was refused lately.',
  'SAVE', '    Write the ACL file.',
  'SETUSER <username> <attribute> [<attribute> ...]', '    Make or change a user.',
  'USERS', '    The names of all users.',
  'WHOAMI', '    The user of this connection.',
];
const NO_FILE = error(
  'ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then ' +
    'issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.',
);
const badUse = (sub: string): RespValue => error(`ERR unknown subcommand or wrong number of arguments for '${sub}'. Try ACL HELP.`);
const LOG_SHOWN = 10;

/** Handlers by subcommand. */
export const ACL_HANDLERS: Readonly<Record<string, Handler>> = {
  cat: ({ options }, _client, argv) => cat(options.identity, argv),
  deluser: (context, client, argv) => deleteUsers(context, client, argv.slice(2)),
  dryrun: (context, _client, argv) => dryRun(context, argv),
  genpass: (_context, _client, argv) => generatePassword(argv),
  getuser: (context, _client, argv) => describe(context, argv[2] ?? ''),
  help: () => helpReply('ACL', HELP),
  list: (context) => bulks(context.acl.all().map((user) => describeUser(user))),
  load: (context, client) => (context.acl.aclFile === null ? NO_FILE : load(context, client)),
  log: (context, _client, argv) => log(context, argv),
  save: (context) => (context.acl.aclFile === null ? NO_FILE : save(context)),
  setuser: (context, client, argv) => setUser(context, client, argv[2] ?? '', argv.slice(3)),
  users: (context) => bulks(context.acl.all().map((user) => user.name)),
  whoami: (_context, client) => bulk(client.userName),
};

function cat(identity: ServerIdentity, argv: readonly string[]): RespValue {
  if (argv.length > 3) return badUse(argv[1] ?? '');
  const [, , wanted] = argv;
  if (wanted === undefined) return bulks(ACL_CATEGORIES);
  const category = wanted.toLowerCase();
  if (!ACL_CATEGORIES.includes(category)) return error(`ERR Unknown category '${wanted}'`);
  return bulks(listedCommands(identity).filter((command) => command.categories.includes(category)).map((command) => command.fullName));
}

function deleteUsers(context: ServerContext, client: Client, names: readonly string[]): RespValue {
  if (names.includes('default')) return error("ERR The 'default' user cannot be removed");
  const deleted = names.filter((name) => context.acl.deleteUser(name));
  for (const name of deleted) endClients(context, client, name, () => true);
  if (deleted.length > 0) context.usersChanged();
  return integer(deleted.length);
}

function setUser(context: ServerContext, client: Client, name: string, rules: readonly string[]): RespValue {
  if (!isUserName(name)) return error("ERR Usernames can't contain spaces or null characters");
  const fault = context.acl.setUser(name, rules);
  if (fault !== null) return error(`ERR ${fault}`);
  endForbiddenListeners(context, client, name);
  context.usersChanged();
  return OK;
}

/** Ends the user's connections that listen to what he may not hear any more. */
function endForbiddenListeners(context: ServerContext, self: Client, name: string): void {
  const user = context.acl.get(name);
  if (user === undefined) return;
  const mayNot = (names: ReadonlySet<string>, arePatterns: boolean): boolean =>
    [...names].some((each) => !maySubscribe(user, each, arePatterns));
  endClients(context, self, name, ({ channels, patterns }) => mayNot(channels, false) || mayNot(patterns, true));
}

function endClients(context: ServerContext, self: Client, userName: string, which: (client: Client) => boolean): void {
  for (const client of [...context.clients.values()]) {
    if (client.userName !== userName || !which(client)) continue;
    if (client === self) client.closeAfterReply();
    else client.destroy('its user was removed or may not listen any more');
  }
}

function dryRun(context: ServerContext, argv: readonly string[]): RespValue {
  const [, , name = '', ...request] = argv;
  const user = context.acl.get(name);
  if (user === undefined) return error(`ERR User '${name}' not found`);
  const container = findCommand(request[0] ?? '');
  const command = container !== undefined && container.subcommands.size > 0 && request.length > 1
    ? container.subcommands.get((request[1] ?? '').toLowerCase())
    : container;
  if (command === undefined || (request[0] ?? '').includes('|')) return error(`ERR Command '${request[0] ?? ''}' not found`);
  if (!fitsArity(command.arity, request.length)) return wrongArity(command.fullName);
  const denial = whyDenied(user, command, request);
  if (denial === null) return OK;
  return denial.kind === 'command'
    ? bulk(`User ${name} has no permissions to run the '${command.fullName}' command`)
    : bulk(`User ${name} has no permissions to access the '${denial.channel}' channel`);
}

/** Whether `count` words fit an arity: exact, or a minimum where it is negative. */
export function fitsArity(arity: number, count: number): boolean {
  return arity < 0 ? count >= -arity : count === arity;
}

function generatePassword(argv: readonly string[]): RespValue {
  if (argv.length > 3) return badUse(argv[1] ?? '');
  const bits = argv[2] === undefined ? 256 : integerOf(argv[2]);
  if (bits === null) return NOT_AN_INTEGER;
  if (bits <= 0 || bits > 4096) {
    return error('ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096');
  }
  const digits = Math.ceil(bits / 4);
  return bulk(randomBytes(Math.ceil(digits / 2)).toString('hex').slice(0, digits));
}

function describe(context: ServerContext, name: string): RespValue {
  const user = context.acl.get(name);
  if (user === undefined) return NULL;
  const permissions = (selector: AclSelector): [RespValue, RespValue][] => [
    [bulk('commands'), bulk(describeCommands(selector))],
    [bulk('keys'), bulk(describeKeys(selector))],
    [bulk('channels'), bulk(describeChannels(selector))],
  ];
  return map([
    [bulk('flags'), { kind: 'set', items: describeFlags(user).map(bulk) }],
    [bulk('passwords'), bulks(user.passwords)],
    ...permissions(user.root),
    [bulk('selectors'), array(user.selectors.map((selector) => map(permissions(selector))))],
  ]);
}

function log(context: ServerContext, argv: readonly string[]): RespValue {
  if (argv.length > 3) return badUse(argv[1] ?? '');
  const [, , word] = argv;
  if (word?.toLowerCase() === 'reset') {
    context.acl.log.clear();
    return OK;
  }
  const count = word === undefined ? LOG_SHOWN : integerOf(word);
  if (count === null) return NOT_AN_INTEGER;
  const nowMs = Date.now();
  return array(context.acl.log.entries.slice(0, Math.max(count, 0)).map((entry) => describeEntry(entry, nowMs)));
}

function describeEntry(entry: AclLogEntry, nowMs: number): RespValue {
  return map([
    [bulk('count'), integer(entry.count)],
    [bulk('reason'), bulk(entry.reason)],
    [bulk('context'), bulk('toplevel')],
    [bulk('object'), bulk(entry.object)],
    [bulk('username'), bulk(entry.username)],
    [bulk('age-seconds'), bulk(String((nowMs - entry.createdMs) / 1000))],
    [bulk('client-info'), bulk(entry.clientInfo)],
    [bulk('entry-id'), integer(entry.id)],
    [bulk('timestamp-created'), integer(entry.createdMs)],
    [bulk('timestamp-last-updated'), integer(entry.updatedMs)],
  ]);
}

async function load(context: ServerContext, client: Client): Promise<RespValue> {
  const before = new Map(context.acl.all().map((user) => [user.name, describeUser(user)]));
  const fault = await context.acl.load();
  if (fault !== null) {
    context.options.log.warn({ operation: 'ACL LOAD' }, fault);
    return error(`ERR ${fault}`);
  }
  for (const [name, line] of before) {
    const user = context.acl.get(name);
    if (user === undefined || (name !== 'default' && describeUser(user) !== line)) endClients(context, client, name, () => true);
    else endForbiddenListeners(context, client, name);
  }
  return OK;
}

async function save(context: ServerContext): Promise<RespValue> {
  try {
    await context.acl.save();
    return OK;
  } catch (cause) {
    const { aclFile: path } = context.acl;
    context.options.log.error({ operation: 'ACL SAVE', path, cause: messageOf(cause) }, 'acl file could not be written');
    return error('ERR There was an error trying to save the ACLs. Please check the server logs for more information');
  }
}
