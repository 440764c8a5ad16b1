/**
 * The judge of losses: what asynchronous replication explains, and that it lets nothing else pass.
 */
import { describe, expect, test } from '@jest/globals';
import { finalHistory, judgeLoss, type Disturbance, type History, type Receipt, type Sample, type SilentWindow, type Verdict } from './lineage.js';

const [X, Y] = ['10.0.0.1', '10.0.0.2'];
const NONE = '0'.repeat(40);

const sample = (atMs: number, role: Sample['role'], replid: string, offset: number, replid2 = NONE, secondOffset = -1): Sample => ({
  askedMs: atMs, answeredMs: atMs + 1, runId: 'run', role, replid, offset, replid2, secondOffset,
});
const written = (sentMs: number, host = X): Receipt => ({ key: 'client1', first: 0, last: 0, host, sentMs, acknowledgedMs: sentMs + 2 });
const fault = (startMs: number, endMs: number, hosts = [X], kind: Disturbance['kind'] = 'crash'): Disturbance => ({
  title: 'redis1 killed', kind, hosts, startMs, endMs,
});

/** X writes history A up to offset 500 at 5000 ms; Y, which has it up to 400, is promoted at 9000 and the master in the end. */
const PROMOTED = [
  [X, [sample(1_000, 'master', 'A', 100), sample(2_000, 'master', 'A', 200), sample(5_000, 'master', 'A', 500)]],
  [Y, [sample(1_000, 'slave', 'A', 100), sample(5_000, 'slave', 'A', 400), sample(9_000, 'master', 'B', 410, 'A', 401)]],
] as const;

function judge(receipt: Receipt, about: Partial<History> = {}, master = Y): Verdict {
  const history = { samples: new Map<string, readonly Sample[]>(PROMOTED), disturbances: [], restarts: [], windows: [], ...about };
  return judgeLoss(receipt, history, finalHistory(history, master));
}

describe('a write to a master', () => {
  test('beyond the offset at which the promoted replica left it may be gone, with a fault on that master', () => {
    const verdict = judge(written(4_000), { disturbances: [fault(5_200, 9_500)] });
    expect(verdict).toMatchObject({ kind: 'crash', reason: expect.stringContaining('1198 ms before: redis1 killed') });
  });

  test('below that offset may not, whatever happened', () => {
    expect(judge(written(1_500), { disturbances: [fault(5_200, 9_500)] })).toMatchObject({ kind: 'unexplained' });
  });

  test('may not be gone without a fault, or with a fault elsewhere', () => {
    expect(judge(written(4_000))).toMatchObject({ kind: 'unexplained', reason: expect.stringContaining('no fault hit') });
    expect(judge(written(4_000), { disturbances: [fault(5_200, 9_500, [Y])] }).kind).toBe('unexplained');
  });

  test('may not be gone by a fault that was long over', () => {
    expect(judge(written(40_000), { disturbances: [fault(-40_000, -30_000)] }).kind).toBe('unexplained');
  });

  test('after a cut that it did not know of belongs to a branch that was given up', () => {
    const samples = new Map<string, readonly Sample[]>([
      [X, [...PROMOTED[0][1], sample(12_000, 'master', 'A', 900), sample(14_000, 'slave', 'B', 600)]],
      [Y, PROMOTED[1][1]],
    ]);
    expect(judge(written(11_000), { samples, disturbances: [fault(5_200, 11_500, [X], 'partition')] }).kind).toBe('partition');
    expect(judge(written(11_000), { samples }).kind).toBe('unexplained');
  });

  test('that is the master to this day can lose nothing', () => {
    expect(judge(written(9_500, Y), { disturbances: [fault(9_600, 9_700, [Y])] }).kind).toBe('unexplained');
  });
});

describe('a restart', () => {
  const restarted = (keptData: boolean): Partial<History> => ({
    samples: new Map<string, readonly Sample[]>([
      [X, [sample(1_000, 'master', 'A', 100), sample(4_000, 'master', 'A', 400), sample(7_000, 'master', 'A', 700), sample(9_000, 'master', 'C', 0)]],
    ]),
    restarts: [{ host: X, atMs: 8_000, keptData }],
    disturbances: [fault(7_500, 8_500)],
  });

  test('with data keeps all but what was not on disk yet', () => {
    expect(judge(written(2_000), restarted(true), X).kind).toBe('unexplained');
    expect(judge(written(6_500), restarted(true), X).kind).toBe('crash');
  });

  test('without data takes along what others wrote long before', () => {
    expect(judge(written(2_000), restarted(false), X).kind).toBe('crash');
  });
});

describe('a restart of a master that nobody ever copied: its offset stays 0', () => {
  const restarted = (keptData: boolean): Partial<History> => ({
    samples: new Map<string, readonly Sample[]>([
      [X, [sample(1_000, 'master', 'A', 0), sample(4_000, 'master', 'A', 0), sample(7_000, 'master', 'A', 0), sample(9_000, 'master', 'C', 0)]],
    ]),
    restarts: [{ host: X, atMs: 8_000, keptData }],
    disturbances: [fault(7_500, 8_500)],
  });

  test('without data takes all of it along', () => expect(judge(written(2_000), restarted(false), X).kind).toBe('crash'));

  test('with data keeps what was on disk by then, as time tells', () => {
    expect(judge(written(2_000), restarted(true), X).kind).toBe('unexplained');
    expect(judge(written(6_500), restarted(true), X).kind).toBe('crash');
  });
});

describe('a write to the target of a silent move', () => {
  const window: SilentWindow = { target: Y, original: X, startMs: 2_000, endMs: 6_000, wasAborted: false };

  test('is given up by an abort of the operator', () => {
    expect(judge(written(4_000, Y), { windows: [{ ...window, wasAborted: true }] }).kind).toBe('aborted');
  });

  test('is kept by done; only a fault on one of the two nodes excuses its loss', () => {
    expect(judge(written(4_000, Y), { windows: [window] }).kind).toBe('unexplained');
    expect(judge(written(4_000, Y), { windows: [window], disturbances: [fault(5_000, 5_500)] }).kind).toBe('crash');
  });

  test('outside a window is nobody’s', () => {
    expect(judge(written(3_000, Y))).toMatchObject({ kind: 'unexplained', reason: expect.stringContaining('outside any silent window') });
  });
});
