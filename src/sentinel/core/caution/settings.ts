/**
 * The operator's choices about what we do beyond stock for one master: extra lines of its state file, set by SENTINEL SET.
 */
import type { Master } from '../state.js';

/** A master reborn without its data set is failed over while a replica still holds one. */
export const REBORN_FAILOVER = 'master-reborn-failover';
/** The best replica is taken after a while though all links are down for too long. */
export const AGE_WAIVER = 'failover-age-waiver';

export const CAUTION_KEYS = [REBORN_FAILOVER, AGE_WAIVER] as const;

/** Both are on unless the line says no. */
export function isChosen(master: Readonly<Master>, key: (typeof CAUTION_KEYS)[number]): boolean {
  return master.extraSettings.get(key)?.toLowerCase() !== 'no';
}
