/**
 * The checkers of planned moves can fail: each of these cores has one rule of silent or coordinated failovers broken, and a few
 * hundred small worlds must show it. The same worlds are clean with the real core.
 */
import { describe, expect, test } from '@jest/globals';
import type { Effect, Input, Master, SentinelState } from '../../src/sentinel/index.js';
import { parseHello } from '../../src/sentinel/wire/hello.js';
import { millis } from '../../src/time.js';
import type { Core } from './core.js';
import { realCore } from './core.js';
import { focusedOptions } from './focused.js';
import type { FaultKind } from './options.js';
import type { PlannedOptions } from './planned-options.js';
import { reportOf, runSeed } from './run-seed.js';

const MAX_SEEDS = 300;

type Sent = Extract<Effect, { kind: 'send' }>;

/** A core that meddles with the state before and after each step, and with the effects. */
function meddled(
  before: (master: Master, input: Input, state: SentinelState) => (() => void) | undefined,
  after = (effects: Effect[], _state: SentinelState) => effects,
): Core {
  return {
    ...realCore,
    step: (state, input, now) => {
      const undo = [...state.masters.values()].map((master) => before(master, input, state));
      const effects = realCore.step(state, input, now);
      for (const restore of undo) restore?.();
      return after(effects, state);
    },
  };
}

const untouched = (): undefined => undefined;
const isSent = (effect: Effect | undefined, ...words: readonly string[]): effect is Sent => {
  return effect?.kind === 'send' && words.every((word, index) => effect.argv[index] === word);
};

/** A hello in an input, by whichever way it came. */
function helloIn(input: Input): ReturnType<typeof parseHello> {
  if (input.kind === 'message' || input.kind === 'hello') return parseHello(input.payload);
  return input.kind === 'command' && input.argv[0] === 'PUBLISH' ? parseHello(input.argv[2] ?? '') : null;
}

const isVoteRequest = (input: Input): boolean => {
  return input.kind === 'command' && input.argv[1] === 'is-master-down-by-addr' && input.argv[5] !== '*';
};

/** Forgets for one step when the last vote was given. */
function withoutLastVote(master: Master): () => void {
  const saved = master.lastVoteMs;
  master.lastVoteMs = millis(0);
  return () => {
    if (master.lastVoteMs === 0) master.lastVoteMs = saved;
  };
}

/** Takes the middle out of REPLICAOF, NO ONE, REPLICAOF. */
function withoutMiddle(effects: Effect[]): Effect[] {
  return effects.filter((effect, index) => {
    return !(isSent(effect, 'SLAVEOF', 'NO') && isSent(effects[index - 1], 'SLAVEOF') && isSent(effects[index + 1], 'SLAVEOF'));
  });
}

interface Planted {
  readonly name: string;
  readonly core: Core;
  readonly expected: RegExp;
  readonly planned?: Partial<PlannedOptions>;
  readonly faults?: readonly FaultKind[];
}

const LOOSE: Partial<PlannedOptions> = { faults: 'all' };

const PLANTED: readonly Planted[] = [
  {
    name: 'clients are sent to the target before a majority is ready',
    core: meddled((master) => {
      const { silent } = master;
      if (silent === null) return undefined;
      for (const peer of master.peers.values()) peer.silentHeard ??= { doneEpoch: silent.doneEpoch, target: silent.targetAddress };
      return undefined;
    }),
    expected: /^I7|^I8|^I10/,
    planned: LOOSE,
    faults: ['isolate', 'split', 'crashSentinel', 'stopSentinel'],
  },
  {
    name: 'a candidate that is not ready gets votes',
    core: meddled((master, input) => {
      const peer = isVoteRequest(input) && input.kind === 'command' ? master.peers.get(input.argv[5] ?? '') : undefined;
      if (peer === undefined || master.silent === null) return undefined;
      const saved = peer.silentHeard;
      peer.silentHeard = { doneEpoch: master.silent.doneEpoch, target: master.silent.targetAddress };
      return () => {
        peer.silentHeard = saved;
      };
    }),
    expected: /^I7|^I10|^I6|^I8/,
    planned: { ...LOOSE, stockPeers: 1 },
    faults: ['crashNode', 'stopNode'],
  },
  {
    name: 'a state is believed in spite of an unanswered vote',
    core: meddled((master, input) => (helloIn(input) === null ? undefined : withoutLastVote(master))),
    expected: /^I7|^I10|^I8|^I6|^I1 /,
    planned: { ...LOOSE, meanGapMs: 500 },
    faults: ['crashNode', 'stopNode', 'isolate', 'slowMachine'],
  },
  {
    name: 'a vote for a done does not bind',
    core: meddled((master, input) => (isVoteRequest(input) ? withoutLastVote(master) : undefined)),
    expected: /^I10|^I6|^no write/,
    planned: { operations: ['silent', 'silent', 'stray'], meanGapMs: 800, meanStepMs: 150 },
  },
  {
    name: 'an old hello of eight fields ends the state',
    core: meddled((master, input) => {
      const hello = helloIn(input);
      if (hello !== null && hello.silent === null && hello.masterName === master.name) master.silent = null;
      return undefined;
    }),
    expected: /^I10|^I8|^I1 /,
  },
  {
    name: 'the promoted target is made a replica again by whoever sees it',
    core: meddled(untouched, (effects, state) => {
      for (const master of state.masters.values()) {
        const target = master.silent === null || master.failover !== null ? undefined : master.replicas.get(master.silent.target);
        if (target?.roleReported !== 'master' || target.link.command === null) continue;
        const argv = ['SLAVEOF', master.address.ip, String(master.address.port)];
        effects.push({ kind: 'send', connection: target.link.command.id, argv, tag: { kind: 'ignored' } });
      }
      return effects;
    }),
    expected: /^I6|^I7|^I9|^no write/,
    planned: { faults: 'sentinels' },
    faults: ['crashSentinel', 'crashSentinel', 'slowDisk'],
  },
  { name: 'the middle REPLICAOF NO ONE is left out', core: meddled(untouched, withoutMiddle), expected: /^I6|^I9/ },
  {
    name: 'nobody owes anything after a done',
    core: meddled(untouched, (effects, state) => {
      for (const master of state.masters.values()) master.debts.clear();
      return withoutMiddle(effects);
    }),
    expected: /^I6|^I9/,
  },
  {
    name: 'writes are not held before the promotion',
    core: meddled(untouched, (effects) => {
      return effects.map((effect) => (isSent(effect, 'CLIENT', 'PAUSE') ? { ...effect, argv: ['PING'] } : effect));
    }),
    expected: /^no write|^I6/,
  },
  {
    name: 'writes are let go right after NO ONE',
    core: meddled(untouched, (effects, state) => {
      const promotes = effects.some((effect) => effect.kind === 'event' && effect.name === '+failover-state-wait-promotion');
      for (const master of state.masters.values()) {
        const connection = master.link.command?.id;
        if (!promotes || connection === undefined) continue;
        effects.push({ kind: 'send', connection, argv: ['CLIENT', 'UNPAUSE'], tag: { kind: 'ignored' } });
      }
      return effects;
    }),
    expected: /^no write|^I6/,
    planned: { operations: ['coordinated'] },
  },
  {
    name: 'a coordinated promotion does not wait for the replica',
    core: meddled((master) => {
      if (master.failover?.pauseTaken === true && master.failover.heldOffset !== null) master.failover.heldOffset = 0;
      return undefined;
    }),
    expected: /^no write|^I6/,
    planned: { operations: ['coordinated'] },
  },
  {
    name: 'the target is not preferred when the original dies',
    core: meddled((master) => {
      const { silent } = master;
      if (silent === null || master.failover?.purpose !== 'failover') return undefined;
      const key = silent.target;
      Object.assign(silent, { target: '' });
      return () => {
        if (master.silent === silent) Object.assign(silent, { target: key });
      };
    }),
    expected: /^I7|^I10|^I6/,
    planned: LOOSE,
    faults: ['crashNode', 'stopNode'],
  },
  {
    name: 'a restart forgets the state',
    core: { ...realCore, configLines: (state) => realCore.configLines(state).filter(({ key }) => !key.includes('silent-failover-state')) },
    expected: /^I8|^I7|^I10|^I1 /,
    planned: { faults: 'sentinels' },
    faults: ['crashSentinel'],
  },
  {
    name: 'taint is not seen',
    core: meddled((master) => {
      if (master.silent !== null) {
        master.silent.taint = null;
        master.silent.originalSyncFull = master.syncFull;
        master.silent.originalRunId = master.runId;
        master.silent.targetRunId = master.replicas.get(master.silent.target)?.runId ?? master.silent.targetRunId;
      }
      return undefined;
    }),
    expected: /^I7|^I6/,
    planned: { ...LOOSE, meanStepMs: 6_000 },
    faults: ['crashNode', 'wipeNode'],
  },
];

describe('a core is caught in which', () => {
  test.each(PLANTED)('$name', ({ core, expected, planned = {}, faults = [] }) => {
    for (let seed = 1; seed <= MAX_SEEDS; seed++) {
      const { failure } = runSeed(seed, core, null, focusedOptions(seed, planned, faults));
      if (failure === null) continue;
      expect(failure).toMatch(expected);
      return;
    }
    throw new Error(`not caught in ${MAX_SEEDS} seeds`);
  }, 600_000);
});

test('the real core lives in these worlds', () => {
  for (const { planned = {}, faults = [] } of PLANTED) {
    for (let seed = 1; seed <= 5; seed++) {
      const life = runSeed(seed, realCore, null, focusedOptions(seed, planned, faults));
      if (life.failure !== null) throw new Error(reportOf(life));
    }
  }
}, 600_000);
