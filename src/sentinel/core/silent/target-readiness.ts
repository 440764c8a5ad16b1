/**
 * May this node become the target of a silent failover, or be made the master now? The reason if not (section 1, errors).
 */
import type { Millis } from '../../../time.js';
import { sameHost } from '../hosts.js';
import { isOtherHistory, replicationIdOf } from '../replication-id.js';
import { isDisconnected } from '../state.js';
import type { Master, Replica, SentinelState } from '../state.js';
import { silentSettings } from './settings.js';
import { isTargetPromoted } from './votes.js';

export function whyTargetNotReady(state: Readonly<SentinelState>, master: Readonly<Master>, target: Readonly<Replica>, now: Millis): string | null {
  if (target.sdownSinceMs !== null) return 'it is down';
  if (isDisconnected(target)) return 'no connection to it';
  // Half done already: finishing is the only thing left to do.
  if (master.silent?.target === target.key && isTargetPromoted(master)) return null;
  if (target.priority === 0) return 'its priority is 0';
  if (target.roleReported !== 'replica') return 'it is no replica';
  if (target.infoRefreshMs === null) return 'its INFO was never read';
  const ageMs = now - target.infoRefreshMs;
  if (ageMs > 3 * state.tunables.infoPeriodMs) return `its INFO is ${ageMs} ms old`;
  // Its copy would come in the middle of the window and wipe it.
  if (master.debts.has(target.key)) return 'it still owes a full resynchronisation';
  if (target.syncInProgress) return 'its initial synchronisation is running';
  if (!target.masterLinkUp) return 'its replication link is down';
  return whyOtherData(state, master, target) ?? whyLaggingOrReadOnly(master, target);
}

/** Another history can't be caught up with. And the copies that another replica gives are counted nowhere: nobody would see the window wiped. */
function whyOtherData(state: Readonly<SentinelState>, master: Readonly<Master>, target: Readonly<Replica>): string | null {
  const above = [...master.replicas.values()].find(({ address }) => target.masterPort === address.port && sameHost(state, address, target.masterHost ?? ''));
  if (above !== undefined) return `it follows ${above.key}`;
  return isOtherHistory(replicationIdOf(master.infoText), replicationIdOf(target.infoText)) ? 'it has another history than the master' : null;
}

function whyLaggingOrReadOnly(master: Readonly<Master>, target: Readonly<Replica>): string | null {
  const settings = silentSettings(master);
  const lag = master.masterReplOffset === null ? 0 : master.masterReplOffset - target.replOffset;
  if (lag > settings.maxLagBytes) return `it lags ${lag} bytes behind`;
  // Asked at prepare alone: at done clients are there already, and this sentinel's report may be from before it was made writable.
  const isPrepared = master.silent?.target === target.key;
  if (settings.requireWritable && !isPrepared && target.readOnly === true) return 'it is read-only, clients would get READONLY (replica-read-only)';
  return null;
}
