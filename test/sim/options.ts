/**
 * The world that a seed stands for: sizes, settings, and which faults come how often. Some rates come out as zero, so that
 * every kind of trouble is also met alone.
 */
import { Draw } from './draw.js';
import type { NetworkOptions } from './network.js';
import type { Meddling, PlannedOptions } from './planned-options.js';
import { drawMeddling, drawPlanned } from './planned-options.js';
import type { RedisOptions } from './redis-node.js';

export type FaultKind =
  | 'crashSentinel'
  | 'wipeSentinel'
  | 'stopSentinel'
  | 'jumpClock'
  | 'crashNode'
  | 'wipeNode'
  | 'stopNode'
  | 'busyNode'
  | 'repointNode'
  | 'isolate'
  | 'split'
  | 'cutOneWay'
  | 'dropConnections'
  | 'slowMachine'
  | 'slowDisk'
  | 'failDisk';

export const FAULT_KINDS: readonly FaultKind[] = [
  'crashSentinel', 'stopSentinel', 'jumpClock', 'crashNode', 'wipeNode', 'stopNode', 'repointNode', 'isolate', 'split', 'cutOneWay',
  'dropConnections', 'slowMachine', 'slowDisk', 'failDisk',
];

/** Trouble that no node and no connection has. */
const SENTINEL_FAULTS: readonly FaultKind[] = ['crashSentinel', 'stopSentinel', 'slowDisk'];

/** One master with its replicas. */
export interface GroupOptions {
  readonly name: string;
  readonly replicas: number;
  readonly quorum: number;
  readonly downAfterMs: number;
  readonly failoverTimeoutMs: number;
  readonly parallelSyncs: number;
}

export interface WorldOptions {
  readonly sentinels: number;
  readonly groups: readonly GroupOptions[];
  /** The sentinels' files name peers and replicas from the start, so that trouble may begin at once. */
  readonly introduced: boolean;
  readonly tunables: { readonly infoPeriodMs: number; readonly tiltPeriodMs: number; readonly publishPeriodMs: number };
  readonly network: NetworkOptions;
  readonly redis: RedisOptions;
  readonly maxDiskWriteMs: number;
  readonly faults: readonly FaultKind[];
  readonly meanFaultGapMs: number;
  readonly meanFaultLengthMs: number;
  /** How often whoever has just promoted a node dies before the others hear of it. */
  readonly promoterDeaths?: number;
  readonly safetyMs: number;
  readonly meanWriteGapMs: number;
  /** What operators do here; null = nothing. */
  readonly planned: PlannedOptions | null;
  /** Who meddles with that; null = nobody. */
  readonly meddling: Meddling | null;
}

const GROUP_NAMES = ['alpha', 'beta', 'gamma'] as const;

/** Draws a world. The same seed draws the same world for ever, as long as this function stays as it is. */
export function drawOptions(seed: number): WorldOptions {
  const draw = new Draw(seed);
  const sentinels = draw.oneOf([1, 2, 3, 3, 3, 3, 3, 3, 4, 5, 5, 7]);
  const groupCount = sentinels > 5 ? 1 : draw.oneOf([1, 1, 1, 1, 1, 2, 2, 3]);
  const groups = GROUP_NAMES.slice(0, groupCount).map((name): GroupOptions => ({
    name,
    replicas: draw.oneOf([0, 1, 1, 2, 2, 2, 2, 3, 4]),
    quorum: draw.chance(0.6) ? Math.floor(sentinels / 2) + 1 : draw.between(1, sentinels),
    downAfterMs: draw.between(10, 50) * 100,
    failoverTimeoutMs: draw.between(5, 20) * 1_000,
    parallelSyncs: draw.oneOf([1, 1, 2, 4]),
  }));
  const maxDelayMs = draw.oneOf([1, 1, 3, 10, 60]);
  const chosen = draw.chance(0.1) ? FAULT_KINDS : draw.shuffled(FAULT_KINDS).slice(0, draw.between(1, 6));
  // Dead masters are what it is all about.
  const faults: FaultKind[] = [...chosen, ...(draw.chance(0.7) ? (['crashNode', 'stopNode', 'isolate'] as const) : [])];
  const planned = drawPlanned(new Draw(seed + 3), sentinels);
  const more = new Draw(seed + 8);
  const allowsAll = planned === null || planned.faults === 'all';
  if (allowsAll && more.chance(0.15)) faults.push('wipeSentinel');
  if (allowsAll && more.chance(0.15)) faults.push('busyNode');
  const lossRate = allowsAll ? more.oneOf([0, 0, 0, 0.01, 0.1]) : 0;
  const pushLossRate = allowsAll ? more.oneOf([0, 0, 0, 0.05, 0.3]) : 0;
  const meddling = allowsAll ? drawMeddling(more) : null;
  return {
    sentinels,
    groups,
    introduced: draw.chance(0.5),
    tunables: {
      infoPeriodMs: draw.oneOf([1_000, 3_000, 10_000]),
      tiltPeriodMs: draw.oneOf([3_000, 10_000, 30_000]),
      publishPeriodMs: draw.oneOf([1_000, 2_000, 2_000]),
    },
    network: { minDelayMs: 0, maxDelayMs, connectTimeoutMs: draw.oneOf([1_000, 5_000]), maxRetransmitMs: draw.oneOf([200, 1_500]), lossRate, pushLossRate },
    redis: {
      backlogSize: draw.oneOf([5, 50, 1_000]),
      maxHandshakeMs: draw.oneOf([5, 50]),
      maxSnapshotMs: draw.oneOf([20, 1_000]),
      maxLoadingMs: draw.oneOf([10, 2_000]),
      replTimeoutMs: draw.oneOf([15_000, 60_000]),
    },
    maxDiskWriteMs: draw.oneOf([0, 3, 20]),
    faults: { all: faults, none: [], sentinels: SENTINEL_FAULTS }[planned?.faults ?? 'all'],
    meanFaultGapMs: draw.oneOf([2_000, 5_000, 15_000]),
    meanFaultLengthMs: draw.oneOf([500, 4_000, 12_000, 12_000]),
    safetyMs: Math.round(draw.between(30, 100) * 1_000 * (sentinels * groupCount > 4 ? 0.5 : 1)),
    meanWriteGapMs: draw.oneOf([300, 1_500]),
    planned,
    meddling,
  };
}
