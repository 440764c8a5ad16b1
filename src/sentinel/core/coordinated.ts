/**
 * Coordinated failover: writes on the original are held, the replica catches up, then it is promoted. No window, no lost write.
 *
 * silent-failover.md, section 8. A leader that dies blocks writes for 2 s at most, since the pause is short and renewed; only when
 * the replica has everything it is prolonged once, to outlast whoever might convert the original without a configuration.
 */
import { addMs } from '../../time.js';
import type { Millis } from '../../time.js';
import type { RespValue } from '../wire/resp-value.js';
import { commandName, send } from './instance.js';
import { LIMITS } from './limits.js';
import { requestInfo } from './monitor.js';
import { sendReplicaOf } from './reconfigure.js';
import { isOtherHistory, replicationIdOf } from './replication-id.js';
import type { Failover, Master, Peer, Replica } from './state.js';
import { isDisconnected, promotedReplica, refOf } from './state.js';
import type { Turn } from './turn.js';
import { log } from './turn.js';

/** Offsets are asked for this often: a replica in step has the last write within a millisecond, one that lags is not asked to death. */
const QUICK_POLL_MS = 2;
const QUICK_FOR_MS = 50;
const POLL_MS = 5;
/** A question without an answer is put again after this. */
const REPEAT_POLL_MS = 100;
const PAUSE_RENEW_MS = 1_000;
const DEFAULT_MAX_PAUSE_MS = 5_000;
/** Before Redis 6.2 there is no CLIENT PAUSE … WRITE; its INFO has no master_failover_state either. */
const NEEDED_LINE = 'master_failover_state:';
/** The original's clients are cut when the peers that they may ask know the new configuration, and no later than this behind the promotion. */
const PEERS_LEARN_MS = 20;

/** How long writes may be held, ms (`sentinel coordinated-max-pause`). */
export function maxPauseMs(master: Readonly<Master>): number {
  const value = Number(master.extraSettings.get('coordinated-max-pause') ?? DEFAULT_MAX_PAUSE_MS);
  return Number.isSafeInteger(value) && value > 0 ? value : DEFAULT_MAX_PAUSE_MS;
}

/** Why this original can't be held; null = it can. */
export function whyNotCoordinated(master: Readonly<Master>): string | null {
  if (master.sdownSinceMs !== null || isDisconnected(master)) return 'the master is not reachable';
  if (master.roleReported !== 'master') return 'the master does not say that it is one';
  return master.infoText?.includes(NEEDED_LINE) === true ? null : 'its server is older than Redis 6.2';
}

/** Whether plain SENTINEL FAILOVER takes this way (`sentinel coordinated-failover`, default yes). */
export function isCoordinatedByDefault(master: Readonly<Master>): boolean {
  return (master.extraSettings.get('coordinated-failover') ?? 'yes') === 'yes' && whyNotCoordinated(master) === null;
}

export type Hold = 'holding' | 'caughtUp' | 'gaveUp';

/** One look at the hold: pause, compare offsets. Called until it is over. */
export function hold(turn: Turn, master: Master, failover: Failover, promoted: Replica): Hold {
  const { now } = turn;
  if (failover.pauseRefused !== null) {
    if (failover.purpose === 'coordinated') return 'gaveUp';
    log(turn, 'warning', `Failover of ${master.name} goes on without holding writes: ${failover.pauseRefused}`);
    failover.coordinated = false;
    return 'caughtUp';
  }
  const leftMs = failover.stateSinceMs + maxPauseMs(master) - now;
  // Somebody was faster: what follows another node is no original any more.
  if (leftMs < 0 || master.roleReported === 'replica') return 'gaveUp';
  if (isCaughtUp(turn, master, failover, promoted)) {
    prolong(turn, master, failover);
    return 'caughtUp';
  }
  keepHeld(turn, master, failover, leftMs);
  pollOffsets(turn, master, failover, promoted);
  return 'holding';
}

/** Asks for the offsets that the hold waits for, not faster than they are answered: a queue of questions would only delay them. */
export function pollOffsets(turn: Turn, master: Master, failover: Failover, replica: Replica): void {
  if (turn.now < pollDueMs(failover, replica)) return;
  failover.lastPollMs = turn.now;
  if (failover.heldOffset === null) requestInfo(turn, master);
  requestInfo(turn, replica);
}

export function pollDueMs({ lastPollMs, stateSinceMs }: Failover, replica: Replica | undefined): Millis {
  const isAnswered = (replica?.infoRefreshMs ?? 0) >= lastPollMs;
  const periodMs = lastPollMs < stateSinceMs + QUICK_FOR_MS ? QUICK_POLL_MS : POLL_MS;
  return addMs(lastPollMs, isAnswered ? periodMs : REPEAT_POLL_MS);
}

/** Short pauses, each renewed long before it ends, so that writes stay held however short down-after is. */
export function keepHeld(turn: Turn, master: Master, failover: Failover, leftMs: number): void {
  // One that reaches the end of our patience need not be renewed.
  const lastsMs = failover.lastPauseMs + failover.lastPauseLengthMs - turn.now;
  if (failover.lastPauseMs !== 0 && lastsMs > 0 && lastsMs >= leftMs - 1) return;
  const renewMs = Math.min(PAUSE_RENEW_MS, failover.lastPauseLengthMs / 2);
  if (failover.lastPauseMs !== 0 && turn.now < failover.lastPauseMs + renewMs) return;
  pause(turn, master, failover, Math.min(2_000, master.downAfterMs / 2, Math.max(leftMs, 1)));
}

/**
 * The replica has everything, and the original has taken nothing since: a pause was in force when its offset was read, and there
 * is time enough left in it for the long one to arrive. A leader that slept, or whose renewals were late, holds anew.
 */
export function isCaughtUp(turn: Turn, master: Master, failover: Failover, replica: Replica): boolean {
  const { heldOffset, heldUntilMs, lastPauseLengthMs } = failover;
  // Offsets of two histories have nothing to do with each other.
  if (isOtherHistory(replicationIdOf(master.infoText), replicationIdOf(replica.infoText))) return false;
  return heldOffset !== null && replica.replOffset >= heldOffset && turn.now < heldUntilMs - lastPauseLengthMs / 4;
}

export function holdDueMs(master: Master, failover: Failover): Millis {
  return Math.min(pollDueMs(failover, promotedReplica(master)), failover.stateSinceMs + maxPauseMs(master) + 1) as Millis;
}

export function pause(turn: Turn, master: Master, failover: Failover, wantedMs: number): void {
  const ms = Math.max(1, Math.floor(wantedMs));
  failover.lastPauseMs = turn.now;
  failover.lastPauseLengthMs = ms;
  const argv = [commandName(turn.state, master, 'CLIENT'), 'PAUSE', String(ms), 'WRITE'];
  send(turn, master, argv, { kind: 'paused', instance: refOf(master), sentMs: turn.now, ms });
}

/**
 * The long pause, to be asked for as often as the promotion is tried: sent once, and again when half of it is over. True when it was.
 */
export function prolong(turn: Turn, master: Master, failover: Failover): boolean {
  const isInForce = failover.lastPauseLengthMs === LIMITS.longestHoldMs && turn.now < failover.lastPauseMs + LIMITS.longestHoldMs / 2;
  if (!isInForce) pause(turn, master, failover, LIMITS.longestHoldMs);
  return !isInForce;
}

export function unpause(turn: Turn, master: Master): void {
  send(turn, master, [commandName(turn.state, master, 'CLIENT'), 'UNPAUSE']);
}

/** A node in a new role is not held any more, whoever held it in the old one. Servers before 6.2 were never held. */
export function liftPause(turn: Turn, replica: Replica): void {
  if (replica.infoText?.includes(NEEDED_LINE) !== true) return;
  send(turn, replica, [commandName(turn.state, replica, 'CLIENT'), 'UNPAUSE']);
}

/**
 * Replies come in order: what INFO says after this one, it says of a paused server. The server counts the pause from when it got
 * the command, so it is in force until `sentMs + ms` at least. One that came too late leaves a gap: what was read before is void.
 */
export function applyHoldReply(turn: Turn, { failover }: Master, reply: RespValue, sent: { readonly sentMs: Millis; readonly ms: number }): void {
  const { sentMs, ms } = sent;
  if (failover?.state !== 'send_slaveof_noone' && failover?.state !== 'silent_hold') return;
  if (reply.kind === 'error') {
    failover.pauseRefused = reply.text;
    return;
  }
  if (turn.now >= failover.heldUntilMs) failover.heldOffset = null;
  failover.heldUntilMs = Math.max(failover.heldUntilMs, sentMs + ms) as Millis;
  failover.pauseTaken = true;
}

/** The original's offset, final as long as the pause holds. */
export function noteHeldOffset(turn: Turn, failover: Failover, offset: number | null): void {
  failover.heldOffset = failover.pauseTaken && turn.now < failover.heldUntilMs ? offset : null;
}

/**
 * The old master of a manual failover is told at once: follow the new one, clients cut, pause lifted. A held one takes no writes, and
 * whoever is cut before all agents know asks one that sends him back.
 *
 * Divergence D50: stock leaves it a writable master for some 10 s more, and what it accepts meanwhile is lost.
 */
export function demoteOriginal(turn: Turn, master: Master, failover: Failover, promoted: Replica): void {
  if (!owesDemotion(failover) || turn.now < demotionDueMs(master, failover)) return;
  failover.originalTold = true;
  if (isDisconnected(master) || !sendReplicaOf(turn, master, promoted.address)) return;
  if (failover.lastPauseMs !== 0) unpause(turn, master);
}

/** Whether the original of this failover is still to be told. */
export function owesDemotion({ forced, coordinated, originalTold }: Failover): boolean {
  return (forced || coordinated) && !originalTold;
}

export function demotionDueMs(master: Master, failover: Failover): Millis {
  const isHeld = failover.coordinated && failover.lastPauseMs !== 0;
  const knows = (peer: Peer): boolean => peer.sdownSinceMs !== null || peer.heardConfigEpoch >= master.configEpoch;
  const mayWait = isHeld && ![...master.peers.values()].every(knows);
  return mayWait ? addMs(failover.stateSinceMs, PEERS_LEARN_MS) : failover.stateSinceMs;
}

/**
 * The promotion failed: writes flow again. A target that may have been promoted all the same is told to follow again; one that
 * can't be told is a master whom no configuration names, so that nobody is sent there, and whoever sees it converts it.
 */
export function releaseAfterFailure(turn: Turn, master: Master, failover: Failover, promoted: Replica | undefined): void {
  if (failover.lastPauseMs === 0) return;
  if (failover.state === 'wait_promotion' && promoted !== undefined && !isDisconnected(promoted)) sendReplicaOf(turn, promoted, master.address);
  unpause(turn, master);
}
