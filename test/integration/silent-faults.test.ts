/**
 * A prepared silent failover and what can go wrong, on real processes: nodes and sentinels that die, a done that never comes, two
 * prepares at once, a window that was overwritten, wrong uses, a stock sentinel in the group.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import { MASTER_NAME, ask, textOf, waitFor, type LabSentinel, type RedisNode } from './lab.js';
import { SilentLab, askSlowly } from './silent-lab.js';

const DOWN_AFTER_MS = 3_000;
const FAULT_LIMIT_MS = 40_000;

describe('three agents', () => {
  const site = new SilentLab();
  let master: RedisNode;

  beforeAll(async () => {
    master = await site.start({ downAfterMs: DOWN_AFTER_MS, redisArgs: ['--repl-backlog-size', '16kb'] });
  }, 120_000);
  beforeEach(() => site.forget());
  afterAll(() => site.stop());

  const replicas = (): [RedisNode, RedisNode] => {
    const [first, second] = site.lab.nodes.filter((node) => node !== master);
    return [first!, second!];
  };

  /** Everything is calm, and every replica may be a target. */
  async function ready(): Promise<void> {
    await site.calm(master, 60_000);
    for (const node of site.lab.nodes) await ask(node, 'CONFIG', 'SET', 'replica-read-only', 'no');
  }

  async function prepared(agent: LabSentinel, target: RedisNode): Promise<void> {
    let reply = '';
    await waitFor(() => `prepare: ${reply}\n${site.lab.logs(25)}`, FAULT_LIMIT_MS, async () => {
      reply = await site.silent(agent, target, 'prepare');
      return reply === 'OK';
    });
    await site.allTell(target);
  }

  test('C07: every wrong use is one clear error, changes nothing, and the master takes writes', async () => {
    await ready();
    const [target] = replicas();
    const uses: [string[], RegExp][] = [
      [[formatAddress(target.address), 'done'], /^ERR No silent failover in progress for this master$/],
      [[formatAddress(target.address), 'abort'], /^ERR No silent failover in progress for this master$/],
      [[formatAddress(master.address), 'prepare'], /^ERR Slave status is not ready: it is the master itself$/],
      [['127.0.0.9:6379', 'prepare'], /^ERR Slave status is not ready: it is no replica of this master$/],
      [['[::1]:7002', 'prepare'], /^ERR Slave status is not ready: it is no replica of this master$/],
      [['nonsense', 'prepare'], /^ERR Invalid target, expected ip:port$/],
      [[formatAddress(target.address), 'perpare'], /^ERR Unknown phase, expected prepare, done, abort or status$/],
      [[formatAddress(target.address)], /^ERR Unknown phase, expected prepare, done, abort or status$/],
      [[formatAddress(target.address), 'prepare', 'now'], /^ERR wrong number of arguments/],
    ];
    for (const [words, expected] of uses) {
      expect(textOf(await ask(site.agent(0), 'SENTINEL', 'SILENT-FAILOVER', MASTER_NAME, ...words))).toMatch(expected);
    }
    expect(textOf(await ask(site.agent(0), 'SENTINEL', 'SILENT-FAILOVER', 'nobody', formatAddress(target.address), 'prepare')))
      .toBe('ERR No such master with that name');
    await site.allTell(master);
    expect(site.agents.flatMap((agent) => site.switches(agent))).toEqual([]);
    expect(textOf(await ask(master, 'SET', 'still', 'here'))).toBe('OK');
  }, 90_000);

  test('the original dies: the target is promoted, although another replica has a better priority; the window is on every node', async () => {
    await ready();
    const [target, better] = replicas();
    await ask(better, 'CONFIG', 'SET', 'replica-priority', '1');
    await prepared(site.agent(0), target);
    expect(textOf(await ask(target, 'SET', 'window', 'kept'))).toBe('OK');
    const old = master;
    old.child.kill('SIGKILL');
    await site.waitForRole(target, 'master', FAULT_LIMIT_MS);
    await site.allSay('+silent-failover-done', FAULT_LIMIT_MS);
    await site.allTell(target);
    await site.lab.restartRedis(old);
    master = target;
    await site.lab.settled(master, FAULT_LIMIT_MS);
    await waitFor('the window on every node', FAULT_LIMIT_MS, async () => (await site.onAll('window')).every((value) => value === 'kept'));
    await ask(better, 'CONFIG', 'SET', 'replica-priority', '100');
  }, 150_000);

  test('the target dies: clients are sent back, and another prepare works', async () => {
    await ready();
    const [target, other] = replicas();
    await prepared(site.agent(1), target);
    target.child.kill('SIGKILL');
    await site.allTell(master, FAULT_LIMIT_MS);
    await site.allSay('-silent-failover-abort', FAULT_LIMIT_MS);
    expect(await site.role(master)).toBe('master');
    await prepared(site.agent(2), other);
    expect(await site.silent(site.agent(0), other, 'abort')).toBe('OK');
    await site.allTell(master);
    await site.lab.restartRedis(target);
    await ask(target, 'REPLICAOF', master.address.host, String(master.address.port));
  }, 150_000);

  test('the initiator dies: done at another agent', async () => {
    await ready();
    const [target] = replicas();
    await prepared(site.agent(0), target);
    const initiator = site.agent(0);
    initiator.child.kill('SIGKILL');
    await initiator.child.ended;
    expect(textOf(await ask(target, 'SET', 'orphaned', 'kept'))).toBe('OK');
    expect(await site.silent(site.agent(2), target, 'done')).toBe('OK');
    await site.waitForRole(target, 'master');
    master = target;
    await site.restart(initiator);
    await site.calm(master, 60_000);
    expect(await site.onAll('orphaned')).toEqual(['kept', 'kept', 'kept']);
  }, 150_000);

  test('done never comes: silent-failover-timeout sends clients back', async () => {
    await ready();
    const [target] = replicas();
    for (const agent of site.agents) await ask(agent, 'SENTINEL', 'SET', MASTER_NAME, 'silent-failover-timeout', '5000');
    await prepared(site.agent(0), target);
    expect(Number((await site.status(site.agent(1))).get('deadline-ms'))).toBeGreaterThan(0);
    await site.allTell(master, FAULT_LIMIT_MS);
    await site.allSay('-silent-failover-abort', FAULT_LIMIT_MS);
    for (const agent of site.agents) await ask(agent, 'SENTINEL', 'SET', MASTER_NAME, 'silent-failover-timeout', '0');
  }, 120_000);

  const PAIRS: [string, number][] = [['the same target', 0], ['different targets', 1]];
  test.each(PAIRS)('two prepares at once, %s: one state everywhere, and it can be ended', async (_what, second) => {
    await ready();
    const targets = [replicas()[0], replicas()[second]!];
    const argv = (target: RedisNode): string[] => ['SENTINEL', 'SILENT-FAILOVER', MASTER_NAME, formatAddress(target.address), 'prepare'];
    const replies = await Promise.all(targets.map(async (target, index) => textOf(await askSlowly(site.agent(index), argv(target!)))));
    for (const reply of replies) expect(reply).toMatch(/^(?:OK|NOQUORUM|ERR Failover is already in progress|ERR Slave status is not ready)/);
    // Whoever lost may have won nothing at all: then one of them tries again.
    if (!replies.includes('OK')) {
      const again = async (): Promise<boolean> => (await site.silent(site.agent(0), targets[0]!, 'prepare')) === 'OK';
      await waitFor(() => `one prepare\n${site.lab.logs(25)}`, FAULT_LIMIT_MS, again);
    }
    let states: string[] = [];
    await waitFor(() => `one target everywhere, not ${states.join()}\n${site.lab.logs(25)}`, FAULT_LIMIT_MS, async () => {
      states = await Promise.all(site.agents.map(async (agent) => (await site.status(agent)).get('target') ?? ''));
      return new Set(states).size === 1 && states[0] !== '';
    });
    const won = site.lab.nodes.find(({ address }) => formatAddress(address) === states[0])!;
    await site.allTell(won, FAULT_LIMIT_MS);
    await waitFor('its end', FAULT_LIMIT_MS, async () => (await site.silent(site.agent(2), won, 'abort')) === 'OK');
    await site.allTell(master, FAULT_LIMIT_MS);
  }, 150_000);

  test('C04: a full resync of the target in the window taints it: done is refused, abort works, nothing is promoted', async () => {
    await ready();
    const [target] = replicas();
    await prepared(site.agent(0), target);
    // The baseline of the check is the first report since.
    await waitFor('the reports', 10_000, async () => (await site.status(site.agent(1))).get('effective') === '1');
    for (let index = 0; index < 10; index++) await ask(target, 'SET', `window:${index}`, 'lost');
    target.child.kill('SIGSTOP');
    const block = 'x'.repeat(60_000);
    for (let index = 0; index < 4; index++) await ask(master, 'SET', 'filler', block + String(index));
    await ask(master, 'CLIENT', 'KILL', 'TYPE', 'replica');
    for (let index = 0; index < 4; index++) await ask(master, 'SET', 'filler', String(index) + block);
    target.child.kill('SIGCONT');
    await site.allSay('+silent-failover-tainted', FAULT_LIMIT_MS);
    expect((await site.status(site.agent(2))).get('tainted')).not.toBe('');
    expect(await site.silent(site.agent(1), target, 'done')).toMatch(/^ERR Silent failover is tainted: /);
    expect(await site.silent(site.agent(1), target, 'abort')).toBe('OK');
    await site.allTell(master, FAULT_LIMIT_MS);
    expect(await site.role(target)).toBe('slave');
  }, 150_000);

  test('without a majority prepare is refused and nobody is told anything', async () => {
    await ready();
    const [target] = replicas();
    const away = [site.agent(1), site.agent(2)];
    for (const agent of away) agent.child.kill('SIGSTOP');
    try {
      let reply = '';
      await waitFor(() => `NOQUORUM, not ${reply}`, FAULT_LIMIT_MS, async () => {
        reply = await site.silent(site.agent(0), target, 'prepare');
        return reply.startsWith('NOQUORUM');
      });
      expect(site.switches(site.agent(0))).toEqual([]);
      expect(textOf(await ask(master, 'SET', 'alone', 'yes'))).toBe('OK');
    } finally {
      for (const agent of away) agent.child.kill('SIGCONT');
    }
  }, 120_000);
});

describe('a stock sentinel in the group', () => {
  const site = new SilentLab();

  beforeAll(async () => {
    await site.start({ agents: 2, stock: 1 });
  }, 120_000);
  afterAll(() => site.stop());

  test('prepare is refused by its name, unless mixed groups are allowed; then both of ours move', async () => {
    const stock = site.lab.sentinels.find(({ kind }) => kind === 'stock')!;
    const target = site.node(1);
    const refusal = `ERR Sentinel ${formatAddress(stock.address)} does not support silent failover`;
    expect(await site.silent(site.agent(0), target, 'prepare')).toBe(refusal);
    const allow = ['SENTINEL', 'SET', MASTER_NAME, 'silent-failover-allow-mixed', 'yes'];
    for (const agent of site.agents) expect(textOf(await ask(agent, ...allow))).toBe('OK');
    expect(await site.silent(site.agent(0), target, 'prepare')).toBe('OK');
    await site.allTell(target);
    expect(textOf(await ask(target, 'SET', 'mixed', 'kept'))).toBe('OK');
    expect(await site.silent(site.agent(1), target, 'done')).toBe('OK');
    await site.waitForRole(target, 'master');
    await site.calm(target, 60_000);
    expect(await site.onAll('mixed')).toEqual(['kept', 'kept', 'kept']);
  }, 120_000);
});
