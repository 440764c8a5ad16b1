/**
 * What a chaos run is made of: drawn from the seed where the command line says nothing, and all of it printed first.
 */
import { Draw } from '../sim/draw.js';
import { FAULT_KINDS, type FaultKind } from './plan.js';

/** `together`: a redis-server and an agent on each of three hosts. `apart`: three hosts of each. */
export type Layout = 'together' | 'apart';

export interface ChaosSettings {
  readonly seed: number;
  readonly minutes: number;
  readonly layout: Layout;
  readonly downAfterMs: number;
  readonly failoverTimeoutMs: number;
  /** Of each of the three clients. */
  readonly writesPerSecond: number;
  /** `redis-server` keeps what it acknowledged over a SIGKILL (append-only file), or nothing at all. */
  readonly appendOnly: boolean;
  /** The kinds of faults and moves to draw from. */
  readonly only: readonly FaultKind[];
  /** `coordinated-failover no`: plain SENTINEL FAILOVER loses writes, as stock's does, and the lab must say so. */
  readonly isLossy: boolean;
}

/** Settings that the command line gives win over the seed's. */
export function drawSettings(given: Partial<ChaosSettings> & { readonly seed: number }): ChaosSettings {
  const draw = new Draw(given.seed);
  const drawn = {
    minutes: 3,
    layout: draw.oneOf<Layout>(['together', 'apart']),
    downAfterMs: draw.oneOf([2_000, 3_000, 5_000]),
    failoverTimeoutMs: draw.oneOf([10_000, 20_000]),
    writesPerSecond: draw.oneOf([100, 250, 400]),
    appendOnly: draw.chance(0.75),
    only: FAULT_KINDS,
    isLossy: false,
  };
  return { ...drawn, ...given };
}

export function showSettings(settings: ChaosSettings): string {
  const { seed, minutes, layout, downAfterMs, failoverTimeoutMs, writesPerSecond, appendOnly, only, isLossy } = settings;
  return [
    `seed ${seed}`, `${minutes} minutes`, `agents and servers ${layout}`, `down-after ${downAfterMs} ms`, `failover-timeout ${failoverTimeoutMs} ms`,
    `3 clients × ${writesPerSecond} writes/s`, `append-only ${appendOnly ? 'yes' : 'no'}`,
    ...(only === FAULT_KINDS ? [] : [`only ${only.join(' ')}`]), ...(isLossy ? ['FAILOVER as stock does it'] : []),
  ].join(', ');
}
