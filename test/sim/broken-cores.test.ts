/**
 * The checkers can fail: each of these cores has one rule of consensus broken, and a few hundred seeds must show it.
 */
import { describe, expect, test } from '@jest/globals';
import type { Effect } from '../../src/sentinel/index.js';
import { simple } from '../../src/sentinel/wire/resp-value.js';
import { addMs } from '../../src/time.js';
import type { Core } from './core.js';
import { realCore } from './core.js';
import { runSeed } from './run-seed.js';

const MAX_SEEDS = 200;

/** The step of the real core with its effects changed. */
function withEffects(change: (effects: Effect[]) => Effect[]): Core {
  return { ...realCore, step: (state, input, now) => change(realCore.step(state, input, now)) };
}

/** Whom a command makes a node follow, `NO` for no one; null for other effects. */
function slaveofTarget(effect: Effect): string | null {
  return effect.kind === 'send' && effect.argv[0] === 'SLAVEOF' ? (effect.argv[1] ?? null) : null;
}

function twice(effect: Extract<Effect, { kind: 'reply' }>): Effect[] {
  return [effect, { ...effect, value: simple('again') }];
}

const CASES: readonly (readonly [string, Core, RegExp])[] = [
  [
    'nothing is written before it is said',
    withEffects((effects) => effects.filter((effect) => effect.kind !== 'persist')),
    /^(?:saved before spoken|I2)/,
  ],
  [
    'the write comes after the words',
    withEffects((effects) => [...effects.filter(({ kind }) => kind !== 'persist'), ...effects.filter(({ kind }) => kind === 'persist')]),
    /^(?:saved before spoken|I2|I4)/,
  ],
  [
    'every candidate gets a vote',
    {
      ...realCore,
      step: (state, input, now) => {
        if (input.kind === 'command' && input.argv[1]?.toLowerCase() === 'is-master-down-by-addr' && input.argv[5] !== '*') {
          for (const master of state.masters.values()) {
            if (master.address.ip === input.argv[2] && master.leaderEpoch === Number(input.argv[4])) master.leaderEpoch--;
          }
        }
        return realCore.step(state, input, now);
      },
    },
    /^I[234]/,
  ],
  [
    'votes are forgotten at a restart',
    {
      ...realCore,
      configLines: (state) =>
        realCore.configLines(state).map((line) =>
          line.key === 'sentinel leader-epoch' ? { ...line, text: line.text.replace(/\d+$/, '0') } : line,
        ),
    },
    /^(?:I2|I4|saved before spoken)/,
  ],
  [
    'an own configuration is claimed without an election',
    {
      ...realCore,
      step: (state, input, now) => {
        const effects = realCore.step(state, input, now);
        for (const master of state.masters.values()) {
          const replica = [...master.replicas.values()][0];
          if (master.odownSinceMs !== null && master.failover === null && replica !== undefined) {
            master.configEpoch = Math.max(state.currentEpoch, master.configEpoch + 1);
            state.currentEpoch = master.configEpoch;
            master.address = replica.address;
          }
        }
        return effects;
      },
    },
    // Whoever counts old opinions of the new address is caught first.
    /^I[12]|^saved|^ODOWN/,
  ],
  [
    'a hello of a lower epoch wins',
    {
      ...realCore,
      step: (state, input, now) => {
        if (input.kind === 'message' || input.kind === 'command') {
          for (const master of state.masters.values()) master.configEpoch = Math.max(0, master.configEpoch - 1);
        }
        return realCore.step(state, input, now);
      },
    },
    /^I[12]/,
  ],
  [
    'a wake-up finds nothing to do',
    { ...realCore, nextDeadline: (state) => addMs(state.previousMs, 1) },
    /^no busy loop/,
  ],
  [
    'nobody says hello',
    withEffects((effects) => effects.filter((effect) => !(effect.kind === 'send' && effect.argv[0] === 'PUBLISH'))),
    /^I9/,
  ],
  [
    'nobody ever follows the new master',
    withEffects((effects) => effects.filter((effect) => ['NO', null].includes(slaveofTarget(effect)))),
    /^I9/,
  ],
  [
    'a question is answered twice',
    withEffects((effects) => effects.flatMap((effect) => (effect.kind === 'reply' ? twice(effect) : [effect]))),
    /nobody asked/,
  ],
];

describe('a core is caught in which', () => {
  test.each(CASES)('%s', (_, core, expected) => {
    for (let seed = 1; seed <= MAX_SEEDS; seed++) {
      const { failure } = runSeed(seed, core);
      if (failure === null) continue;
      expect(failure).toMatch(expected);
      return;
    }
    throw new Error(`not caught in ${MAX_SEEDS} seeds`);
  }, 300_000);
});
