/**
 * From a request to its handler, through the checks in the server's order: does it exist, has it enough words, who asks, may he,
 * and is this a subscriber that may say it.
 *
 * Mirrors processCommand in server.c (7.2). A request that looks like HTTP ends the connection without a word: somebody's browser was
 * made to speak to us.
 */
import { isIn } from '../../wire/identity.js';
import type { RespValue } from '../../wire/resp-value.js';
import { error } from '../../wire/resp-value.js';
import type { CommandEntry } from '../server-command-table.js';
import { COMMANDS } from '../server-command-table.js';
import { ACL_HANDLERS, fitsArity } from './acl-command.js';
import { whyDenied } from './acl-user.js';
import type { Client } from './client.js';
import { CLIENT_HANDLERS } from './client-command.js';
import { COMMAND_HANDLERS, allCommandInfos } from './command-command.js';
import type { Handler, ServerContext } from './context.js';
import { noteRefusal } from './context.js';
import { TOLERATED, auth, hello, ping } from './handshake.js';
import { info } from './info.js';
import type { Outcome } from './options.js';
import { HELLO_CHANNEL } from './options.js';
import { SYNTAX_ERROR, unknownCommand, unknownSubcommand, wrongArity } from './replies.js';

const NOAUTH = error('NOAUTH Authentication required.');
// The words before 7.2.
const OLD_NO_CHANNEL = 'NOPERM this user has no permissions to access one of the channels used as arguments';
const SUBSCRIBER_COMMANDS = new Set(['subscribe', 'psubscribe', 'unsubscribe', 'punsubscribe', 'ping']);

const toGate: Handler = ({ gate }, client, argv) => {
  gate.execute(client.id, argv);
  return 'pending';
};

const subscription: Handler = ({ pubsub }, client, argv, command) => {
  pubsub.execute(client, command.fullName, argv.slice(1));
  return 'none';
};

const publish: Handler = (context, client, argv, command) =>
  argv[1] === HELLO_CHANNEL
    ? toGate(context, client, argv, command)
    : error('ERR Only HELLO messages are accepted by Sentinel instances.');

const HANDLERS: Readonly<Record<string, Handler>> = {
  auth,
  command: allCommandInfos,
  hello,
  info,
  ping,
  psubscribe: subscription,
  publish,
  punsubscribe: subscription,
  role: toGate,
  shutdown: (context, client, argv) => shutdown(context, client, argv),
  subscribe: subscription,
  unsubscribe: subscription,
};
const SUBCOMMAND_HANDLERS: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  acl: ACL_HANDLERS,
  client: CLIENT_HANDLERS,
  command: COMMAND_HANDLERS,
};

/** Whether the client must log in before anything else. */
export function mustAuthenticate(context: ServerContext, client: Client): boolean {
  return !client.authenticated && !context.acl.isOpen;
}

/** Runs one request. */
export function execute(context: ServerContext, client: Client, argv: readonly string[]): Outcome {
  const name = (argv[0] ?? '').toLowerCase();
  if (name === 'post' || name === 'host:') {
    context.garbage.warn({ client: client.address }, 'a client speaks HTTP, maybe a cross-protocol attack; connection closed');
    client.destroy('speaks HTTP');
    return 'none';
  }
  const tolerated = TOLERATED.get(name);
  if (tolerated !== undefined) {
    if (!fitsArity(tolerated.arity, argv.length)) return wrongArity(name);
    if (!tolerated.always && mustAuthenticate(context, client)) return NOAUTH;
    if (!tolerated.always && client.isRestricted) return notForSubscribers(name);
    context.stats.commands++;
    client.lastCommand = name;
    return tolerated.run(context, client, argv);
  }
  const command = find(argv, name);
  if (!('fullName' in command)) return command;
  client.lastCommand = command.fullName;
  const refusal = whyRefused(context, client, argv, command);
  if (refusal !== null) return refusal;
  context.stats.commands++;
  return handlerOf(command)(context, client, argv, command);
}

/** The command, or the refusal of one that does not exist. */
function find(argv: readonly string[], name: string): CommandEntry | RespValue {
  const command = COMMANDS.get(name);
  if (command === undefined) return unknownCommand(argv);
  const sub = argv[1];
  if (command.subcommands.size === 0 || sub === undefined) return command;
  return command.subcommands.get(sub.toLowerCase()) ?? unknownSubcommand(name, sub);
}

/** SENTINEL FAILOVER <master> COORDINATED [ip:port]: the one command with more words than its row allows (Valkey 9 has the word). */
const isCoordinatedFailover = ([command, sub, , mode, ...rest]: readonly string[]): boolean =>
  command?.toLowerCase() === 'sentinel' && sub?.toLowerCase() === 'failover' && mode?.toLowerCase() === 'coordinated' && rest.length <= 1;

function whyRefused(context: ServerContext, client: Client, argv: readonly string[], command: CommandEntry): RespValue | null {
  if (!fitsArity(command.arity, argv.length) && !isCoordinatedFailover(argv)) return wrongArity(command.fullName);
  if (!command.flags.includes('no_auth') && mustAuthenticate(context, client)) return NOAUTH;
  const { identity } = context.options;
  const speaksNew = isIn(identity, '7.2.0');
  const user = context.acl.get(client.userName);
  const denial = user === undefined ? ({ kind: 'command' } as const) : whyDenied(user, command, argv);
  if (denial?.kind === 'command') {
    noteRefusal(context, client, { reason: 'command', object: command.fullName, username: client.userName });
    const who = speaksNew ? `User ${client.userName}` : 'this user';
    return error(`NOPERM ${who} has no permissions to run the '${command.fullName}' command`);
  }
  if (denial?.kind === 'channel') {
    noteRefusal(context, client, { reason: 'channel', object: denial.channel, username: client.userName });
    return error(speaksNew ? 'NOPERM No permissions to access a channel' : OLD_NO_CHANNEL);
  }
  if (client.isRestricted && !SUBSCRIBER_COMMANDS.has(command.fullName)) return notForSubscribers(command.fullName);
  const leaves = command.fullName === 'unsubscribe' || command.fullName === 'punsubscribe';
  if (!leaves || client.subscriptions > 0 || !isIn(identity, '8.0.0', 'valkey')) return null;
  return error(`NOSUB '${command.fullName}' command executed not in subscribed mode`);
}

/** In the middle of a RESP2 subscription. */
function notForSubscribers(name: string): RespValue {
  return error(
    `ERR Can't execute '${name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
  );
}

function handlerOf(command: CommandEntry): Handler {
  const [container = '', sub] = command.fullName.split('|');
  if (container === 'sentinel') return toGate;
  const handler = sub === undefined ? HANDLERS[container] : SUBCOMMAND_HANDLERS[container]?.[sub];
  return handler ?? (() => unknownSubcommand(container, sub ?? ''));
}

/** SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] | ABORT: nothing is saved here, so all of them mean the same. */
function shutdown(context: ServerContext, client: Client, argv: readonly string[]): Outcome {
  const words = new Set(argv.slice(1).map((word) => word.toLowerCase()));
  const known = [...words].every((word) => ['nosave', 'save', 'now', 'force', 'abort'].includes(word));
  if (!known || (words.has('save') && words.has('nosave')) || (words.has('abort') && words.size > 1)) return SYNTAX_ERROR;
  if (words.has('abort')) return error('ERR No shutdown in progress.');
  context.options.log.warn({ client: client.address, user: client.userName }, 'shutdown asked for by a client');
  client.closeAfterReply();
  context.shutdown();
  return 'none';
}
