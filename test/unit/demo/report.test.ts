import { describe, expect, test } from '@jest/globals';
import type { CrashRound } from '../../../src/demo/crash-round.js';
import { concludeReport, median, showReport } from '../../../src/demo/report.js';

const ROUND: CrashRound = {
  killed: '127.0.0.1', promoted: '127.0.0.2', dnsMs: [1100.4, 1200, 1300], firstWriteMs: 1234.5, rejoinedMs: 11_000,
  lostAtKill: 3, oldestLossMs: 1.26, lostAfterSwitch: 0,
};
const FACTS = {
  downAfterMs: 1000, rounds: [ROUND], acknowledged: 12_345, lostAtKill: 3, lostAfterSwitch: 0,
  errors: { refusedWrites: 10, failedConnects: 20 }, disagreements: [],
};

test.each([
  ['all well, losses at the kill are allowed', FACTS, true],
  ['a write lost after the switch', { ...FACTS, lostAfterSwitch: 1 }, false],
  ['an agent of another opinion', { ...FACTS, disagreements: ['agent1: its DNS answers 127.0.0.1, not 127.0.0.2'] }, false],
  ['no round at all', { ...FACTS, rounds: [] }, false],
])('%s', (_title, facts, ok) => {
  expect(concludeReport(facts).ok).toBe(ok);
});

describe('the table', () => {
  test('one round', () => {
    const lines = showReport(concludeReport(FACTS)).split('\n').map((line) => line.replace(/\s+/g, ' '));
    expect(lines).toEqual([
      'down-after 1000 ms', '', ' agent 1 agent 2 agent 3',
      'kill → DNS 1100 ms 1200 ms 1300 ms',
      'kill → first accepted write 1235 ms',
      'old master back as replica 11000 ms after its restart',
      'acknowledged writes 12345',
      'lost at the kill 3 asynchronous replication: acknowledged in the last 1.3 ms before the kill',
      'lost after the switch 0',
      'errors the client saw 30 10 writes, 20 connects',
      '', 'ok: all agents name the same master, no write was lost after the switch',
    ]);
  });

  test('several rounds end in medians', () => {
    const round = (ms: number): CrashRound => ({ ...ROUND, dnsMs: [ms, ms, ms], firstWriteMs: ms });
    const rounds = [ROUND, round(1000), round(1500)];
    const text = showReport(concludeReport({ ...FACTS, rounds })).replace(/ +/g, ' ');
    expect(text).toContain('round 3: kill → DNS 1500 ms 1500 ms 1500 ms');
    expect(text).toContain('median: kill → DNS 1100 ms 1200 ms 1300 ms');
    expect(text).toContain('median: kill → first accepted write 1235 ms');
  });

  test('a bad end names what disagrees', () => {
    const text = showReport(concludeReport({ ...FACTS, disagreements: ['agent2: names nobody'] }));
    expect(text).toContain('disagrees: agent2: names nobody\nFAILED');
  });
});

test.each([[[], NaN], [[3], 3], [[4, 1], 2.5], [[9, 1, 5], 5]])('median of %j', (values, middle) => {
  expect(median(values)).toBe(middle);
});
