/**
 * COMMAND: what this server can be told, for people, clients and redis-cli's hints.
 *
 * Mirrors commandCommand and its subcommands in server.c (7.2); order is alphabetical here, unspecified there.
 */
import { assertNever } from '../../../assert.js';
import { globMatch } from '../../wire/glob.js';
import type { ServerIdentity } from '../../wire/identity.js';
import type { RespValue } from '../../wire/resp-value.js';
import { NULL, array, bulk, bulks, error, integer, map, simple } from '../../wire/resp-value.js';
import type { CommandEntry } from '../server-command-table.js';
import { COMMANDS, commandDeprecation, findCommand, isListed, listedCommands } from '../server-command-table.js';
import type { Handler, PlainHandler } from './context.js';
import { SYNTAX_ERROR, helpReply } from './replies.js';

const HELP = [
  '(no subcommand)', '    Arity, flags and categories of all commands.',
  'COUNT', '    How many commands there are.',
  'LIST [FILTERBY (MODULE <module-name>|ACLCAT <category>|PATTERN <pattern>)]', '    The names of all commands, or of those that fit.',
  'INFO [<command-name> ...]', '    Arity, flags and categories of these commands, or of all.',
  'DOCS [<command-name> ...]', '    What these commands, or all, are for.',
  'GETKEYS <full-command>', '    The keys in a command.',
  'GETKEYSANDFLAGS <full-command>', '    The keys in a command and how they are used.',
];

export const allCommandInfos: PlainHandler = ({ options }) =>
  array([...COMMANDS.values()].map((command) => infoOf(options.identity, command)));

/** Handlers by subcommand. */
export const COMMAND_HANDLERS: Readonly<Record<string, Handler>> = {
  count: () => integer(COMMANDS.size),
  docs: ({ options }, _client, argv) => docs(options.identity, argv.slice(2)),
  getkeys: (_context, _client, argv) => keysOf(argv.slice(2)),
  getkeysandflags: (_context, _client, argv) => keysOf(argv.slice(2)),
  help: () => helpReply('COMMAND', HELP),
  info: (context, client, argv, command) =>
    argv.length === 2
      ? allCommandInfos(context, client, argv, command)
      : array(argv.slice(2).map((name) => infoOrNull(context.options.identity, findCommand(name)))),
  list: ({ options }, _client, argv) => list(options.identity, argv.slice(2)),
};

function listedSubcommands(identity: ServerIdentity, command: CommandEntry): CommandEntry[] {
  return [...command.subcommands.values()].filter((sub) => isListed(identity, sub));
}

const infoOrNull = (identity: ServerIdentity, command: CommandEntry | undefined): RespValue =>
  (command === undefined || !isListed(identity, command) ? NULL : infoOf(identity, command));

/** The ten elements of COMMAND INFO. */
function infoOf(identity: ServerIdentity, command: CommandEntry): RespValue {
  const set = (items: readonly RespValue[]): RespValue => ({ kind: 'set', items });
  return array([
    bulk(command.fullName),
    integer(command.arity),
    set(command.flags.map(simple)),
    integer(0),
    integer(0),
    integer(0),
    set(command.categories.map((category) => simple(`@${category}`))),
    set(command.tips.map(bulk)),
    set([]),
    set(listedSubcommands(identity, command).map((sub) => infoOf(identity, sub))),
  ]);
}

function docs(identity: ServerIdentity, names: readonly string[]): RespValue {
  const commands = names.length === 0 ? [...COMMANDS.values()] : names.flatMap((name) => findCommand(name) ?? []);
  const listed = commands.filter((command) => isListed(identity, command));
  return map(listed.map((command) => [bulk(command.fullName), docOf(identity, command)] as const));
}

function docOf(identity: ServerIdentity, command: CommandEntry): RespValue {
  const entries: [RespValue, RespValue][] = [
    [bulk('summary'), bulk(command.summary)],
    [bulk('since'), bulk(command.since)],
    [bulk('group'), bulk(command.group)],
  ];
  if (command.complexity !== null) entries.push([bulk('complexity'), bulk(command.complexity)]);
  const deprecation = commandDeprecation(identity, command);
  if (deprecation !== null) {
    const { since, replacedBy } = deprecation;
    entries.push([bulk('doc_flags'), { kind: 'set', items: [simple('deprecated')] }]);
    entries.push([bulk('deprecated_since'), bulk(since)], [bulk('replaced_by'), bulk(replacedBy)]);
  }
  if (command.args.length > 0) entries.push([bulk('arguments'), array(command.args.map(argumentOf))]);
  if (command.subcommands.size > 0) {
    const subs = listedSubcommands(identity, command);
    entries.push([bulk('subcommands'), map(subs.map((sub) => [bulk(sub.fullName), docOf(identity, sub)] as const))]);
  }
  return map(entries);
}

function argumentOf(text: string): RespValue {
  const [, name = text, optional, multiple] = /^(.*?)(\?)?(\*)?$/.exec(text) ?? [];
  const flags = [...(optional ? ['optional'] : []), ...(multiple ? ['multiple'] : [])];
  const fields = [['name', name], ['type', 'string'], ['display_text', name]] as const;
  const entries: [RespValue, RespValue][] = fields.map(([key, value]) => [bulk(key), bulk(value)]);
  if (flags.length > 0) entries.push([bulk('flags'), { kind: 'set', items: flags.map(simple) }]);
  return map(entries);
}

/** No command here has keys; what remains is to say so in the right words. */
function keysOf(request: readonly string[]): RespValue {
  const [name = '', sub] = request;
  const container = COMMANDS.get(name.toLowerCase());
  const command = sub !== undefined && container !== undefined && container.subcommands.size > 0
    ? container.subcommands.get(sub.toLowerCase())
    : container;
  if (command === undefined) return error('ERR Invalid command specified');
  return error('ERR The command has no key arguments');
}

type ListFilter = 'module' | 'aclcat' | 'pattern';

function list(identity: ServerIdentity, words: readonly string[]): RespValue {
  const commands = listedCommands(identity);
  if (words.length === 0) return bulks(commands.map((command) => command.fullName));
  const [keyword, filter, value] = words;
  if (words.length !== 3 || keyword?.toLowerCase() !== 'filterby' || value === undefined) return SYNTAX_ERROR;
  const kind = readFilter(filter ?? '');
  if (kind === null) return SYNTAX_ERROR;
  return bulks(commands.filter((command) => fits(command, kind, value)).map((command) => command.fullName));
}

function readFilter(word: string): ListFilter | null {
  const name = word.toLowerCase();
  return name === 'module' || name === 'aclcat' || name === 'pattern' ? name : null;
}

function fits(command: CommandEntry, filter: ListFilter, value: string): boolean {
  switch (filter) {
    case 'module':
      return false;
    case 'aclcat':
      return command.categories.includes(value.toLowerCase());
    case 'pattern':
      return globMatch(value, command.fullName, { nocase: true });
    default:
      return assertNever(filter);
  }
}
