/**
 * An agent is cut off from its peers for a minute, with the old master beside it, and still reaches Consul and the client; then it is healed.
 * It writes nothing and lets its VIPs go, says what is the matter, and nothing lower is ever written.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { join } from 'node:path';
import type { AgentStatus } from '../../../src/admin/status.js';
import { parseFence } from '../../../src/publishers/consul/entry.js';
import type { Operation } from '../../../src/publishers/consul/operation.js';
import { MAIN, waitFor } from '../lab.js';
import { ConsulServers, recordedIn } from '../netns-consul.js';
import type { Recorded } from '../netns-consul.js';
import { whyNoNetwork } from '../netns-lab.js';
import type { Host } from '../netns-lab.js';
import { CACHE, SESSIONS, VipLab } from '../vip-lab.js';

const CUT_MS = 60_000;
const reason = whyNoNetwork();
if (reason !== null) process.stderr.write(`skipped: an agent cut off for a minute: ${reason}\n`);
const testHere = reason === null ? test : test.skip;

let lab: VipLab;
let file: string;

beforeAll(async () => {
  if (reason !== null) return;
  lab = new VipLab({ yaml: ['consul: { address: "CONSUL" }'] });
  file = join(lab.folder, 'recorded');
  const consul = await ConsulServers.one(lab);
  const address = consul.record(file, [CACHE.name, SESSIONS.name]);
  await lab.start((text) => text.replace('CONSUL', address));
  await lab.ready(CACHE, lab.host(1));
  await waitFor(() => `the vips on host 1\n${lab.logs()}`, 30_000, async () => (await lab.holderOf(CACHE)) === lab.host(1));
  await waitFor(() => `an order in Consul\n${lab.logs()}`, 30_000, () => ordersOf(recordedIn(file)).length > 0);
});
afterAll(async () => { if (reason === null) await lab.stop(); });

/** The orders of the master's key, as they were written. */
function ordersOf(lines: readonly Recorded[]): number[] {
  const operations = lines.flatMap(({ path, body = '' }) => (path?.startsWith('/v1/txn') === true ? JSON.parse(body) as Operation[] : []));
  return operations.flatMap((operation) => {
    if (!('KV' in operation) || operation.KV.Value === undefined || !operation.KV.Key.endsWith(`/${CACHE.name}`)) return [];
    return [parseFence(Buffer.from(operation.KV.Value, 'base64').toString())?.order ?? -1];
  });
}

async function statusOn(host: Host): Promise<AgentStatus['masters'][number] | undefined> {
  const words = [process.execPath, MAIN, 'status', CACHE.name, '--json', '--config', join(lab.folder, `agent-${host.number}`, 'pointsman.yaml')];
  // Status 1 says that something is wrong, which is what is asked for.
  const text = await host.sh('sh', '-c', '"$@" || true', 'sh', ...words);
  return (JSON.parse(text) as AgentStatus).masters.find(({ name }) => name === CACHE.name);
}

testHere('nothing lower is ever written, the VIPs are let go, the state is shown', async () => {
  const [cut, ...others] = lab.network.hosts as [Host, Host, Host];
  const fromMs = Date.now();
  await cut.cutFrom(others);
  let next: Host | null = null;
  await waitFor(() => `another master\n${lab.logs()}`, 30_000, async () => {
    next = await lab.masterOf(CACHE, others);
    return next !== null && next !== cut;
  });
  await waitFor(() => `the vips on host ${next?.number} alone\n${lab.logs()}`, 20_000, async () => (await lab.holderOf(CACHE)) === next);
  let seen: unknown;
  await waitFor(() => `frozen in status: ${JSON.stringify(seen)}\n${lab.logs()}`, 20_000, async () => {
    const status = await statusOn(cut);
    seen = status;
    return status?.trusted === false && status.outputs.find(({ output }) => output === 'consul')?.state === 'frozen';
  });
  const frozenMs = Date.now();
  // The whole minute: its master takes writes, its Consul answers, and it has been told nothing.
  let held = 0;
  while (Date.now() - fromMs < CUT_MS) {
    held += (await Promise.all(CACHE.vips.map((vip) => cut.has(vip)))).filter(Boolean).length;
    await new Promise((done) => { setTimeout(done, 500); });
  }
  expect(held).toBe(0);
  expect(await lab.ask(cut, CACHE.port, 'role')).toMatch(/^master/);
  expect(recordedIn(file).filter(({ at, from }) => at >= frozenMs && from === cut.ip)).toEqual([]);

  await cut.joinAgain(others);
  await lab.ready(CACHE, next as unknown as Host);
  await waitFor(() => `published by the healed one: ${JSON.stringify(seen)}\n${lab.logs()}`, 30_000, async () => {
    const status = await statusOn(cut);
    seen = status?.outputs;
    return status?.trusted === true && status.outputs.every(({ state }) => state === 'published');
  });
  expect(await lab.holderOf(CACHE)).toBe(next);
  const lines = recordedIn(file);
  const orders = ordersOf(lines);
  expect(orders).toEqual([...orders].sort((a, b) => a - b));
  expect(orders.at(-1)).toBeGreaterThan(orders[0] ?? Infinity);
  expect(ordersOf(lines.filter(({ from }) => from === cut.ip)).every((order) => order <= (orders[0] ?? -1) || order === orders.at(-1))).toBe(true);
}, 240_000);
