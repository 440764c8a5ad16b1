import { describe, expect, test } from '@jest/globals';
import { defaultTunables } from '../../../../../src/sentinel/core/limits.js';
import { ask, emptyState, world } from './fixture.js';

describe('DEBUG', () => {
  test('shows every tunable in the fixed order; element 1 of the flat list is info-period', () => {
    expect(ask(emptyState(), 'SENTINEL DEBUG').reply).toEqual([
      ...[['INFO-PERIOD', '10000'], ['PING-PERIOD', '1000'], ['ASK-PERIOD', '1000'], ['PUBLISH-PERIOD', '2000']],
      ...[['DEFAULT-DOWN-AFTER', '30000'], ['DEFAULT-FAILOVER-TIMEOUT', '180000'], ['TILT-TRIGGER', '2000'], ['TILT-PERIOD', '30000']],
      ...[['SLAVE-RECONF-TIMEOUT', '10000'], ['MIN-LINK-RECONNECT-PERIOD', '15000'], ['ELECTION-TIMEOUT', '10000']],
      ...[['SCRIPT-MAX-RUNTIME', '60000'], ['SCRIPT-RETRY-DELAY', '30000']],
    ]);
  });

  test('sets what it shows, without writing, and has the masters looked at again', () => {
    const { state } = world();
    const names = (ask(state, 'SENTINEL DEBUG').reply as readonly (readonly [string, string])[]).map(([name]) => name);
    state.touched.clear();
    expect(ask(state, `SENTINEL DEBUG ${names.map((name, at) => `${name.toLowerCase()} ${at + 1}`).join(' ')}`).trace).toEqual(['reply']);
    expect(ask(state, 'SENTINEL DEBUG').reply).toEqual(names.map((name, at) => [name, String(at + 1)]));
    expect([...state.touched]).toEqual(['mymaster']);
  });

  test.each([
    ['x', "-ERR Unknown option or number of arguments for SENTINEL DEBUG 'x'"],
    ['ping-period', "-ERR Unknown option or number of arguments for SENTINEL DEBUG 'ping-period'"],
    ['Ping-Period 0', "-ERR Invalid argument '0' for SENTINEL DEBUG 'Ping-Period'"],
    ['ping-period -1', "-ERR Invalid argument '-1' for SENTINEL DEBUG 'ping-period'"],
    ['ping-period 1s', "-ERR Invalid argument '1s' for SENTINEL DEBUG 'ping-period'"],
  ])('%s is refused', (args, reply) => {
    const state = emptyState();
    expect(ask(state, `SENTINEL DEBUG ${args}`).reply).toBe(reply);
    expect(state.tunables).toEqual(defaultTunables());
  });

  test('pairs before a bad one stay', () => {
    const state = emptyState();
    expect(ask(state, 'SENTINEL DEBUG ask-period 5 ping-period no info-period 7').reply).toMatch(/^-ERR Invalid argument 'no'/);
    expect(state.tunables).toEqual({ ...defaultTunables(), askPeriodMs: 5 });
  });
});

describe('SIMULATE-FAILURE', () => {
  test.each([
    ['crash-after-election', '+OK', true, false],
    ['CRASH-AFTER-PROMOTION', '+OK', false, true],
    ['crash-after-election crash-after-promotion', '+OK', true, true],
    ['help', ['crash-after-election', 'crash-after-promotion'], false, false],
    ['crash-after-election help crash-after-promotion', ['crash-after-election', 'crash-after-promotion'], true, false],
    ['crash-after-election boom', '-ERR Unknown failure simulation specified', true, false],
    ['boom', '-ERR Unknown failure simulation specified', false, false],
  ])('%s', (args, reply, crashAfterElection, crashAfterPromotion) => {
    const state = emptyState();
    Object.assign(state.simulate, { crashAfterElection: true, crashAfterPromotion: true });
    const { reply: answer, trace } = ask(state, `SENTINEL SIMULATE-FAILURE ${args}`);
    expect(answer).toEqual(reply);
    expect(state.simulate).toEqual({ crashAfterElection, crashAfterPromotion });
    expect(trace.filter((line) => line.startsWith('log warning'))).toHaveLength(Number(crashAfterElection) + Number(crashAfterPromotion));
  });
});
