/**
 * Catalog mode on one real server: what clients get from DNS and API, who writes when, what heals by itself.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Operation } from '../../src/publishers/consul/operation.js';
import { A, B, C, routeOf, waitFor } from '../unit/publishers/routes.js';
import { ConsulProxy, ConsulServer, PublishingAgent, settingsOf } from './consul-lab.js';
import type { AgentChange } from './consul-lab.js';
import type { Route } from '../../src/route/route.js';

let server: ConsulServer;
let agents: PublishingAgent[] = [];
let proxies: ConsulProxy[] = [];

beforeAll(async () => { server = await ConsulServer.start(); });
afterAll(async () => { await server.end(); });
afterEach(async () => {
  await Promise.all(agents.map((agent) => agent.close()));
  await Promise.all(proxies.map((proxy) => proxy.close()));
  [agents, proxies] = [[], []];
});

function agentOf(writer: string, url = server.url, change: AgentChange = {}): PublishingAgent {
  const agent = new PublishingAgent(writer, settingsOf(url), change);
  agents.push(agent);
  return agent;
}

async function proxyTo(target = server): Promise<ConsulProxy> {
  const proxy = await new ConsulProxy(target).open();
  proxies.push(proxy);
  return proxy;
}

const replicas = (...list: [typeof A, boolean][]): Route['replicas'] => list.map(([address, healthy]) => ({ address, healthy }));
const first = (master: string, change: Partial<Route> = {}): Route =>
  routeOf({ master, replicas: replicas([B, true], [C, false]), ...change });
const moved = (master: string, change: Partial<Route> = {}): Route =>
  routeOf({ master, configEpoch: 6, primary: B, replicas: replicas([A, false], [C, true]), ...change });
const nodeOf = (master: string, address: typeof A): string => `pointsman-${master}-${address.host.replace(/[.:]/g, '-')}-${address.port}`;

describe("Consul's own DNS", () => {
  test('follows a switch: primary alone, tag, SRV, replicas, AAAA', async () => {
    const agent = agentOf('agent-1');
    await agent.publish(first('dns'));
    expect(server.dig('dns.service.consul', 'A')).toEqual([A.host]);
    expect(server.dig('master.dns.service.consul', 'A')).toEqual([A.host]);
    expect(server.dig('primary.dns.service.consul', 'A')).toEqual([A.host]);
    expect(server.dig('dns-replica.service.consul', 'A')).toEqual([B.host]);
    expect(server.dig('dns.service.consul', 'SRV')).toEqual(['1 1 6379 0a000001.addr.dc1.consul.']);
    expect(server.dig('_dns._master.service.consul', 'SRV')).toEqual(['1 1 6379 0a000001.addr.dc1.consul.']);

    await agent.publish(moved('dns'));
    expect(server.dig('dns.service.consul', 'A')).toEqual([B.host]);
    expect(server.dig('master.dns.service.consul', 'A')).toEqual([B.host]);
    expect(server.dig('dns.service.consul', 'SRV')).toEqual(['1 1 6380 0a000002.addr.dc1.consul.']);
    expect(server.dig('dns-replica.service.consul', 'A')).toEqual([]);
    expect(server.dig('dns-replica.service.consul', 'AAAA')).toEqual([C.host]);
  });

  test('a move to IPv6', async () => {
    await agentOf('agent-1').publish(moved('six', { primary: C, replicas: [] }));
    expect(server.dig('master.six.service.consul', 'AAAA')).toEqual([C.host]);
    expect(server.dig('master.six.service.consul', 'A')).toEqual([]);
  });
});

describe('writing', () => {
  test('one transaction for a switch, of seven operations, and none for what is right already', async () => {
    const proxy = await proxyTo();
    const agent = agentOf('agent-1', proxy.url);
    await agent.publish(first('seven'));
    expect(proxy.writes).toHaveLength(1);
    await agent.publish(moved('seven', { role: 'leader', replicas: replicas([A, true], [C, false]) }));
    expect(proxy.writes).toHaveLength(2);
    expect(proxy.writes[1]?.operations).toHaveLength(7);
    expect(await server.key('seven')).toMatchObject({ host: B.host, port: B.port, order: 12, writer: 'agent-1' });

    const before = await server.indexes('seven');
    const later = agentOf('agent-2', proxy.url);
    await later.publish(moved('seven', { replicas: replicas([A, true], [C, false]) }));
    expect(await server.indexes('seven')).toBe(before);
    expect(proxy.writes).toHaveLength(2);
  });

  test('entries say what they are', async () => {
    await agentOf('agent-1').publish(first('entries'));
    const entries = (await server.get('/v1/health/service/entries')) as { Node: object; Service: { Address: string }; Checks: object[] }[];
    const primary = entries.find(({ Service }) => Service.Address === A.host);
    expect(entries).toHaveLength(3);
    expect(primary).toMatchObject({
      Node: { Node: nodeOf('entries', A), ID: '', Meta: { 'external-node': 'true', 'external-probe': 'false', pointsman: 'entries' } },
      Service: { ID: 'entries-10-0-0-1-6379', Tags: ['master', 'primary'], Port: 6379, Meta: { epoch: '5', phase: 'steady' } },
      Checks: [{ Status: 'passing', Definition: {} }],
    });
    expect(primary?.Checks).toHaveLength(1);
  });

  test('three agents make one write per change; two views of a replica do not fight', async () => {
    const proxy = await proxyTo();
    const trio = ['agent-1', 'agent-2', 'agent-3'].map((writer) => agentOf(writer, proxy.url, { recheckMs: 300 }));
    await Promise.all(trio.map((agent) => agent.publish(first('trio'))));
    expect(proxy.writes.filter(({ operations }) => isKeySet(operations)).length).toBeGreaterThanOrEqual(1);
    const afterFirst = proxy.writes.length;

    const views: Partial<Route>[] = [{}, { role: 'leader' }, { replicas: replicas([A, true], [C, false]) }];
    await Promise.all(trio.map((agent, at) => agent.publish(moved('trio', views[at]))));
    // The leader's write, and nobody else's; the keeper agrees with the leader's view.
    expect(proxy.writes).toHaveLength(afterFirst + 1);
    const settled = await server.indexes('trio');

    // Each agent looks some ten times more; the third one's other view stays its own.
    const looks = proxy.requests.length;
    await waitFor(() => proxy.requests.length > looks + 60, 'more looks');
    expect(proxy.writes).toHaveLength(afterFirst + 1);
    expect(await server.indexes('trio')).toBe(settled);
  });

  test('13 replicas: the first transaction holds the primary, the rest is guarded by the key', async () => {
    const proxy = await proxyTo();
    const agent = agentOf('agent-1', proxy.url);
    const many = Array.from({ length: 13 }, (_, at) => ({ address: { host: `10.1.0.${at + 1}`, port: 6379 }, healthy: true }));
    await agent.publish(routeOf({ master: 'many', replicas: many }));
    expect(proxy.writes.length).toBeGreaterThan(1);
    expect(proxy.writes.every(({ operations }) => operations.length <= 64)).toBe(true);
    expect(proxy.writes[1]?.operations[0]).toMatchObject({ KV: { Verb: 'check-index' } });
    expect(await server.passing('many')).toEqual([`${A.host}:6379`]);
    expect(await server.passing('many-replica')).toHaveLength(13);

    const before = proxy.writes.length;
    const [next, ...rest] = many as [typeof many[number]];
    await agent.publish(routeOf({ master: 'many', configEpoch: 6, primary: next.address, replicas: [{ address: A, healthy: true }, ...rest] }));
    // Old and new primary and the key in one transaction; nobody else has changed.
    expect(proxy.writes.slice(before).map(({ operations }) => operations.length)).toEqual([7]);
    expect(await server.passing('many')).toEqual(['10.1.0.1:6379']);
    expect(await server.passing('many-replica')).toHaveLength(13);
  });

  test('a higher order is left alone, and an operator may overrule it', async () => {
    const newer = agentOf('agent-2');
    await newer.publish(moved('fence'));
    const older = agentOf('agent-1');
    older.reconciler.submit(first('fence'));
    await waitFor(() => older.results.length > 0, 'a result');
    expect(older.results[0]).toMatchObject({ outcome: 'published', publishedOrder: 12 });
    expect(await server.passing('fence')).toEqual([`${B.host}:6380`]);

    await newer.close();
    older.publisher.forceNext('fence');
    await older.published(first('fence'));
    expect(await server.passing('fence')).toEqual([`${A.host}:6379`]);
  });

  test('isolated: nothing is written, a removal included', async () => {
    const proxy = await proxyTo();
    const agent = agentOf('agent-1', proxy.url);
    await agent.publish(first('alone'));
    const before = await server.indexes('alone');
    agent.reconciler.submit(moved('alone', { trusted: false }));
    await server.put('/v1/catalog/deregister', { Node: nodeOf('alone', C) });
    await waitFor(() => proxy.requests.some(({ path }) => path.includes('index=')), 'a watch');
    agent.reconciler.forget('alone');
    expect(proxy.writes).toHaveLength(1);
    expect((await server.indexes('alone')).split(' ').length).toBeLessThan(before.split(' ').length);
    expect(await server.passing('alone')).toEqual([`${A.host}:6379`]);
  });

  test('a removed master takes its own nodes and its key away, and nothing else', async () => {
    const agent = agentOf('agent-1');
    await agent.publish(first('gone'));
    await agent.publish(first('gone-not'));
    agent.reconciler.forget('gone');
    await waitFor(async () => (await server.key('gone')) === null, 'the key to go');
    const nodes = (await server.get('/v1/catalog/nodes')) as { Node: string }[];
    expect(nodes.filter(({ Node }) => Node.startsWith('pointsman-gone-10'))).toEqual([]);
    expect(await server.passing('gone-not')).toEqual([`${A.host}:6379`]);
    expect(server.dig('gone.service.consul', 'A')).toEqual([]);
  });
});

describe('drift', () => {
  test('a deregistered node, an edited tag, a lost key and an old snapshot are put right, long before the next re-check', async () => {
    const proxy = await proxyTo();
    const agent = agentOf('agent-2', proxy.url, { recheckMs: 60_000 });
    await agent.publish(first('drift'));
    const snapshot = await server.get('/v1/snapshot');
    await agent.publish(moved('drift'));
    const isRight = async (): Promise<boolean> =>
      (await server.passing('drift')).join() === `${B.host}:6380` && (await server.key('drift'))?.order === 12
      && server.dig('master.drift.service.consul', 'A').join() === B.host;
    await waitFor(() => proxy.requests.filter(({ path }) => path.includes('index=')).length >= 3, 'three watches');

    await server.put('/v1/catalog/deregister', { Node: nodeOf('drift', B) });
    await waitFor(isRight, 'the primary to come back', 5_000);

    const service = { ID: 'drift-10-0-0-2-6380', Service: 'drift', Tags: ['replica'], Address: B.host, Port: B.port };
    await server.put('/v1/catalog/register', { Node: nodeOf('drift', B), Address: B.host, SkipNodeUpdate: true, Service: service });
    await waitFor(isRight, 'the tag to come back', 5_000);

    const writes = proxy.writes.length;
    await server.request('DELETE', '/v1/kv/pointsman/drift');
    await waitFor(isRight, 'the key to come back', 5_000);

    await server.put('/v1/snapshot', snapshot);
    await waitFor(isRight, 'the newest route after a restore', 8_000);
    expect(proxy.writes.length).toBeGreaterThanOrEqual(writes + 2);
    expect(proxy.orders).toEqual([...proxy.orders].sort((a, b) => a - b));
  }, 40_000);

  test('an entry that a live node once had is no business of ours; ours are on nodes that no agent owns', async () => {
    const agent = agentOf('agent-1', server.url, { recheckMs: 200 });
    const name = `server-${server.ports.http}`;
    const foreign = { ID: 'live', Service: 'live', Tags: ['master'], Address: '10.9.9.9', Port: 1 };
    await server.put('/v1/catalog/register', { Node: name, Address: '127.0.0.1', SkipNodeUpdate: true, Service: foreign });
    await agent.publish(first('live'));
    expect(agent.reconciler.status()[0]?.detail).toContain(`foreign entry live on node ${name}`);
    // The live agent's own anti-entropy takes away what it does not know, and only from its own node.
    await server.put('/v1/agent/service/register', { Name: 'push' });
    await server.put('/v1/catalog/deregister', { Node: name, ServiceID: 'live' });
    await waitFor(async () => (await server.passing('live')).join() === `${A.host}:6379`, 'ours alone');
  });
});

describe('bad links', () => {
  test('half-open: every call ends, sockets are replaced, never more than two requests a second', async () => {
    const proxy = await proxyTo();
    const agent = agentOf('agent-1', proxy.url);
    await agent.publish(first('half'));
    proxy.mode = 'swallow';
    const [from, sockets] = [performance.now(), proxy.connections];
    agent.reconciler.submit(moved('half', { role: 'leader' }));
    await waitFor(() => agent.lastError('half').includes('did not answer'), 'a deadline', 8_000);
    expect(agent.reconciler.status()[0]).toMatchObject({ state: 'failing', lastError: { code: 'PUBLISH_TIMEOUT' } });
    const asked = proxy.requests.filter(({ atMs, path }) => atMs > from && !path.includes('txn')).length;
    expect(asked).toBeLessThanOrEqual(2 * Math.ceil((performance.now() - from) / 1_000) + 3);
    proxy.mode = 'pass';
    await agent.published(moved('half'), 10_000);
    expect(proxy.connections).toBeGreaterThan(sockets);
    expect(await server.passing('half')).toEqual([`${B.host}:6380`]);
  }, 30_000);

  test('an answer that is lost after the write was applied: read back, written once', async () => {
    const proxy = await proxyTo();
    const agent = agentOf('agent-1', proxy.url);
    await agent.publish(first('lost'));
    const writes = proxy.writes.length;
    proxy.mode = 'cut-answers';
    await agent.publish(moved('lost', { role: 'leader' }));
    expect(proxy.writes).toHaveLength(writes + 1);
    expect(await server.key('lost')).toMatchObject({ order: 12 });
  });

  test('503: the output fails with a word and comes back by itself', async () => {
    const proxy = await proxyTo();
    proxy.mode = 'refuse';
    const agent = agentOf('agent-1', proxy.url);
    agent.reconciler.submit(first('busy'));
    await waitFor(() => agent.lastError('busy').includes('is busy (503'), 'an error');
    proxy.mode = 'pass';
    await agent.published(first('busy'));
  });
});

function isKeySet(operations: readonly Operation[]): boolean {
  return operations.some((operation) => 'KV' in operation && operation.KV.Verb === 'cas');
}
