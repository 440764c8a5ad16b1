/**
 * What an elected leader does about a silent state: it decides by what it sees, whatever the election was held for (section 5).
 *
 * Steps of a done: hold the writes that are left on the original, wait until the target has them, promote, prove by run id and
 * role. Steps of an abort: make sure the original is a master, then give it a new configuration.
 */
import { must } from '../../../assert.js';
import { addMs } from '../../../time.js';
import type { Millis } from '../../../time.js';
import { sameNode } from '../hosts.js';
import { isCaughtUp, keepHeld, liftPause, pollDueMs, pollOffsets, prolong, unpause } from '../coordinated.js';
import { commandName, send } from '../instance.js';
import { forceHello, NEVER, requestInfo } from '../monitor.js';
import { orderToLead, repeatLostOrder, sendReplicaOf } from '../reconfigure.js';
import { replicationIdOf } from '../replication-id.js';
import type { Failover, Master, NodeAddress, Replica } from '../state.js';
import { isDisconnected } from '../state.js';
import type { RespValue } from '../../wire/resp-value.js';
import { switchAddress } from '../switch-master.js';
import type { Turn } from '../turn.js';
import { announce, persist } from '../turn.js';
import { enterAsInitiator } from './consensus.js';
import { advertisedAddress, silentTarget } from './prepared.js';
import { announceMove, endSilentState, settleClient } from './ending.js';
import { silentSettings } from './settings.js';
import { isTargetPromoted } from './votes.js';

const PROOF_POLL_MS = 50;
/** Longer than the 8-20 s in which a stock peer converts a master that has no configuration. */

/** Gives a failover up before anything irreversible; the prepared state stays. */
export function giveUp(turn: Turn, master: Master, refusal: string): void {
  const { failover } = master;
  if (failover === null) return;
  settleClient(turn, master, refusal);
  if (failover.state === 'wait_start' || failover.state === 'silent_hold') master.givenUpEpoch = failover.epoch;
  if (failover.state === 'silent_hold') {
    if (failover.lastPauseMs !== 0) unpause(turn, master);
    if (master.silent?.donePending === true) {
      master.silent.donePending = false;
      persist(turn);
    }
  }
  master.failover = null;
  master.failoverStartMs = 0 as Millis;
}

/** After the election. True when the move is in these hands; false: an ordinary failover follows (select_slave). */
export function decideAsLeader(turn: Turn, master: Master, failover: Failover): boolean {
  if (failover.purpose === 'prepare') {
    const target = must(failover.target, 'a prepare has a target');
    const { client } = failover;
    // We heard of another target while we asked for votes, and have said so: that state stays until a configuration ends it.
    if (master.silent !== null && !sameNode(master.silent.targetAddress, target)) {
      giveUp(turn, master, 'ERR Failover is already in progress');
      return true;
    }
    master.failover = null;
    enterAsInitiator(turn, master, target, failover.epoch + 1, client);
    return true;
  }
  const target = silentTarget(master);
  if (master.silent === null) {
    if (failover.purpose === 'failover') return false;
    giveUp(turn, master, 'ERR No silent failover in progress for this master');
    return true;
  }
  const originalDown = master.sdownSinceMs !== null;
  const targetUp = target !== undefined && target.sdownSinceMs === null;
  if (targetUp && isTargetPromoted(master) && master.silent.taint === null) return go(turn, failover, 'silent_promote');
  if (originalDown) {
    settleClient(turn, master, null);
    return false;
  }
  if (!targetUp || failover.purpose === 'abort') {
    settleClient(turn, master, null);
    return go(turn, failover, 'silent_reassert');
  }
  if (failover.purpose === 'done') {
    // NO ONE may be sent from now on, and a restart must know it. On disk before the pause: nobody waits for the disk under it.
    master.silent.donePending = true;
    persist(turn);
    return go(turn, failover, 'silent_hold');
  }
  // A false alarm: nobody asked for an end, both are up.
  giveUp(turn, master, 'NOQUORUM the reason for the election is gone');
  return true;
}

function go(turn: Turn, failover: Failover, state: Failover['state']): true {
  failover.state = state;
  failover.stateSinceMs = turn.now;
  failover.lastPollMs = 0 as Millis;
  failover.lastPauseMs = 0 as Millis;
  failover.pauseTaken = false;
  failover.heldOffset = null;
  failover.heldUntilMs = 0 as Millis;
  failover.lastPauseLengthMs = 0;
  return true;
}

export function moveDueMs(master: Master, failover: Failover): Millis {
  const isHold = failover.state === 'silent_hold';
  const pollMs = isHold ? pollDueMs(failover, silentTarget(master)) : addMs(failover.lastPollMs, PROOF_POLL_MS);
  const timeoutMs = failover.stateSinceMs + (isHold ? silentSettings(master).drainTimeoutMs : master.failoverTimeoutMs) + 1;
  const due = Math.min(pollMs, timeoutMs);
  return (Number.isFinite(due) ? due : NEVER) as Millis;
}

/** A pause that is refused ends the done; the prepared state stays. */
export function applyPauseReply(turn: Turn, master: Master, reply: RespValue): void {
  if (master.failover?.state !== 'silent_hold' || reply.kind !== 'error') return;
  giveUp(turn, master, `ERR Slave status is not ready: the original refuses CLIENT PAUSE: ${reply.text}`);
}

/** Polls offsets under the pause until the target has everything the original has. */
export function holdAndCatchUp(turn: Turn, master: Master, failover: Failover): void {
  const target = silentTarget(master);
  if (target === undefined || master.silent === null) return giveUp(turn, master, 'ERR No silent failover in progress for this master');
  if (master.silent.taint !== null) return giveUp(turn, master, `ERR Silent failover is tainted: ${master.silent.taint}`);
  if (master.roleReported === 'replica') return giveUp(turn, master, 'ERR Slave status is not ready: the original follows another node');
  const leftMs = failover.stateSinceMs + silentSettings(master).drainTimeoutMs - turn.now;
  // A link that only broke comes back within a second, and the writes behind it shall not be lost for that.
  if (master.sdownSinceMs !== null || (leftMs < 0 && isDisconnected(master))) {
    failover.lastPollMs = turn.now;
    return promoteTarget(turn, master, failover, target);
  }
  if (leftMs < 0) return giveUp(turn, master, 'ERR Slave status is not ready: lag');
  keepHeld(turn, master, failover, leftMs);
  if (isCaughtUp(turn, master, failover, target)) {
    if (prolong(turn, master, failover)) cutClients(turn, master);
    failover.lastPollMs = turn.now;
    return promoteTarget(turn, master, failover, target);
  }
  pollOffsets(turn, master, failover, target);
}

/** Everything is at the target, and it takes writes: who still waits at the original finds it by the name, before the promotion. */
function cutClients(turn: Turn, master: Master): void {
  const name = commandName(turn.state, master, 'CLIENT');
  for (const type of ['normal', 'pubsub']) send(turn, master, [name, 'KILL', 'TYPE', type]);
}

function promoteTarget(turn: Turn, master: Master, failover: Failover, target: Replica): void {
  if (master.silent === null || isDisconnected(target)) return;
  settleClient(turn, master, null);
  if (!orderToLead(turn, failover, target)) return;
  liftPause(turn, target);
  announce(turn, 'notice', '+failover-state-wait-promotion', target);
  go(turn, failover, 'silent_promote');
}

/** Waits for the proof: role master, and the run id of the prepare. */
export function awaitTarget(turn: Turn, master: Master, failover: Failover): void {
  const target = silentTarget(master);
  if (target === undefined || master.silent === null) return giveUp(turn, master, 'ERR No silent failover in progress for this master');
  if (isTargetPromoted(master)) {
    if (master.silent.taint !== null) return restartAs(turn, failover, 'silent_reassert');
    return concludeMove(turn, master, failover, target.address, 'done');
  }
  // A master, but another process than at prepare: it has lost the window, and no proof will ever come.
  if (target.roleReported === 'master' && target.runId !== '' && target.runId !== master.silent.targetRunId) {
    return restartAs(turn, failover, 'silent_reassert');
  }
  if (turn.now > failover.stateSinceMs + master.failoverTimeoutMs) {
    if (target.sdownSinceMs !== null || target.roleReported === 'replica') return restartAs(turn, failover, 'silent_reassert');
    failover.stateSinceMs = turn.now;
  }
  repeatLostOrder(turn, failover, target);
  poll(turn, target, failover);
}

function restartAs(turn: Turn, failover: Failover, state: Failover['state']): void {
  go(turn, failover, state);
}

function poll(turn: Turn, node: Master | Replica, failover: Failover): void {
  if (turn.now < failover.lastPollMs + PROOF_POLL_MS) return;
  failover.lastPollMs = turn.now;
  if (!isDisconnected(node)) requestInfo(turn, node);
}

/** The original gets a new configuration of its own, once it is proved to be a master. */
export function reassertOriginal(turn: Turn, master: Master, failover: Failover): void {
  // Dead by now: that is a failover's business, which this one must not keep waiting.
  if (master.sdownSinceMs !== null) return giveUp(turn, master, 'NOQUORUM the original is down');
  if (turn.now > failover.stateSinceMs + master.failoverTimeoutMs) return giveUp(turn, master, 'NOQUORUM the original did not answer');
  const proved = master.infoRefreshMs !== null && master.infoRefreshMs >= failover.stateSinceMs && master.roleReported === 'master';
  if (proved) return concludeMove(turn, master, failover, master.address, 'aborted by its leader');
  if (master.roleReported === 'replica' && failover.lastPauseMs === 0 && sendReplicaOf(turn, master, null)) {
    // A half-done move had re-pointed it.
    failover.lastPauseMs = turn.now;
  }
  poll(turn, master, failover);
}

/** The new configuration: persisted, then said to everybody, then acted on (step 4). */
export function concludeMove(turn: Turn, master: Master, failover: Failover, address: NodeAddress, reason: string): void {
  const before = advertisedAddress(master);
  const pausedOriginal = sameNode(address, master.address);
  master.configEpoch = failover.epoch;
  master.published.role = 'leader';
  master.published.previous = pausedOriginal ? before : master.address;
  master.published.leaderId = turn.state.myId;
  master.published.previousRunId = master.runId;
  master.published.previousReplicationId = replicationIdOf(master.infoText);
  master.published.sinceMs = turn.now;
  master.published.confirmed = true;
  master.published.phase = pausedOriginal ? 'aborted' : 'failover';
  persist(turn);
  settleClient(turn, master, null);
  const original = master.address;
  const ended = endSilentState(turn, master, address, reason);
  // Done is announced as what it is, original to target, although clients have been at the target all the time.
  announceMove(turn, master, ended?.kind === 'done' ? original : before, address);
  if (pausedOriginal) {
    unpause(turn, master);
    master.failover = null;
    master.failoverStartMs = 0 as Millis;
  } else {
    switchAddress(turn, master, address);
  }
  forceHello(turn, master);
}
