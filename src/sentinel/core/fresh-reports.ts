/**
 * Before a replica is chosen, the replicas tell once more how far they have come.
 *
 * While all is well INFO is read every 10 s only. Stock's tick leaves 100 ms between an election and the choice, in which the
 * replicas answer; our election may take 2 ms, so the choice waits for them, and no longer than they need. Without it
 * a choice would be made by old offsets, or there would be none: an INFO of more than 5 s ago does not count (promotion.ts).
 */
import type { Millis } from '../../time.js';
import { addMs } from '../../time.js';
import { LIMITS } from './limits.js';
import { selectReplica } from './promotion.js';
import type { Failover, Master, Replica, SentinelState } from './state.js';
import { isDisconnected } from './state.js';

/** How long a choice waits for the slowest replica, and how long while there is none to choose. */
const PATIENCE_MS = { better: 200, any: 2_000 } as const;

/** Whether the choice should wait: some replica, as far as we know alive, has not answered the INFO that it was sent (or will be). */
export function awaitsReports(state: SentinelState, master: Master, failover: Failover, now: Millis): boolean {
  if (master.sdownSinceMs === null || ![...master.replicas.values()].some((replica) => owesReport(replica, failover))) return false;
  const waitedMs = now - failover.stateSinceMs;
  return waitedMs < PATIENCE_MS.better || (waitedMs < PATIENCE_MS.any && selectReplica(state, master, now) === null);
}

function owesReport(replica: Replica, { stateSinceMs }: Failover): boolean {
  if (replica.sdownSinceMs !== null || isDisconnected(replica) || replica.priority === 0) return false;
  return replica.infoRefreshMs === null || replica.infoRefreshMs < stateSinceMs - LIMITS.fastInfoPeriodMs;
}

/** When the patience ends; a report that comes before leads to a turn of its own. */
export function choiceDueMs(state: Readonly<SentinelState>, { stateSinceMs }: Failover): Millis {
  const firstMs = addMs(stateSinceMs, PATIENCE_MS.better);
  return state.previousMs < firstMs ? firstMs : addMs(stateSinceMs, PATIENCE_MS.any);
}
