/**
 * An instance as SENTINEL MASTER, REPLICAS and SENTINELS show it: a map of bulk strings whose order is part of the contract.
 *
 * Clients index positions, so a field is never moved; new ones go to the end. Durations are ages at `now`, in milliseconds.
 * Mirrors addReplySentinelRedisInstance (6.2) and the flags of 2.2.
 */
import type { Millis } from '../../../time.js';
import { assertNever } from '../../../assert.js';
import type { RespValue } from '../../wire/resp-value.js';
import { bulkMap } from '../../wire/resp-value.js';
import { isForeign } from '../caution/foreign.js';
import { isBehind } from '../silent/prepared.js';
import type { Instance, Master, NodeAddress, Peer, Replica, SentinelState, SilentState } from '../state.js';
import { announcedHost, isDisconnected } from '../state.js';
import { nameOf } from '../turn.js';

type Field = readonly [name: string, value: string];

/** The map of one instance; `master` is the one it belongs to, itself for a master. */
export function instanceMap(state: Readonly<SentinelState>, master: Master, instance: Instance, now: Millis): RespValue {
  return bulkMap([...sharedFields(state, master, instance, now), ...fieldsByKind(instance, now)]);
}

function sharedFields(state: Readonly<SentinelState>, master: Master, instance: Instance, now: Millis): Field[] {
  const { link, sdownSinceMs } = instance;
  const shown = instance.kind === 'master' ? shownAddress(instance) : instance.address;
  const failover = instance.kind === 'master' ? instance.failover : null;
  const odownSinceMs = instance.kind === 'master' ? instance.odownSinceMs : null;
  return [
    ['name', nameOf(instance)],
    ['ip', announcedHost(state.settings, shown)],
    ['port', String(shown.port)],
    ['runid', instance.runId],
    ['flags', flagsOf(master, instance).join(',')],
    ['link-pending-commands', String(link.pending)],
    ['link-refcount', String(link.owners.length)],
    ...when(failover !== null, 'failover-state', failover?.state ?? ''),
    ...when(failover === null && silentOf(instance) !== null, 'failover-state', silentStateName(master)),
    ['last-ping-sent', age(link.actPingMs, now)],
    ['last-ok-ping-reply', age(link.lastAvailableMs, now)],
    ['last-ping-reply', age(link.lastPongMs, now)],
    ...when(sdownSinceMs !== null, 's-down-time', age(sdownSinceMs, now)),
    ...when(odownSinceMs !== null, 'o-down-time', age(odownSinceMs, now)),
    ['down-after-milliseconds', String(instance.downAfterMs)],
  ];
}

function fieldsByKind(instance: Instance, now: Millis): Field[] {
  switch (instance.kind) {
    case 'master':
      return [...roleFields(instance, now), ...masterFields(instance)];
    case 'replica':
      return [...roleFields(instance, now), ...replicaFields(instance)];
    case 'sentinel':
      return peerFields(instance, now);
    default:
      return assertNever(instance);
  }
}

const roleFields = (node: Master | Replica, now: Millis): Field[] => [
  ['info-refresh', age(node.infoRefreshMs, now)],
  // INFO without a role line counts as "not a master" here, too.
  ['role-reported', node.roleReported === 'master' ? 'master' : 'slave'],
  ['role-reported-time', age(node.roleReportedMs, now)],
];

const masterFields = (master: Master): Field[] => [
  ['config-epoch', String(master.configEpoch)],
  ['num-slaves', String(master.replicas.size)],
  ['num-other-sentinels', String(master.peers.size)],
  ['quorum', String(master.quorum)],
  ['failover-timeout', String(master.failoverTimeoutMs)],
  ['parallel-syncs', String(master.parallelSyncs)],
  ...when(master.notificationScript !== null, 'notification-script', master.notificationScript ?? ''),
  ...when(master.clientReconfigScript !== null, 'client-reconfig-script', master.clientReconfigScript ?? ''),
  ...silentFields(master),
];

/** As in the source of the extension: the initiator shows the original, the others the target. Only while it is effective. */
function shownAddress(master: Master): NodeAddress {
  const { silent } = master;
  return silent !== null && silent.effective && !silent.initiator ? silent.targetAddress : master.address;
}

const silentOf = (instance: Instance): SilentState | null => (instance.kind === 'master' ? instance.silent : null);

const silentStateName = (master: Master): string =>
  master.silent?.effective === true && ![...master.peers.values()].some((peer) => isBehind(master, peer)) ? 'wait_silent_done' : 'sync_silent_master';

/** Fields of a planned move, behind stock's and only while there is one: clients index positions. */
function silentFields(master: Master): Field[] {
  const { silent } = master;
  if (silent === null) return [];
  return [
    ['sentinel_flags', 'silent_failover'],
    ['silent-initiator', silent.initiator ? '1' : '0'],
    ['silent-done-epoch', String(silent.doneEpoch)],
    ['silent-target', silent.target],
  ];
}

const replicaFields = (replica: Replica): Field[] => [
  ['master-link-down-time', String(replica.masterLinkDownMs)],
  ['master-link-status', replica.masterLinkUp ? 'ok' : 'err'],
  ['master-host', replica.masterHost ?? '?'],
  ['master-port', String(replica.masterPort)],
  ['slave-priority', String(replica.priority)],
  ['slave-repl-offset', String(replica.replOffset)],
  ['replica-announced', replica.announced ? '1' : '0'],
];

const peerFields = (peer: Peer, now: Millis): Field[] => [
  ['last-hello-message', age(peer.lastHelloMs, now)],
  ['voted-leader', peer.leader ?? '?'],
  ['voted-leader-epoch', String(peer.leaderEpoch)],
];

/** The words of the `flags` field, in stock's order. `disconnected` is no state of its own but that of the link. */
function flagsOf(master: Master, instance: Instance): string[] {
  const own = instance.kind === 'master' ? instance : null;
  const replica = instance.kind === 'replica' ? instance : null;
  const flags: readonly (readonly [string, boolean])[] = [
    ['s_down', instance.sdownSinceMs !== null],
    ['o_down', own !== null && own.odownSinceMs !== null],
    ['master', instance.kind === 'master'],
    ['slave', instance.kind === 'replica'],
    ['sentinel', instance.kind === 'sentinel'],
    ['disconnected', isDisconnected(instance)],
    ['master_down', instance.kind === 'sentinel' && instance.masterDown],
    ['failover_in_progress', own !== null && own.failover !== null],
    ['silent_failover', own !== null && own.silent !== null],
    ['promoted', replica !== null && master.failover?.promoted === replica.key],
    ['reconf_sent', replica?.reconf === 'sent'],
    ['reconf_inprog', replica?.reconf === 'inprog'],
    ['reconf_done', replica?.reconf === 'done'],
    ['force_failover', own?.failover?.forced ?? false],
    ['script_kill_sent', instance.scriptKillSent],
    ['master_reboot', own !== null && own.rebootSinceMs !== null && own.masterRebootDownAfterMs !== 0],
    ['foreign', replica !== null && isForeign(master, replica)],
    ['reborn_empty', own?.caution.reborn?.kind === 'empty'],
  ];
  return flags.filter(([, isSet]) => isSet).map(([word]) => word);
}

const age = (sinceMs: Millis | null, now: Millis): string => String(sinceMs === null ? 0 : now - sinceMs);
const when = (shown: boolean, name: string, value: string): Field[] => (shown ? [[name, value]] : []);
