/**
 * Applying an INFO (or ROLE) report: what the node is, whom it follows, and what we do about it (3.6).
 *
 * First the learning half, always; then the acting half, not in TILT. Mirrors sentinelRefreshInstanceInfo in sentinel.c.
 */
import type { Millis } from '../../time.js';
import type { InfoReport } from '../wire/info.js';
import { parseInfo } from '../wire/info.js';
import type { RespValue } from '../wire/resp-value.js';
import { liftPause, noteHeldOffset } from './coordinated.js';
import { isForeign, judgeForeign } from './caution/foreign.js';
import { dropReserve } from './caution/last-known.js';
import { judgeRebirth, noteRebirth } from './caution/reborn.js';
import { noDownFor } from './down.js';
import { applyRoleRefusal, isAwaitedPromotion, observePromotion } from './failover.js';
import { mayDemoteAtOnce } from './former-master.js';
import { makeAddress, sameHost } from './hosts.js';
import { createReplica } from './instance.js';
import { requestInfo } from './monitor.js';
import { sendReplicaOf } from './reconfigure.js';
import { followInDebt, noteBelow, oweWhoIsFound } from './silent/debts.js';
import { isOtherHistory, replicationIdOf } from './replication-id.js';
import { silentSettings } from './silent/settings.js';
import type { Master, Replica } from './state.js';
import { promotedReplica } from './state.js';
import type { Turn } from './turn.js';
import { announce, log, masterOf, persist } from './turn.js';

export function applyInfo(turn: Turn, node: Master | Replica, text: string, askedMs: Millis): void {
  const master = masterOf(turn.state, node);
  if (master === undefined) return;
  const textBefore = node.infoText;
  node.infoText = text;
  const report = parseInfo(text);
  noteRunId(turn, node, report);
  if (node.kind === 'master') discoverReplicas(turn, node, report);
  noteReplication(turn, node, report);
  node.infoRefreshMs = turn.now;
  node.infoAskedMs = askedMs;
  noteRole(turn, node, report.role);
  noteBelow(turn.state, master);
  noteOtherHistory(turn, node, textBefore);
  beCareful(turn, node, report);
  if (turn.state.tiltSinceMs === null) act(turn, master, node);
}

/** What goes beyond stock: foreign nodes, a master without its data, the reserve after RESET (caution/). */
function beCareful(turn: Turn, node: Master | Replica, report: InfoReport): void {
  const master = masterOf(turn.state, node);
  if (node.kind === 'replica') {
    if (master !== undefined) judgeForeign(turn, master, node);
    return;
  }
  if (report.role === 'master') dropReserve(node);
  if (!judgeRebirth(turn, node, report)) return;
  for (const replica of node.replicas.values()) requestInfo(turn, replica);
}

/** ROLE: the quick proof of a promotion. Only the role is taken from it; INFO tells the rest. */
export function applyRole(turn: Turn, node: Master | Replica, reply: RespValue): void {
  const master = masterOf(turn.state, node);
  if (master === undefined || node.kind !== 'replica' || !isAwaitedPromotion(master, node)) return;
  if (reply.kind === 'error') return applyRoleRefusal(turn, node);
  const word = reply.kind === 'array' ? reply.items[0] : undefined;
  if (word?.kind !== 'bulk' || word.text !== 'master') return;
  noteRole(turn, node, 'master');
  if (turn.state.tiltSinceMs === null) observePromotion(turn, master, node);
}

function noteRunId(turn: Turn, node: Master | Replica, report: InfoReport): void {
  if (report.runId === null || report.runId === node.runId) return;
  if (node.runId !== '') {
    announce(turn, 'notice', '+reboot', node);
    if (node.kind === 'master' && node.masterRebootDownAfterMs !== 0) node.rebootSinceMs = turn.now;
    if (node.kind === 'master') noteRebirth(node);
  }
  node.runId = report.runId;
}

function discoverReplicas(turn: Turn, master: Master, report: InfoReport): void {
  let found = false;
  for (const { host, port } of report.replicas) {
    const address = makeAddress(turn, host, port);
    if (address === null) {
      log(turn, 'notice', `Failed to resolve hostname '${host}'`);
      continue;
    }
    const replica = isKnown(master, address.host, address.ip, port) ? null : createReplica(turn.state, master, address, turn.now);
    if (replica === null) continue;
    announce(turn, 'notice', '+slave', replica);
    oweWhoIsFound(turn, master, replica);
    found = true;
  }
  if (found) persist(turn);
}

function isKnown(master: Master, host: string, ip: string, port: number): boolean {
  for (const { address } of master.replicas.values()) {
    if (address.port === port && ((ip !== '' && address.ip === ip) || address.host === host)) return true;
  }
  return false;
}

function noteReplication(turn: Turn, node: Master | Replica, report: InfoReport): void {
  node.masterReplOffset = report.masterReplOffset ?? node.masterReplOffset;
  if (node.kind === 'master' && isHolding(node) && node.failover !== null) noteHeldOffset(turn, node.failover, report.masterReplOffset);
  node.syncFull = report.syncFull ?? node.syncFull;
  node.readOnly = report.readOnly ?? node.readOnly;
  node.syncInProgress = report.masterSyncInProgress ?? false;
  node.masterLinkDownMs = report.masterLinkDownSeconds === null ? 0 : report.masterLinkDownSeconds * 1_000;
  if (report.role !== 'replica') return;
  const { masterHost, masterPort, masterLinkStatus } = report;
  if (masterHost !== null && masterHost.toLowerCase() !== node.masterHost?.toLowerCase()) {
    node.masterHost = masterHost;
    node.replicaConfChangeMs = turn.now;
  }
  if (masterPort !== null && masterPort !== node.masterPort) {
    node.masterPort = masterPort;
    node.replicaConfChangeMs = turn.now;
  }
  if (masterLinkStatus !== null) node.masterLinkUp = masterLinkStatus === 'up';
  if (node.kind !== 'replica') return;
  node.heldUntilMs = 0 as Millis;
  node.priority = report.replicaPriority ?? node.priority;
  node.replOffset = report.replicaReplOffset ?? node.replOffset;
  node.announced = report.replicaAnnounced ?? node.announced;
}

/** Under a pause of ours: what its INFO says is final. */
function isHolding(master: Master): boolean {
  return master.failover?.state === 'silent_hold' || master.failover?.state === 'send_slaveof_noone';
}

/** Role memory works in TILT, too. A report without a role counts as "not the expected one" (trap 6). */
function noteRole(turn: Turn, node: Master | Replica, role: 'master' | 'replica' | null): void {
  if (role === node.roleReported) return;
  node.roleReported = role;
  node.roleReportedMs = turn.now;
  if (role === 'replica') node.replicaConfChangeMs = turn.now;
  const event = role === node.kind ? '+role-change' : '-role-change';
  announce(turn, 'verbose', event, node, `new reported role is ${role === 'master' ? 'master' : 'slave'}`);
}

/**
 * A master under another replication id than before has been a replica since, unseen: it was promoted just now, and the news of that may
 * be on its way. Its time as a master begins anew, and with it the patience before it is made a replica.
 *
 * Divergence D94: stock counts on, and makes the new master of a failover a replica again if it had been an old one a moment before.
 */
function noteOtherHistory(turn: Turn, node: Master | Replica, textBefore: string | null): void {
  if (node.kind === 'master' || node.roleReported !== 'master') return;
  if (isOtherHistory(replicationIdOf(textBefore), replicationIdOf(node.infoText))) node.roleReportedMs = turn.now;
}

function act(turn: Turn, master: Master, node: Master | Replica): void {
  // A master that says it is a replica becomes SDOWN in time (down.ts); nothing is done to it here.
  if (node.kind === 'master' || isForeign(master, node)) return;
  if (node.roleReported === 'master') {
    if (isAwaitedPromotion(master, node)) observePromotion(turn, master, node);
    else convertToReplica(turn, master, node);
  } else if (node.roleReported === 'replica') {
    fixMaster(turn, master, node);
    followReconfiguration(turn, master, node);
  }
}

/** Fit to be followed: up, a master by its own word, and heard of lately (sentinelMasterLooksSane). */
function looksSane(turn: Turn, master: Master): boolean {
  return (
    master.roleReported === 'master' &&
    master.sdownSinceMs === null &&
    master.odownSinceMs === null &&
    master.infoRefreshMs !== null &&
    turn.now - master.infoRefreshMs < 2 * turn.state.tunables.infoPeriodMs
  );
}

/** An old master that came back: demoted once it has been up, and a master by its word, for 4 publish periods. */
function convertToReplica(turn: Turn, master: Master, replica: Replica): void {
  // The target of a silent failover is promoted and demoted by elected leaders alone.
  if (promotedReplica(master) === replica || master.silent?.target === replica.key) return;
  const graceMs = 4 * turn.state.tunables.publishPeriodMs;
  const proved = noDownFor(replica, graceMs, turn.now) && turn.now - replica.roleReportedMs > graceMs;
  if (!(proved && looksSane(turn, master)) && !mayDemoteAtOnce(master, replica, turn.now)) return;
  if (!follow(turn, master, replica)) return;
  announce(turn, 'notice', '+convert-to-slave', replica);
  // It may still be held. Our transaction cut the link on which its leader was going to lift the pause, or the leader is gone.
  liftPause(turn, replica);
}

/** A replica that follows another node than our master is re-pointed after failover-timeout of calm. */
function fixMaster(turn: Turn, master: Master, replica: Replica): void {
  const { masterHost, masterPort } = replica;
  if (!silentSettings(master).autoRevert || master.silent?.target === replica.key) return;
  // Who may have copied the target of a window would not lose its writes by that. It is sent where it belongs when the window ends.
  if (master.silent?.below.has(replica.key) === true) return;
  if (masterHost === null || (masterPort === master.address.port && sameHost(turn.state, master.address, masterHost))) return;
  const graceMs = master.failoverTimeoutMs;
  if (!looksSane(turn, master) || !noDownFor(replica, graceMs, turn.now)) return;
  if (turn.now - replica.replicaConfChangeMs <= graceMs) return;
  if (follow(turn, master, replica)) announce(turn, 'notice', '+fix-slave-config', replica);
}

/** REPLICAOF; for a node that owes a full resync only when it is ours to send: this report may be from before the order that is under way. */
function follow(turn: Turn, master: Master, replica: Replica): boolean {
  const debt = master.debts.get(replica.key);
  return debt === undefined ? sendReplicaOf(turn, replica, master.address) : followInDebt(turn, master, replica, debt);
}

/** Progress of a replica that was sent to the promoted one: it says so, then its link is up. */
function followReconfiguration(turn: Turn, master: Master, replica: Replica): void {
  const promoted = promotedReplica(master);
  if (promoted === undefined) return;
  const { masterHost, masterPort } = replica;
  const follows = masterHost !== null && masterPort === promoted.address.port && sameHost(turn.state, promoted.address, masterHost);
  if (replica.reconf === 'sent' && follows) {
    replica.reconf = 'inprog';
    announce(turn, 'notice', '+slave-reconf-inprog', replica);
  }
  if (replica.reconf === 'inprog' && replica.masterLinkUp) {
    replica.reconf = 'done';
    announce(turn, 'notice', '+slave-reconf-done', replica);
  }
}
