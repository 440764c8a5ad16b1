/**
 * SENTINEL RESET: forget replicas and peers, but not that the master is dying.
 *
 * Divergence D73: a running SDOWN clock goes on, and the replicas from before stay in reserve: if the master goes down before it
 * has listed its replicas again, they are taken back as candidates (and shown once they answer). Stock starts the clock anew and,
 * with the master dead, can never promote anything again. A failover whose promotion is published already ends with its switch first.
 */
import { silentForMs } from '../down.js';
import { createReplica } from '../instance.js';
import { sameNode } from '../hosts.js';
import type { Master, Replica } from '../state.js';
import { currentMasterAddress } from '../state.js';
import { resetMaster, switchToPromoted } from '../switch-master.js';
import type { Turn } from '../turn.js';
import { announce, persist } from '../turn.js';

export function resetByCommand(turn: Turn, master: Master): void {
  // A promotion that was published can't be forgotten: its configEpoch would then belong to the old address, too (I1).
  if (!sameNode(currentMasterAddress(master), master.address)) switchToPromoted(turn, master);
  const { caution, link } = master;
  const { sdownSinceMs, roleReported, roleReportedMs, rebootSinceMs } = master;
  const { actPingMs, lastAvailableMs } = link;
  const replicas = [...master.replicas.values()].filter(({ key }) => !caution.foreign.has(key)).map(({ address }) => address);
  resetMaster(turn, master, false);
  caution.foreign.clear();
  caution.provisional.clear();
  if (replicas.length > 0) caution.lastKnown = replicas;
  master.sdownSinceMs = sdownSinceMs;
  master.rebootSinceMs = rebootSinceMs;
  if (actPingMs !== null) {
    link.actPingMs = actPingMs;
    link.lastAvailableMs = lastAvailableMs;
  }
  if (roleReported !== 'master') Object.assign(master, { roleReported, roleReportedMs });
}

/** The master's own list, whatever it says, replaces the reserve. */
export function dropReserve(master: Master): void {
  master.caution.lastKnown = [];
}

/** At the begin of every pass: a master that is going down won't list its replicas. In time for them to have answered when it is down. */
export function takeFromReserve(turn: Turn, master: Master): void {
  const { caution } = master;
  if (caution.lastKnown.length === 0) return;
  if (master.sdownSinceMs === null && silentForMs(master, turn.now) <= master.downAfterMs / 2) return;
  for (const address of caution.lastKnown) {
    const replica = createReplica(turn.state, master, address, turn.now);
    if (replica === null) continue;
    caution.provisional.add(replica.key);
    announce(turn, 'notice', '+slave', replica);
  }
  caution.lastKnown = [];
  persist(turn);
}

/** Whether SENTINEL REPLICAS shows it. */
export function isShown(master: Readonly<Master>, replica: Readonly<Replica>): boolean {
  return replica.announced && !(master.caution.provisional.has(replica.key) && replica.infoRefreshMs === null);
}
