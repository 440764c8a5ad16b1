/**
 * The options of `pointsman migrate` as typed settings; every fault names the option and what it got.
 */
import { readFileSync } from 'node:fs';
import { duration, nodeAddress } from '../config/values.js';
import { EXIT, FatalError, messageOf } from '../errors.js';
import type { Credentials, LinkSettings } from '../migrate/links.js';
import type { Mode } from '../migrate/plan.js';
import { linkOptionsOf } from '../sentinel/runtime/server-settings.js';
import { tlsSettingsOf } from '../sentinel/runtime/tls-settings.js';
import type { Address } from '../sentinel/wire/address.js';
import { loadBoth } from './load-files.js';

/** As the command line gives them. */
export interface MigrateOptions {
  readonly to?: string;
  readonly mode?: string;
  readonly barrier?: boolean;
  readonly sentinel?: string;
  readonly config?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
  readonly waitSync?: string | boolean;
  readonly drainTimeout?: string;
  readonly onDrainTimeout?: string;
  readonly onFailure?: string;
  readonly publishTimeout?: string;
  readonly resyncTimeout?: string;
  readonly journal?: string;
  readonly resume?: boolean;
  readonly abort?: boolean;
  readonly status?: boolean;
}

export interface Settings {
  readonly action: 'move' | 'resume' | 'abort' | 'status';
  readonly master: string;
  /** Port 0 when no move begins. */
  readonly target: Address;
  readonly mode: Mode;
  readonly barrier: boolean;
  readonly sentinels: readonly Address[];
  readonly config: string | null;
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly json: boolean;
  readonly waitSyncMs: number;
  readonly drainTimeoutMs: number;
  readonly onDrainTimeout: 'abort' | 'proceed';
  readonly onFailure: 'abort' | 'done';
  readonly publishTimeoutMs: number;
  readonly resyncTimeoutMs: number;
  readonly journal: string | null;
}

const refuse = (message: string): FatalError => new FatalError('CONFIG_INVALID', message, EXIT.usage);
const NOWHERE: Address = { host: '', port: 0 };
const DEFAULT_SENTINEL_PORT = 26379;

export function readSettings(master: string | undefined, options: MigrateOptions): Settings {
  const actions = (['resume', 'abort', 'status'] as const).filter((name) => options[name] === true);
  if (actions.length > 1) throw refuse(`--${actions.join(' and --')}: only one of them`);
  const action = actions[0] ?? 'move';
  if (master === undefined || master === '') throw refuse('which master? pointsman migrate <master> …');
  if (action === 'move' && options.to === undefined) throw refuse('--to: missing, name the replica to move to, ip:port');
  const mode = oneOf('--mode', options.mode, ['silent', 'coordinated']);
  if (options.barrier === true && mode !== 'silent') throw refuse('--barrier: belongs to --mode silent; a coordinated move holds writes anyway');
  return {
    action, master, mode,
    target: options.to === undefined ? NOWHERE : address('--to', options.to),
    barrier: options.barrier ?? false,
    sentinels: sentinelsOf(options),
    config: options.config ?? process.env['POINTSMAN_CONFIG'] ?? null,
    dryRun: options.dryRun ?? false, yes: options.yes ?? false, json: options.json ?? false,
    waitSyncMs: options.waitSync === undefined || options.waitSync === false ? 0 : time('--wait-sync', options.waitSync === true ? '1h' : options.waitSync),
    drainTimeoutMs: time('--drain-timeout', options.drainTimeout ?? '60s'),
    onDrainTimeout: oneOf('--on-drain-timeout', options.onDrainTimeout, ['proceed', 'abort']),
    onFailure: oneOf('--on-failure', options.onFailure, ['abort', 'done']),
    publishTimeoutMs: time('--publish-timeout', options.publishTimeout ?? '30s'),
    resyncTimeoutMs: time('--resync-timeout', options.resyncTimeout ?? '1h'),
    journal: options.journal ?? null,
  };
}

/** The first of `words` where nothing is given. */
function oneOf<const W extends string>(option: string, given: string | undefined, words: readonly [W, ...W[]]): W {
  const word = given === undefined ? words[0] : words.find((each) => each === given);
  if (word === undefined) throw refuse(`${option}: bad value ${JSON.stringify(given)}, expected one of ${words.join(', ')}`);
  return word;
}

function time(option: string, text: string): number {
  const read = duration(text);
  if (read.kind === 'misfit') throw refuse(`${option}: ${read.message}`);
  return read.value;
}

function address(option: string, text: string): Address {
  const read = nodeAddress(text);
  if (read.kind === 'misfit') throw refuse(`${option}: ${read.message}`);
  return read.value;
}

function sentinelsOf({ sentinel }: MigrateOptions): Address[] {
  const [option, text] = sentinel === undefined ? ['POINTSMAN_SENTINELS', process.env['POINTSMAN_SENTINELS'] ?? ''] : ['--sentinel', sentinel];
  return text.split(',').map((word) => word.trim()).filter((word) => word !== '').map((word) => address(option, word));
}

/** Whom to ask first, and how to log in: options and environment, then the configuration, then `otherwise`. */
export function contactsOf(settings: Settings, otherwise: readonly Address[] = []): { readonly contacts: readonly Address[]; readonly links: LinkSettings } {
  const env = { nodes: credentials('REDIS'), sentinels: credentials('SENTINEL') };
  if (settings.config === null) {
    const contacts = settings.sentinels.length > 0 ? settings.sentinels : otherwise;
    if (contacts.length === 0) throw refuse('--sentinel: missing, name a sentinel of the group, ip:port (or POINTSMAN_SENTINELS, or --config)');
    return { contacts, links: env };
  }
  const { file, faults } = loadBoth(settings.config);
  if (file === null || faults.length > 0) throw refuse(faults.join('\n'));
  const word = (name: string): string | undefined => file.conf.server.get(name)?.at(-1)?.[0];
  const host = file.conf.server.get('bind')?.at(-1)?.find((each) => !each.startsWith('-') && each !== '*' && each !== '0.0.0.0');
  const own = { host: host ?? '127.0.0.1', port: Number(word('port') ?? DEFAULT_SENTINEL_PORT) };
  const master = file.conf.masters.find(({ name }) => name === settings.master);
  const nodes = named(master?.authUser ?? null, master?.authPass ?? null);
  const { sentinelUser, sentinelPass } = file.conf.globals;
  const sentinels = named(sentinelUser, sentinelPass ?? word('requirepass') ?? null);
  const tls = linkOptionsOf(file, tlsSettingsOf(file)).tls;
  return {
    contacts: settings.sentinels.length > 0 ? settings.sentinels : [own],
    links: { nodes: { ...nodes, ...env.nodes }, sentinels: { ...sentinels, ...env.sentinels }, ...(tls === undefined ? {} : { tls }) },
  };
}

function named(username: string | null, password: string | null): Credentials {
  return { ...(username === null ? {} : { username }), ...(password === null || password === '' ? {} : { password }) };
}

/** POINTSMAN_REDIS_USERNAME, _PASSWORD or _PASSWORD_FILE, and the same for SENTINEL. */
function credentials(whose: 'REDIS' | 'SENTINEL'): Credentials {
  const word = (name: string): string | null => process.env[`POINTSMAN_${whose}_${name}`] || null;
  const file = word('PASSWORD_FILE');
  try {
    return named(word('USERNAME'), file === null ? word('PASSWORD') : readFileSync(file, 'utf8').trim());
  } catch (fault) {
    throw refuse(`POINTSMAN_${whose}_PASSWORD_FILE: ${messageOf(fault)}`);
  }
}
