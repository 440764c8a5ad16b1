/**
 * The master of before, seen as a master still behind a switch that this sentinel adopted.
 *
 * Divergence D51: stock waits 8 s, in case its own configuration is the outdated one. Here the switch is the newest news, or this
 * sentinel has been with the majority all the time, and the process is the very one that was the master before.
 */
import type { Millis } from '../../time.js';
import { addMs } from '../../time.js';
import { sameNode } from './hosts.js';
import { LIMITS } from './limits.js';
import { isOtherHistory, replicationIdOf } from './replication-id.js';
import type { Master, Replica } from './state.js';

/** A switch that is younger than this is news: nobody can have made a still newer one that we missed. */
const FRESH_SWITCH_MS = 10_000;

/** Whether nobody else can have made a master of it again. */
export function isFormerMaster(master: Readonly<Master>, replica: Readonly<Replica>): boolean {
  const { published } = master;
  if (published.previous === null || !sameNode(published.previous, replica.address)) return false;
  // It has followed since the switch: a master again means that somebody promoted it, whose configuration is on its way.
  if (replica.masterHost !== null) return false;
  if (published.previousRunId === '' || replica.runId !== published.previousRunId || !published.trusted) return false;
  // The same by its replication id: it was demoted and promoted in between, and nothing that we saw shows it.
  return !isOtherHistory(published.previousReplicationId, replicationIdOf(replica.infoText));
}

/** Its leader may have died in between, but is given a moment: it cuts the clients when every agent that they ask knows better. */
export function mayDemoteAtOnce(master: Readonly<Master>, replica: Readonly<Replica>, now: Millis): boolean {
  return isFormerMaster(master, replica) && now >= leaderActsUntilMs(master, replica) && now < addMs(master.published.sinceMs, FRESH_SWITCH_MS);
}

/** Who owes a copy was not held by anybody: each moment as a master costs writes. */
function leaderActsUntilMs(master: Readonly<Master>, replica: Readonly<Replica>): Millis {
  return master.debts.has(replica.key) ? master.published.sinceMs : addMs(master.published.sinceMs, LIMITS.leaderActsMs);
}

/** It was seen as a master in its leader's moment, and nobody has looked since. */
export function isToBeSeenAgain(master: Readonly<Master>, replica: Readonly<Replica>): boolean {
  const { infoRefreshMs, roleReported } = replica;
  if (roleReported !== 'master' || infoRefreshMs === null || infoRefreshMs >= leaderActsUntilMs(master, replica)) return false;
  return infoRefreshMs >= master.published.sinceMs && isFormerMaster(master, replica);
}
