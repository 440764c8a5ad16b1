/**
 * The preflight's judgement: a sound group has no finding, and each fault exactly its own.
 */
import { describe, expect, test } from '@jest/globals';
import { compareVersions, countWrites, infoFields } from '../../../src/migrate/fields.js';
import { judgePreflight, type GroupFacts, type NodeFacts, type SentinelFacts } from '../../../src/migrate/findings.js';
import { worldOf, type View } from '../../../src/migrate/group.js';

const A = { host: '10.0.0.1', port: 6379 };
const B = { host: '10.0.0.2', port: 6379 };
const C = { host: '10.0.0.3', port: 6379 };
const map = (fields: Record<string, string>): ReadonlyMap<string, string> => new Map(Object.entries(fields));

const master = { role: 'master', redis_version: '7.0.15', used_memory: '1000', master_repl_offset: '5000' };
const replica = {
  role: 'slave', redis_version: '7.0.15', master_host: A.host, master_port: '6379', master_link_status: 'up', slave_repl_offset: '5000', slave_priority: '100',
};
const config = { maxmemory: '0', 'min-replicas-to-write': '0', 'replica-read-only': 'yes', save: '', appendonly: 'no' };
const node = (address: typeof A, info: Record<string, string>, settings: Record<string, string> = {}): NodeFacts =>
  ({ address, info: map(info), config: map({ ...config, ...settings }) });
const status = map({ state: 'none', 'resync-debts': '' });
const sentinel: SentinelFacts = {
  address: { host: '10.0.0.9', port: 26379 }, fault: null, master: map({ ip: A.host, port: '6379', flags: 'master' }),
  status, tilt: false, outputs: [], clients: 0,
};
const sound: GroupFacts = {
  master: 'cache', mode: 'silent', waitSync: false, noQuorum: '', sentinels: [sentinel], original: node(A, master), target: node(B, replica), targetAddress: B,
  others: [node(C, replica)], unreachableNodes: [], bytesPerSecond: 10, backlogBytes: 1_000_000, differingUsers: [],
};

test('a sound group has no finding', () => {
  expect(judgePreflight(sound)).toEqual([]);
});

const withSentinel = (more: Partial<SentinelFacts>): Partial<GroupFacts> => ({ sentinels: [{ ...sentinel, ...more }] });
describe('each fault has its finding', () => {
  test.each<[string, Partial<GroupFacts>, 'stop' | 'warn', RegExp]>([
    ['no quorum', { noQuorum: 'NOQUORUM 1 usable' }, 'stop', /no quorum: NOQUORUM 1 usable/],
    ['stock peer', withSentinel({ status: null, outputs: null }), 'stop', /does not support silent failover: replace it, or use --mode coordinated/],
    ['stock peer, coordinated', { ...withSentinel({ status: null }), mode: 'coordinated' }, 'warn', /stock sentinel/],
    ['TILT', withSentinel({ tilt: true }), 'stop', /TILT/],
    ['failover', withSentinel({ master: map({ ip: A.host, port: '6379', flags: 'master,failover_in_progress' }) }), 'stop', /failover is in progress/],
    ['prepared', withSentinel({ status: map({ state: 'prepared', target: '10.0.0.3:6379' }) }), 'stop', /10\.0\.0\.3:6379 is prepared: finish or abort/],
    ['debts', withSentinel({ status: map({ state: 'none', 'resync-debts': '10.0.0.3:6379' }) }), 'stop', /still owe a full copy/],
    ['output', withSentinel({ outputs: [{ name: 'consul', state: 'failing', error: 'refused' }] }), 'stop', /output consul is failing: refused/],
    ['absent sentinel', { sentinels: [sentinel, { ...sentinel, fault: 'ECONNREFUSED' }] }, 'warn', /can't be reached \(ECONNREFUSED\)/],
    ['disagreement', { sentinels: [sentinel, { ...sentinel, master: map({ ip: C.host, port: '6379', flags: 'master' }) }] }, 'stop', /disagree about the master/],
    ['sentinel clients', withSentinel({ clients: 4 }), 'warn', /4 connections at the sentinels' ports/],
    ['old server', { original: node(A, { ...master, redis_version: '6.0.16' }) }, 'stop', /older than 6\.2\.0: it can't hold writes/],
    ['min-replicas at the original', { original: node(A, master, { 'min-replicas-to-write': '2' }) }, 'stop', /the target is its only replica/],
    ['unknown target', { target: null }, 'stop', /is no replica of cache, or can't be reached/],
    ['target is the master', { target: node(A, master), targetAddress: A }, 'stop', /is the master already/],
    ['another master', { target: node(B, { ...replica, master_host: C.host }) }, 'stop', /follows 10\.0\.0\.3:6379, not the master/],
    ['priority 0', { target: node(B, { ...replica, slave_priority: '0' }) }, 'stop', /replica-priority is 0/],
    ['copying', { target: node(B, { ...replica, master_sync_in_progress: '1' }) }, 'stop', /still copying/],
    ['link down', { target: node(B, { ...replica, master_link_status: 'down' }) }, 'stop', /link is down/],
    ['lag', { original: node(A, { ...master, master_repl_offset: '9000000' }) }, 'stop', /lags 8995000 bytes/],
    ['min-replicas at the target', { target: node(B, replica, { 'min-replicas-to-write': '1' }) }, 'stop', /set it to 0 for the move/],
    ['memory in use', { original: node(A, { ...master, used_memory: '2000' }), target: node(B, replica, { maxmemory: '1500' }) }, 'stop', /the master uses 2000/],
    ['smaller memory', { target: node(B, replica, { maxmemory: '1500' }) }, 'stop', /smaller than the master's \(unlimited\)/],
    ['older target', { target: node(B, { ...replica, redis_version: '6.2.14' }) }, 'stop', /older than the master's 7\.0\.15/],
    ['persistence', { target: node(B, replica, { appendonly: 'yes' }) }, 'warn', /appendonly is "yes", the master's is "no"/],
    ['users', { differingUsers: ['app'] }, 'warn', /ACL users differ from the master's: app/],
    ['backlog', { backlogBytes: 2 ** 31, bytesPerSecond: 3e7 }, 'stop', /a window would need a backlog/],
    ['absent replica', { unreachableNodes: [C] }, 'warn', /this replica can't be reached/],
    ['other replica astray', { others: [node(C, { ...replica, master_host: '10.0.0.7' })] }, 'stop', /follows 10\.0\.0\.7:6379/],
    ['writable master', { original: node(A, master, { 'replica-read-only': 'no' }) }, 'warn', /replica-read-only is no/],
  ])('%s', (_name, change, level, text) => {
    const found = judgePreflight({ ...sound, ...change });
    expect(found.filter((each) => text.test(each.text)).map((each) => each.level)).toEqual([level]);
    expect(found).toHaveLength(1);
  });

  test('--wait-sync takes a target that still copies', () => {
    expect(judgePreflight({ ...sound, waitSync: true, target: node(B, { ...replica, master_sync_in_progress: '1' }) })).toEqual([]);
  });

  test('a chain that an earlier move left is no obstacle', () => {
    expect(judgePreflight({ ...sound, others: [node(C, { ...replica, master_host: B.host })] })).toEqual([]);
  });
});

describe('the newest configuration', () => {
  const view = (ip: string, epoch: number, state = 'none', doneEpoch = 0, effective = '0'): View => ({
    sentinel: A, fields: map({ ip, port: '6379', 'config-epoch': String(epoch), flags: 'master' }),
    status: map({ state, 'done-epoch': String(doneEpoch), effective, target: '10.0.0.2:6379', tainted: '' }),
  });

  test('prepared: the original is the master, whatever address a sentinel shows', () => {
    expect(worldOf([view(B.host, 3, 'prepared', 5, '1'), view(A.host, 3, 'prepared', 5, '1')], A)).toMatchObject({ master: A, silent: 'prepared', silentTarget: B });
  });

  test('one that has not heard of the done does not count', () => {
    expect(worldOf([view(B.host, 3, 'prepared', 5, '1'), view(B.host, 5)], A)).toMatchObject({ master: B, silent: 'none' });
    expect(worldOf([view(A.host, 5), view(B.host, 3, 'prepared', 5, '1')], A)).toMatchObject({ master: A, silent: 'none' });
  });

  test('a reservation that nobody else knows is one', () => {
    expect(worldOf([view(A.host, 3), view(A.host, 3, 'reserved', 5)], A)).toMatchObject({ master: A, silent: 'reserved' });
  });
});

test('INFO, command counts and versions are read', () => {
  expect(infoFields('# Server\r\nredis_version:7.0.15\r\nos:a:b\r\n').get('os')).toBe('a:b');
  const stats = 'cmdstat_set:calls=3,usec=1\r\ncmdstat_get:calls=9\r\ncmdstat_xgroup|create:calls=2,usec=1\r\n';
  expect(countWrites(stats, new Set(['set', 'xgroup']))).toBe(5);
  expect([compareVersions('7.0.15', '7.0.9'), compareVersions('6.2', '6.2.0'), compareVersions('6.0.16', '6.2.0')]).toEqual([1, 0, -1]);
});
