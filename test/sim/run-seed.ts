/**
 * One life of one world: warm up, safety (faults, nothing may go wrong for good), heal, liveness (everything must come right).
 */
import { messageOf } from '../../src/errors.js';
import type { Core } from './core.js';
import { convergenceLimitMs, whyNotConverged } from './convergence.js';
import { Deeds } from './deeds.js';
import { Draw } from './draw.js';
import { Faults } from './faults.js';
import { Operators } from './operators.js';
import type { WorldOptions } from './options.js';
import { drawOptions } from './options.js';
import type { Schedule } from './schedule.js';
import { Accepted } from './trace.js';
import { Violation, World } from './world.js';

export interface Life {
  readonly seed: number;
  readonly options: WorldOptions;
  /** null = all is well; else what went wrong. */
  readonly failure: string | null;
  readonly hash: string;
  readonly traceLines: number;
  /** The last lines of the trace. */
  readonly tail: readonly string[];
  readonly steps: number;
  readonly failovers: number;
  /** Silent failovers that became effective, on all sentinels, and those that ended by done. */
  readonly prepared: number;
  readonly done: number;
  readonly simulatedMs: number;
  /** All that was done to it. */
  readonly schedule: Schedule;
  readonly acknowledged: number;
}

const LOOK_EVERY_MS = 500;
/** Agreement has to last. */
const STEADY_MS = 5_000;
const MAX_WARM_UP_MS = 60_000;

/**
 * Lives through the world of a seed. Deterministic: the same seed and core give the same hash. With a `schedule` that is all the
 * trouble there is; else it is drawn.
 */
export function runSeed(
  seed: number, core: Core, echo: ((line: string) => void) | null = null, options = drawOptions(seed), schedule: Schedule | null = null,
): Life {
  let failovers = 0;
  let prepared = 0;
  let done = 0;
  const world = new World(core, options, seed, echo);
  const countFailovers = world.carriedOut.bind(world);
  world.carriedOut = (host, effect) => {
    const event = effect.kind === 'event' ? effect.name : '';
    if (event === '+promoted-slave') failovers++;
    if (event === '+silent-failover-prepare') prepared++;
    if (event === '+silent-failover-done') done++;
    countFailovers(host, effect);
  };
  const startMs = world.clock.nowMs;
  const deeds = new Deeds(world);
  let failure: string | null = null;
  try {
    live(world, seed, deeds, schedule);
  } catch (error) {
    failure = error instanceof Accepted ? null : error instanceof Violation ? error.message : ((error as Error).stack ?? messageOf(error));
  }
  const { trace, steps } = world;
  return {
    seed, options, failure, hash: trace.hash(), traceLines: trace.lines, tail: trace.tail(), steps, failovers, prepared, done,
    simulatedMs: world.clock.nowMs - startMs,
    schedule: deeds.done,
    acknowledged: world.writers.reduce((sum, writer) => sum + writer.acknowledged, 0),
  };
}

function live(world: World, seed: number, deeds: Deeds, schedule: Schedule | null): void {
  world.start();
  if (!world.options.introduced) awaitConvergence(world, MAX_WARM_UP_MS, 'before any fault', 0);
  const faults = new Faults(world, new Draw(seed + 2), deeds);
  const operators = new Operators(world, new Draw(seed + 5), new Draw(seed + 6), deeds);
  if (schedule === null) {
    faults.start();
    operators.start();
  } else {
    deeds.follow(schedule);
  }
  world.clock.runUntil(world.clock.nowMs + world.options.safetyMs);
  faults.stop();
  world.healAll();
  operators.finish();
  awaitConvergence(world, convergenceLimitMs(world), 'after healing', STEADY_MS);
  world.converged();
}

function awaitConvergence(world: World, limitMs: number, when: string, steadyMs: number): void {
  const { clock } = world;
  const deadlineMs = clock.nowMs + limitMs;
  let agreedSinceMs: number | null = null;
  while (clock.nowMs < deadlineMs || agreedSinceMs !== null) {
    clock.runUntil(clock.nowMs + LOOK_EVERY_MS);
    const agreed = whyNotConverged(world).length === 0;
    agreedSinceMs = agreed ? (agreedSinceMs ?? clock.nowMs) : null;
    if (agreedSinceMs !== null && clock.nowMs - agreedSinceMs >= steadyMs) return;
  }
  if (world.writeToEmpty()) return awaitConvergence(world, limitMs, when, steadyMs);
  // Stock finds it no more either. A failover before all replicas are known is no part of the warm-up's question.
  if (steadyMs === 0 && world.hasUnlisted) throw new Accepted('a replica that nobody had heard of when its master was replaced');
  if (world.isTornApart) throw new Accepted('what was forgotten can not be found again');
  if (world.isConfigurationLost) throw new Accepted('nobody knows the last configuration any more');
  const hasOthersData = whyNotConverged(world).every((reason) => /: other data than /.test(reason));
  if (world.hasForgottenDebts && hasOthersData) throw new Accepted('an operator had a debt forgotten');
  const states = world.hosts.map((host) => `${host.name}: ${host.state === null ? 'dead' : world.core.describe(host.state)}`);
  throw new Violation(['I9 not converged', `${when} in ${limitMs} ms:`, ...whyNotConverged(world), ...states].join('\n'));
}

/** The report of a failed life: everything that is needed to look at it again. `words` choose it on the command line. */
export function reportOf(life: Life, words = `--seed ${life.seed}`): string {
  return [
    `seed ${life.seed} failed: ${life.failure}`,
    `options: ${JSON.stringify(life.options)}`,
    `reproduce: npm run sim -- ${words} --trace`,
    `look:      npm run replay -- ${words}`,
    `shorten:   npm run sim -- ${words} --shrink`,
    `last ${life.tail.length} of ${life.traceLines} trace lines:`,
    ...life.tail,
  ].join('\n');
}
