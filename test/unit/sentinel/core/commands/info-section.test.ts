import { describe, expect, test } from '@jest/globals';
import { failoverOf } from '../failover-of.js';
import { sentinelInfoSection } from '../../../../../src/sentinel/core/commands/info-section.js';
import { addMs } from '../../../../../src/time.js';
import { addMaster, emptyState, NOW, world } from './fixture.js';

/** Behind stock's lines come our counters (D39). */
const COUNTERS = ['prepare', 'done', 'excp_abort'].map((name) => `total_silent_failover_${name}:0`);
const section = (lines: readonly string[]): string => [...lines, ...COUNTERS].map((line) => `${line}\r\n`).join('');

describe('sentinelInfoSection', () => {
  test('without masters', () => {
    expect(sentinelInfoSection(emptyState(), 0, 0)).toBe(
      section([
        ...['# Sentinel', 'sentinel_masters:0', 'sentinel_tilt:0', 'sentinel_tilt_since_seconds:-1', 'sentinel_running_scripts:0'],
        ...['sentinel_scripts_queue_length:0', 'sentinel_simulate_failure_flags:0'],
      ]),
    );
  });

  test('with masters in every state, scripts, TILT and simulated failures', () => {
    const { state, master } = world();
    addMaster(state, 'six', { host: '::1', ip: '::1', port: 7000 }).sdownSinceMs = NOW;
    Object.assign(addMaster(state, 'gone', { host: '10.9.0.1', ip: '10.9.0.1', port: 7 }), { sdownSinceMs: NOW, odownSinceMs: NOW });
    Object.assign(state, { tiltSinceMs: NOW, previousMs: addMs(NOW, 2999) });
    Object.assign(state.simulate, { crashAfterElection: true, crashAfterPromotion: true });
    expect(master.failover).toBeNull();
    expect(sentinelInfoSection(state, 2, 5)).toBe(
      section([
        ...['# Sentinel', 'sentinel_masters:3', 'sentinel_tilt:1', 'sentinel_tilt_since_seconds:2', 'sentinel_running_scripts:2'],
        ...['sentinel_scripts_queue_length:5', 'sentinel_simulate_failure_flags:3'],
        'master0:name=mymaster,status=ok,address=10.0.0.1:6379,slaves=2,sentinels=3',
        'master1:name=six,status=sdown,address=::1:7000,slaves=0,sentinels=1',
        'master2:name=gone,status=odown,address=10.9.0.1:7,slaves=0,sentinels=1',
      ]),
    );
  });

  test('the held address is shown until the switch', () => {
    const { state, master } = world();
    master.failover = failoverOf({ state: 'reconf_slaves', promoted: '10.0.0.2:6379' });
    expect(sentinelInfoSection(state, 0, 0)).toContain('address=10.0.0.1:6379,');
  });
});
