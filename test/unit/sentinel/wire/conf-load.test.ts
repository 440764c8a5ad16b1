import { describe, expect, test } from '@jest/globals';
import { loadSentinelConf } from '../../../../src/sentinel/wire/sentinel-conf.js';
import type { LoadedConf } from '../../../../src/sentinel/wire/sentinel-conf.js';

const ID = 'c0ffee00'.repeat(5);
const files = new Map<string, string>();

function load(text: string): LoadedConf {
  return loadSentinelConf(text, { path: 'sentinel.conf', readInclude: (path) => files.get(path) ?? null });
}

/** A file as people have them: stock's own output, hand edits, CRLF, an older release's words. */
const REAL = [
  '# a comment; ein Kommentar; コメント',
  'port 26379',
  'user default on nopass ~* &* +@all',
  'sentinel known-slave cache 10.0.0.2 6379',
  'SENTINEL Current-Epoch 4',
  `sentinel myid ${ID}`,
  'sentinel auth-pass cache "pass word # \\"x\\""',
  '  sentinel monitor cache 10.0.0.1 6379 2  ',
  'bind 127.0.0.1 ::1',
  'sentinel down-after-milliseconds cache 5000',
  'sentinel failover-timeout cache 60000',
  'sentinel parallel-syncs cache 3',
  "sentinel notification-script cache '/opt/my scripts/notify'",
  'sentinel client-reconfig-script cache /opt/reconfig',
  'sentinel auth-user cache watcher',
  'sentinel primary-reboot-down-after-period cache 700',
  'sentinel rename-command cache config GUESSME',
  'sentinel config-epoch cache 9',
  'sentinel leader-epoch cache 8',
  'sentinel known-replica cache fd00::3 6379',
  `sentinel known-sentinel cache 10.0.0.8 26379 ${'8'.repeat(40)}`,
  'sentinel silent-failover-state cache 10.0.0.2 6379 "D 12"',
  'sentinel slave-can-auto-revert-to-configured-master cache no',
  'sentinel announce-ip "203.0.113.9"',
  'sentinel announce-port 5000',
  'sentinel sentinel-user peer',
  'sentinel sentinel-pass secret',
  'sentinel deny-scripts-reconfig NO',
  'requirepass secret',
  'sentinel',
  '',
].join('\r\n');

test('a real file, in any order of lines, says all of this', () => {
  const { globals, masters, server, faults, warnings } = load(REAL);
  expect([faults, warnings]).toEqual([[], []]);
  expect(globals).toEqual({
    ...{ myId: ID, currentEpoch: 9, announceIp: '203.0.113.9', announcePort: 5000, resolveHostnames: false, announceHostnames: false },
    ...{ denyScriptsReconfig: false, sentinelUser: 'peer', sentinelPass: 'secret' },
  });
  expect(masters).toEqual([{
    ...{ name: 'cache', host: '10.0.0.1', port: 6379, quorum: 2, downAfterMs: 5000, failoverTimeoutMs: 60000, parallelSyncs: 3 },
    ...{ notificationScript: '/opt/my scripts/notify', clientReconfigScript: '/opt/reconfig' },
    ...{ authUser: 'watcher', authPass: 'pass word # "x"' },
    ...{ masterRebootDownAfterMs: 700, renameCommands: new Map([['CONFIG', 'GUESSME']]), configEpoch: 9, leaderEpoch: 8 },
    knownReplicas: [{ host: '10.0.0.2', port: 6379 }, { host: 'fd00::3', port: 6379 }],
    knownSentinels: [{ address: { host: '10.0.0.8', port: 26379 }, runId: '8'.repeat(40) }],
    extra: new Map([['silent-failover-state', '10.0.0.2 6379 "D 12"'], ['slave-can-auto-revert-to-configured-master', 'no']]),
  }]);
  expect(Object.fromEntries(server)).toEqual({
    ...{ port: [['26379']], user: [['default', 'on', 'nopass', '~*', '&*', '+@all']] },
    ...{ bind: [['127.0.0.1', '::1']], requirepass: [['secret']] },
  });
});

test('an empty file is fine and all defaults', () => {
  const { globals, masters, server, faults } = load('');
  expect([masters, faults, server.size]).toEqual([[], [], 0]);
  expect(globals).toMatchObject({ myId: null, currentEpoch: 0, denyScriptsReconfig: true, announceIp: null });
});

/** Faults in the words of the server; the lines above stand for a file that monitors `m`. */
const FAULTS: readonly (readonly [line: string, message: string])[] = [
  ['sentinel monitor a 10.0.0.1 6379 0', 'Quorum must be 1 or greater.'],
  ['sentinel monitor a 10.0.0.1 70000 x', 'Quorum must be 1 or greater.'],
  ['sentinel monitor a 10.0.0.1 70000 1', 'Invalid port number.'],
  ['sentinel monitor a redis-a 70000 1', 'Invalid port number.'],
  ['sentinel monitor a 10.0.0.1 -1 1', 'Invalid port number.'],
  ['sentinel monitor a redis-a 6379 1', "Can't resolve instance hostname."],
  ['sentinel monitor a 10.0.0.256 6379 1', "Can't resolve instance hostname."],
  ['sentinel monitor m 10.0.0.2 6379 1', 'Duplicate master name.'],
  ['sentinel monitor a 10.0.0.1 6379', 'Unrecognized sentinel configuration statement.'],
  ['sentinel monitor a 10.0.0.1 6379 1 1', 'Unrecognized sentinel configuration statement.'],
  ['sentinel down-after-milliseconds m 0', 'negative or zero time parameter.'],
  ['sentinel down-after-milliseconds m x', 'negative or zero time parameter.'],
  ['sentinel failover-timeout m -1', 'negative or zero time parameter.'],
  ['sentinel master-reboot-down-after-period m -1', 'negative time parameter.'],
  ['sentinel failover-timeout M 1', 'No such master with specified name.'],
  ['sentinel auth-pass m', 'Unrecognized sentinel configuration statement.'],
  ['sentinel auth-user m a b', 'Unrecognized sentinel configuration statement.'],
  ['sentinel known-replica m redis-b 6379', "Can't resolve instance hostname."],
  ['sentinel known-replica m 10.0.0.1 65536', 'Invalid port number.'],
  [`sentinel known-sentinel m redis-b 26379 ${ID}`, "Can't resolve instance hostname."],
  ['sentinel rename-command m config b', 'Same command renamed multiple times with rename-command.'],
  [`sentinel myid ${ID}0`, 'Malformed Sentinel id in myid option.'],
  ['sentinel myid', 'Unrecognized sentinel configuration statement.'],
  ['sentinel announce-ip', 'Unrecognized sentinel configuration statement.'],
  ['sentinel resolve-hostnames maybe', 'Please specify yes or no for the resolve-hostnames option.'],
  ['sentinel announce-hostnames 1', 'Please specify yes or no for the announce-hostnames option.'],
  ['sentinel deny-scripts-reconfig ""', 'Please specify yes or no for the deny-scripts-reconfig options.'],
  ['sentinel current-epoch 18446744073709551615', 'Epoch is beyond 9007199254740991.'],
  ['sentinel config-epoch m 9007199254740992', 'Epoch is beyond 9007199254740991.'],
  ['sentinel leader-epoch m -1', 'Epoch is beyond 9007199254740991.'],
  ['sentinel constructor m 1', 'Unrecognized sentinel configuration statement.'],
  ['sentinel no-such-word m 1', 'Unrecognized sentinel configuration statement.'],
  ['sentinel silent-failover-timeout m', 'Unrecognized sentinel configuration statement.'],
  ['sentinel auth-user m a"b', 'Unbalanced quotes in configuration line'],
  ['port', 'wrong number of arguments'],
  ['port 1 2', 'wrong number of arguments'],
  ['user', 'Bad directive or wrong number of arguments'],
  ['include a b', 'Bad directive or wrong number of arguments'],
  ['include nowhere.conf', "Fatal error, can't open config file 'nowhere.conf'"],
];

describe('faults', () => {
  const base = ['sentinel monitor m 10.0.0.1 6379 1', 'sentinel rename-command m CONFIG a', ''];

  test.each(FAULTS)('%s', (line, message) => {
    const { faults, warnings } = load([...base, line].join('\n'));
    expect(faults).toEqual([{ path: 'sentinel.conf', line: 4, source: line, message }]);
    expect(warnings).toEqual([]);
  });

  test('all at once, in the order of the file and not of the passes', () => {
    const bad = ['sentinel auth-pass x y z', 'sentinel myid 1', 'port', 'sentinel monitor a b 1 1', 'sentinel failover-timeout zz 1'];
    expect(load(bad.join('\n')).faults.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5]);
  });

  test('a refused monitor line is the only one to blame', () => {
    const { faults } = load('sentinel failover-timeout a 1000\nsentinel monitor a nohost 1 1\nsentinel auth-pass a x');
    expect(faults.map(({ line, message }) => [line, message])).toEqual([[2, "Can't resolve instance hostname."]]);
  });

  test.each([
    ['sentinel auth-pass m "open', 'sentinel auth-pass m ***'],
    ['Sentinel Sentinel-Pass a b', 'Sentinel Sentinel-Pass ***'],
    ['requirepass my secret', 'requirepass ***'],
    ['user alice on >"secret', 'user alice ***'],
    ['tls-key-file-pass a b', 'tls-key-file-pass ***'],
  ])('no secret in the fault of: %s', (line, source) => {
    expect(load(line).faults).toMatchObject([{ source }]);
  });
});

describe('host names', () => {
  test('are allowed anywhere once resolve-hostnames says so, wherever that line stands', () => {
    const lines = ['sentinel monitor m redis-a 6379 1', 'sentinel known-replica m redis-b 6379', 'sentinel resolve-hostnames yes'];
    const { masters, faults } = load(lines.join('\n'));
    expect(faults).toEqual([]);
    expect(masters).toMatchObject([{ host: 'redis-a', knownReplicas: [{ host: 'redis-b', port: 6379 }] }]);
  });
});

describe('numbers as C reads them', () => {
  test('a port of letters is 0', () => {
    const { masters, faults } = load('sentinel monitor m 10.0.0.1 abc 1x\nsentinel parallel-syncs m many');
    expect(faults).toEqual([]);
    expect(masters).toMatchObject([{ port: 0, quorum: 1, parallelSyncs: 0 }]);
  });

  test('epochs only raise the current one', () => {
    const lines = ['sentinel current-epoch 7', 'sentinel monitor m 10.0.0.1 1 1', 'sentinel config-epoch m 5', 'sentinel current-epoch 3'];
    const { globals, masters } = load(lines.join('\n'));
    expect([globals.currentEpoch, masters[0]?.configEpoch]).toEqual([7, 5]);
  });
});

describe('warnings', () => {
  test('duplicates are merged, the later address of a sentinel counts, a sentinel without run id does not', () => {
    const { masters, faults, warnings } = load([
      'sentinel monitor m 10.0.0.1 6379 1',
      'sentinel known-slave m 10.0.0.2 6379',
      'sentinel known-replica m 10.0.0.2 6379',
      `sentinel known-sentinel m 10.0.0.8 26379 ${ID}`,
      `sentinel known-sentinel m 10.0.0.9 26379 ${ID}`,
      'sentinel known-sentinel m 10.0.0.7 26379',
    ].join('\n'));
    expect(faults).toEqual([]);
    expect(warnings.map(({ line }) => line)).toEqual([3, 5, 6]);
    expect(masters).toMatchObject([{
      knownReplicas: [{ host: '10.0.0.2', port: 6379 }],
      knownSentinels: [{ address: { host: '10.0.0.9', port: 26379 }, runId: ID }],
    }]);
  });

  test('an unknown directive is kept, a known one is silent', () => {
    const { server, faults, warnings } = load('Shiny-New-Thing a b\ntls-port 26380\nsave\nlatency-tracking-info-percentiles 50 99');
    expect(faults).toEqual([]);
    expect(warnings).toMatchObject([{ line: 1, message: "unknown directive 'shiny-new-thing' is kept but has no effect" }]);
    expect(server.get('shiny-new-thing')).toEqual([['a', 'b']]);
  });
});

describe('include', () => {
  test('stands for the lines of the other file, whose faults name it', () => {
    files.set('more.conf', 'port 2\nsentinel monitor m 10.0.0.1 6379 1\nsentinel myid short');
    const { masters, server, faults } = load('port 1\ninclude more.conf\nport 3\nsentinel auth-pass m x');
    expect(server.get('port')).toEqual([['1'], ['2'], ['3']]);
    expect(masters).toMatchObject([{ name: 'm', authPass: 'x' }]);
    expect(faults).toMatchObject([{ path: 'more.conf', line: 3 }]);
  });

  test.each(['before', 'behind'])('statements of the main file count over those of a file included %s them', (place) => {
    files.set('group.conf', [
      'sentinel monitor m 10.0.0.1 6379 1', 'sentinel down-after-milliseconds m 5000', 'sentinel rename-command m CONFIG old',
      'sentinel parallel-syncs m 3',
    ].join('\n'));
    const own = ['sentinel monitor m 10.0.0.2 6380 2', 'sentinel down-after-milliseconds m 7000', 'sentinel rename-command m config new'];
    const lines = place === 'before' ? ['include group.conf', ...own] : [...own, 'include group.conf'];
    const { masters, faults } = load(lines.join('\n'));
    expect(faults).toEqual([]);
    expect(masters).toMatchObject([{ host: '10.0.0.2', port: 6380, quorum: 2, downAfterMs: 7000, parallelSyncs: 3 }]);
    expect(masters[0]?.renameCommands).toEqual(new Map([['CONFIG', 'new']]));
  });

  test('twice in the main file, or twice in the included one, stays a fault', () => {
    files.set('twice.conf', 'sentinel monitor m 10.0.0.1 6379 1\nsentinel monitor m 10.0.0.2 6379 1');
    expect(load('include twice.conf').faults).toMatchObject([{ path: 'twice.conf', line: 2, message: 'Duplicate master name.' }]);
    const own = 'sentinel monitor m 10.0.0.3 6379 1';
    expect(load(`include twice.conf\n${own}\n${own}`).faults).toHaveLength(2);
  });

  test('a loop is a fault and not the end of the world', () => {
    files.set('loop.conf', 'include loop.conf');
    expect(load('include loop.conf').faults).toMatchObject([{ path: 'loop.conf', line: 1, message: 'includes are nested deeper than 16' }]);
  });
});
