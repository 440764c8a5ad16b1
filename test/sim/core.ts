/**
 * The door between the simulator and what it tests: the core's entry points as one value, so that a test can put a
 * deliberately broken core in their place.
 */
import type { Route } from '../../src/route/route.js';
import { projectRoute } from '../../src/route/project.js';
import type { Birth, Effect, Input, SentinelState } from '../../src/sentinel/index.js';
import { configLines, createState, describe, nextDeadline, step } from '../../src/sentinel/index.js';
import type { ConfLine } from '../../src/sentinel/wire/sentinel-conf.js';
import type { Millis } from '../../src/time.js';

export interface Core {
  createState(birth: Birth): SentinelState;
  step(state: SentinelState, input: Input, now: Millis): Effect[];
  nextDeadline(state: SentinelState): Millis;
  configLines(state: SentinelState): ConfLine[];
  describe(state: SentinelState): string;
  projectRoute(state: SentinelState, master: string): Route | null;
}

export const realCore: Core = { createState, step, nextDeadline, configLines, describe, projectRoute };
