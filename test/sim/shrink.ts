/**
 * Makes the schedule of a failed life as short as it gets: deeds are left out, in halves, quarters and one by one, as long as the
 * same checker still objects.
 */
import type { Core } from './core.js';
import type { WorldOptions } from './options.js';
import type { Life } from './run-seed.js';
import { runSeed } from './run-seed.js';
import type { Schedule } from './schedule.js';

export interface Shrunk {
  readonly life: Life;
  readonly runs: number;
  /** False: the time was up before every single deed was tried. */
  readonly isMinimal: boolean;
}

/** The checker that objected: what stands before the first colon or line break. */
export function checkerOf(failure: string): string {
  return failure.split(/[:\n]/)[0] ?? '';
}

/** Shrinks `life`, which has failed. `tell` hears of every success. */
export function shrink(life: Life, core: Core, options: WorldOptions, limitMs: number, tell: (line: string) => void): Shrunk {
  const wanted = checkerOf(life.failure ?? '');
  const deadlineMs = performance.now() + limitMs;
  let best = life;
  let runs = 0;
  const isLate = (): boolean => performance.now() > deadlineMs;
  const fails = (schedule: Schedule): boolean => {
    runs++;
    const next = runSeed(life.seed, core, null, options, schedule);
    if (next.failure === null || checkerOf(next.failure) !== wanted) return false;
    best = next;
    tell(`${best.schedule.length} deeds, fails at ${(best.simulatedMs / 1000).toFixed(1)} s`);
    return true;
  };
  for (let size = Math.max(1, best.schedule.length >> 1), hasCut = false; !isLate(); ) {
    for (let at = best.schedule.length - size; at > -size && !isLate(); at -= size) {
      const start = Math.max(0, at);
      const rest = [...best.schedule.slice(0, start), ...best.schedule.slice(start + size)];
      if (rest.length < best.schedule.length && fails(rest)) hasCut = true;
    }
    if (size === 1 && !hasCut) return { life: best, runs, isMinimal: true };
    if (size === 1) hasCut = false;
    size = Math.max(1, size >> 1);
  }
  return { life: best, runs, isMinimal: false };
}
