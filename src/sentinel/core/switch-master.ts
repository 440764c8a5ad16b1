/**
 * A master's record gets a new address, or loses what it learned.
 *
 * Mirrors sentinelFailoverSwitchToPromotedSlave, sentinelResetMasterAndChangeAddress and sentinelResetMaster.
 */
import { must } from '../../assert.js';
import type { Millis } from '../../time.js';
import { addMs } from '../../time.js';
import { silentForMs } from './down.js';
import { sameNode } from './hosts.js';
import type { Ends } from './instance.js';
import { closeEnds, closeLink, createReplica, handOver, instancesOf, releaseLink, takeEnds } from './instance.js';
import { LIMITS } from './limits.js';
import { ping, requestInfo } from './monitor.js';
import { oweToDebtor } from './silent/debts.js';
import type { Instance, Master, NodeAddress, Replica, SentinelState } from './state.js';
import { announcedHost, promotedReplica } from './state.js';
import type { Turn } from './turn.js';
import { announce, announceText, persist, touch } from './turn.js';

/** End of an own failover: `+switch-master`, and the promoted replica's address becomes the master's. */
export function switchToPromoted(turn: Turn, master: Master): void {
  const promoted = must(promotedReplica(master), 'a failover in update_config has no promoted replica');
  announceSwitch(turn, master, announcedHost(turn.state.settings, promoted.address), promoted.address.port);
  switchAddress(turn, master, promoted.address);
}

/** `+switch-master <name> <old ip> <old port> <new ip> <new port>`, behind the barrier of what was persisted before it. */
export function announceSwitch(turn: Turn, master: Master, host: string, port: number): void {
  const old = `${announcedHost(turn.state.settings, master.address)} ${master.address.port}`;
  announceText(turn, 'warning', '+switch-master', `${master.name} ${old} ${host} ${port}`, master);
}

/**
 * The master is at `target` now: everything about the old node is forgotten, the old node becomes a replica (4.10).
 *
 * Divergence D97: connections to nodes that answer are kept, and asked at once. Stock closes and opens all of them, in the very moment
 * in which clients look for the new master.
 */
export function switchAddress(turn: Turn, master: Master, target: NodeAddress): void {
  const nodes = [...[...master.replicas.values()].map((replica) => replica.address), master.address];
  const replicas = nodes.filter((address) => !sameNode(address, target));
  const foreign = [...master.caution.foreign];
  const former = master.address;
  oweToDebtor(turn, master, target);
  const tries = [master, ...master.replicas.values()].map(triedOf);
  const ends = [master, ...master.replicas.values()].filter((node) => isAnswering(turn.state, node, turn.now)).map(takeEnds);
  resetMaster(turn, master, true);
  forgetCaution(master);
  master.address = target;
  master.lastSdownMs = null;
  master.lastOdownMs = null;
  for (const address of replicas) {
    const replica = createReplica(turn.state, master, address, turn.now);
    if (replica === null) continue;
    announce(turn, 'notice', '+slave', replica);
    if (sameNode(address, former)) replica.heldUntilMs = addMs(turn.now, LIMITS.longestHoldMs);
  }
  goOn(turn, [master, ...master.replicas.values()], ends);
  keepPace(turn, [master, ...master.replicas.values()], tries);
  // Whose they are has not changed with our master.
  for (const [key, owner] of foreign) if (master.replicas.has(key)) master.caution.foreign.set(key, owner);
  persist(turn);
}

interface Tried {
  readonly address: NodeAddress;
  readonly commandMs: Millis;
  readonly pubsubMs: Millis;
}

const triedOf = ({ address, link }: Master | Replica): Tried => ({ address, commandMs: link.lastCommandTryMs, pubsubMs: link.lastPubsubTryMs });

/** Up, and owing no answer for longer than it takes to give one. */
function isAnswering({ tunables }: SentinelState, node: Master | Replica, now: Millis): boolean {
  return node.sdownSinceMs === null && (node.link.command?.localIp ?? null) !== null && silentForMs(node, now) < tunables.pingPeriodMs;
}

/** The new records of nodes whose connections were kept ask on them who they are now. */
function goOn(turn: Turn, nodes: readonly (Master | Replica)[], kept: readonly Ends[]): void {
  for (const ends of kept) {
    const node = nodes.find(({ address }) => address.ip === ends.address.ip && address.port === ends.address.port);
    if (node === undefined || node.link.command !== null) {
      closeEnds(turn, ends);
      continue;
    }
    handOver(turn.state, node, ends);
    ping(turn, node);
    requestInfo(turn, node);
  }
}

/** A connection that was cut a moment ago waits for its turn in the new record as it did in the old one (Divergence D99). */
function keepPace({ state, now }: Turn, nodes: readonly (Master | Replica)[], tries: readonly Tried[]): void {
  const latestMs = addMs(now, LIMITS.reconnectDelayMs - state.tunables.pingPeriodMs);
  for (const { address, commandMs, pubsubMs } of tries) {
    const node = nodes.find((each) => sameNode(each.address, address));
    if (node === undefined) continue;
    node.link.lastCommandTryMs = Math.min(commandMs, latestMs) as Millis;
    node.link.lastPubsubTryMs = Math.min(pubsubMs, latestMs) as Millis;
  }
}

/**
 * Forgets replicas, links, roles and failover of a master; its peers only for RESET (`keepPeers` false).
 * Epochs, settings and the last INFO stay, as in stock.
 */
export function resetMaster(turn: Turn, master: Master, keepPeers: boolean): void {
  const { now } = turn;
  for (const replica of master.replicas.values()) releaseLink(turn, replica);
  master.replicas.clear();
  if (!keepPeers) {
    for (const peer of master.peers.values()) releaseLink(turn, peer);
    master.peers.clear();
  }
  closeLink(turn, master.link);
  restartClocks(master, now);
  master.leader = null;
  master.failover = null;
  master.failoverStartMs = 0 as Millis;
  master.failoverDelayLoggedMs = 0 as Millis;
  master.candidacy = null;
  master.sdownSinceMs = null;
  master.odownSinceMs = null;
  master.scriptKillSent = false;
  master.rebootSinceMs = null;
  master.runId = '';
  master.masterReplOffset = null;
  master.syncFull = null;
  master.readOnly = null;
  master.syncInProgress = false;
  master.masterHost = null;
  master.roleReported = 'master';
  master.roleReportedMs = now;
  master.replicaConfChangeMs = now;
  touch(turn, master.name);
}

function forgetCaution({ caution }: Master): void {
  caution.foreign.clear();
  caution.provisional.clear();
  caution.differing.clear();
  caution.lastKnown = [];
  caution.reborn = null;
}

function restartClocks(instance: Instance, now: Millis): void {
  const { link } = instance;
  link.actPingMs = now;
  link.lastPingMs = 0 as Millis;
  link.lastAvailableMs = now;
  link.lastPongMs = now;
  link.lastCommandTryMs = link.lastPubsubTryMs = 0 as Millis;
}

/** SENTINEL REMOVE: nothing of the master stays. */
export function removeMaster(turn: Turn, master: Master): void {
  for (const instance of instancesOf(master)) releaseLink(turn, instance);
  turn.state.masters.delete(master.name);
  touch(turn, master.name);
}
