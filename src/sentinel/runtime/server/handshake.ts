/**
 * How a connection introduces itself: AUTH and HELLO; PING; and the words that older clients say and the server no longer knows.
 *
 * Mirrors authCommand, helloCommand and pingCommand (7.2). Divergence D30: QUIT is answered with OK and closes. Divergence D31:
 * SELECT 0 is accepted. Divergence D32: ECHO works. All three are free of permissions, since they tell and change nothing.
 */
import { isIn } from '../../wire/identity.js';
import type { RespValue } from '../../wire/resp-value.js';
import { OK, array, bulk, bulks, error, integer, map, simple } from '../../wire/resp-value.js';
import type { Client } from './client.js';
import type { PlainHandler, ServerContext } from './context.js';
import { noteRefusal } from './context.js';
import { NOT_AN_INTEGER, SYNTAX_ERROR, integerOf, wrongArity } from './replies.js';

const WRONGPASS = error('WRONGPASS invalid username-password pair or user is disabled.');
const BAD_NAME = error('ERR Client names cannot contain spaces, newlines or special characters.');
// Before 7.2 the version was not named.
const helloNeedsAuth = (isNew: boolean): RespValue =>
  error(
    `NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO ${isNew ? '<proto> ' : ''}AUTH <user> <pass> ` +
      'option can be used to authenticate the client and select the RESP protocol version at the same time',
  );
const NO_PASSWORD = error(
  'ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?',
);

export const ping: PlainHandler = (_context, client, argv) => {
  if (argv.length > 2) return wrongArity('ping');
  const message = argv[1];
  if (client.isRestricted) return bulks(['pong', message ?? '']);
  return message === undefined ? simple('PONG') : bulk(message);
};

export const auth: PlainHandler = (context, client, argv) => {
  const [verb = '', first = '', second] = argv;
  if (argv.length > 3) return SYNTAX_ERROR;
  if (second === undefined && context.acl.default.nopass) return NO_PASSWORD;
  const [name, password] = second === undefined ? ['default', first] : [first, second];
  return logIn(context, client, verb, name, password) ? OK : WRONGPASS;
};

function logIn(context: ServerContext, client: Client, verb: string, name: string, password: string): boolean {
  const user = context.acl.authenticate(name, password);
  if (user === null) {
    noteRefusal(context, client, { reason: 'auth', object: verb, username: name });
    return false;
  }
  client.userName = user.name;
  client.authenticated = true;
  return true;
}

/** HELLO [protover [AUTH user password] [SETNAME name]]; options take effect from left to right, as in the server. */
export const hello: PlainHandler = (context, client, argv) => {
  const [verb = '', wanted] = argv;
  const version = wanted === undefined ? client.protocol : integerOf(wanted);
  if (version === null) return error('ERR Protocol version is not an integer or out of range');
  if (version !== 2 && version !== 3) return error('NOPROTO unsupported protocol version');
  for (let at = 2; at < argv.length; at++) {
    const option = argv[at] ?? '';
    const [first, second] = argv.slice(at + 1, at + 3);
    if (option.toLowerCase() === 'auth' && first !== undefined && second !== undefined) {
      if (!logIn(context, client, verb, first, second)) return WRONGPASS;
      at += 2;
    } else if (option.toLowerCase() === 'setname' && first !== undefined) {
      if (!setName(client, first)) return BAD_NAME;
      at += 1;
    } else {
      return error(`ERR Syntax error in HELLO option '${option}'`);
    }
  }
  const { identity } = context.options;
  if (!client.authenticated && !context.acl.isOpen) return helloNeedsAuth(isIn(identity, '7.2.0'));
  client.protocol = version;
  return map([
    [bulk('server'), bulk(identity.product)],
    [bulk('version'), bulk(identity.version)],
    [bulk('proto'), integer(version)],
    [bulk('id'), integer(client.id)],
    [bulk('mode'), bulk('sentinel')],
    [bulk('modules'), array([])],
  ]);
};

/** Whether a text can be a client's name or a library's: visible ASCII, no blanks. */
export function isPlainName(text: string): boolean {
  return /^[!-~]*$/.test(text);
}

/** Names the connection; false when that is no name. An empty one takes the name away. */
export function setName(client: Client, name: string): boolean {
  if (!isPlainName(name)) return false;
  client.name = name;
  return true;
}

/** CLIENT SETNAME */
export const clientSetName: PlainHandler = (_context, client, argv) => (setName(client, argv[2] ?? '') ? OK : BAD_NAME);

interface Tolerated {
  readonly arity: number;
  /** QUIT needs no log-in and no leave of a subscriber. */
  readonly always: boolean;
  readonly run: (context: ServerContext, client: Client, argv: readonly string[]) => RespValue;
}

/** Commands that are answered although COMMAND does not know them. */
export const TOLERATED: ReadonlyMap<string, Tolerated> = new Map<string, Tolerated>([
  ['quit', { arity: -1, always: true, run: (_context, client) => quit(client) }],
  ['select', { arity: 2, always: false, run: (_context, _client, argv) => select(argv[1] ?? '') }],
  ['echo', { arity: 2, always: false, run: (_context, _client, argv) => bulk(argv[1] ?? '') }],
]);

function quit(client: Client): RespValue {
  client.closeAfterReply();
  return OK;
}

function select(index: string): RespValue {
  const db = integerOf(index);
  if (db === null) return NOT_AN_INTEGER;
  return db === 0 ? OK : error('ERR DB index is out of range');
}
