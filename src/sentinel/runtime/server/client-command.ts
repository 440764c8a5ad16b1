/**
 * CLIENT: who is connected, who is told to go, and the settings of one's own connection.
 *
 * Mirrors clientCommand in networking.c (7.2). Divergence D33: PAUSE is accepted and holds nobody back, because a sentinel that keeps
 * its peers waiting looks dead to them. Divergence D35: LIST and INFO are plain bulks in RESP3 too, never verbatim texts.
 */
import { assertNever } from '../../../assert.js';
import type { RespValue } from '../../wire/resp-value.js';
import { NULL, OK, bulk, error, integer } from '../../wire/resp-value.js';
import type { Client } from './client.js';
import { describeTracking, redirection, setCaching, setTracking } from './client-tracking.js';
import type { Handler, ServerContext } from './context.js';
import { describeClient } from './context.js';
import { clientSetName, isPlainName } from './handshake.js';
import { NOT_AN_INTEGER, SYNTAX_ERROR, helpReply, integerOf } from './replies.js';

type ClientType = 'normal' | 'master' | 'replica' | 'pubsub';

const HELP = [
  'CACHING (YES|NO)', '    Choose whether the next command\'s keys are tracked, in OPTIN or OPTOUT mode.',
  'GETREDIR', '    The id that tracking notices go to; -1 when tracking is off.',
  'GETNAME', '    The name of this connection.',
  'ID', '    The number of this connection.',
  'INFO', '    One line about this connection.',
  'KILL <ip:port>', '    End the connection from that address.',
  'KILL <option> <value> [<option> <value> [...]]', '    End all connections that fit every option:',
  '    * ADDR (<ip:port>|<unixsocket>:0)', '      the far end', '    * LADDR (<ip:port>|<unixsocket>:0)', '      our end',
  '    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)', '      the kind', '    * USER <username>', '      who logged in',
  '    * ID <client-id>', '      the number', '    * SKIPME (YES|NO)', '      spare this connection (default: yes)',
  'LIST [options ...]', '    One line for each connection:', '    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)', '      of that kind',
  '    * ID <client-id> [<client-id> ...]', '      with those numbers',
  'NO-EVICT (ON|OFF)', '    Shield this connection from eviction.',
  'PAUSE <timeout> [WRITE|ALL]', '    Accepted; nobody is held back.',
  'REPLY (ON|OFF|SKIP)', '    Whether this connection gets replies.',
  'SETINFO <option> <value>', '    Tell the client library: LIB-NAME or LIB-VER.',
  'SETNAME <name>', '    Name this connection.',
  'TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]', '         [OPTIN] [OPTOUT] [NOLOOP]',
  '    Settings of client side caching; a sentinel has no keys to track.',
  'TRACKINGINFO', '    Those settings.',
  'UNBLOCK <clientid> [TIMEOUT|ERROR]', '    Wake a connection that waits in a command; none does here.',
  'UNPAUSE', '    End a pause.',
];

/** Handlers by subcommand. */
export const CLIENT_HANDLERS: Readonly<Record<string, Handler>> = {
  caching: (_context, client, argv) => setCaching(client, argv[2] ?? ''),
  getname: (_context, client) => (client.name === '' ? NULL : bulk(client.name)),
  getredir: (_context, client) => integer(redirection(client.tracking)),
  help: () => helpReply('CLIENT', HELP),
  id: (_context, client) => integer(client.id),
  info: (_context, client) => bulk(`${describeClient(client, performance.now())}\n`),
  kill: (context, client, argv) => kill(context, client, argv.slice(2)),
  list: (context, client, argv) => list(context, client, argv),
  'no-evict': (_context, client, argv) => setNoEvict(client, argv),
  pause: (_context, _client, argv) => whyNotPause(argv) ?? OK,
  reply: (_context, client, argv) => setReply(client, argv[2] ?? ''),
  setinfo: (_context, client, argv) => setInfo(client, argv[2] ?? '', argv[3] ?? ''),
  setname: clientSetName,
  tracking: (context, client, argv) => setTracking(client, argv, (id) => context.clients.has(id)),
  trackinginfo: (_context, client) => describeTracking(client.tracking),
  unblock: (_context, _client, argv) => unblock(argv),
  unpause: () => OK,
};

function setNoEvict(client: Client, argv: readonly string[]): RespValue {
  const word = argv[2]?.toLowerCase();
  if (word !== 'on' && word !== 'off') return SYNTAX_ERROR;
  client.noEvict = word === 'on';
  return OK;
}

function whyNotPause(argv: readonly string[]): RespValue | null {
  const [, , timeout = '', mode] = argv;
  if (argv.length > 4) return SYNTAX_ERROR;
  if (mode !== undefined && !/^(write|all)$/i.test(mode)) return error('ERR CLIENT PAUSE mode must be WRITE or ALL');
  const ms = integerOf(timeout);
  if (ms === null) return error('ERR timeout is not an integer or out of range');
  return ms < 0 ? error('ERR timeout is negative') : null;
}

function setReply(client: Client, word: string): RespValue | 'none' {
  switch (word.toLowerCase()) {
    case 'on':
      client.replyMode = 'on';
      return OK;
    case 'off':
      client.replyMode = 'off';
      return 'none';
    case 'skip':
      if (client.replyMode !== 'off') client.replyMode = 'skipNext';
      return 'none';
    default:
      return SYNTAX_ERROR;
  }
}

function setInfo(client: Client, attribute: string, value: string): RespValue {
  const name = attribute.toLowerCase();
  if (name !== 'lib-name' && name !== 'lib-ver') return error(`ERR Unrecognized option '${attribute}'`);
  if (!isPlainName(value)) return error(`ERR ${name} cannot contain spaces, newlines or special characters.`);
  if (name === 'lib-name') client.libName = value;
  else client.libVersion = value;
  return OK;
}

function unblock(argv: readonly string[]): RespValue {
  const [, , id = '', reason] = argv;
  if (argv.length > 4) return SYNTAX_ERROR;
  if (reason !== undefined && !/^(timeout|error)$/i.test(reason)) {
    return error('ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR');
  }
  return integerOf(id) === null ? NOT_AN_INTEGER : integer(0);
}

const typeOf = (client: Client): ClientType => (client.subscriptions > 0 ? 'pubsub' : 'normal');

function readType(word: string): ClientType | null {
  const name = word.toLowerCase();
  if (name === 'slave') return 'replica';
  return name === 'normal' || name === 'master' || name === 'replica' || name === 'pubsub' ? name : null;
}

const unknownType = (word: string): RespValue => error(`ERR Unknown client type '${word}'`);

function list(context: ServerContext, _client: Client, argv: readonly string[]): RespValue {
  const [, , option, ...values] = argv;
  let clients = [...context.clients.values()];
  if (option?.toLowerCase() === 'type' && values.length === 1) {
    const type = readType(values[0] ?? '');
    if (type === null) return unknownType(values[0] ?? '');
    clients = clients.filter((each) => typeOf(each) === type);
  } else if (option?.toLowerCase() === 'id' && values.length > 0) {
    const ids = values.map(integerOf);
    if (ids.includes(null)) return error('ERR Invalid client ID');
    clients = ids.flatMap((id) => context.clients.get(id ?? 0) ?? []);
  } else if (option !== undefined) {
    return SYNTAX_ERROR;
  }
  const nowMs = performance.now();
  return bulk(clients.map((each) => `${describeClient(each, nowMs)}\n`).join(''));
}

type Filter =
  | { readonly kind: 'id'; readonly id: number }
  | { readonly kind: 'addr' | 'laddr' | 'user'; readonly text: string }
  | { readonly kind: 'type'; readonly type: ClientType };

/** CLIENT KILL addr, the old form, or CLIENT KILL filter value ..., which counts. */
function kill(context: ServerContext, client: Client, words: readonly string[]): RespValue {
  if (words.length === 1) {
    const victim = [...context.clients.values()].find((each) => each.address === words[0]);
    if (victim === undefined) return error('ERR No such client');
    end(victim, client);
    return OK;
  }
  const filters: Filter[] = [];
  let skipMe = true;
  for (let at = 0; at < words.length; at += 2) {
    const [option = '', value] = words.slice(at, at + 2);
    if (value === undefined) return SYNTAX_ERROR;
    if (option.toLowerCase() === 'skipme' && /^(yes|no)$/i.test(value)) {
      skipMe = value.toLowerCase() === 'yes';
      continue;
    }
    const filter = readFilter(context, option.toLowerCase(), value);
    if (filter.kind === 'error') return filter;
    filters.push(filter);
  }
  const victims = [...context.clients.values()].filter(
    (each) => !(skipMe && each === client) && filters.every((filter) => fits(filter, each)),
  );
  for (const victim of victims) end(victim, client);
  return integer(victims.length);
}

function readFilter(context: ServerContext, option: string, value: string): Filter | Extract<RespValue, { kind: 'error' }> {
  const refuse = (text: string): Extract<RespValue, { kind: 'error' }> => ({ kind: 'error', text });
  switch (option) {
    case 'id': {
      const id = integerOf(value);
      return id === null || id < 1 ? refuse('ERR client-id should be greater than 0') : { kind: 'id', id };
    }
    case 'addr':
    case 'laddr':
      return { kind: option, text: value };
    case 'user':
      return context.acl.get(value) === undefined ? refuse(`ERR No such user '${value}'`) : { kind: 'user', text: value };
    case 'type': {
      const type = readType(value);
      return type === null ? refuse(`ERR Unknown client type '${value}'`) : { kind: 'type', type };
    }
    default:
      return refuse('ERR syntax error');
  }
}

function fits(filter: Filter, client: Client): boolean {
  switch (filter.kind) {
    case 'id':
      return client.id === filter.id;
    case 'addr':
      return client.address === filter.text;
    case 'laddr':
      return client.localAddress === filter.text;
    case 'user':
      return client.userName === filter.text;
    case 'type':
      return typeOf(client) === filter.type;
    default:
      return assertNever(filter);
  }
}

/** Ends a connection; one's own only after its reply. */
function end(victim: Client, self: Client): void {
  if (victim === self) victim.closeAfterReply();
  else victim.destroy('CLIENT KILL');
}
