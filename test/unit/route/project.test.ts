/** The projection: the elected primary and no other, from promotion on; what it says about trust and confirmation. */
import { describe, expect, test } from '@jest/globals';
import { mapRoute } from '../../../src/route/address-map.js';
import { projectRoute } from '../../../src/route/project.js';
import { sameRoute } from '../../../src/route/route.js';
import { must } from '../../../src/assert.js';
import { failoverOf } from '../sentinel/core/failover-of.js';
import { createState, step } from '../../../src/sentinel/index.js';
import type { Master, SentinelState } from '../../../src/sentinel/index.js';
import { loadSentinelConf } from '../../../src/sentinel/wire/sentinel-conf.js';
import { millis } from '../../../src/time.js';

const TEXT = `sentinel monitor m1 10.0.0.1 6379 2
sentinel config-epoch m1 4
sentinel known-replica m1 10.0.0.2 6379
sentinel known-replica m1 10.0.0.3 6379
`;

function fixture(): { state: SentinelState; master: Master } {
  const conf = loadSentinelConf(TEXT, { path: 'sentinel.conf', readInclude: () => null });
  const state = createState({ conf, freshId: 'f'.repeat(40), seed: 1, now: millis(1_000_000) });
  return { state, master: must(state.masters.get('m1'), 'm1 is monitored') };
}

describe('projectRoute', () => {
  test('says what the file said, unconfirmed, with the order of its epoch', () => {
    const { state } = fixture();
    expect(projectRoute(state, 'm1')).toMatchObject({
      master: 'm1',
      primary: { host: '10.0.0.1', port: 6379 },
      configEpoch: 4,
      order: 8,
      phase: 'steady',
      confirmed: false,
    });
    expect(projectRoute(state, 'other')).toBeNull();
  });

  test.each([
    ['wait_promotion', '10.0.0.1'],
    ['reconf_slaves', '10.0.0.2'],
    ['update_config', '10.0.0.2'],
  ] as const)('in %s the primary is %s', (name, host) => {
    const { state, master } = fixture();
    master.failover = failoverOf({ state: name, epoch: 5, promoted: '10.0.0.2:6379' });
    const route = must(projectRoute(state, 'm1'), 'a Route');
    expect(route.primary?.host).toBe(host);
    expect(route.replicas.map((replica) => replica.address.host)).toEqual(host === '10.0.0.2' ? ['10.0.0.3'] : ['10.0.0.2', '10.0.0.3']);
  });

  test('a replica that says it is a master changes nothing', () => {
    const { state, master } = fixture();
    must(master.replicas.get('10.0.0.2:6379'), 'replica').roleReported = 'master';
    expect(projectRoute(state, 'm1')?.primary?.host).toBe('10.0.0.1');
  });

  test('a replica is ill when it can not be connected to, not when a connection was cut', () => {
    const { state, master } = fixture();
    const replica = must(master.replicas.get('10.0.0.2:6379'), 'replica');
    Object.assign(replica, { roleReported: 'replica', masterLinkUp: true });
    const health = (): (boolean | undefined)[] => must(projectRoute(state, 'm1'), 'a Route').replicas.map(({ healthy }) => healthy);
    step(state, { kind: 'wake' }, millis(1_000_100));
    const open = must(replica.link.command, 'a connection on its way').id;
    step(state, { kind: 'connectionUp', connection: open, localIp: '10.0.0.9' }, millis(1_000_110));
    expect(health()).toEqual([true, false]);
    step(state, { kind: 'connectionDown', connection: open, reason: 'cut' }, millis(1_003_000));
    expect(replica.link.command).toBeNull();
    expect(health()).toEqual([true, false]);
    step(state, { kind: 'wake' }, millis(1_003_200));
    const refused = must(replica.link.command, 'the next attempt').id;
    step(state, { kind: 'connectionDown', connection: refused, reason: 'refused' }, millis(1_003_210));
    expect(health()).toEqual([false, false]);
  });

  test('sameRoute sees every field but since', () => {
    const { state, master } = fixture();
    const before = must(projectRoute(state, 'm1'), 'a Route');
    expect(sameRoute(before, { ...before, since: millis(5) })).toBe(true);
    master.published.trusted = false;
    expect(sameRoute(before, must(projectRoute(state, 'm1'), 'a Route'))).toBe(false);
  });
});

describe('mapRoute', () => {
  test('replaces addresses; the entry of this master beats the one for all', () => {
    const { state } = fixture();
    const route = mapRoute(must(projectRoute(state, 'm1'), 'a Route'), [
      { master: null, from: '10.0.0.1:6379', to: '198.51.100.1:7001' },
      { master: 'm1', from: '10.0.0.1:6379', to: '203.0.113.7:6379' },
      { master: 'other', from: '10.0.0.2:6379', to: '203.0.113.8:6379' },
    ]);
    expect(route.primary).toEqual({ host: '203.0.113.7', port: 6379 });
    expect(route.replicas.map((replica) => replica.address.host)).toEqual(['10.0.0.2', '10.0.0.3']);
  });
});
