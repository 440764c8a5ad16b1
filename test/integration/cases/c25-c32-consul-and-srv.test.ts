/**
 * C25, C29, C31: three whole agents before a real Consul, every request seen: nothing is written without a change, one write per
 * change, a half-open link ends, agent mode keeps to the agent's endpoints. C32: SRV leads nowhere but to the primary.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConsulProxy, ConsulServer } from '../consul-lab.js';
import { Lab, MAIN, MASTER_NAME, NAME, ask, query, waitFor } from '../lab.js';
import type { LabSentinel, RedisNode } from '../lab.js';

const pause = (ms: number): Promise<void> => new Promise((done) => { setTimeout(done, ms); });

let consul: ConsulServer;
beforeAll(async () => { consul = await ConsulServer.start(); });
afterAll(async () => { await consul.end(); });

describe('catalog mode', () => {
  const lab = new Lab();
  let proxy: ConsulProxy;
  let master: RedisNode;

  beforeAll(async () => {
    proxy = await new ConsulProxy(consul).open();
    master = await lab.group(2);
    const spec = { yaml: [`consul: { address: "${proxy.url}" }`], lines: [`sentinel failover-timeout ${MASTER_NAME} 4000`] };
    for (let index = 0; index < 3; index++) await lab.agent(master, spec);
    await lab.settled(master, 60_000);
    await waitFor('the replicas in Consul', 30_000, async () => (await consul.passing(`${MASTER_NAME}-replica`)).length === 2);
  });
  afterAll(async () => {
    await lab.stop();
    await proxy.close();
  });

  test('C29: nothing changes, nothing is written; a restarted agent writes nothing either, and no check is reset', async () => {
    await pause(3_000);
    const [before, indexes] = [proxy.writes.length, await consul.indexes(MASTER_NAME)];
    await pause(25_000);
    const [agent] = lab.sentinels as [LabSentinel];
    agent.child.kill('SIGTERM');
    await agent.child.ended;
    await lab.restartSentinel(agent);
    await lab.settled(master, 30_000);
    await pause(5_000);
    expect(proxy.writes.slice(before)).toEqual([]);
    expect(await consul.indexes(MASTER_NAME)).toBe(indexes);
  });

  test('C29: three agents make one write of a change', async () => {
    const before = proxy.writes.length;
    const [agent] = lab.sentinels as [LabSentinel];
    expect(JSON.stringify(await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME))).toContain('OK');
    await waitFor(() => `the move in Consul\n${lab.logs()}`, 30_000, async () => {
      const passing = await consul.passing(MASTER_NAME);
      return passing.length === 1 && passing[0] !== `${master.address.host}:${master.address.port}`;
    });
    const [host] = ((await consul.passing(MASTER_NAME))[0] ?? '').split(':');
    master = lab.nodes.find(({ address }) => address.host === host) as RedisNode;
    await lab.settled(master, 60_000);
    await pause(2_000);
    const moves = proxy.writes.slice(before).filter(({ operations }) => operations.some((operation) => 'KV' in operation && operation.KV.Verb === 'cas'));
    // The one that carries the new order; what the epoch does not decide (a replica's health) is the keeper's and holds the key still.
    const orders = new Set(proxy.orders.slice(-moves.length));
    expect(orders.size).toBe(1);
    const switching = moves.filter(({ operations }) => operations.some((operation) => 'Service' in operation && JSON.stringify(operation).includes('"primary"')));
    expect(switching).toHaveLength(1);
  });

  test('C25: ours are synthetic nodes, marked external, that no live agent owns; they stay', async () => {
    const nodes = (await consul.get('/v1/catalog/nodes')) as { Node: string; Meta: Record<string, string> | null }[];
    const ours = nodes.filter(({ Node }) => Node.startsWith('pointsman-'));
    expect(ours).toHaveLength(3);
    for (const { Meta } of ours) expect(Meta).toMatchObject({ 'external-node': 'true', 'external-probe': 'false', pointsman: MASTER_NAME });
    // A live node's name can't even be configured.
    const yaml = join(lab.folder, 'live.yaml');
    writeFileSync(yaml, ['sentinel: { config: sentinel.conf }', 'consul: { node: host-1 }', ''].join('\n'));
    const check = spawnSync(process.execPath, [MAIN, 'check', '--config', yaml], { encoding: 'utf8' });
    expect([check.status, check.stderr]).toEqual([64, expect.stringContaining('consul.node: unknown key')]);
  });

  test('C31: a half-open Consul costs one warning per agent and under two requests a second, and the next change arrives after it', async () => {
    const [agent] = lab.sentinels as [LabSentinel];
    const logsFrom = lab.sentinels.map(({ child }) => readFileSync(child.logPath, 'utf8').length);
    proxy.mode = 'swallow';
    const [startMs, before] = [performance.now(), proxy.requests.length];
    await pause(20_000);
    const perSecond = (proxy.requests.length - before) / ((performance.now() - startMs) / 1000);
    expect(perSecond / lab.sentinels.length).toBeLessThan(2);
    const warnings = lab.sentinels.map(({ child }, at) => (readFileSync(child.logPath, 'utf8').slice(logsFrom[at]).match(/consul watch failed/g) ?? []).length);
    expect(warnings.every((count) => count <= 1)).toBe(true);
    proxy.mode = 'pass';
    const old = `${master.address.host}:${master.address.port}`;
    await waitFor(() => `a failover\n${lab.logs()}`, 30_000, async () => JSON.stringify(await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME)).includes('OK'));
    await waitFor(() => `the change in Consul\n${lab.logs()}`, 30_000, async () => {
      const passing = await consul.passing(MASTER_NAME);
      return passing.length === 1 && passing[0] !== old;
    });
  });
});

test('C25: agent mode uses the local agent\'s endpoints and the key, never the catalog', async () => {
  const lab = new Lab();
  const proxy = await new ConsulProxy(consul).open();
  try {
    const master = await lab.redis();
    // A prefix of its own: the key of the other agents carries a higher order, which would fence this one.
    await lab.agent(master, { yaml: [`consul: { address: "${proxy.url}", mode: agent, service: "local-{master}", kv-prefix: local }`] });
    await waitFor(() => `the service at the agent\n${lab.logs()}`, 30_000, async () => (await consul.passing(`local-${MASTER_NAME}`)).length === 1);
    const written = [...new Set(proxy.writes.map(({ path }) => path.split('?')[0]?.split('/').slice(0, 4).join('/')))];
    expect(written.filter((path) => !/^\/v1\/(agent\/(service|check)|kv\/)/.test(`${path}/`))).toEqual(['/v1/txn'].filter((path) => written.includes(path)));
    const transactions = proxy.writes.filter(({ path }) => path.startsWith('/v1/txn')).flatMap(({ operations }) => operations);
    expect(transactions.every((operation) => 'KV' in operation)).toBe(true);
  } finally {
    await lab.stop();
    await proxy.close();
  }
});

describe('C32: SRV', () => {
  const lab = new Lab();
  afterAll(async () => { await lab.stop(); });

  test('target inside the zone, exactly the primary, port and addresses change in one step', async () => {
    const master = await lab.group(1);
    const agent = await lab.agent(master);
    await lab.settled(master, 60_000);
    const port = agent.dnsPort ?? 0;
    const lookUp = async (): Promise<readonly [string, string, string]> => {
      const answer = await query(port, `_redis._tcp.${NAME}`, 'SRV');
      const [record] = (answer?.answers ?? []).flatMap((each) => (each.type === 'SRV' ? [each.data] : []));
      const extra = (answer?.additionals ?? []).flatMap((each) => (each.type === 'A' ? [`${each.name} ${each.data}`] : []));
      const target = record?.target ?? '';
      const direct = target === '' ? null : await query(port, target, 'A');
      expect((direct?.answers ?? []).some((each) => each.type === 'CNAME')).toBe(false);
      const data = (direct?.answers ?? []).flatMap((each) => (each.type === 'A' ? [each.data] : []));
      if (record !== undefined) expect(extra).toEqual(data.map((address) => `${target} ${address}`));
      return [target, String(record?.port), data.join()];
    };
    const [target, srvPort, address] = await lookUp();
    expect(target.endsWith(`.${NAME}`)).toBe(true);
    expect([srvPort, address]).toEqual([String(master.address.port), master.address.host]);
    expect((await query(port, NAME, 'SRV'))?.answers).toEqual([]);

    const next = lab.nodes[1] as RedisNode;
    const seen = new Set<string>();
    let isAsking = true;
    const asking = (async () => { while (isAsking) seen.add((await lookUp()).join(' ')); })();
    await waitFor(() => `a failover\n${lab.logs()}`, 30_000, async () => JSON.stringify(await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME)).includes('OK'));
    await waitFor(() => `the new target\n${lab.logs()}`, 30_000, async () => (await lookUp())[2] === next.address.host);
    isAsking = false;
    await asking;
    expect([...seen].map((text) => text.split(' ')[2]).every((each) => [master.address.host, next.address.host].includes(each ?? ''))).toBe(true);
    expect(seen.size).toBeLessThanOrEqual(2);
  });
});

describe('C37: names that DNS or Consul cannot carry', () => {
  const lab = new Lab();
  afterAll(async () => { await lab.stop(); });

  function check(names: readonly string[], yaml: readonly string[]): string[] {
    const folder = join(lab.folder, `check-${Math.random().toString(36).slice(2)}`);
    mkdirSync(folder);
    writeFileSync(join(folder, 'sentinel.conf'), names.map((name) => `sentinel monitor ${name} 10.0.0.1 6379 1\n`).join(''));
    writeFileSync(join(folder, 'pointsman.yaml'), ['sentinel: { config: sentinel.conf }', ...yaml, ''].join('\n'));
    const { stderr } = spawnSync(process.execPath, [MAIN, 'check', '--config', join(folder, 'pointsman.yaml')], { encoding: 'utf8' });
    return stderr.trim().split('\n');
  }

  test('a clash names both, an override mends it, a name that no output needs is fine in a plain sentinel', () => {
    const dns = 'dns: { zone: redis.test. }';
    expect(check(['my_cache', 'my-cache'], [dns]).join()).toMatch(/dns: .*my_cache.*my-cache|dns: .*my-cache.*my_cache/);
    expect(check(['a.b', 'a-b'], [dns]).join()).toMatch(/a\.b.*a-b|a-b.*a\.b/);
    expect(check(['my_cache', 'my-cache'], ['dns: { zone: redis.test., labels: { my_cache: other } }'])).toEqual(['']);
    expect(check(['x'.repeat(70)], [dns]).join()).toContain('x'.repeat(70));
    expect(check(['x'.repeat(70), '-x', '1', 'My.Cache'], [])).toEqual(['']);
  });

  test('the clashing one is refused at SENTINEL MONITOR, too, and Consul keeps to the same rule', async () => {
    const master = await lab.redis();
    const agent = await lab.agent(master, { yaml: [`consul: { address: "${consul.url}" }`] });
    const twin = MASTER_NAME.toUpperCase();
    const reply = JSON.stringify(await ask(agent, 'SENTINEL', 'MONITOR', twin, '127.0.0.1', '6399', '1'));
    expect(reply).toContain('ERR');
    expect(reply).toContain(twin);
    expect(reply).toContain(MASTER_NAME);
    expect(execFileSync(process.execPath, [MAIN, '--version'], { encoding: 'utf8' })).toMatch(/^\d/);
  });
});
