/**
 * What operators do in a world: planned moves, how often, in which company of faults, beside stock-like peers or not.
 */
import type { Draw } from './draw.js';

/** `silent`: prepare, then done or abort; `stray`: one of these at any moment; `plain`: SENTINEL FAILOVER, one thing at a time. */
export type OperationKind = 'silent' | 'stray' | 'coordinated' | 'plain';

export interface PlannedOptions {
  readonly operations: readonly OperationKind[];
  readonly meanGapMs: number;
  /** Mean time between an operator's steps. */
  readonly meanStepMs: number;
  /** So many sentinels know nothing of silent failovers; allow-mixed is on then. */
  readonly stockPeers: number;
  /** Clients that stay where they are until they are thrown out. */
  readonly pinnedWriters: boolean;
  /** Which faults there are: the fewer, the stricter the checkers. */
  readonly faults: 'none' | 'sentinels' | 'all';
  readonly silentTimeoutMs: number;
  readonly meanWriteGapMs: number;
}

/** What operators do in spite of everything, at one sentinel or two, once or twice. */
export type MeddlingKind = 'failover' | 'reset' | 'set' | 'remonitor';

export interface Meddling {
  readonly kinds: readonly MeddlingKind[];
  readonly meanGapMs: number;
}

/** Null: nobody meddles. */
export function drawMeddling(draw: Draw): Meddling | null {
  if (draw.chance(0.75)) return null;
  const kinds: readonly (readonly MeddlingKind[])[] = [
    ['reset'], ['set'], ['remonitor'], ['failover'], ['reset', 'set', 'remonitor'], ['failover', 'reset', 'set', 'remonitor'],
  ];
  return { kinds: draw.oneOf(kinds), meanGapMs: draw.oneOf([5_000, 15_000]) };
}

/** Null: a world without operators. */
export function drawPlanned(draw: Draw, sentinels: number): PlannedOptions | null {
  if (draw.chance(0.3)) return null;
  const kinds: readonly (readonly OperationKind[])[] = [
    ['silent'], ['silent'], ['silent', 'stray'], ['silent', 'silent', 'stray', 'coordinated'], ['coordinated'],
    ['plain', 'silent', 'coordinated'],
  ];
  return {
    operations: draw.oneOf(kinds),
    meanGapMs: draw.oneOf([4_000, 10_000]),
    meanStepMs: draw.oneOf([300, 3_000, 8_000]),
    stockPeers: sentinels < 3 ? 0 : draw.oneOf([0, 0, 0, 0, 1, 2]),
    pinnedWriters: draw.chance(0.6),
    faults: draw.oneOf(['none', 'none', 'sentinels', 'all', 'all']),
    silentTimeoutMs: draw.oneOf([0, 0, 0, 10_000]),
    meanWriteGapMs: draw.oneOf([100, 400]),
  };
}
