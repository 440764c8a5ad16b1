/**
 * Whole lives of groups of sentinels: whatever fails on the way, no invariant may break, and all must be well in the end.
 */
import { describe, expect, test } from '@jest/globals';
import { realCore } from './core.js';
import { must } from '../../src/assert.js';
import { reportOf, runSeed } from './run-seed.js';
import { worldNamed } from './worlds.js';

const SEEDS = Number(process.env['SIM_SEEDS'] ?? 200);
const BATCH = 20;
/** A fixed start, so that everybody runs the same worlds; SIM_FIRST moves it. */
const FIRST = Number(process.env['SIM_FIRST'] ?? 1);

describe('seeds', () => {
  const starts = Array.from({ length: Math.ceil(SEEDS / BATCH) }, (_, index) => FIRST + index * BATCH);
  test.each(starts)(`%i and the ${BATCH - 1} after it`, (first) => {
    let failovers = 0;
    for (let seed = first; seed < first + BATCH; seed++) {
      const life = runSeed(seed, realCore);
      failovers += life.failovers;
      if (life.failure !== null) throw new Error(reportOf(life));
    }
    // A simulator that never gets to a failover proves nothing.
    expect(failovers).toBeGreaterThan(0);
  }, 600_000);
});

test.each(['moves', 'copies'])('twenty lives in the world of %s', (name) => {
  const world = must(worldNamed(name), `there is no world ${name}`);
  for (let seed = FIRST; seed < FIRST + 20; seed++) {
    const life = runSeed(seed, realCore, null, world(seed));
    if (life.failure !== null) throw new Error(reportOf(life, `--world ${name} --seed ${seed}`));
  }
}, 600_000);

test('the same seed lives the same life', () => {
  for (let seed = 1; seed <= 5; seed++) {
    const [once, twice] = [runSeed(seed, realCore), runSeed(seed, realCore)];
    expect(twice.hash).toBe(once.hash);
    expect(twice.traceLines).toBe(once.traceLines);
  }
  expect(runSeed(1, realCore).hash).not.toBe(runSeed(2, realCore).hash);
}, 300_000);
