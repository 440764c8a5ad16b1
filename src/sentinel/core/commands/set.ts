/**
 * SENTINEL SET: settings of one master, from left to right and not atomically (6.7).
 *
 * What comes before a bad option stays applied, announced and saved, as in stock. Mirrors sentinelSetCommand.
 */
import { CAUTION_KEYS } from '../caution/settings.js';
import { restartLink, instancesOf } from '../instance.js';
import type { Master } from '../state.js';
import type { Turn } from '../turn.js';
import { announce, touch } from '../turn.js';
import { MAX_INT32, strictInteger } from './integer.js';
import type { CommandFacts, Outcome } from './outcome.js';
import { forMaster, refuse, savedOk } from './outcome.js';

interface Setting {
  readonly turn: Turn;
  readonly master: Master;
  readonly values: readonly string[];
  readonly facts: CommandFacts;
}

/** Why an option was not applied: a value of no use, or a whole error text. */
type Refusal = { readonly kind: 'badValue'; readonly value: string } | { readonly kind: 'text'; readonly text: string };

interface Option {
  /** Words behind the option. */
  readonly count: 1 | 2;
  /** The values are shown in `+set` unless they are secret. */
  readonly secret?: true;
  apply(setting: Setting): Refusal | null;
}

const badValue = (value: string): Refusal => ({ kind: 'badValue', value });

/** Divergence D24: values that the field can't hold are refused, see integer.ts. */
const integerOption = (low: number, high: number, assign: (master: Master, value: number) => void): Option => ({
  count: 1,
  apply({ master, values: [text = ''] }) {
    const value = strictInteger(text, low, high);
    if (value === null) return badValue(text);
    assign(master, value);
    return null;
  },
});

const DENIED =
  'ERR Reconfiguration of scripts path is denied for security reasons. ' +
  'Check the deny-scripts-reconfig configuration directive in your Sentinel configuration';

const scriptOption = (title: string, assign: (master: Master, path: string | null) => void): Option => ({
  count: 1,
  apply({ turn, master, values: [path = ''], facts }) {
    if (turn.state.settings.denyScriptsReconfig) return { kind: 'text', text: DENIED };
    if (facts.unusableScripts.includes(path)) return { kind: 'text', text: `ERR ${title} script seems non existing or non executable` };
    assign(master, path === '' ? null : path);
    return null;
  },
});

/** New credentials count from the next AUTH on, so the links to the data nodes start again. */
const credentialOption = (assign: (master: Master, value: string | null) => void): Option => ({
  count: 1,
  apply({ turn, master, values: [value = ''] }) {
    assign(master, value === '' ? null : value);
    for (const node of instancesOf(master)) if (node.kind !== 'sentinel') restartLink(turn, node.link);
    return null;
  },
});

const renameCommand: Option = {
  count: 2,
  apply({ master, values: [original = '', renamed = ''] }) {
    if (original === '' || renamed === '') return badValue('');
    if (original.toLowerCase() === renamed.toLowerCase()) master.renamedCommands.delete(original.toUpperCase());
    else master.renamedCommands.set(original.toUpperCase(), renamed);
    return null;
  },
};

const rebootDownAfter = integerOption(0, Number.MAX_SAFE_INTEGER, (master, value) => void (master.masterRebootDownAfterMs = value));

const isYesNo = (value: string): boolean => /^(?:yes|no)$/i.test(value);

/** Settings beyond stock's: kept as they are written, read where they matter (silent/settings.ts). */
const extraOption = (key: string, isGood: (value: string) => boolean): Option => ({
  count: 1,
  apply({ master, values: [value = ''] }) {
    if (!isGood(value)) return badValue(value);
    master.extraSettings.set(key, value.toLowerCase());
    return null;
  },
});

const OPTIONS: ReadonlyMap<string, Option> = new Map<string, Option>([
  ['down-after-milliseconds', integerOption(1, Number.MAX_SAFE_INTEGER, setDownAfter)],
  ['failover-timeout', integerOption(1, Number.MAX_SAFE_INTEGER, (master, value) => void (master.failoverTimeoutMs = value))],
  ['parallel-syncs', integerOption(1, MAX_INT32, (master, value) => void (master.parallelSyncs = value))],
  ['quorum', integerOption(1, MAX_INT32, (master, value) => void (master.quorum = value))],
  ['master-reboot-down-after-period', rebootDownAfter],
  ['primary-reboot-down-after-period', rebootDownAfter],
  ['notification-script', scriptOption('Notification', (master, path) => void (master.notificationScript = path))],
  ['client-reconfig-script', scriptOption('Client reconfiguration', (master, path) => void (master.clientReconfigScript = path))],
  ['auth-pass', { ...credentialOption((master, value) => void (master.authPass = value)), secret: true }],
  ['auth-user', credentialOption((master, value) => void (master.authUser = value))],
  ['rename-command', renameCommand],
  ...['silent-failover-timeout', 'silent-failover-max-lag', 'silent-failover-drain-timeout', 'coordinated-max-pause'].map(
    (key) => [key, extraOption(key, (value) => strictInteger(value, 0, Number.MAX_SAFE_INTEGER) !== null)] as const,
  ),
  ...['silent-failover-require-writable', 'silent-failover-allow-mixed', 'silent-failover-full-resync', 'coordinated-failover', ...CAUTION_KEYS].map(
    (key) => [key, extraOption(key, isYesNo)] as const,
  ),
  ...['slave-can-auto-revert-to-configured-master', 'replica-can-auto-revert-to-configured-master'].map(
    (alias) => [alias, extraOption('slave-can-auto-revert-to-configured-master', isYesNo)] as const,
  ),
]);

function setDownAfter(master: Master, value: number): void {
  for (const instance of instancesOf(master)) instance.downAfterMs = value;
}

export const set = forMaster((turn, master, args, facts) => {
  touch(turn, master.name);
  let applied = 0;
  for (let at = 0; at < args.length; ) {
    const word = args[at] ?? '';
    const option = OPTIONS.get(word.toLowerCase());
    const values = args.slice(at + 1, at + 1 + (option?.count ?? 0));
    if (option === undefined || values.length < option.count) {
      return refused(`ERR Unknown option or number of arguments for SENTINEL SET '${word}'`, applied);
    }
    const refusal = option.apply({ turn, master, values, facts });
    if (refusal !== null) {
      const text = refusal.kind === 'text' ? refusal.text : `ERR Invalid argument '${refusal.value}' for SENTINEL SET '${word}'`;
      return refused(text, applied);
    }
    announce(turn, 'warning', '+set', master, [word, ...(option.secret === true ? ['******'] : values)].join(' '));
    applied++;
    at += 1 + option.count;
  }
  return savedOk();
});

/** An error, behind the write of what was applied before it. */
const refused = (text: string, applied: number): Outcome => ({ ...refuse(text), persist: applied > 0 });
