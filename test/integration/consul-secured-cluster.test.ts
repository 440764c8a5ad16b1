/**
 * Three servers with ACLs (default deny) and TLS (client certificates demanded), written to with the documented policy alone, whose leader is
 * killed between switches: the newest Route is there afterwards, every answer has one primary and no epoch falls.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Route } from '../../src/route/route.js';
import { A, B, routeOf, waitFor } from '../unit/publishers/routes.js';
import { ConsulServer, MASTER_TOKEN, PublishingAgent, documentedRules, makeCertificates, settingsOf } from './consul-lab.js';

let tls: string;
let cluster: ConsulServer[] = [];

beforeAll(async () => {
  tls = makeCertificates();
  cluster = await Promise.all([1, 2, 3].map((at) => ConsulServer.prepare({ name: `s${at}`, acl: true, tls })));
  for (const server of cluster) server.run(cluster);
  await Promise.all(cluster.map((server) => server.ready(60_000)));
}, 90_000);
afterAll(async () => {
  await Promise.all(cluster.map((server) => server.end()));
  rmSync(tls, { recursive: true, force: true });
});

function routeAt(epoch: number, change: Partial<Route> = {}): Route {
  const [primary, other] = epoch % 2 === 0 ? [A, B] : [B, A];
  return routeOf({ configEpoch: epoch, primary, replicas: [{ address: other, healthy: true }], ...change });
}

async function minimalToken(server: ConsulServer): Promise<string> {
  await server.put('/v1/acl/policy', { Name: 'minimal', Rules: documentedRules().join('\n') }, MASTER_TOKEN);
  return ((await server.put('/v1/acl/token', { Policies: [{ Name: 'minimal' }] }, MASTER_TOKEN)) as { SecretID: string }).SecretID;
}

/** Healthy entries from one server again and again, and what was wrong with them. */
async function sample(server: ConsulServer, signal: AbortSignal): Promise<{ count: number; wrong: string[] }> {
  const samples = { count: 0, wrong: [] as string[] };
  let highest = 0;
  while (!signal.aborted) {
    const answer = await server.get('/v1/health/service/cache?passing', MASTER_TOKEN).catch(() => null);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
    if (answer === null) continue;
    samples.count++;
    const entries = answer as { Service: { Meta: { epoch: string } } }[];
    const epoch = Number(entries[0]?.Service.Meta.epoch);
    if (entries.length !== 1 || !(epoch >= highest)) samples.wrong.push(JSON.stringify(answer));
    highest = Math.max(highest, epoch);
  }
  return samples;
}

test('the leader is killed: the newest route arrives with the minimal policy over TLS, and nothing is ever wrong', async () => {
  const leaderAt = (await cluster[0]?.get('/v1/status/leader', MASTER_TOKEN)) as string;
  const leader = cluster.find(({ ports }) => leaderAt === `127.0.0.1:${ports.server}`) as ConsulServer;
  const [one, two] = cluster.filter((server) => server !== leader) as [ConsulServer, ConsulServer];
  const token = await minimalToken(leader);
  const files = {
    caFile: join(tls, 'consul-agent-ca.pem'), certFile: join(tls, 'dc1-client-consul-0.pem'), keyFile: join(tls, 'dc1-client-consul-0-key.pem'),
  };
  const settings = { ...files, token, tlsServerName: 'server.dc1.consul' };
  const pair = [one, two].map((server, at) => new PublishingAgent(`agent-${at + 1}`, settingsOf(server.url, settings)));
  const stop = new AbortController();
  try {
    await Promise.all(pair.map((agent) => agent.publish(routeAt(1))));
    const samples = [one, two].map((server) => sample(server, stop.signal));
    let epoch = 1;
    const switchOnce = (): void => {
      epoch++;
      pair.forEach((agent, at) => agent.reconciler.submit(routeAt(epoch, { role: at === epoch % 2 ? 'leader' : 'observer' })));
    };
    const arrived = (): Promise<unknown> => Promise.all(pair.map((agent) => agent.published(routeAt(epoch), 30_000)));
    for (let moves = 0; moves < 3; moves++) {
      switchOnce();
      await arrived();
    }
    switchOnce();
    await leader.stop();
    switchOnce();
    await waitFor(() => pair.some((agent) => agent.lastError() !== '' || agent.results.length > 0), 'an attempt');
    switchOnce();
    await arrived();
    expect(await one.key('cache', MASTER_TOKEN)).toMatchObject({ order: 2 * epoch });
    expect(await two.passing('cache', MASTER_TOKEN)).toEqual([epoch % 2 === 0 ? '10.0.0.1:6379' : '10.0.0.2:6380']);
    stop.abort();
    const all = await Promise.all(samples);
    expect(all.flatMap(({ wrong }) => wrong)).toEqual([]);
    expect(Math.min(...all.map(({ count }) => count))).toBeGreaterThan(10);
  } finally {
    stop.abort();
    await Promise.all(pair.map((agent) => agent.close()));
  }
}, 120_000);
