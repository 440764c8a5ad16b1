/**
 * One set of permissions: which commands, keys and channels. A user has one of its own and may have more in parentheses.
 *
 * Mirrors ACLSetSelector, ACLSelectorCheckCmd and ACLDescribeSelector in acl.c (7.2): rules are kept as they were given, an
 * older rule for the same command or category drops out, and categories mean commands and subcommands one by one.
 */
import { globMatch } from '../../wire/glob.js';
import type { CommandEntry } from '../server-command-table.js';
import { ACL_CATEGORIES, ALL_COMMANDS, COMMANDS, findCommand } from '../server-command-table.js';

/** Mutable; owned by its user. */
export interface AclSelector {
  /** Everything, also commands that do not exist yet. */
  allCommands: boolean;
  /** Full names. */
  commands: Set<string>;
  /** First arguments that are allowed of commands that as such are not: `+ping|x`. */
  firstArgs: Map<string, Set<string>>;
  /** What was given after `+@all` or `-@all`, signs included. */
  rules: string[];
  /** The base that the rules refine. */
  base: '+@all' | '-@all';
  keys: string[];
  channels: string[];
}

/** Allows nothing. */
export function emptySelector(): AclSelector {
  return { allCommands: false, commands: new Set(), firstArgs: new Map(), rules: [], base: '-@all', keys: [], channels: [] };
}

export function copySelector(selector: AclSelector): AclSelector {
  return {
    ...selector,
    commands: new Set(selector.commands),
    firstArgs: new Map([...selector.firstArgs].map(([name, args]) => [name, new Set(args)])),
    rules: [...selector.rules],
    keys: [...selector.keys],
    channels: [...selector.channels],
  };
}

const SYNTAX = 'Syntax error';
const UNKNOWN = 'Unknown command or category name in ACL';
const REDUNDANT_KEY =
  "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. " +
  "Try 'resetkeys' to start with an empty list of patterns";
const REDUNDANT_CHANNEL =
  "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. " +
  "Try 'resetchannels' to start with an empty list of channels";

/** Applies one rule; the reason why not, or null. */
export function applySelectorRule(selector: AclSelector, rule: string): string | null {
  switch (rule.toLowerCase()) {
    case 'allkeys':
    case '~*':
      selector.keys = ['~*'];
      return null;
    case 'resetkeys':
      selector.keys = [];
      return null;
    case 'allchannels':
    case '&*':
      selector.channels = ['*'];
      return null;
    case 'resetchannels':
      selector.channels = [];
      return null;
    case 'allcommands':
    case '+@all':
      Object.assign(selector, { allCommands: true, base: '+@all', commands: new Set(), firstArgs: new Map(), rules: [] });
      return null;
    case 'nocommands':
    case '-@all':
      Object.assign(selector, { allCommands: false, base: '-@all', commands: new Set(), firstArgs: new Map(), rules: [] });
      return null;
    default:
  }
  if (rule.startsWith('~') || rule.startsWith('%')) return addKeyPattern(selector, rule);
  if (rule.startsWith('&')) return addChannelPattern(selector, rule.slice(1));
  if (rule.startsWith('+') || rule.startsWith('-')) return applyCommandRule(selector, rule.startsWith('+'), rule.slice(1).toLowerCase());
  return SYNTAX;
}

function addKeyPattern(selector: AclSelector, rule: string): string | null {
  const match = /^(?:~|%([rw]+)~)(\S*)$/i.exec(rule);
  if (match === null) return SYNTAX;
  if (selector.keys.includes('~*')) return REDUNDANT_KEY;
  const access = (match[1] ?? 'rw').toUpperCase();
  const sign = access.includes('R') && access.includes('W') ? '~' : `%${access.charAt(0)}~`;
  const pattern = `${sign}${match[2] ?? ''}`;
  if (!selector.keys.includes(pattern)) selector.keys.push(pattern);
  return null;
}

function addChannelPattern(selector: AclSelector, pattern: string): string | null {
  if (/\s/.test(pattern)) return SYNTAX;
  if (selector.channels.includes('*')) return REDUNDANT_CHANNEL;
  if (!selector.channels.includes(pattern)) selector.channels.push(pattern);
  return null;
}

function applyCommandRule(selector: AclSelector, allow: boolean, name: string): string | null {
  if (name.startsWith('@')) {
    const category = name.slice(1);
    if (!ACL_CATEGORIES.includes(category)) return UNKNOWN;
    for (const command of ALL_COMMANDS) if (command.categories.includes(category)) setCommand(selector, command, allow);
  } else {
    const command = findCommand(name);
    const bar = name.indexOf('|');
    if (command !== undefined) {
      for (const each of [command, ...command.subcommands.values()]) setCommand(selector, each, allow);
    } else if (!allow || bar < 0 || !allowFirstArg(selector, name.slice(0, bar), name.slice(bar + 1))) {
      return UNKNOWN;
    }
  }
  selector.rules = selector.rules.filter((rule) => rule.slice(1) !== name && !rule.slice(1).startsWith(`${name}|`));
  selector.rules.push(`${allow ? '+' : '-'}${name}`);
  return null;
}

function setCommand(selector: AclSelector, command: CommandEntry, allow: boolean): void {
  selector.firstArgs.delete(command.fullName);
  if (allow) {
    if (!selector.allCommands) selector.commands.add(command.fullName);
    return;
  }
  if (selector.allCommands) {
    // From here on each command counts by itself.
    selector.allCommands = false;
    selector.commands = new Set(ALL_COMMANDS.map((each) => each.fullName));
  }
  selector.commands.delete(command.fullName);
}

/** `+ping|x`: one argument of a command without subcommands. */
function allowFirstArg(selector: AclSelector, name: string, arg: string): boolean {
  const command = COMMANDS.get(name);
  if (command === undefined || command.subcommands.size > 0 || arg === '' || arg.includes('|')) return false;
  selector.firstArgs.set(name, (selector.firstArgs.get(name) ?? new Set()).add(arg));
  return true;
}

/** Whether `command`, whose request is `argv`, is allowed as such. */
export function allowsCommand(selector: AclSelector, command: CommandEntry, argv: readonly string[]): boolean {
  if (selector.allCommands || command.flags.includes('no_auth') || selector.commands.has(command.fullName)) return true;
  return selector.firstArgs.get(command.fullName)?.has((argv[1] ?? '').toLowerCase()) ?? false;
}

/** Whether a channel may be used; a pattern only where it was granted word by word. */
export function allowsChannel(selector: AclSelector, channel: string, isPattern: boolean): boolean {
  return selector.channels.some((granted) => granted === '*' || (isPattern ? granted === channel : globMatch(granted, channel)));
}

/** `+@all -@dangerous +sentinel|masters`. */
export function describeCommands(selector: AclSelector): string {
  return [selector.base, ...selector.rules].join(' ');
}

/** `~a* %R~b`. */
export function describeKeys(selector: AclSelector): string {
  return selector.keys.join(' ');
}

/** `&a* &b`. */
export function describeChannels(selector: AclSelector): string {
  return selector.channels.map((channel) => `&${channel}`).join(' ');
}

/** All rules of the selector in one line; applied to an empty selector they make the same one. */
export function describeSelector(selector: AclSelector): string {
  const channels = selector.channels.includes('*') ? ['&*'] : ['resetchannels', describeChannels(selector)];
  return [describeKeys(selector), ...channels, describeCommands(selector)].filter((part) => part !== '').join(' ');
}
