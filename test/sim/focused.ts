/**
 * Small worlds in which one thing happens all the time, so that a planted bug shows within few seeds.
 */
import { Draw } from './draw.js';
import type { FaultKind, WorldOptions } from './options.js';
import { drawOptions } from './options.js';
import type { PlannedOptions } from './planned-options.js';

/** Planned moves of one group of three nodes; everything else is as the seed draws it. */
export function focusedOptions(seed: number, planned: Partial<PlannedOptions>, faults: readonly FaultKind[]): WorldOptions {
  const drawn = drawOptions(seed);
  const draw = new Draw(seed + 7);
  const sentinels = draw.oneOf([3, 3, 5]);
  const strict: PlannedOptions = {
    operations: ['silent'],
    meanGapMs: 2_500,
    meanStepMs: draw.oneOf([300, 1_500]),
    stockPeers: 0,
    pinnedWriters: true,
    faults: 'none',
    silentTimeoutMs: 0,
    meanWriteGapMs: 50,
  };
  const quorum = Math.floor(sentinels / 2) + 1;
  const group = { name: 'alpha', replicas: 2, quorum, downAfterMs: 1_500, failoverTimeoutMs: 8_000, parallelSyncs: 1 };
  return {
    ...drawn,
    sentinels,
    groups: [group],
    introduced: true,
    tunables: { infoPeriodMs: 1_000, tiltPeriodMs: 3_000, publishPeriodMs: 1_000 },
    network: { ...drawn.network, maxDelayMs: draw.oneOf([3, 20]), lossRate: 0, pushLossRate: 0 },
    faults,
    meanFaultGapMs: 3_000,
    meanFaultLengthMs: 4_000,
    safetyMs: 40_000,
    planned: { ...strict, ...planned },
    meddling: null,
  };
}
