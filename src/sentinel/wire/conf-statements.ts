/**
 * What each `sentinel ...` line of the configuration file does, and which of the three passes it belongs to.
 *
 * Mirrors sentinelHandleConfiguration: one entry per statement with its argument count, its checks and its texts. Words are
 * compared without case, master names with. Whether a script exists is a question to the disk and asked elsewhere.
 */
import { sameAddress } from './address.js';
import type { Address } from './address.js';
import { atoi, strtoull } from './c-numbers.js';
import { quoteArg } from './conf-tokens.js';
import { isIpAddress } from './ip.js';

/** Settings of the sentinel itself. */
export interface ConfGlobals {
  readonly myId: string | null;
  readonly currentEpoch: number;
  readonly announceIp: string | null;
  readonly announcePort: number;
  readonly resolveHostnames: boolean;
  readonly announceHostnames: boolean;
  readonly denyScriptsReconfig: boolean;
  readonly sentinelUser: string | null;
  readonly sentinelPass: string | null;
}

/** A peer from the file. */
export interface ConfSentinel {
  readonly address: Address;
  readonly runId: string;
}

/** One monitored master with all that the file says about it. */
export interface ConfMaster {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly quorum: number;
  /** null: the current default. */
  readonly downAfterMs: number | null;
  /** null: the current default. */
  readonly failoverTimeoutMs: number | null;
  readonly parallelSyncs: number;
  readonly notificationScript: string | null;
  readonly clientReconfigScript: string | null;
  readonly authUser: string | null;
  readonly authPass: string | null;
  /** 0: off. */
  readonly masterRebootDownAfterMs: number;
  /** Upper-cased command → its name on these servers. */
  readonly renameCommands: ReadonlyMap<string, string>;
  readonly configEpoch: number;
  readonly leaderEpoch: number;
  readonly knownReplicas: readonly Address[];
  readonly knownSentinels: readonly ConfSentinel[];
  /** Statements beyond stock, lower-cased key → the rest of the line in the form that splitArgs reads. */
  readonly extra: ReadonlyMap<string, string>;
}

type Mutable<T> = { -readonly [Field in keyof T]: T[Field] };
type MasterDraft = Mutable<Omit<ConfMaster, 'renameCommands' | 'knownReplicas' | 'knownSentinels' | 'extra'>> & {
  readonly renameCommands: Map<string, string>;
  readonly knownReplicas: Address[];
  readonly knownSentinels: ConfSentinel[];
  readonly extra: Map<string, string>;
};

/** Settings while they are being read. */
export interface Settings {
  readonly globals: Mutable<ConfGlobals>;
  readonly masters: Map<string, MasterDraft>;
  /** Names whose monitor line was refused; their other lines are not to blame. */
  readonly refused: Set<string>;
  /** Of the statements in included files: the keys of {@link uniqueKeyOf}. */
  readonly included: Set<string>;
}

/** What became of a statement. */
export type Outcome =
  | { readonly kind: 'applied' }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'remarked'; readonly message: string };

/** Settings of an empty file. */
export function createSettings(): Settings {
  const globals = {
    myId: null,
    currentEpoch: 0,
    announceIp: null,
    announcePort: 0,
    resolveHostnames: false,
    announceHostnames: false,
    denyScriptsReconfig: true,
    sentinelUser: null,
    sentinelPass: null,
  };
  return { globals, masters: new Map(), refused: new Set(), included: new Set() };
}

/** The pass in which a statement is applied: 1 globals, 2 monitors, 3 the rest. */
export function passOf(args: readonly string[]): 1 | 2 | 3 {
  const word = args[0]?.toLowerCase() ?? '';
  return word === 'monitor' ? 2 : Object.hasOwn(GLOBAL_STATEMENTS, word) ? 1 : 3;
}

/** What a statement says that may be said only once: a master's name, a renamed command; '' for all others, where the last one counts. */
export function uniqueKeyOf(args: readonly string[]): string {
  const [word = '', name = '', command = ''] = args;
  switch (word.toLowerCase()) {
    case 'monitor':
      return `monitor ${name}`;
    case 'rename-command':
      return `rename-command ${command.toUpperCase()} ${name}`;
    default:
      return '';
  }
}

/** Takes back what an earlier statement with the same {@link uniqueKeyOf} has said. */
export function forgetUnique(settings: Settings, args: readonly string[]): void {
  const [word = '', name = '', command = ''] = args;
  if (word.toLowerCase() === 'monitor') settings.masters.delete(name);
  else settings.masters.get(name)?.renameCommands.delete(command.toUpperCase());
}

/** Applies one statement (its words behind `sentinel`). */
export function applyStatement(settings: Settings, args: readonly string[]): Outcome {
  const word = args[0]?.toLowerCase() ?? '';
  const [first = '', ...rest] = args.slice(1);
  if (word === 'monitor') return args.length === 5 ? monitor(settings, args) : UNRECOGNIZED;
  const global = Object.hasOwn(GLOBAL_STATEMENTS, word) ? GLOBAL_STATEMENTS[word] : undefined;
  if (global !== undefined) return args.length === 2 ? global(settings.globals, first) : UNRECOGNIZED;

  const canonical = STATEMENT_ALIASES[word] ?? word;
  const statement = Object.hasOwn(MASTER_STATEMENTS, canonical) ? MASTER_STATEMENTS[canonical] : undefined;
  const fits = statement === undefined ? isExtraStatement(word) && rest.length > 0 : statement.counts.includes(rest.length);
  if (!fits) return UNRECOGNIZED;
  if (canonical === 'known-sentinel' && rest.length === 2) return remarked('sentinel without run id, ignored');
  const master = settings.masters.get(first);
  if (master === undefined) return settings.refused.has(first) ? APPLIED : refused('No such master with specified name.');
  if (statement !== undefined) return statement.apply(master, rest, settings.globals);
  master.extra.set(word, rest.map(quoteArg).join(' '));
  return APPLIED;
}

/** Other spellings of statements: the key that the line counts under. */
export const STATEMENT_ALIASES: Readonly<Record<string, string>> = {
  'known-slave': 'known-replica',
  'primary-reboot-down-after-period': 'master-reboot-down-after-period',
};

/** Whether a statement is one of ours beyond stock (`sentinel <key> <master> <value> ...`). */
export function isExtraStatement(word: string): boolean {
  return word.startsWith('silent-failover-') || EXTRA_STATEMENTS.includes(word);
}

/** Those of ours that do not begin with `silent-failover-`. */
export const EXTRA_STATEMENTS = [
  ...['coordinated-failover', 'coordinated-max-pause', 'slave-can-auto-revert-to-configured-master'],
  ...['master-reborn-failover', 'failover-age-waiver'],
];

const APPLIED: Outcome = { kind: 'applied' };
const refused = (message: string): Outcome => ({ kind: 'refused', message });
const remarked = (message: string): Outcome => ({ kind: 'remarked', message });
const UNRECOGNIZED = refused('Unrecognized sentinel configuration statement.');
// Divergence D21, as in hellos: such an epoch can never be raised again.
const EPOCH_TOO_HIGH = refused('Epoch is beyond 9007199254740991.');

type GlobalStatement = (globals: Settings['globals'], value: string) => Outcome;

const GLOBAL_STATEMENTS: Readonly<Record<string, GlobalStatement>> = {
  'announce-ip': set((globals, value) => (globals.announceIp = value === '' ? globals.announceIp : value)),
  'announce-port': set((globals, value) => (globals.announcePort = atoi(value))),
  'sentinel-user': set((globals, value) => (globals.sentinelUser = value === '' ? globals.sentinelUser : value)),
  'sentinel-pass': set((globals, value) => (globals.sentinelPass = value === '' ? globals.sentinelPass : value)),
  'current-epoch': (globals, value) => raiseEpoch(globals, strtoull(value)),
  myid: (globals, value) => {
    if (value.length !== 40) return refused('Malformed Sentinel id in myid option.');
    globals.myId = value;
    return APPLIED;
  },
  'deny-scripts-reconfig': yesNo('denyScriptsReconfig', 'Please specify yes or no for the deny-scripts-reconfig options.'),
  'resolve-hostnames': yesNo('resolveHostnames', 'Please specify yes or no for the resolve-hostnames option.'),
  'announce-hostnames': yesNo('announceHostnames', 'Please specify yes or no for the announce-hostnames option.'),
};

/** A statement about one master; `counts`: how many words may follow the master's name. */
interface MasterStatement {
  readonly counts: readonly number[];
  readonly apply: (master: MasterDraft, rest: readonly string[], globals: Settings['globals']) => Outcome;
}

const MASTER_STATEMENTS: Readonly<Record<string, MasterStatement>> = {
  'down-after-milliseconds': positiveTime((master, ms) => (master.downAfterMs = ms)),
  'failover-timeout': positiveTime((master, ms) => (master.failoverTimeoutMs = ms)),
  'master-reboot-down-after-period': one((master, value) => {
    const ms = atoi(value);
    if (ms < 0) return refused('negative time parameter.');
    master.masterRebootDownAfterMs = ms;
    return APPLIED;
  }),
  'parallel-syncs': one(set((master, value) => (master.parallelSyncs = atoi(value)))),
  'notification-script': one(set((master, value) => (master.notificationScript = value))),
  'client-reconfig-script': one(set((master, value) => (master.clientReconfigScript = value))),
  'auth-pass': one(set((master, value) => (master.authPass = value))),
  'auth-user': one(set((master, value) => (master.authUser = value))),
  'config-epoch': one((master, value, globals) => {
    const epoch = strtoull(value);
    master.configEpoch = epoch ?? master.configEpoch;
    return raiseEpoch(globals, epoch);
  }),
  'leader-epoch': one((master, value) => {
    const epoch = strtoull(value);
    master.leaderEpoch = epoch ?? master.leaderEpoch;
    return epoch === null ? EPOCH_TOO_HIGH : APPLIED;
  }),
  'known-replica': { counts: [2], apply: knownReplica },
  'known-sentinel': { counts: [2, 3], apply: knownSentinel },
  'rename-command': {
    counts: [2],
    apply: ({ renameCommands }, [command = '', renamed = '']) => {
      if (renameCommands.has(command.toUpperCase())) return refused('Same command renamed multiple times with rename-command.');
      renameCommands.set(command.toUpperCase(), renamed);
      return APPLIED;
    },
  },
};

function monitor({ globals, masters, refused: refusedNames }: Settings, args: readonly string[]): Outcome {
  const [, name = '', host = '', portText = '', quorumText = ''] = args;
  const quorum = atoi(quorumText);
  const port = atoi(portText);
  const reason = quorum <= 0 ? 'Quorum must be 1 or greater.' : whyNotAddress(host, port, globals);
  if (reason !== null) {
    if (!masters.has(name)) refusedNames.add(name);
    return refused(reason);
  }
  if (masters.has(name)) return refused('Duplicate master name.');
  masters.set(name, {
    name,
    host,
    port,
    quorum,
    downAfterMs: null,
    failoverTimeoutMs: null,
    parallelSyncs: 1,
    notificationScript: null,
    clientReconfigScript: null,
    authUser: null,
    authPass: null,
    masterRebootDownAfterMs: 0,
    renameCommands: new Map(),
    configEpoch: 0,
    leaderEpoch: 0,
    knownReplicas: [],
    knownSentinels: [],
    extra: new Map(),
  });
  return APPLIED;
}

// Duplicates are what releases up to 7.0 leave behind when they rewrite a file with known-slave lines; stock refuses to
// start from them. The state is plain all the same: Divergence D23.
function knownReplica(master: MasterDraft, [host = '', portText = '']: readonly string[], globals: Settings['globals']): Outcome {
  const address = { host, port: atoi(portText) };
  const reason = whyNotAddress(host, address.port, globals);
  if (reason !== null) return refused(reason);
  if (master.knownReplicas.some((known) => sameAddress(known, address))) return remarked('duplicate replica, merged');
  master.knownReplicas.push(address);
  return APPLIED;
}

function knownSentinel(master: MasterDraft, rest: readonly string[], globals: Settings['globals']): Outcome {
  const [host = '', portText = '', runId = ''] = rest;
  const address = { host, port: atoi(portText) };
  const reason = whyNotAddress(host, address.port, globals);
  if (reason !== null) return refused(reason);
  const known = master.knownSentinels.findIndex((peer) => peer.runId === runId);
  master.knownSentinels.splice(known < 0 ? master.knownSentinels.length : known, known < 0 ? 0 : 1, { address, runId });
  return known < 0 ? APPLIED : remarked('duplicate sentinel, merged: the later address counts');
}

/** With names allowed any host is accepted here: what does not resolve yet is tried again at each connect. */
function whyNotAddress(host: string, port: number, globals: Settings['globals']): string | null {
  if (port < 0 || port > 65535) return 'Invalid port number.';
  return globals.resolveHostnames || isIpAddress(host) ? null : "Can't resolve instance hostname.";
}

function raiseEpoch(globals: Settings['globals'], epoch: number | null): Outcome {
  if (epoch === null) return EPOCH_TOO_HIGH;
  globals.currentEpoch = Math.max(globals.currentEpoch, epoch);
  return APPLIED;
}

function set<Target>(assign: (target: Target, value: string) => unknown): (target: Target, value: string) => Outcome {
  return (target, value) => {
    assign(target, value);
    return APPLIED;
  };
}

function yesNo(field: 'denyScriptsReconfig' | 'resolveHostnames' | 'announceHostnames', refusal: string): GlobalStatement {
  return (globals, value) => {
    const word = value.toLowerCase();
    if (word !== 'yes' && word !== 'no') return refused(refusal);
    globals[field] = word === 'yes';
    return APPLIED;
  };
}

function one(apply: (master: MasterDraft, value: string, globals: Settings['globals']) => Outcome): MasterStatement {
  return { counts: [1], apply: (master, [value = ''], globals) => apply(master, value, globals) };
}

function positiveTime(assign: (master: MasterDraft, ms: number) => unknown): MasterStatement {
  return one((master, value) => {
    const ms = atoi(value);
    if (ms <= 0) return refused('negative or zero time parameter.');
    assign(master, ms);
    return APPLIED;
  });
}
