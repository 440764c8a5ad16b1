/**
 * The clock went back: instants that now lie in the future would stop every schedule until the clock has caught up.
 *
 * Divergence D60: they count as now. Stock keeps them, and neither reconnects nor pings for as long as the clock went back.
 */
import type { Millis } from '../../time.js';
import { instancesOf } from './instance.js';
import type { SentinelState } from './state.js';

/** Moves every instant later than `now` to `now`. */
export function forgetFuture(state: SentinelState, now: Millis): void {
  clamp(state, now);
  for (const master of state.masters.values()) {
    for (const instance of instancesOf(master)) {
      for (const record of [instance, instance.link, instance.link.command, instance.link.pubsub]) clamp(record, now);
    }
    const { failover, published, candidacy, silent, prepareRequest, caution, debts } = master;
    for (const record of [failover, published, candidacy, silent, prepareRequest, caution, caution.reborn, ...debts.values()]) clamp(record, now);
  }
}

/** Durations have the same ending in their names, but none is anywhere near a present instant. */
function clamp(record: object | null, now: Millis): void {
  for (const [field, value] of Object.entries(record ?? {})) {
    if (field.endsWith('Ms') && typeof value === 'number' && value > now) Object.assign(record as object, { [field]: now });
  }
}
