/**
 * When no replica is good for its age alone: the master is gone, every replica answers, but all have been without it too long.
 *
 * Divergence D75: stock then aborts for ever, since the age only grows (sentinels that were off together with the master come
 * back to that). After 5 x down-after of SDOWN nothing newer can be waited for: the best one is taken, and the log says so.
 * Off with failover-age-waiver no.
 */
import type { Millis } from '../../../time.js';
import { addMs } from '../../../time.js';
import { compareForPromotion, whyTooOld, whyUnfit } from '../promotion.js';
import type { Master, Replica } from '../state.js';
import type { Turn } from '../turn.js';
import { log } from '../turn.js';
import { AGE_WAIVER, isChosen } from './settings.js';

const DOWN_AFTERS = 5;

/** From when age is no reason any more; null = never. */
export function ageWaivedFromMs(master: Readonly<Master>): Millis | null {
  if (master.sdownSinceMs === null || !isChosen(master, AGE_WAIVER)) return null;
  return addMs(master.sdownSinceMs, DOWN_AFTERS * master.downAfterMs);
}

/** The best replica among those that only age speaks against; null when it is too early, or there is none. */
export function selectDespiteAge(turn: Turn, master: Master): Replica | null {
  const fromMs = ageWaivedFromMs(master);
  if (fromMs === null || turn.now < fromMs) return null;
  const [best] = onlyTooOld(turn, master).sort(compareForPromotion);
  if (best === undefined) return null;
  const age = whyTooOld(turn.state, master, best, turn.now) ?? 'no age';
  log(turn, 'warning', `Age limits are waived for ${master.name}: no newer data is reachable. Replica ${best.key} is promoted although ${age}`);
  return best;
}

/** When to try again after "no good replica": once the waiver holds, if it would help; null = as stock. */
export function retryWithWaiverMs(turn: Turn, master: Master): Millis | null {
  const fromMs = ageWaivedFromMs(master);
  return fromMs !== null && turn.now < fromMs && onlyTooOld(turn, master).length > 0 ? fromMs : null;
}

function onlyTooOld(turn: Turn, master: Master): Replica[] {
  return [...master.replicas.values()].filter((replica) => whyUnfit(turn.state, master, replica, turn.now) === null);
}
