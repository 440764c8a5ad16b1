/**
 * What this sentinel knows about one master beyond stock's records, so that it acts with more care: instances that belong to
 * somebody else, replicas from before a RESET, a master that came back without its data.
 */
import type { Millis } from '../../../time.js';
import type { NodeAddress } from '../state.js';

export interface Caution {
  /** Replica records whose node lives under another master: key → that master as `host:port` (foreign.ts). */
  readonly foreign: Map<string, string>;
  /** Replicas from before the last RESET, until the master lists its own again (last-known.ts). */
  lastKnown: readonly NodeAddress[];
  /** Keys of replicas that came back from there; not shown before they have answered. */
  readonly provisional: Set<string>;
  /** What peers with our configEpoch name as master, where it isn't ours: run id → `host:port` (differing.ts). */
  readonly differing: Map<string, string>;
  /** The master has a new run id: `unread` until an INFO tells whether it has data, then `empty` or nothing (reborn.ts). */
  reborn: { readonly kind: 'unread' } | { readonly kind: 'empty'; readonly sinceMs: Millis } | null;
}

export function newCaution(): Caution {
  return { foreign: new Map(), lastKnown: [], provisional: new Set(), differing: new Map(), reborn: null };
}
