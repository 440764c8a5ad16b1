import { describe, expect, test } from '@jest/globals';
import { failoverOf } from '../failover-of.js';
import { must } from '../../../../../src/assert.js';
import { addMs } from '../../../../../src/time.js';
import type { Failover, Master, Peer, Replica, SentinelState } from '../../../../../src/sentinel/core/state.js';
import { addMaster, ask, NOW, PEERS, world } from './fixture.js';

type Pairs = readonly (readonly [string, string])[];

const MASTER_FIELDS: Pairs = [
  ['name', 'mymaster'],
  ['ip', '10.0.0.1'],
  ['port', '6379'],
  ['runid', ''],
  ['flags', 'master'],
  ['link-pending-commands', '0'],
  ['link-refcount', '1'],
  ['last-ping-sent', '0'],
  ['last-ok-ping-reply', '50'],
  ['last-ping-reply', '50'],
  ['down-after-milliseconds', '30000'],
  ['info-refresh', '0'],
  ['role-reported', 'master'],
  ['role-reported-time', '50'],
  ['config-epoch', '0'],
  ['num-slaves', '2'],
  ['num-other-sentinels', '2'],
  ['quorum', '2'],
  ['failover-timeout', '180000'],
  ['parallel-syncs', '1'],
];

const first = <T>(items: Iterable<T>): T => must([...items][0], 'at least one');
const fields = (state: SentinelState, line: string): Map<string, string> => new Map(ask(state, line, { afterMs: 50 }).reply as Pairs);
const many = (state: SentinelState, line: string): Map<string, string>[] =>
  (ask(state, line, { afterMs: 50 }).reply as readonly Pairs[]).map((pairs) => new Map(pairs));

describe('instance maps', () => {
  test('a healthy master, field by field, in order; element 33 of the flat list is num-other-sentinels', () => {
    const { state } = world();
    const reply = ask(state, 'SENTINEL MASTER mymaster', { afterMs: 50 }).reply;
    expect(reply).toEqual(MASTER_FIELDS);
    expect((reply as Pairs).flat()[33]).toBe('2');
    expect(ask(state, 'sentinel primary mymaster', { afterMs: 50 }).reply).toEqual(MASTER_FIELDS);
  });

  test('MASTERS and PRIMARIES list all', () => {
    const { state } = world();
    addMaster(state, 'other', { host: '10.9.0.1', ip: '10.9.0.1', port: 1 });
    for (const line of ['SENTINEL MASTERS', 'SENTINEL PRIMARIES']) {
      expect(many(state, line).map((each) => each.get('name'))).toEqual(['mymaster', 'other']);
    }
    expect(fields(state, 'SENTINEL MASTER other').get('flags')).toBe('master,disconnected');
  });

  test('the optional fields of a master in trouble stand in their places', () => {
    const { state, master } = world();
    Object.assign(master, { sdownSinceMs: NOW, odownSinceMs: addMs(NOW, 10), runId: 'r' });
    Object.assign(master, { notificationScript: '/n', clientReconfigScript: '/c' });
    master.link.actPingMs = addMs(NOW, -1000);
    ask(state, 'SENTINEL FAILOVER mymaster');
    const reply = ask(state, 'SENTINEL MASTER mymaster', { afterMs: 50 }).reply as Pairs;
    expect(reply.map(([name]) => name)).toEqual([
      ...['name', 'ip', 'port', 'runid', 'flags', 'link-pending-commands', 'link-refcount', 'failover-state', 'last-ping-sent'],
      ...['last-ok-ping-reply', 'last-ping-reply', 's-down-time', 'o-down-time', 'down-after-milliseconds'],
      ...['info-refresh', 'role-reported', 'role-reported-time', 'config-epoch', 'num-slaves', 'num-other-sentinels', 'quorum'],
      ...['failover-timeout', 'parallel-syncs', 'notification-script', 'client-reconfig-script'],
    ]);
    expect(Object.fromEntries(reply)).toMatchObject({
      'failover-state': 'wait_start',
      'last-ping-sent': '1050',
      's-down-time': '50',
      'o-down-time': '40',
      flags: 's_down,o_down,master,failover_in_progress,force_failover',
    });
  });

  test('a replica and a sentinel, their own fields', () => {
    const { state, master } = world();
    const replica = first(master.replicas.values());
    Object.assign(replica, { masterLinkDownMs: 3000, masterLinkUp: false, masterHost: null, roleReported: null });
    Object.assign(replica, { priority: 7, replOffset: 99 });
    expect((ask(state, 'SENTINEL REPLICAS mymaster', { afterMs: 50 }).reply as readonly Pairs[])[0]?.slice(11)).toEqual([
      ...[['info-refresh', '50'], ['role-reported', 'slave'], ['role-reported-time', '50'], ['master-link-down-time', '3000']],
      ...[['master-link-status', 'err'], ['master-host', '?'], ['master-port', '6379'], ['slave-priority', '7']],
      ...[['slave-repl-offset', '99'], ['replica-announced', '1']],
    ]);
    const peer = first(master.peers.values());
    Object.assign(peer, { leader: 'x', leaderEpoch: 4 });
    const [one, two] = many(state, 'SENTINEL SENTINELS mymaster');
    expect([...must(one, 'one')].slice(-4)).toEqual([
      ...[['down-after-milliseconds', '30000'], ['last-hello-message', '50'], ['voted-leader', 'x'], ['voted-leader-epoch', '4']],
    ]);
    expect(two?.get('voted-leader')).toBe('?');
    expect(two?.get('name')).toBe(PEERS[1]);
  });

  test('an unannounced replica is left out of REPLICAS, yet counted', () => {
    const { state, master } = world();
    first(master.replicas.values()).announced = false;
    for (const line of ['SENTINEL REPLICAS mymaster', 'SENTINEL SLAVES mymaster']) {
      expect(many(state, line).map((each) => each.get('name'))).toEqual(['10.0.0.3:6379']);
    }
    expect(fields(state, 'SENTINEL MASTER mymaster').get('num-slaves')).toBe('2');
  });

  test('host names are shown once they are announced', () => {
    const { state, master } = world();
    master.address = { host: 'redis-a', ip: '10.0.0.1', port: 6379 };
    expect(fields(state, 'SENTINEL MASTER mymaster').get('ip')).toBe('10.0.0.1');
    state.settings.announceHostnames = true;
    expect(fields(state, 'SENTINEL MASTER mymaster').get('ip')).toBe('redis-a');
  });

  type Spoil = (m: Master, r: Replica, p: Peer) => void;
  const flagRows: readonly (readonly [flags: string, kind: 'MASTER' | 'REPLICAS' | 'SENTINELS', spoil: Spoil])[] = [
    ['master,disconnected', 'MASTER', (m) => void (m.link.pubsub = null)],
    ['s_down,master,script_kill_sent', 'MASTER', (m) => Object.assign(m, { sdownSinceMs: NOW, scriptKillSent: true })],
    ['master,master_reboot', 'MASTER', (m) => Object.assign(m, { rebootSinceMs: NOW, masterRebootDownAfterMs: 5 })],
    ['master', 'MASTER', (m) => void (m.rebootSinceMs = NOW)],
    ['s_down,slave,disconnected', 'REPLICAS', (_m, r) => Object.assign(r, { sdownSinceMs: NOW, link: { ...r.link, command: null } })],
    ['slave,reconf_sent', 'REPLICAS', (_m, r) => void (r.reconf = 'sent')],
    ['slave,reconf_inprog', 'REPLICAS', (_m, r) => void (r.reconf = 'inprog')],
    ['slave,reconf_done', 'REPLICAS', (_m, r) => void (r.reconf = 'done')],
    [
      'slave,promoted',
      'REPLICAS',
      (m, r) => {
        m.failover = failoverOf({ state: 'wait_promotion', promoted: r.key });
      },
    ],
    ['sentinel,master_down', 'SENTINELS', (_m, _r, p) => void (p.masterDown = true)],
    ['s_down,sentinel', 'SENTINELS', (_m, _r, p) => void (p.sdownSinceMs = NOW)],
  ];
  test.each(flagRows)('flags %s of %s', (flags, kind, spoil) => {
    const { state, master } = world();
    spoil(master, first(master.replicas.values()), first(master.peers.values()));
    const reply = ask(state, `SENTINEL ${kind} mymaster`).reply;
    expect(new Map((kind === 'MASTER' ? reply : (reply as readonly Pairs[])[0]) as Pairs).get('flags')).toBe(flags);
  });
});

describe('GET-MASTER-ADDR-BY-NAME', () => {
  const names = ['GET-MASTER-ADDR-BY-NAME', 'get-primary-addr-by-name'];
  test.each(names)('%s: the held address, the promoted one from reconf_slaves on', (name) => {
    const { state, master } = world();
    expect(ask(state, `SENTINEL ${name} mymaster`).reply).toEqual(['10.0.0.1', '6379']);
    expect(ask(state, `SENTINEL ${name} nope`).reply).toBeNull();
    master.failover = failoverOf({ state: 'wait_promotion', promoted: '10.0.0.3:6379' });
    expect(ask(state, `SENTINEL ${name} mymaster`).reply).toEqual(['10.0.0.1', '6379']);
    (master.failover as Failover).state = 'reconf_slaves';
    expect(ask(state, `SENTINEL ${name} mymaster`).reply).toEqual(['10.0.0.3', '6379']);
  });
});

describe('CKQUORUM', () => {
  const QUORUM = 'Not enough available Sentinels to reach the specified quorum for this master';
  const MAJORITY = 'Not enough available Sentinels to reach the majority and authorize a failover';
  test.each([
    [2, 0, '+OK 3 usable Sentinels. Quorum and failover authorization can be reached'],
    [2, 1, '+OK 2 usable Sentinels. Quorum and failover authorization can be reached'],
    [4, 0, `-NOQUORUM 3 usable Sentinels. ${QUORUM}`],
    [1, 2, `-NOQUORUM 1 usable Sentinels. ${MAJORITY}`],
    [2, 2, `-NOQUORUM 1 usable Sentinels. ${QUORUM}. ${MAJORITY}`],
  ])('quorum %i with %i of two peers down', (quorum, down, reply) => {
    const { state, master } = world();
    master.quorum = quorum;
    for (const peer of [...master.peers.values()].slice(0, down)) peer.sdownSinceMs = NOW;
    expect(ask(state, 'SENTINEL CKQUORUM mymaster').reply).toBe(reply);
  });
});

describe('INFO-CACHE', () => {
  test('ages and texts, repeated names merged, unknown ones passed over', () => {
    const { state, master } = world();
    Object.assign(master, { infoRefreshMs: NOW, infoText: 'M' });
    const expected = ['mymaster', [[50, 'M'], [50, '# 10.0.0.2'], [50, '# 10.0.0.3']]];
    expect(ask(state, 'SENTINEL INFO-CACHE nope mymaster mymaster', { afterMs: 50 }).reply).toEqual(expected);
    expect(ask(state, 'SENTINEL INFO-CACHE nope').reply).toEqual([]);
  });

  test('never read: age 0 for all; an unread replica of a read master shows the clock, as in stock', () => {
    const { state, master } = world();
    const replica = first(master.replicas.values());
    Object.assign(replica, { infoRefreshMs: null, infoText: null });
    const line = 'SENTINEL INFO-CACHE mymaster';
    expect(ask(state, line, { afterMs: 50 }).reply).toEqual(['mymaster', [[0, null], [0, null], [0, '# 10.0.0.3']]]);
    Object.assign(master, { infoRefreshMs: NOW, infoText: 'M' });
    expect((ask(state, line, { afterMs: 50 }).reply as Pairs)[1]?.[1]).toEqual([100_050, null]);
  });
});
