/**
 * One pass over a master: everything that has become due for it, in stock's order (3.1), and the instant of the next pass.
 *
 * Per instance: reconnect, periodic commands, then (not in TILT) verdicts; for the master itself then ODOWN, the failover and
 * the questions to peers. Mirrors sentinelHandleRedisInstance, except that it runs at deadlines, not on a fixed tick.
 */
import type { Millis } from '../../time.js';
import { takeFromReserve } from './caution/last-known.js';
import { dropStaleLinks, judgeOdown, judgeSdown, sdownDueMs, staleLinkDueMs } from './down.js';
import { askPeers, electionDueMs } from './election.js';
import { advanceFailover, failoverDueMs, startFailoverIfNeeded } from './failover.js';
import { infoDueMs, NEVER, pingDueMs, publishDueMs, reconnect, reconnectDueMs, sendPeriodicCommands } from './monitor.js';
import { prepareDueMs, resumePrepare } from './commands/silent-failover-command.js';
import { effectiveDueMs, watchEffective } from './silent/consensus.js';
import { debtsDueMs, payDebts } from './silent/debts.js';
import { judgeTaint, watchDueMs, watchSilentState } from './silent/watch.js';
import type { Instance, Master, SentinelState } from './state.js';
import { judgeTrust, trustDueMs } from './trust.js';
import type { Turn } from './turn.js';

export function passOver(turn: Turn, master: Master): void {
  if (turn.state.tiltSinceMs === null) takeFromReserve(turn, master);
  // A failover may replace replicas while we walk: handle those that were there at the start.
  for (const instance of [...master.replicas.values(), ...master.peers.values()]) handleInstance(turn, instance);
  handleInstance(turn, master);
  judgeTaint(turn, master);
  if (turn.state.tiltSinceMs === null) {
    judgeOdown(turn, master);
    resumePrepare(turn, master);
    watchSilentState(turn, master);
    watchEffective(turn, master);
    const started = startFailoverIfNeeded(turn, master) || isFreshElection(turn, master);
    if (started) askPeers(turn, master, true);
    advanceFailover(turn, master);
    askPeers(turn, master, false);
    payDebts(turn, master);
  }
  judgeTrust(turn, master);
}

/** A planned election that began in this turn asks at once. */
function isFreshElection(turn: Turn, master: Master): boolean {
  const { failover } = master;
  return failover !== null && failover.purpose !== 'failover' && failover.state === 'wait_start' && failover.stateSinceMs === turn.now;
}

function handleInstance(turn: Turn, instance: Instance): void {
  // As a rule nothing is due, and one look is cheaper than one per action. Who is down may be up again, which no deadline tells.
  if (turn.now < instanceDueMs(turn.state, instance) && instance.sdownSinceMs === null) return;
  reconnect(turn, instance);
  sendPeriodicCommands(turn, instance);
  dropStaleLinks(turn, instance);
  if (turn.state.tiltSinceMs === null) judgeSdown(turn, instance);
}

/** When this master needs the next pass, if nothing happens before. May lie in the past: then at once. */
export function passDueMs(state: SentinelState, master: Master, now: Millis): Millis {
  let due = Math.min(trustDueMs(state, master, now), instanceDueMs(state, master));
  for (const replica of master.replicas.values()) due = Math.min(due, instanceDueMs(state, replica));
  for (const peer of master.peers.values()) due = Math.min(due, instanceDueMs(state, peer));
  if (state.tiltSinceMs === null) {
    due = Math.min(due, electionDueMs(state, master), failoverDueMs(state, master));
    due = Math.min(due, prepareDueMs(master), effectiveDueMs(state, master), watchDueMs(state, master), debtsDueMs(state, master, now));
  }
  return due as Millis;
}

function instanceDueMs(state: SentinelState, instance: Instance): number {
  const sendMs = Math.min(infoDueMs(state, instance), pingDueMs(state, instance), publishDueMs(state, instance));
  const linkMs = Math.min(reconnectDueMs(state, instance), staleLinkDueMs(state, instance));
  return Math.min(sendMs, linkMs, state.tiltSinceMs === null ? sdownDueMs(state, instance) : NEVER);
}
