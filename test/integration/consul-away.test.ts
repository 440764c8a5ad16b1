/**
 * Consul that is away, loses its past or its leader: the newest Route is there afterwards, an older one never was.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Route } from '../../src/route/route.js';
import { A, B, routeOf, waitFor } from '../unit/publishers/routes.js';
import { ConsulProxy, ConsulServer, PublishingAgent, settingsOf } from './consul-lab.js';

/** Primary A at even epochs, B at odd ones. */
function routeAt(epoch: number, change: Partial<Route> = {}): Route {
  const [primary, other] = epoch % 2 === 0 ? [A, B] : [B, A];
  return routeOf({ configEpoch: epoch, primary, replicas: [{ address: other, healthy: true }], ...change });
}

describe('one server that is stopped during two switches', () => {
  const pasts: [string, boolean][] = [['its old data', true], ['no data at all', false]];
  test.each(pasts)('and comes back with %s: the latest route within 10 s', async (_what, withData) => {
    const server = await ConsulServer.start();
    const proxy = await new ConsulProxy(server).open();
    const trio = ['agent-1', 'agent-2', 'agent-3'].map((writer) => new PublishingAgent(writer, settingsOf(proxy.url)));
    try {
      await Promise.all(trio.map((agent) => agent.publish(routeAt(1))));
      await server.stop();
      for (const epoch of [2, 3]) for (const agent of trio) agent.reconciler.submit(routeAt(epoch));
      // Long enough for back-offs of several seconds.
      await waitFor(() => trio.every((agent) => (agent.reconciler.status()[0]?.attempts ?? 0) >= 6), 'failures', 15_000);
      const before = proxy.orders.length;
      await server.restart(withData);
      await server.ready();
      await waitFor(async () => (await server.key('cache'))?.order === 6, 'the latest order', 10_000);
      await Promise.all(trio.map((agent) => agent.published(routeAt(3))));
      expect(await server.passing('cache')).toEqual([`${B.host}:6380`]);
      expect(new Set(proxy.orders.slice(before))).toEqual(new Set([6]));
    } finally {
      await Promise.all(trio.map((agent) => agent.close()));
      await proxy.close();
      await server.end();
    }
  }, 90_000);
});

describe('three servers', () => {
  let cluster: ConsulServer[] = [];
  beforeAll(async () => {
    cluster = await Promise.all([1, 2, 3].map((at) => ConsulServer.prepare({ name: `c${at}`, dnsConfig: { allow_stale: false } })));
    for (const server of cluster) server.run(cluster);
    await Promise.all(cluster.map((server) => server.ready(60_000)));
  }, 90_000);
  afterAll(async () => { await Promise.all(cluster.map((server) => server.end())); });

  test('the leader is killed in the middle of switches: newest route, no step back, one primary in every answer', async () => {
    const leaderAt = (await cluster[0]?.get('/v1/status/leader')) as string;
    const leader = cluster.find(({ ports }) => leaderAt === `127.0.0.1:${ports.server}`);
    const followers = cluster.filter((server) => server !== leader);
    expect(followers).toHaveLength(2);
    const [one, two] = followers as [ConsulServer, ConsulServer];
    const pair = [one, two].map((server, at) => new PublishingAgent(`agent-${at + 1}`, settingsOf(server.url)));
    try {
      await Promise.all(pair.map((agent) => agent.publish(routeAt(1))));
      const stop = new AbortController();
      const samples = [sampleHealth(one, stop.signal), sampleHealth(two, stop.signal), sampleDns(two, stop.signal)];
      let epoch = 1;
      const switchOnce = (): void => {
        epoch++;
        pair.forEach((agent, at) => agent.reconciler.submit(routeAt(epoch, { role: at === epoch % 2 ? 'leader' : 'observer' })));
      };
      for (let moves = 0; moves < 5; moves++) {
        switchOnce();
        await Promise.all(pair.map((agent) => agent.published(routeAt(epoch), 15_000)));
      }
      switchOnce();
      await leader?.stop();
      // Two more while there is no leader; only the newest must arrive.
      switchOnce();
      await waitFor(() => pair.some((agent) => agent.lastError() !== '' || agent.results.length > 0), 'an attempt');
      switchOnce();
      await Promise.all(pair.map((agent) => agent.published(routeAt(epoch), 30_000)));
      for (let moves = 0; moves < 5; moves++) {
        switchOnce();
        await Promise.all(pair.map((agent) => agent.published(routeAt(epoch), 15_000)));
      }
      expect(await one.key('cache')).toMatchObject({ order: 2 * epoch });
      expect(await one.passing('cache')).toEqual([epoch % 2 === 0 ? '10.0.0.1:6379' : '10.0.0.2:6380']);
      stop.abort();
      const all = await Promise.all(samples);
      expect(all.flatMap(({ wrong }) => wrong)).toEqual([]);
      const counts = all.map(({ count }) => count);
      expect(Math.min(...counts.slice(0, 2))).toBeGreaterThan(20);
      expect(counts[2]).toBeGreaterThan(4);
    } finally {
      await Promise.all(pair.map((agent) => agent.close()));
    }
  }, 120_000);
});

interface Samples {
  count: number;
  readonly wrong: string[];
}

/** Healthy entries again and again: exactly one, its tag and check agree, its epoch never falls. */
async function sampleHealth(server: ConsulServer, signal: AbortSignal): Promise<Samples> {
  const samples: Samples = { count: 0, wrong: [] };
  let highest = 0;
  while (!signal.aborted) {
    // While there is no leader a consistent read is an error, which is no answer.
    const answer = await server.get('/v1/health/service/cache?passing').catch(() => null);
    await new Promise((resolve) => { setTimeout(resolve, 10); });
    if (answer === null) continue;
    samples.count++;
    const entries = answer as { Service: { Tags: string[]; Meta: { epoch: string } } }[];
    const epoch = Number(entries[0]?.Service.Meta.epoch);
    const isPrimary = entries[0]?.Service.Tags.includes('primary') === true;
    if (entries.length !== 1 || !isPrimary || epoch < highest) samples.wrong.push(JSON.stringify(answer));
    highest = Math.max(highest, epoch);
  }
  return samples;
}

/** DNS answers: never none and never two, as long as there is an answer at all. */
async function sampleDns(server: ConsulServer, signal: AbortSignal): Promise<Samples> {
  const samples: Samples = { count: 0, wrong: [] };
  while (!signal.aborted) {
    await new Promise((resolve) => { setTimeout(resolve, 30); });
    const { status, addresses } = await server.ask('master.cache.service.consul');
    if (status !== 'NOERROR' && status !== 'NXDOMAIN') continue;
    samples.count++;
    if (addresses.length !== 1) samples.wrong.push(`${status} ${addresses.join()}`);
  }
  return samples;
}
