/**
 * The next action of a move, from its journal and what the sentinels say: forward, back, past the switch, and from every interruption.
 */
import { describe, expect, test } from '@jest/globals';
import { decide, type World } from '../../../src/migrate/decide.js';
import { applyEntry, foldEntries, isOpen, reopen, type Entry, type MoveState } from '../../../src/migrate/move-state.js';
import { stepsOf, type Plan, type Step } from '../../../src/migrate/plan.js';

const A = { host: '10.0.0.1', port: 6379 };
const B = { host: '10.0.0.2', port: 6379 };
const C = { host: '10.0.0.3', port: 6379 };
const plan: Plan = {
  id: 'f00d', master: 'cache', mode: 'silent', barrier: false, original: A, target: B, others: [C], sentinels: [],
  drainTimeoutMs: 1, onDrainTimeout: 'proceed', publishTimeoutMs: 1, resyncTimeoutMs: 1, waitSyncMs: 0, backlogBytes: 1,
};
const saved: Entry = { kind: 'saved', at: 1, saved: { nodes: [], sentinels: [] } };
const end = (step: Step, problems: readonly string[] = []): Entry => ({ kind: 'end', at: 1, step, ms: 1, facts: { problems } });

/** A journal up to and with a step. */
function upTo(last: Step | null, more: readonly Entry[] = [], mode: Plan['mode'] = 'silent'): MoveState {
  const steps = stepsOf(mode);
  const finished = last === null ? [] : steps.slice(0, steps.indexOf(last) + 1);
  const entries = finished.flatMap((step): Entry[] => (step === 'save' ? [saved, end(step)] : [end(step)]));
  return foldEntries([{ kind: 'plan', version: 1, at: 0, plan: { ...plan, mode } }, ...entries, ...more]);
}

const calm: World = { master: A, silent: 'none', silentTarget: null, tainted: '', failingOver: false };
const prepared: World = { ...calm, silent: 'prepared', silentTarget: B };
const reserved: World = { ...prepared, silent: 'reserved' };
const switched: World = { ...calm, master: B };
const back: Entry = { kind: 'back', at: 1, reason: 'drain never ended' };
const step = (name: Step): object => ({ kind: 'step', step: name });

describe('forward', () => {
  test.each([
    [null, calm, 'preflight'], ['preflight', calm, 'save'], ['save', calm, 'wait-sync'], ['wait-sync', calm, 'auto-revert'], ['auto-revert', calm, 'chain'],
    ['chain', calm, 'priority'], ['priority', calm, 'writable'], ['writable', calm, 'prepare'], ['writable', prepared, 'prepare'], ['writable', reserved, 'prepare'],
    ['prepare', prepared, 'drain'], ['drain', prepared, 'done'], ['done', switched, 'settle'], ['settle', switched, 'restore'], ['restore', switched, 'report'],
  ] as const)('behind %s comes the next one', (last, world, next) => {
    expect(decide(upTo(last), world)).toEqual(step(next));
  });

  test('coordinated has no window', () => {
    expect(decide(upTo('wait-sync', [], 'coordinated'), calm)).toEqual(step('failover'));
    expect(decide(upTo('failover', [], 'coordinated'), switched)).toEqual(step('settle'));
  });

  test('all done is closed as moved, with what is left over', () => {
    expect(decide(upTo('report'), switched)).toMatchObject({ kind: 'close', outcome: 'moved', leftovers: [] });
    const left = upTo('settle', [end('restore', ['10.0.0.3:6379 does not answer']), end('report')]);
    expect(decide(left, switched)).toMatchObject({ kind: 'close', outcome: 'moved', leftovers: ['10.0.0.3:6379 does not answer'] });
  });
});

describe('the world decides, not the journal', () => {
  test('an interrupted done that took effect goes on behind it', () => {
    expect(decide(upTo('drain'), switched)).toEqual(step('settle'));
    expect(decide(upTo('prepare'), switched)).toEqual(step('settle'));
  });

  test('a window that the sentinels have ended turns the move back', () => {
    expect(decide(upTo('prepare'), calm)).toMatchObject({ kind: 'back', reason: expect.stringContaining('the window has ended') });
    expect(decide(upTo('drain'), reserved)).toMatchObject({ kind: 'back' });
  });

  test('a tainted window turns it back', () => {
    expect(decide(upTo('drain'), { ...prepared, tainted: 'the target restarted' })).toEqual({ kind: 'back', reason: 'the window is tainted: the target restarted' });
  });

  test('somebody else prepares another target', () => {
    expect(decide(upTo('save'), { ...prepared, silentTarget: C })).toMatchObject({ kind: 'back', reason: expect.stringContaining('10.0.0.3:6379') });
  });

  test('a third node is the master: what was changed is put back, then it ends', () => {
    expect(decide(upTo('chain'), { ...calm, master: C })).toEqual(step('restore'));
    expect(decide(upTo('chain', [end('restore')]), { ...calm, master: C })).toMatchObject({ kind: 'close', outcome: 'elsewhere' });
    expect(decide(upTo('preflight'), { ...calm, master: C })).toMatchObject({ kind: 'close', outcome: 'elsewhere' });
  });
});

describe('back', () => {
  const turned = (last: Step): MoveState => upTo(last, [back]);

  test('before anything was changed there is nothing to put back', () => {
    expect(decide(turned('preflight'), calm)).toMatchObject({ kind: 'close', outcome: 'rolled-back', text: expect.stringContaining('drain never ended') });
  });

  test.each(['save', 'auto-revert', 'chain', 'priority', 'writable'] as const)('behind %s: restore', (last) => {
    expect(decide(turned(last), calm)).toEqual(step('restore'));
    expect(decide(applyEntry(turned(last), end('restore')), calm)).toMatchObject({ kind: 'close', outcome: 'rolled-back' });
  });

  test.each([['prepare', prepared], ['writable', reserved], ['drain', prepared]] as const)('behind %s, in a window: abort first', (last, world) => {
    expect(decide(turned(last), world)).toEqual(step('abort'));
    expect(decide(applyEntry(turned(last), end('abort')), calm)).toEqual(step('restore'));
  });

  test('another window than ours is left alone', () => {
    expect(decide(turned('save'), { ...prepared, silentTarget: C })).toEqual(step('restore'));
  });

  test('too late: the target is the master, and the end says so', () => {
    expect(decide(turned('drain'), switched)).toEqual(step('settle'));
    const late = [end('settle'), end('restore'), end('report')].reduce(applyEntry, turned('drain'));
    expect(decide(late, switched)).toMatchObject({ outcome: 'moved', text: expect.stringContaining('too late to go back') });
  });

  test('M3: what was turned back stays so, with its first reason', () => {
    const twice = applyEntry(turned('drain'), { kind: 'back', at: 2, reason: 'another' });
    expect(twice.back).toBe('drain never ended');
  });
});

describe('an ended move', () => {
  const closed = (leftovers: readonly string[]): Entry => ({ kind: 'closed', at: 1, outcome: 'moved', text: 'x', leftovers });

  test('is open as long as something is left over, and then tidied up again', () => {
    expect(isOpen(upTo('report', [closed([])]))).toBe(false);
    const left = upTo('settle', [end('restore', ['a setting']), end('report'), closed(['a setting'])]);
    expect(isOpen(left)).toBe(true);
    expect(decide(reopen(left), switched)).toEqual(step('restore'));
  });
});

/** Random interruptions: whatever the order of worlds, the decisions end in a close, and never restore twice in a row. */
test('every journal prefix and world leads to an end', () => {
  const worlds = [calm, prepared, reserved, switched, { ...calm, master: C }];
  for (const mode of ['silent', 'coordinated'] as const) {
    for (const last of stepsOf(mode)) for (const world of worlds) for (const more of [[], [back]]) {
      let [move, now] = [upTo(last, more, mode), world];
      const seen: string[] = [];
      for (let turn = 0; turn < 40; turn++) {
        const decision = decide(move, now);
        seen.push(decision.kind === 'step' ? decision.step : decision.kind);
        if (decision.kind === 'close') break;
        if (decision.kind === 'back') move = applyEntry(move, { kind: 'back', at: 1, reason: decision.reason });
        else {
          move = decision.step === 'save' ? applyEntry(move, saved) : move;
          move = applyEntry(move, end(decision.step));
          if (decision.step === 'prepare') now = prepared;
          if (decision.step === 'abort') now = calm;
          if (decision.step === 'done' || decision.step === 'failover') now = switched;
        }
      }
      expect([mode, last, seen.at(-1)]).toEqual([mode, last, 'close']);
      expect(seen.filter((each) => each === 'restore').length).toBeLessThanOrEqual(1);
    }
  }
});
