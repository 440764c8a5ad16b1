/**
 * A master that was restarted without its data set while its replicas hold one.
 *
 * Stock sees a healthy master, and every replica throws its data away to copy nothing. Divergence D74: the rebirth is an alarm
 * (`+reborn-empty`), seen at the first reconnect and not at the next INFO period, and, unless master-reborn-failover is no, an
 * SDOWN for as long as a replica holds data. The rest is an ordinary failover, with the agreement of a quorum. A diskless sync
 * begins 5 s after the replica asked for it (repl-diskless-sync-delay), which is what makes this worth while.
 */
import type { Millis } from '../../../time.js';
import type { InfoReport } from '../../wire/info.js';
import { parseInfo } from '../../wire/info.js';
import type { Master, Replica } from '../state.js';
import type { Turn } from '../turn.js';
import { announce } from '../turn.js';
import { isChosen, REBORN_FAILOVER } from './settings.js';

/** A new run id: the next INFO that is not from the middle of loading tells whether data came along. */
export function noteRebirth(master: Master): void {
  master.caution.reborn ??= { kind: 'unread' };
}

/** After an INFO of a master that was reborn. True when the replicas should be asked at once. */
export function judgeRebirth(turn: Turn, master: Master, { role, loading, keys }: InfoReport): boolean {
  const { reborn } = master.caution;
  if (reborn === null || loading === true) return false;
  if (role !== 'master' || keys !== 0) {
    master.caution.reborn = null;
    if (reborn.kind === 'empty') announce(turn, 'warning', '-reborn-empty', master);
    return false;
  }
  if (reborn.kind === 'empty') return false;
  const holders = [...master.replicas.values()].filter((replica) => keysOf(replica) > 0).length;
  master.caution.reborn = holders === 0 ? null : { kind: 'empty', sinceMs: turn.now };
  if (holders === 0) return false;
  announce(turn, 'warning', '+reborn-empty', master, `new run id, data set lost, ${holders} replicas held data`);
  return true;
}

/** Since when the master counts as down for this; null = it does not. */
export function rebornDownSinceMs(master: Readonly<Master>): Millis | null {
  const { reborn } = master.caution;
  if (reborn?.kind !== 'empty' || !isChosen(master, REBORN_FAILOVER)) return null;
  const someHolds = [...master.replicas.values()].some((replica) => replica.sdownSinceMs === null && keysOf(replica) > 0);
  return someHolds ? reborn.sinceMs : null;
}

/** A replica that has copied the emptiness saves nothing. */
export function isAsEmptyAsMaster(master: Readonly<Master>, replica: Readonly<Replica>): boolean {
  return master.caution.reborn?.kind === 'empty' && keysOf(replica) === 0;
}

function keysOf({ infoText }: Readonly<Replica>): number {
  return infoText === null ? 0 : (parseInfo(infoText).keys ?? 0);
}
