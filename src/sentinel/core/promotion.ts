/**
 * Which replica is promoted, and why the others are not (4.9).
 *
 * Mirrors sentinelSelectSlave and compareSlavesForPromotion in sentinel.c.
 */
import type { Millis } from '../../time.js';
import { isForeign } from './caution/foreign.js';
import { isAsEmptyAsMaster } from './caution/reborn.js';
import type { Master, Replica, SentinelState } from './state.js';
import { isDisconnected } from './state.js';

/** Why a replica is not promoted, in a few words for the log and `status`; null = it may be. */
export function whyNotEligible(state: Readonly<SentinelState>, master: Readonly<Master>, replica: Readonly<Replica>, now: Millis): string | null {
  return whyUnfit(state, master, replica, now) ?? whyTooOld(state, master, replica, now);
}

/** The part of it that time alone does not cause. */
export function whyUnfit(state: Readonly<SentinelState>, master: Readonly<Master>, replica: Readonly<Replica>, now: Millis): string | null {
  const { pingPeriodMs, infoPeriodMs } = state.tunables;
  const maxInfoAgeMs = master.sdownSinceMs === null ? 3 * infoPeriodMs : 5 * pingPeriodMs;

  if (isForeign(master, replica)) return `it belongs to another master, ${master.caution.foreign.get(replica.key) ?? ''}`;
  if (replica.sdownSinceMs !== null) return 'it is down';
  if (isDisconnected(replica)) return 'no connection to it';
  if (now - replica.link.lastAvailableMs > 5 * pingPeriodMs) return `no answer for ${now - replica.link.lastAvailableMs} ms`;
  if (replica.priority === 0) return 'its priority is 0';
  if (replica.infoRefreshMs === null) return 'its INFO was never read';
  if (now - replica.infoRefreshMs > maxInfoAgeMs) return `its INFO is ${now - replica.infoRefreshMs} ms old`;
  // It lacks the writes of a silent window. With the master gone it is better than nothing, see selectReplica.
  if (master.sdownSinceMs === null && master.debts.has(replica.key)) return 'it still owes a full resynchronisation';
  if (isAsEmptyAsMaster(master, replica)) return 'it has no data, like the reborn master';
  return null;
}

/** Its data is from too long before the master went. */
export function whyTooOld(state: Readonly<SentinelState>, master: Readonly<Master>, replica: Readonly<Replica>, now: Millis): string | null {
  const maxLinkDownMs = now - lostSinceMs(state, master, now) + 10 * master.downAfterMs;
  return replica.masterLinkDownMs > maxLinkDownMs ? `its replication link is down for ${replica.masterLinkDownMs} ms` : null;
}

/**
 * Since when replicas may have had no master. Divergence D61: one that became a replica itself was lost when it did so, one INFO
 * period before we noticed at most; stock counts from SDOWN, 2 INFO periods later, and with a short down-after then takes no replica.
 */
function lostSinceMs(state: Readonly<SentinelState>, master: Readonly<Master>, now: Millis): number {
  if (master.sdownSinceMs === null) return now;
  return master.roleReported === 'replica' ? Math.min(master.sdownSinceMs, master.roleReportedMs - state.tunables.infoPeriodMs) : master.sdownSinceMs;
}

/** The best replica by priority, replication offset and run id; null when none may be promoted. */
export function selectReplica(state: Readonly<SentinelState>, master: Readonly<Master>, now: Millis): Replica | null {
  let best: Replica | null = null;
  // It alone has the writes of the silent window, whatever its priority or offset says.
  const target = master.silent?.taint === null ? master.replicas.get(master.silent.target) : undefined;
  if (target !== undefined && whyNotEligible(state, master, target, now) === null) return target;
  for (const replica of master.replicas.values()) {
    if (whyNotEligible(state, master, replica, now) !== null) continue;
    const inDebt = Number(master.debts.has(replica.key)) - Number(best !== null && master.debts.has(best.key));
    if (best === null || (inDebt || compareForPromotion(replica, best)) < 0) best = replica;
  }
  return best;
}

/** Negative when `a` is the better choice. */
export function compareForPromotion(a: Readonly<Replica>, b: Readonly<Replica>): number {
  if (a.priority !== b.priority) return a.priority - b.priority;
  if (a.replOffset !== b.replOffset) return b.replOffset - a.replOffset;
  // A replica too old to tell its run id comes last.
  if (a.runId === '' || b.runId === '') return a.runId === b.runId ? 0 : a.runId === '' ? 1 : -1;
  const [left, right] = [a.runId.toLowerCase(), b.runId.toLowerCase()];
  return left < right ? -1 : left > right ? 1 : 0;
}
