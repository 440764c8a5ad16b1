/**
 * Agent mode: two hosts, each with a Consul agent of its own, tell it about their own nodes; the key fences both.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { A, B, routeOf, waitFor } from '../unit/publishers/routes.js';
import { ConsulServer, MASTER_TOKEN, PublishingAgent, settingsOf } from './consul-lab.js';

let cluster: [ConsulServer, ConsulServer];
let hosts: PublishingAgent[];

const first = routeOf({ replicas: [{ address: B, healthy: true }] });
const moved = routeOf({ configEpoch: 6, primary: B, replicas: [{ address: A, healthy: true }] });

beforeAll(async () => {
  cluster = [await ConsulServer.prepare({ name: 'host-a' }), await ConsulServer.prepare({ name: 'host-b' })];
  for (const server of cluster) server.run(cluster);
  await Promise.all(cluster.map((server) => server.ready(60_000)));
  hosts = [A, B].map(({ host }, at) => {
    const settings = settingsOf(cluster[at]?.url ?? '', { mode: 'agent' });
    return new PublishingAgent(`agent-${at + 1}`, settings, { isLocal: (address) => address.host === host, recheckMs: 2_000 });
  });
}, 90_000);
afterAll(async () => {
  await Promise.all(hosts.map((host) => host.close()));
  await Promise.all(cluster.map((server) => server.end()));
});

const nodesOf = async (service: string): Promise<string[]> =>
  ((await cluster[0].get(`/v1/health/service/${service}?passing`)) as { Node: { Node: string } }[]).map(({ Node }) => Node.Node);

/** Whether the healthy entries of service and replica service are on these nodes. */
const isOn = async (primary: string, replica: string): Promise<boolean> =>
  (await nodesOf('cache')).join() === primary && (await nodesOf('cache-replica')).join() === replica;

test('each host registers its own node; a switch moves check and tags', async () => {
  await Promise.all(hosts.map((host) => host.publish(first)));
  await waitFor(() => isOn('host-a', 'host-b'), 'entries');
  expect(cluster[0].dig('master.cache.service.consul', 'A')).toEqual([A.host]);

  await Promise.all(hosts.map((host) => host.publish(moved)));
  await waitFor(() => isOn('host-b', 'host-a'), 'the switch');
  await waitFor(() => cluster[1].dig('master.cache.service.consul', 'A').join() === B.host, 'the tag');
  expect(await cluster[0].key('cache')).toMatchObject({ host: B.host, order: 12 });
}, 30_000);

test('nothing changed: nothing is written', async () => {
  const before = await cluster[0].indexes('cache');
  const looks = hosts[0]?.results.length ?? 0;
  await waitFor(() => (hosts[0]?.results.length ?? 0) >= looks + 2, 'two more looks');
  expect(await cluster[0].indexes('cache')).toBe(before);
}, 20_000);

test('a service that somebody deregistered at its agent comes back', async () => {
  await cluster[1].put('/v1/agent/service/deregister/cache-10-0-0-2-6380');
  await waitFor(async () => (await nodesOf('cache')).join() === 'host-b', 'the service to come back', 10_000);
}, 20_000);

test('a lower order changes nothing', async () => {
  const older = new PublishingAgent('agent-9', settingsOf(cluster[0].url, { mode: 'agent' }), { isLocal: ({ host }) => host === A.host });
  older.reconciler.submit(first);
  await waitFor(() => older.results.length > 0, 'a result');
  expect(older.results[0]).toMatchObject({ outcome: 'published', publishedOrder: 12 });
  expect(await nodesOf('cache')).toEqual(['host-b']);
  await older.close();
});

test('a forgotten master is deregistered on its host', async () => {
  for (const host of hosts) host.reconciler.forget('cache');
  await waitFor(async () => (await nodesOf('cache')).length + (await nodesOf('cache-replica')).length === 0, 'all entries to go');
  await waitFor(async () => (await cluster[0].key('cache')) === null, 'the key to go');
});

test('without the right to a service the error names the rule; without the right to the key there is no fence, said once', async () => {
  const server = await ConsulServer.start({ acl: true });
  try {
    const tokenWith = async (name: string, Rules: string): Promise<string> => {
      await server.put('/v1/acl/policy', { Name: name, Rules }, MASTER_TOKEN);
      return ((await server.put('/v1/acl/token', { Policies: [{ Name: name }] }, MASTER_TOKEN)) as { SecretID: string }).SecretID;
    };
    const isLocal = (): boolean => true;
    const rules = ['cache', 'cache-replica'].map((name) => `service "${name}" { policy = "write" }`);
    const settings = settingsOf(server.url, { mode: 'agent' });
    const poor = new PublishingAgent('agent-1', { ...settings, token: await tokenWith('poor', rules[1] ?? '') }, { isLocal });
    poor.reconciler.submit(first);
    await waitFor(() => poor.lastError().endsWith(`the token lacks the rule ${rules[0]}`), 'the rule by name');
    await poor.close();

    const unfenced = new PublishingAgent('agent-1', { ...settings, token: await tokenWith('two', rules.join('\n')) }, { isLocal });
    await unfenced.publish(first);
    await unfenced.publish(moved);
    await waitFor(async () => (await server.passing('cache', MASTER_TOKEN)).join() === `${B.host}:6380`, 'the switch');
    expect(unfenced.lines.filter((line) => line.includes('no fence between hosts'))).toHaveLength(1);
    await unfenced.close();
  } finally {
    await server.end();
  }
}, 40_000);
