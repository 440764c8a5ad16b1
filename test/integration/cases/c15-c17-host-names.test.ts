/**
 * Cases C15 and C17: host names are announced, so names are all that anybody gets to see, also after failovers, a restart, and a
 * node's move to another IP; and look-ups that take 6 s or fail hold nothing up, since the last known IP is used.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { freePort, MASTER_NAME, waitFor } from '../lab.js';
import { addressOf, Bench, fieldsOf, hurry, masterOf, ready, tell, type Started } from './bench.js';
import { Names, slowResolver } from './names.js';

const bench = new Bench();
const HOSTS: Record<string, string> = { 'a.redis.lab': '127.0.0.11', 'b.redis.lab': '127.0.0.12', 'c.redis.lab': '127.0.0.13' };
const names = new Names(bench.folder, HOSTS);
const nodes: Started[] = [];
const sentinels: Started[] = [];
let port = 0;

const argsOf = (host: string, ip: string): string[] => ['--port', String(port), '--bind', ip, '--replica-announce-ip', host];

async function node(host: string): Promise<void> {
  const ip = HOSTS[host]!;
  const follow = nodes.length === 0 ? [] : ['--replicaof', 'a.redis.lab', String(port)];
  nodes.push(await bench.redis(host, [...argsOf(host, ip), ...follow], { access: { host: ip, port }, wrap: names.wrap }));
}

async function sentinel(name: string, env?: NodeJS.ProcessEnv): Promise<Started> {
  const own = await freePort();
  const lines = [
    ...[`port ${own}`, 'bind 127.0.0.1', 'sentinel resolve-hostnames yes', 'sentinel announce-hostnames yes'],
    ...[`sentinel monitor ${MASTER_NAME} a.redis.lab ${port} 2`],
    ...[`sentinel down-after-milliseconds ${MASTER_NAME} 1500`, `sentinel failover-timeout ${MASTER_NAME} 5000`],
  ];
  return bench.sentinel(name, lines, { access: { host: '127.0.0.1', port: own }, wrap: names.wrap, ...(env === undefined ? {} : { env }) });
}

beforeAll(async () => {
  port = await freePort(Object.values(HOSTS));
  for (const host of Object.keys(HOSTS)) await node(host);
  sentinels.push(await sentinel('s1'));
  // Every look-up takes 6 s here, and that of the node that will be killed then fails.
  sentinels.push(await sentinel('s2', slowResolver(bench.folder, 6_000, ['a.redis.lab'])));
}, 240_000);

afterAll(() => bench.stop());

test('a name that cannot be looked up at the start is asked for again, not given up', async () => {
  const [, slow] = sentinels as [Started, Started];
  // The name exists nowhere for s2 until the other sentinel's hello and the master's list can't help either: it stays unconnected.
  expect((await masterOf(slow)).get('flags')).toMatch(/disconnected/);
  expect(bench.logOf(slow)).not.toContain('tilt');
  slow.child.kill('SIGTERM');
  await slow.child.ended;
  await bench.restart(slow, slow.argv, slowResolver(bench.folder, 6_000, []));
  await hurry(sentinels);
  await ready(bench, sentinels, 2, 60_000);
}, 90_000);

test('C17: with look-ups of 6 s and NXDOMAIN for the dead node the failover takes no longer, and PING is answered all the while', async () => {
  const [quick, slow] = sentinels as [Started, Started];
  // From now on the dead node's name is gone for everybody.
  names.set({ 'b.redis.lab': HOSTS['b.redis.lab']!, 'c.redis.lab': HOSTS['c.redis.lab']! });
  nodes[0]!.child.kill('SIGKILL');
  const fromMs = performance.now();
  let slowestMs = 0;
  await waitFor(() => `the promotion\n${bench.logs()}`, 20_000, async () => {
    const askedMs = performance.now();
    expect(await tell(slow, 'PING')).toBe('PONG');
    slowestMs = Math.max(slowestMs, performance.now() - askedMs);
    return (await addressOf(slow)).match(/^[bc]\.redis\.lab:/) !== null && (await addressOf(quick)) === (await addressOf(slow));
  });
  // down-after and 5 s; a laden machine gets some more.
  expect(performance.now() - fromMs).toBeLessThan(1_500 + 5_000 + 3_000);
  expect(slowestMs).toBeLessThan(1_000);
  for (const each of sentinels) expect(bench.logOf(each)).not.toContain('+tilt');
}, 60_000);

/** Everything that the sentinels show or keep, where addresses stand. */
async function shownHosts(): Promise<string[]> {
  const shown: string[] = [];
  for (const each of sentinels) {
    const replicas = await tell(each, 'SENTINEL', 'REPLICAS', MASTER_NAME);
    const all = [await masterOf(each), ...(Array.isArray(replicas) ? replicas.map(fieldsOf) : [])];
    shown.push(...all.map((fields) => fields.get('ip') ?? ''));
    const lines = readFileSync(each.conf, 'utf8').matchAll(/^sentinel (?:monitor|known-replica) \S+ (\S+)/gm);
    for (const [, host] of lines) shown.push(host ?? '');
  }
  return shown;
}

async function live(): Promise<Started[]> {
  const answers = await Promise.all(nodes.map(async (each) => [each, String(await tell(each, 'ROLE'))] as const));
  return answers.filter(([, role]) => /^(?:master|slave)/.test(role)).map(([each]) => each);
}

test('C15: names only, after failovers, a restart, and a move of one node to another IP', async () => {
  names.set(HOSTS);
  const old = nodes[0]!;
  old.child = bench.children.start(old.name, [...names.wrap, ...argvAlone(old)], old.folder);
  await ready(bench, sentinels, 2, 60_000);
  const isName = (host: string): boolean => /^[abc]\.redis\.lab$/.test(host);
  expect((await shownHosts()).filter((host) => !isName(host))).toEqual([]);

  const before = await addressOf(sentinels[0]!);
  expect(await tell(sentinels[0]!, 'SENTINEL', 'FAILOVER', MASTER_NAME)).toBe('OK');
  await waitFor(() => `a second failover\n${bench.logs()}`, 30_000, async () => {
    const [first, second] = await Promise.all(sentinels.map((each) => addressOf(each)));
    return first !== before && first === second;
  });
  await ready(bench, sentinels, 2, 60_000);

  // One of the replicas moves; the sentinels are restarted at the same time.
  const master = await addressOf(sentinels[0]!);
  const mover = nodes.find(({ name }) => !master.startsWith(name))!;
  for (const { child } of [mover, ...sentinels]) {
    child.kill('SIGTERM');
    await child.ended;
  }
  names.set({ ...HOSTS, [mover.name]: '127.0.0.22' });
  const moved = { ...mover, access: { host: '127.0.0.22', port } };
  nodes[nodes.indexOf(mover)] = moved;
  const argv = [...names.wrap, ...argvAlone(mover, '127.0.0.22'), '--replicaof', ...master.split(':')];
  moved.child = bench.children.start(mover.name, argv, mover.folder);
  for (const each of sentinels) await bench.restart(each);
  await ready(bench, sentinels, 2, 60_000);
  expect((await shownHosts()).filter((host) => !isName(host))).toEqual([]);
  for (const each of sentinels) expect((await masterOf(each)).get('num-slaves')).toBe('2');
  expect(await live()).toHaveLength(3);
  for (const each of nodes) {
    const [role, host] = (await tell(each, 'ROLE')) as string[];
    // REPLICAOF got the name; nobody follows himself.
    if (role === 'slave') expect(`${host}:${port}`).toBe(master);
    else expect(`${each.name}:${port}`).toBe(master);
  }
}, 240_000);

/** The node's command line without whom it follows, at another IP if given. */
function argvAlone(node: Started, ip = HOSTS[node.name]!): string[] {
  const words = node.argv.slice(names.wrap.length);
  const follow = words.indexOf('--replicaof');
  const alone = follow < 0 ? words : [...words.slice(0, follow), ...words.slice(follow + 3)];
  return alone.map((word, at) => (alone[at - 1] === '--bind' ? ip : word));
}
