/**
 * Who is down: SDOWN, the verdict of this sentinel alone, and ODOWN, the agreement of a quorum.
 *
 * Mirrors sentinelCheckSubjectivelyDown and sentinelCheckObjectivelyDown in sentinel.c. Neither is evaluated in TILT.
 */
import type { Millis } from '../../time.js';
import { addMs } from '../../time.js';
import { rebornDownSinceMs } from './caution/reborn.js';
import { closeLink } from './instance.js';
import { NEVER } from './monitor.js';
import type { Instance, Master, SentinelState } from './state.js';
import { isDisconnected } from './state.js';
import type { Turn } from './turn.js';
import { announce } from './turn.js';

/** How long the instance owes us an answer: since its oldest unanswered PING, or since the link went while none was out. */
export function silentForMs(instance: Readonly<Instance>, now: Millis): number {
  const since = silentSinceMs(instance);
  return since === null ? 0 : now - since;
}

function silentSinceMs(instance: Readonly<Instance>): Millis | null {
  const { actPingMs, lastAvailableMs } = instance.link;
  if (actPingMs !== null) return actPingMs;
  return isDisconnected(instance) ? lastAvailableMs : null;
}

/** When each reason for SDOWN comes true if nothing happens before; the minimum is the deadline. */
function sdownFromMs(state: SentinelState, instance: Instance): Millis {
  const silentSince = silentSinceMs(instance);
  let at = silentSince === null ? NEVER : addMs(silentSince, instance.downAfterMs + 1);
  if (instance.kind !== 'master') return at;

  // A master calling itself a replica gets two INFO periods of grace: one late report is no proof.
  if (instance.roleReported === 'replica') {
    at = Math.min(at, instance.roleReportedMs + instance.downAfterMs + 2 * state.tunables.infoPeriodMs + 1) as Millis;
  }
  // Restarted and still loading after the period: alive, but of no use.
  if (instance.rebootSinceMs !== null && instance.masterRebootDownAfterMs !== 0) {
    at = Math.min(at, instance.rebootSinceMs + instance.masterRebootDownAfterMs + 1) as Millis;
  }
  // Alive, but without the data that its replicas still have.
  return Math.min(at, rebornDownSinceMs(instance) ?? NEVER) as Millis;
}

export function sdownDueMs(state: SentinelState, instance: Instance): Millis {
  return instance.sdownSinceMs === null ? sdownFromMs(state, instance) : NEVER;
}

export function judgeSdown(turn: Turn, instance: Instance): void {
  const down = turn.now >= sdownFromMs(turn.state, instance);
  if (down && instance.sdownSinceMs === null) {
    instance.sdownSinceMs = turn.now;
    instance.lastSdownMs = turn.now;
    if (instance.kind === 'master') forgetOpinions(instance);
    announce(turn, 'warning', '+sdown', instance);
  } else if (!down && instance.sdownSinceMs !== null) {
    instance.sdownSinceMs = null;
    instance.scriptKillSent = false;
    announce(turn, 'warning', '-sdown', instance);
  }
}

/**
 * What peers think is asked anew.
 *
 * Divergence D95: stock counts what a peer last said for 5 s, also when it said it of the master before a switch: one sentinel that is cut
 * off from the new master alone then finds its ODOWN, and fails over a master that all others see.
 */
function forgetOpinions(master: Master): void {
  for (const peer of master.peers.values()) peer.masterDown = false;
}

/**
 * When the command connection counts as stale: long up, yet nothing answered for half of down-after (3.5).
 *
 * Divergence D91: in TILT, too, counted from its begin. Stock keeps a dead connection until TILT is over, and hears nothing on it.
 */
function staleCommandMs(state: SentinelState, instance: Instance): Millis {
  const { command, actPingMs, lastPongMs } = instance.link;
  if (command === null || actPingMs === null) return NEVER;
  const silentMs = Math.max(actPingMs, lastPongMs, state.tiltSinceMs ?? 0) + instance.downAfterMs / 2 + 1;
  return Math.max(command.sinceMs + state.tunables.minLinkReconnectPeriodMs + 1, silentMs) as Millis;
}

/** When the pub/sub connection counts as stale: our own hellos come back on it, so a healthy one is never idle. */
function stalePubsubMs(state: SentinelState, instance: Instance): Millis {
  const { pubsub, pubsubActivityMs } = instance.link;
  // Nobody says hello on the original of a planned move.
  if (pubsub === null || (instance.kind === 'master' && instance.silent !== null)) return NEVER;
  const idleMs = Math.max(pubsubActivityMs, state.tiltSinceMs ?? 0) + 3 * state.tunables.publishPeriodMs + 1;
  return Math.max(pubsub.sinceMs + state.tunables.minLinkReconnectPeriodMs + 1, idleMs) as Millis;
}

export function staleLinkDueMs(state: SentinelState, instance: Instance): Millis {
  return Math.min(staleCommandMs(state, instance), stalePubsubMs(state, instance)) as Millis;
}

export function dropStaleLinks(turn: Turn, instance: Instance): void {
  if (turn.now >= staleCommandMs(turn.state, instance)) closeLink(turn, instance.link, 'command');
  if (turn.now >= stalePubsubMs(turn.state, instance)) closeLink(turn, instance.link, 'pubsub');
}

/** ODOWN: this sentinel and enough peers, by their last answers, say the master is down (4.2). */
export function judgeOdown(turn: Turn, master: Master): void {
  const votes = master.sdownSinceMs === null ? 0 : 1 + [...master.peers.values()].filter((peer) => peer.masterDown).length;
  const down = votes >= master.quorum;
  if (down && master.odownSinceMs === null) {
    master.odownSinceMs = turn.now;
    master.lastOdownMs = turn.now;
    announce(turn, 'warning', '+odown', master, `#quorum ${votes}/${master.quorum}`);
  } else if (!down && master.odownSinceMs !== null) {
    master.odownSinceMs = null;
    master.candidacy = null;
    announce(turn, 'warning', '-odown', master);
  }
}

/** "No down for X": the last SDOWN and ODOWN began longer than `forMs` ago, or never (3.6; start times, as in stock). */
export function noDownFor(instance: Instance, forMs: number, now: Millis): boolean {
  const odown = instance.kind === 'master' ? instance.lastOdownMs : null;
  const last = Math.max(instance.lastSdownMs ?? 0, odown ?? 0);
  return last === 0 || now - last > forMs;
}
