/**
 * Coordinated failover on real servers: a chosen target, no write lost, clients cut, nothing left paused, and what is refused.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import { MASTER_NAME, ask, textOf, waitFor, type RedisNode } from './lab.js';
import { SilentLab } from './silent-lab.js';

const site = new SilentLab();
let original: RedisNode;

beforeAll(async () => {
  original = await site.start({ redisArgs: ['--replica-read-only', 'yes'] });
}, 120_000);
afterAll(() => site.stop());

function coordinated(target: RedisNode | string): Promise<string> {
  const words = typeof target === 'string' ? target : formatAddress(target.address);
  return site.patiently(site.agent(1), ['SENTINEL', 'FAILOVER', MASTER_NAME, 'COORDINATED', words]);
}

/** A write that waits would show a pause that was left behind. */
async function takesWrites(node: RedisNode): Promise<void> {
  expect(textOf(await ask(node, 'SET', 'probe', node.name))).toBe('OK');
}

describe('refused without any change', () => {
  test.each([
    ['the master itself', () => formatAddress(original.address), /^NOGOODSLAVE/],
    ['an unknown node', () => '127.0.0.9:6379', /^NOGOODSLAVE/],
    ['no address', () => 'nonsense', /^ERR Invalid target/],
  ])('%s', async (_what, target, reply) => {
    expect(await coordinated(target())).toMatch(reply);
    await site.allTell(original);
    await takesWrites(original);
  });
});

/** Open connections on a node: idle, subscribed, blocked, in a transaction. */
async function openClients({ address }: RedisNode): Promise<{ name: string; closed: Promise<void> }[]> {
  const open = async (name: string, begin: (redis: Redis) => Promise<unknown>) => {
    const redis = new Redis({ ...address, protocol: 2, retryStrategy: () => null, maxRetriesPerRequest: 0 });
    redis.on('error', () => undefined);
    const closed = new Promise<void>((done) => redis.once('close', done));
    await begin(redis);
    return { name, closed };
  };
  return [
    await open('idle', (redis) => redis.ping()),
    await open('subscribed', (redis) => redis.subscribe('news')),
    // The reply never comes; the connection ends first.
    await open('blocked', async (redis) => {
      await redis.ping();
      redis.blpop('nothing', 0).catch(() => undefined);
    }),
    await open('in a transaction', async (redis) => {
      await redis.call('MULTI');
      await redis.call('SET', 'never', 'done');
    }),
  ];
}

test('C06, C05 (b): the wanted target is promoted, every kind of client of the old master is cut, no acknowledged write is missing', async () => {
  const target = site.node(2);
  const clients = await openClients(original);
  let acknowledged = 0;
  let isOver = false;
  const writer = (async () => {
    while (!isOver) {
      const reply = await ask(original, 'INCR', 'ledger').catch(() => null);
      if (reply?.kind !== 'integer') return;
      acknowledged = reply.value;
    }
  })();
  await waitFor('some writes', 10_000, () => acknowledged > 20);
  expect(await coordinated(target)).toBe('OK');
  await site.waitForRole(target, 'master');
  for (const { closed } of clients) await closed;
  isOver = true;
  await writer;
  await site.allTell(target);
  await site.lab.settled(target, 40_000);
  expect(Number(textOf(await ask(target, 'GET', 'ledger')))).toBeGreaterThanOrEqual(acknowledged);
  expect(new Set(await site.onAll('ledger')).size).toBe(1);
  expect(await site.onAll('never')).toEqual([null, null, null]);
  const switched = `+switch-master ${MASTER_NAME} ${original.address.host} ${original.address.port} ${target.address.host} ${target.address.port}`;
  await site.allSay('+switch-master');
  for (const agent of site.agents) expect(site.switches(agent)).toEqual([switched]);
  await takesWrites(target);
  original = target;
}, 90_000);

test('plain SENTINEL FAILOVER takes the same way and leaves nothing paused', async () => {
  expect(await site.patiently(site.agent(0), ['SENTINEL', 'FAILOVER', MASTER_NAME])).toBe('OK');
  const old = original;
  await site.waitForRole(old, 'slave');
  original = await promoted(old);
  await site.lab.settled(original, 40_000);
  await takesWrites(original);
  // The old one answers a write at once: READONLY, not silence.
  expect(textOf(await ask(old, 'SET', 'probe', 'old'))).toMatch(/^READONLY/);
}, 90_000);

async function promoted(old: RedisNode): Promise<RedisNode> {
  const found: RedisNode[] = [];
  await waitFor('a new master', 20_000, async () => {
    for (const node of site.lab.nodes) if (node !== old && (await site.role(node)) === 'master') found.push(node);
    return found.length > 0;
  });
  return found[0]!;
}

test('a target that can not catch up: given up, the original is writable, and no other node is promoted', async () => {
  const target = site.lab.nodes.find((node) => node !== original)!;
  const agent = site.agent(1);
  expect(textOf(await ask(agent, 'SENTINEL', 'SET', MASTER_NAME, 'coordinated-max-pause', '1500'))).toBe('OK');
  target.child.kill('SIGSTOP');
  try {
    expect(await coordinated(target)).toBe('OK');
    await waitFor(() => `the end of it, not ${site.events(agent).join('; ')}`, 20_000, () =>
      site.events(agent).some((event) => event.startsWith('-failover-abort-slave-timeout')));
    await takesWrites(original);
    expect(await site.role(original)).toBe('master');
  } finally {
    target.child.kill('SIGCONT');
  }
  await site.lab.settled(original, 60_000);
}, 120_000);
