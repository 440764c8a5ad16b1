/**
 * The plan of faults, drawn from the seed alone. Who is hit is drawn too, but as a number: which node is the master then,
 * and which ones still run, is known only when it happens.
 */
import type { Draw } from '../sim/draw.js';

export const FAULT_KINDS = [
  'redis-kill', 'redis-stop', 'agent-kill', 'agent-stop', 'host-down', 'host-cut', 'island', 'one-way', 'pair',
  'failover', 'coordinated', 'silent', 'reset',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Step {
  /** After the beginning of the round. */
  readonly atMs: number;
  readonly kind: FaultKind;
  readonly lastsMs: number;
  /** Whether the present master (or its host) is hit; otherwise anybody. */
  readonly hitsMaster: boolean;
  /** In [0, 1): chooses among those who can be hit; the second for a second one. */
  readonly picks: readonly [number, number];
  /** Killed processes lose their disk. */
  readonly losesDisk: boolean;
  /** A silent move ends by abort. */
  readonly aborts: boolean;
}

const WEIGHTS: Readonly<Record<FaultKind, number>> = {
  'redis-kill': 5, 'redis-stop': 3, 'agent-kill': 2, 'agent-stop': 2, 'host-down': 2, 'host-cut': 3, island: 3, 'one-way': 3, pair: 2,
  failover: 3, coordinated: 3, silent: 5, reset: 1,
};
const LOTS = FAULT_KINDS.flatMap((kind) => Array.from({ length: WEIGHTS[kind] }, () => kind));
const MOVES: ReadonlySet<FaultKind> = new Set(['failover', 'coordinated', 'silent', 'reset']);

/** How long the faults of a round may begin; what has begun by then ends in its own time. */
export const ROUND_MS = 40_000;

/** One round: some faults that may overlap, then peace. A third of the rounds is of planned moves alone, and nothing may be lost in them. */
export function drawRound(draw: Draw, only: readonly FaultKind[] = FAULT_KINDS): readonly Step[] {
  const lots = LOTS.filter((kind) => only.includes(kind));
  const moves = lots.filter((kind) => MOVES.has(kind));
  const isPlanned = draw.chance(0.3) && moves.length > 0;
  const steps: Step[] = [];
  for (let atMs = draw.between(500, 4_000); atMs < ROUND_MS; ) {
    const step = drawStep(draw, atMs, draw.oneOf(isPlanned ? moves : lots));
    steps.push(step);
    // Half of them come on top of the one before, planned moves most of all: a fault in their midst is the point.
    const overlaps = !isPlanned && (MOVES.has(step.kind) ? draw.chance(0.7) : draw.chance(0.4));
    atMs += overlaps ? draw.between(50, 3_000) : step.lastsMs + draw.between(2_000, 8_000);
  }
  return steps;
}

function drawStep(draw: Draw, atMs: number, kind: FaultKind): Step {
  // Some are over before anybody can have noticed.
  const lastsMs = MOVES.has(kind) ? draw.between(1_000, 6_000) : draw.chance(0.25) ? draw.between(200, 1_500) : draw.between(3_000, 18_000);
  return {
    atMs, kind, lastsMs,
    hitsMaster: draw.chance(0.6),
    picks: [draw.between(0, 9_999) / 10_000, draw.between(0, 9_999) / 10_000],
    losesDisk: draw.chance(0.25),
    aborts: draw.chance(0.3),
  };
}
