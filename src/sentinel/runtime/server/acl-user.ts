/**
 * A user: on or off, its passwords as hashes, and its permissions; rules make it, one line describes it.
 *
 * Mirrors ACLSetUser, ACLDescribeUser and ACLStringSetUser in acl.c (7.2). Passwords are kept as SHA-256 only. Rules are applied
 * to a copy, so a line with a fault in it changes nothing.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { quoteArg } from '../../wire/conf-tokens.js';
import type { CommandEntry } from '../server-command-table.js';
import type { AclSelector } from './acl-selector.js';
import { allowsChannel, allowsCommand, applySelectorRule, copySelector, describeSelector, emptySelector } from './acl-selector.js';

export interface AclUser {
  readonly name: string;
  readonly enabled: boolean;
  readonly nopass: boolean;
  readonly sanitize: 'sanitize-payload' | 'skip-sanitize-payload';
  /** SHA-256, hex, in the order given. */
  readonly passwords: readonly string[];
  readonly root: AclSelector;
  readonly selectors: readonly AclSelector[];
}

/** Why a command was refused: itself, or one of its channels. */
export type Denial = { readonly kind: 'command' } | { readonly kind: 'channel'; readonly channel: string };

/** A new user: off, no password, nothing allowed. */
export function newUser(name: string): AclUser {
  return { name, enabled: false, nopass: false, sanitize: 'sanitize-payload', passwords: [], root: emptySelector(), selectors: [] };
}

/** The user that a connection has before it says who it is: on, no password needed, everything allowed. */
export function newDefaultUser(): AclUser {
  const user = applyRules(newUser('default'), ['on', 'nopass', '~*', '&*', '+@all']);
  return typeof user === 'string' ? newUser('default') : user;
}

/** The hash that stands for a password. */
export function hashPassword(password: string): string {
  return createHash('sha256').update(password, 'utf8').digest('hex');
}

/** Whether `password` opens the account; costs the same wherever the hashes differ. */
export function passwordFits(user: AclUser, password: string): boolean {
  if (!user.enabled) return false;
  if (user.nopass) return true;
  const hash = Buffer.from(hashPassword(password));
  return user.passwords.map((known) => timingSafeEqual(Buffer.from(known), hash)).includes(true);
}

/** Joins what stands in parentheses: `(+get`, `~a)` is one rule. The opening word where its end is missing. */
export function mergeSelectors(rules: readonly string[]): { readonly rules: readonly string[] } | { readonly unmatched: string } {
  const merged: string[] = [];
  let open: string | null = null;
  for (const rule of rules) {
    const joined: string = open === null ? rule : `${open} ${rule}`;
    if (joined.startsWith('(') && !joined.endsWith(')')) {
      open = joined;
    } else {
      open = null;
      merged.push(joined);
    }
  }
  return open === null ? { rules: merged } : { unmatched: open };
}

/** The user with `rules` applied, or the sentence why one of them can't be. */
export function applyRules(user: AclUser, rules: readonly string[]): AclUser | string {
  const merged = mergeSelectors(rules);
  if ('unmatched' in merged) return `Unmatched parenthesis in acl selector starting at '${merged.unmatched}'.`;
  let changed: AclUser = { ...user, root: copySelector(user.root), selectors: user.selectors.map(copySelector) };
  for (const rule of merged.rules) {
    const next = applyRule(changed, rule);
    if (typeof next === 'string') return `Error in ACL SETUSER modifier '${rule}': ${next}`;
    changed = next;
  }
  return changed;
}

/** `user.root` may be changed in place: it is the copy's. */
function applyRule(user: AclUser, rule: string): AclUser | string {
  switch (rule.toLowerCase()) {
    case 'on':
      return { ...user, enabled: true };
    case 'off':
      return { ...user, enabled: false };
    case 'nopass':
      return { ...user, nopass: true, passwords: [] };
    case 'resetpass':
      return { ...user, nopass: false, passwords: [] };
    case 'sanitize-payload':
    case 'skip-sanitize-payload':
      return { ...user, sanitize: rule.toLowerCase() === 'sanitize-payload' ? 'sanitize-payload' : 'skip-sanitize-payload' };
    case 'clearselectors':
      return { ...user, selectors: [] };
    case 'reset':
      return newUser(user.name);
    default:
  }
  if (/^[><#!]/.test(rule)) return applyPassword(user, rule);
  if (rule.startsWith('(') && rule.endsWith(')')) return addSelector(user, rule.slice(1, -1));
  return applySelectorRule(user.root, rule) ?? user;
}

function applyPassword(user: AclUser, rule: string): AclUser | string {
  const sign = rule.charAt(0);
  const text = rule.slice(1);
  const isHash = sign === '#' || sign === '!';
  if (isHash && !/^[0-9a-f]{64}$/.test(text)) {
    return 'The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters';
  }
  const hash = isHash ? text : hashPassword(text);
  const others = user.passwords.filter((known) => known !== hash);
  const isKnown = others.length < user.passwords.length;
  if (sign === '>' || sign === '#') return { ...user, nopass: false, passwords: isKnown ? user.passwords : [...others, hash] };
  if (!isKnown) return 'The password you are trying to remove from the user does not exist';
  return { ...user, passwords: others };
}

function addSelector(user: AclUser, text: string): AclUser | string {
  const selector = emptySelector();
  for (const rule of text.split(' ').filter((word) => word !== '')) {
    const fault = applySelectorRule(selector, rule);
    if (fault !== null) return fault;
  }
  return { ...user, selectors: [...user.selectors, selector] };
}

/** `on nopass sanitize-payload`, the words of ACL GETUSER's flags. */
export function describeFlags(user: AclUser): string[] {
  return [user.enabled ? 'on' : 'off', ...(user.nopass ? ['nopass'] : []), user.sanitize];
}

/** The line of ACL LIST, ACL files and sentinel.conf. `name` may be given as it has to be quoted there. */
export function describeUser(user: AclUser, name: string = user.name): string {
  const passwords = user.passwords.map((hash) => `#${hash}`);
  const selectors = user.selectors.map((selector) => `(${describeSelector(selector)})`);
  return ['user', name, ...describeFlags(user), ...passwords, describeSelector(user.root), ...selectors].join(' ');
}

/** {@link describeUser} for a file that is read by words. */
export function describeUserForFile(user: AclUser): string {
  return describeUser(user, quoteArg(user.name));
}

/** Why the user may not run `command` with `argv`; null when any of its selectors allows all of it. */
export function whyDenied(user: AclUser, command: CommandEntry, argv: readonly string[]): Denial | null {
  let worst: Denial = { kind: 'command' };
  for (const selector of [user.root, ...user.selectors]) {
    if (!allowsCommand(selector, command, argv)) continue;
    const channel = channelsOf(command, argv).find((each) => !allowsChannel(selector, each, command.fullName === 'psubscribe'));
    if (channel === undefined) return null;
    worst = { kind: 'channel', channel };
  }
  return worst;
}

/** Whether an existing subscription may go on. */
export function maySubscribe(user: AclUser, channel: string, isPattern: boolean): boolean {
  return [user.root, ...user.selectors].some((selector) => allowsChannel(selector, channel, isPattern));
}

function channelsOf(command: CommandEntry, argv: readonly string[]): readonly string[] {
  if (command.fullName === 'publish') return argv.slice(1, 2);
  return command.fullName === 'subscribe' || command.fullName === 'psubscribe' ? argv.slice(1) : [];
}
