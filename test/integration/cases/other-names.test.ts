/**
 * Nodes that want a password and know their commands by other names, links from a given address, and what is announced instead of
 * where we are: one sentinel, a master and two replicas.
 */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freePort, MASTER_NAME, waitFor } from '../lab.js';
import { addressOf, Bench, fieldsOf, hurry, ready, tell, type Started } from './bench.js';

const bench = new Bench();
const nodes: Started[] = [];
let sentinel: Started;

const NAMES = [
  ...[['subscribe', 'listento'], ['info', 'report'], ['slaveof', 'moveto'], ['config', 'settings']],
  ...[['multi', 'begin'], ['exec', 'commit'], ['role', 'whoareyou']],
];
const SOURCE = '127.0.0.77';

async function node(name: string, extra: readonly string[] = []): Promise<void> {
  const port = await freePort();
  const renames = NAMES.flatMap(([command, renamed]) => ['--rename-command', command!, renamed!]);
  const master = nodes[0]?.access.port;
  const replicaOf = master === undefined ? [] : ['--replicaof', '127.0.0.1', String(master)];
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--requirepass', 'n0de', '--masterauth', 'n0de', ...renames, ...replicaOf, ...extra];
  nodes.push(await bench.redis(name, args, { access: { host: '127.0.0.1', port, password: 'n0de' } }));
}

beforeAll(async () => {
  await node('master');
  await node('replica1');
  await node('replica2', ['--replica-announced', 'no', '--replica-priority', '0']);
  const port = await freePort();
  const lines = [
    ...[`port ${port}`, 'bind 127.0.0.1', `bind-source-addr ${SOURCE}`, 'sentinel announce-ip 127.0.0.99', 'sentinel announce-port 4242'],
    ...[`sentinel monitor ${MASTER_NAME} 127.0.0.1 ${nodes[0]!.access.port} 1`, `sentinel down-after-milliseconds ${MASTER_NAME} 1500`],
    `sentinel auth-pass ${MASTER_NAME} n0de`,
    ...NAMES.map(([command, renamed]) => `sentinel rename-command ${MASTER_NAME} ${command} ${renamed}`),
  ];
  sentinel = await bench.sentinel('sentinel', lines, { access: { host: '127.0.0.1', port } });
  await hurry([sentinel]);
  await ready(bench, [sentinel], 1, 30_000);
}, 240_000);

afterAll(() => bench.stop());

test('all links come from bind-source-addr, and hellos name what is announced', async () => {
  const list = String(await tell(nodes[0]!, 'CLIENT', 'LIST'));
  const ours = list.split('\n').filter((line) => line.includes('name=sentinel-'));
  expect(ours).toHaveLength(2);
  for (const line of ours) expect(line).toContain(` addr=${SOURCE}:`);

  const { access } = nodes[1]!;
  const listener = new Redis({ ...access, enableReadyCheck: false, protocol: 2 });
  listener.on('error', () => undefined);
  // The library's own SUBSCRIBE has no such name here; MONITOR shows the hellos as they come.
  const monitor = await listener.monitor();
  const hellos: string[] = [];
  monitor.on('monitor', (_time: string, argv: string[]) => hellos.push(argv.join(' ')));
  await waitFor(() => `a hello among ${hellos.join('; ')}`, 10_000, () => hellos.some((line) => /^publish __sentinel__:hello/i.test(line)));
  monitor.disconnect();
  listener.disconnect();
  expect(hellos.find((line) => /^publish/i.test(line))).toMatch(/__sentinel__:hello 127\.0\.0\.99,4242,[0-9a-f]{40},/);
}, 30_000);

test('an unannounced replica is watched and counted, not shown', async () => {
  const shown = (await tell(sentinel, 'SENTINEL', 'REPLICAS', MASTER_NAME)) as unknown[];
  expect(shown.map((each) => fieldsOf(each).get('port'))).toEqual([String(nodes[1]!.access.port)]);
  expect(fieldsOf(await tell(sentinel, 'SENTINEL', 'MASTER', MASTER_NAME)).get('num-slaves')).toBe('2');
}, 20_000);

test('the failover is carried out by the other names', async () => {
  nodes[0]!.child.kill('SIGKILL');
  await waitFor(() => `a promotion\n${bench.logs()}`, 20_000, async () => (await addressOf(sentinel)) === `127.0.0.1:${nodes[1]!.access.port}`);
  expect(((await tell(nodes[1]!, 'whoareyou')) as unknown[])[0]).toBe('master');
  await waitFor(() => `the other replica behind it\n${bench.logs()}`, 20_000, async () =>
    String(await tell(nodes[2]!, 'whoareyou')).startsWith(`slave,127.0.0.1,${nodes[1]!.access.port},connected`));
}, 60_000);
