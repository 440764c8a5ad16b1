/**
 * What was done to a world can be done again to the letter, read and written, and shortened while the same checker objects.
 */
import { describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { ROOT } from '../tidy/sources.js';
import type { Core } from './core.js';
import { realCore } from './core.js';
import { drawOptions } from './options.js';
import { runSeed } from './run-seed.js';
import { deedText, parseSchedule, scheduleText } from './schedule.js';
import { checkerOf, shrink } from './shrink.js';
import { mutants } from './mutants/run.js';
import { worldNamed } from './worlds.js';

/** A core that adopts every configuration that it hears of falls back to older ones. */
const forgetful: Core = {
  ...realCore,
  step: (state, input, now) => {
    if (input.kind === 'message') for (const master of state.masters.values()) master.configEpoch = Math.max(0, master.configEpoch - 1);
    return realCore.step(state, input, now);
  },
};

describe('a schedule', () => {
  test('that was drawn repeats its run', () => {
    for (const seed of [3, 8, 14]) {
      const drawn = runSeed(seed, realCore);
      const again = runSeed(seed, realCore, null, drawn.options, parseSchedule(scheduleText(drawn.schedule)));
      expect(again.hash).toBe(drawn.hash);
      expect(again.schedule).toEqual(drawn.schedule);
    }
  }, 120_000);

  test('is all the trouble there is', () => {
    const calm = runSeed(2, realCore, null, drawOptions(2), []);
    expect(calm.failure).toBeNull();
    expect(calm.schedule).toEqual([]);
    expect(calm.failovers).toBe(0);
  }, 120_000);

  test('is a line per deed for people, and refused when it is none', () => {
    expect(deedText({ atMs: 1_500, kind: 'stop', who: 'a1', forMs: 20 })).toBe('    1.500 stop a1 forMs=20');
    expect(deedText({ atMs: 2, kind: 'say', who: 's1', words: ['RESET', '*'], prepares: null })).toBe('    0.002 say s1 SENTINEL RESET *');
    expect(() => parseSchedule('[1]')).toThrow('a schedule is a JSON array of deeds');
  });
});

test('a failed life is shortened to what makes it fail', () => {
  const seed = Array.from({ length: 20 }, (_, index) => index + 1).find((each) => runSeed(each, forgetful).failure?.startsWith('I2') === true) ?? 0;
  const life = runSeed(seed, forgetful);
  const { life: short, isMinimal } = shrink(life, forgetful, life.options, 60_000, () => undefined);
  expect(isMinimal).toBe(true);
  expect(checkerOf(short.failure ?? '')).toBe('I2 epochs never fall');
  expect(short.schedule.length).toBeLessThan(life.schedule.length);
  expect(runSeed(seed, forgetful, null, life.options, short.schedule).failure).toBe(short.failure);
}, 240_000);

test('every mutant still applies to the sources', () => {
  const stale = mutants().filter(({ path }) => spawnSync('git', ['apply', '--check', path], { cwd: ROOT }).status !== 0);
  expect(stale.map(({ name }) => name)).toEqual([]);
  expect(mutants().length).toBeGreaterThan(25);
  expect(mutants().filter(({ world }) => worldNamed(world) === null)).toEqual([]);
}, 120_000);
