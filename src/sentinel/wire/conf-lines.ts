/**
 * Settings and masters to the lines of sentinel.conf, in the order in which stock writes them.
 *
 * Mirrors rewriteConfigSentinelOption. Divergence D2: values are put in quotes where they would not survive without;
 * stock writes names, passwords and paths with blanks bare and cannot read its own file afterwards.
 */
import type { ConfLine } from './conf-rewrite.js';
import { EXTRA_STATEMENTS } from './conf-statements.js';
import type { ConfGlobals, ConfMaster } from './conf-statements.js';
import { quoteAlways, quoteArg } from './conf-tokens.js';

/** Values that need no line. */
export interface ConfDefaults {
  readonly downAfterMs: number;
  readonly failoverTimeoutMs: number;
}

/** The defaults of a sentinel that nobody has tuned by SENTINEL DEBUG. */
export const CONF_DEFAULTS: ConfDefaults = { downAfterMs: 30_000, failoverTimeoutMs: 180_000 };

const STATEMENTS = [
  ...['myid', 'deny-scripts-reconfig', 'resolve-hostnames', 'announce-hostnames', 'monitor', 'down-after-milliseconds'],
  ...['failover-timeout', 'parallel-syncs', 'notification-script', 'client-reconfig-script', 'auth-pass', 'auth-user'],
  ...['master-reboot-down-after-period', 'config-epoch', 'leader-epoch', 'known-replica', 'known-sentinel', 'rename-command'],
  ...['current-epoch', 'announce-ip', 'announce-port', 'sentinel-user', 'sentinel-pass', 'silent-failover-*', ...EXTRA_STATEMENTS],
];

/** The keys that {@link sentinelLines} answers for: `handled` of rewriteConf. */
export const SENTINEL_KEYS: ReadonlySet<string> = new Set(STATEMENTS.map((statement) => `sentinel ${statement}`));

/** All `sentinel` lines that say these settings. */
export function sentinelLines(globals: ConfGlobals, masters: Iterable<ConfMaster>, defaults: ConfDefaults = CONF_DEFAULTS): ConfLine[] {
  const lines: ConfLine[] = [];
  const say = (statement: string, ...args: readonly (string | number)[]): void => {
    lines.push(sentinelLine(statement, args.map((arg) => quoteArg(String(arg))).join(' ')));
  };
  const sayYesNo = (statement: string, value: boolean, standard: boolean): void => {
    lines.push({ ...sentinelLine(statement, value ? 'yes' : 'no'), onlyInPlace: value === standard });
  };
  if (globals.myId !== null) say('myid', globals.myId);
  sayYesNo('deny-scripts-reconfig', globals.denyScriptsReconfig, true);
  sayYesNo('resolve-hostnames', globals.resolveHostnames, false);
  sayYesNo('announce-hostnames', globals.announceHostnames, false);
  for (const master of masters) lines.push(...masterLines(master, defaults));
  say('current-epoch', globals.currentEpoch);
  if (globals.announceIp !== null) lines.push(sentinelLine('announce-ip', quoteAlways(globals.announceIp)));
  if (globals.announcePort !== 0) say('announce-port', globals.announcePort);
  if (globals.sentinelUser !== null) say('sentinel-user', globals.sentinelUser);
  if (globals.sentinelPass !== null) say('sentinel-pass', globals.sentinelPass);
  return lines;
}

function masterLines(master: ConfMaster, defaults: ConfDefaults): ConfLine[] {
  const lines: ConfLine[] = [];
  const say = (statement: string, ...args: readonly (string | number)[]): void => {
    lines.push(sentinelLine(statement, [master.name, ...args].map((arg) => quoteArg(String(arg))).join(' ')));
  };
  const sayUnless = (standard: string | number | null, statement: string, value: string | number | null): void => {
    if (value !== null && value !== standard) say(statement, value);
  };
  say('monitor', master.host, master.port, master.quorum);
  sayUnless(defaults.downAfterMs, 'down-after-milliseconds', master.downAfterMs);
  sayUnless(defaults.failoverTimeoutMs, 'failover-timeout', master.failoverTimeoutMs);
  sayUnless(1, 'parallel-syncs', master.parallelSyncs);
  sayUnless(null, 'notification-script', master.notificationScript);
  sayUnless(null, 'client-reconfig-script', master.clientReconfigScript);
  sayUnless(null, 'auth-pass', master.authPass);
  sayUnless(null, 'auth-user', master.authUser);
  sayUnless(0, 'master-reboot-down-after-period', master.masterRebootDownAfterMs);
  say('config-epoch', master.configEpoch);
  say('leader-epoch', master.leaderEpoch);
  for (const { host, port } of master.knownReplicas) say('known-replica', host, port);
  for (const { address, runId } of master.knownSentinels) say('known-sentinel', address.host, address.port, runId);
  for (const [command, renamed] of master.renameCommands) say('rename-command', command, renamed);
  for (const [key, rest] of master.extra) lines.push(sentinelLine(key, `${quoteArg(master.name)} ${rest}`));
  return lines;
}

function sentinelLine(statement: string, rest: string): ConfLine {
  return { key: `sentinel ${statement}`, text: `sentinel ${statement} ${rest}` };
}
