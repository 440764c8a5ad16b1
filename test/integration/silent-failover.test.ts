/**
 * Silent failover on real servers: what every agent tells at prepare, done and abort, what is refused meanwhile, and where the
 * window's writes are afterwards.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import { MASTER_NAME, ask, fieldsOf, textOf, waitFor, type RedisNode } from './lab.js';
import { SilentLab } from './silent-lab.js';

const site = new SilentLab();
/** A client that came in the window. */
let late: { readonly redis: Redis; readonly write: Promise<string> } | null = null;
/** Another one, that asked DNS alone, and how often its connection has ended. */
let pooled: { readonly redis: Redis; ends: number } | null = null;
let [original, target, other]: RedisNode[] = [];

const words = ({ address }: RedisNode): string => `${address.host} ${address.port}`;
const switched = (from: RedisNode, to: RedisNode): string => `+switch-master ${MASTER_NAME} ${words(from)} ${words(to)}`;

beforeAll(async () => {
  await site.start();
  [original, target, other] = [site.node(0), site.node(1), site.node(2)];
}, 120_000);
beforeEach(() => site.forget());
afterAll(() => site.stop());

async function syncFull(node: RedisNode): Promise<number> {
  return Number(/sync_full:(\d+)/.exec(textOf(await ask(node, 'INFO', 'stats')))?.[1]);
}

describe('prepare and done', () => {
  test('prepare sends every client to the target while the original stays the master', async () => {
    expect(await site.silent(site.agent(0), target!, 'prepare')).toBe('OK');
    await site.allTell(target!);
    for (const agent of site.agents) {
      await waitFor(`the event of ${agent.name}`, 5_000, () => site.switches(agent).length > 0);
      expect(site.switches(agent)).toEqual([switched(original!, target!)]);
      await waitFor(() => `one call of the script, not ${site.calls(agent).join('; ')}`, 10_000, () => site.calls(agent).length === 1);
      expect(site.calls(agent)[0]).toMatch(new RegExp(`^${MASTER_NAME} (leader|observer) \\w+ ${words(original!)} ${words(target!)}$`));
      expect(await site.info(agent, 'total_silent_failover_prepare')).toBe(1);
    }
    expect(await site.role(original!)).toBe('master');
    expect(await site.role(target!)).toBe('slave');
  }, 60_000);

  test('SENTINEL MASTER shows the original at the initiator and the target elsewhere', async () => {
    const views = await Promise.all(site.agents.map(async (agent) => fieldsOf(await ask(agent, 'SENTINEL', 'MASTER', MASTER_NAME))));
    expect(views.map((view) => view.get('ip'))).toEqual([original!.address.host, target!.address.host, target!.address.host]);
    expect(views.map((view) => view.get('silent-initiator'))).toEqual(['1', '0', '0']);
    for (const view of views) {
      expect(view.get('flags')).toContain('silent_failover');
      expect(view.get('sentinel_flags')).toBe('silent_failover');
      expect(view.get('silent-target')).toBe(formatAddress(target!.address));
    }
    await waitFor('every agent waiting for done', 10_000, async () => {
      const states = await Promise.all(site.agents.map(async (agent) => fieldsOf(await ask(agent, 'SENTINEL', 'MASTER', MASTER_NAME))));
      return states.every((state) => state.get('failover-state') === 'wait_silent_done');
    });
  }, 30_000);

  test('writes of the window are taken by the target, those of the original still reach it', async () => {
    expect(textOf(await ask(target!, 'SET', 'window', 'target'))).toBe('OK');
    expect(textOf(await ask(original!, 'SET', 'late', 'original'))).toBe('OK');
    await waitFor('the late write at the target', 5_000, async () => textOf(await ask(target!, 'GET', 'late')) === 'original');
    expect(await site.onAll('window')).toEqual([null, 'target', null]);
    const { host, port } = target!.address;
    const redis = new Redis({ host, port, protocol: 2 });
    pooled = { redis, ends: 0 };
    redis.on('close', () => void pooled!.ends++);
    expect(await redis.set('pooled', 'window')).toBe('OK');
  });

  test('ioredis in Sentinel mode checks ROLE: it does not take the target before done', async () => {
    const redis = new Redis({
      sentinels: site.agents.map(({ address }) => ({ ...address })), name: MASTER_NAME, role: 'master',
      protocol: 2, sentinelRetryStrategy: () => 100, retryStrategy: () => 100, maxRetriesPerRequest: null,
    });
    redis.on('error', () => undefined);
    let refusals = 0;
    redis.on('sentinelError', () => void refusals++);
    redis.on('close', () => void refusals++);
    late = { redis, write: redis.set('ioredis', 'arrived') };
    late.write.catch(() => undefined);
    await waitFor('ioredis being refused a few times', 20_000, () => refusals > 2);
    expect(redis.status).not.toBe('ready');
    expect(await site.onAll('ioredis')).toEqual([null, null, null]);
  }, 30_000);

  test('what would break the move is refused, and changes nothing', async () => {
    const refusals: [string[], string][] = [
      [['RESET', MASTER_NAME], 'ERR This master is in silent failover state, can not reset'],
      [['REMOVE', MASTER_NAME], 'ERR This master is in silent failover state, can not remove'],
      [['MONITOR', MASTER_NAME, '127.0.0.9', '6379', '2'], 'ERR This master is in silent failover state, can not remove'],
      [['FAILOVER', MASTER_NAME], 'ERR Failover is already in progress'],
      [['FAILOVER', MASTER_NAME, 'COORDINATED'], 'ERR Failover is already in progress'],
      [['SILENT-FAILOVER', MASTER_NAME, formatAddress(other!.address), 'prepare'], 'ERR Failover is already in progress'],
      [['SILENT-FAILOVER', MASTER_NAME, formatAddress(other!.address), 'done'], `ERR Silent failover target is ${formatAddress(target!.address)}`],
      [['SILENT-FAILOVER', MASTER_NAME, formatAddress(other!.address), 'abort'], `ERR Silent failover target is ${formatAddress(target!.address)}`],
    ];
    for (const agent of site.agents) {
      for (const [argv, text] of refusals) expect([argv, textOf(await ask(agent, 'SENTINEL', ...argv))]).toEqual([argv, text]);
    }
    await site.allTell(target!);
    expect(site.agents.flatMap((agent) => site.switches(agent))).toEqual([]);
  }, 30_000);

  test('prepare again is OK and tells nobody anything', async () => {
    expect(await site.silent(site.agent(1), target!, 'PREPARE')).toBe('OK');
    expect(await site.silent(site.agent(0), target!, 'prepare')).toBe('OK');
    expect(site.agents.flatMap((agent) => site.switches(agent))).toEqual([]);
  }, 30_000);

  test('done at another agent makes the target the master; every node is copied in full and holds the window', async () => {
    const before = await syncFull(target!);
    expect(await site.silent(site.agent(1), target!, 'done')).toBe('OK');
    await site.waitForRole(target!, 'master');
    await site.allSay('+silent-failover-done');
    for (const agent of site.agents) expect(site.switches(agent)).toEqual([switched(original!, target!)]);
    await site.calm(target!);
    expect(await late!.write).toBe('OK');
    late!.redis.disconnect();
    expect(textOf(await ask(target!, 'GET', 'ioredis'))).toBe('arrived');
    // Whoever came in the window stays where it is.
    expect([await pooled!.redis.set('pooled', 'done'), pooled!.ends]).toEqual(['OK', 0]);
    pooled!.redis.disconnect();
    expect(await site.onAll('window')).toEqual(['target', 'target', 'target']);
    expect(await site.onAll('late')).toEqual(['original', 'original', 'original']);
    // More than two only where a busy leader was taken for dead.
    expect(await syncFull(target!) - before).toBeGreaterThanOrEqual(2);
    for (const agent of site.agents) expect(await site.info(agent, 'total_silent_failover_done')).toBe(1);
  }, 90_000);
});

describe('abort', () => {
  test('clients go back, the window is taken back from the target, and it is read-only', async () => {
    [original, target] = [target, original];
    expect(await site.silent(site.agent(2), target!, 'prepare')).toBe('OK');
    await site.allTell(target!);
    expect(textOf(await ask(target!, 'SET', 'regretted', 'yes'))).toBe('OK');
    expect(await site.silent(site.agent(0), target!, 'abort')).toBe('OK');
    await site.allTell(original!);
    await site.allSay('-silent-failover-abort');
    for (const agent of site.agents) expect(site.switches(agent)).toEqual([switched(original!, target!), switched(target!, original!)]);
    await site.calm(original!);
    expect(await site.onAll('regretted')).toEqual([null, null, null]);
    const write = await ask(target!, 'SET', 'more', 'yes');
    expect([write.kind, textOf(write)]).toEqual(['error', expect.stringMatching(/^READONLY/)]);
    expect(textOf(await ask(original!, 'SET', 'more', 'yes'))).toBe('OK');
    for (const agent of site.agents) expect(await site.info(agent, 'total_silent_failover_excp_abort')).toBe(1);
  }, 90_000);

  test('the read-only target is refused until it is made writable again', async () => {
    const reply = await site.silent(site.agent(0), target!, 'prepare');
    expect(reply).toMatch(/^ERR Slave status is not ready: it is read-only/);
    await ask(target!, 'CONFIG', 'SET', 'replica-read-only', 'no');
    await waitFor('the agent having read it', 15_000, async () => (await site.silent(site.agent(0), target!, 'prepare')) === 'OK');
    await site.allTell(target!);
  }, 60_000);

  test('each agent comes back from a crash in the prepared state and tells the target at once', async () => {
    for (const agent of site.agents) {
      await site.restart(agent);
      await site.allTell(target!, 15_000, [agent]);
      expect((await site.status(agent)).get('effective')).toBe('1');
    }
    await site.allTell(target!);
    expect(await site.silent(site.agent(0), target!, 'done')).toBe('OK');
    await site.calm(target!);
  }, 120_000);
});
