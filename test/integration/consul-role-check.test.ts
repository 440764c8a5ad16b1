/**
 * A site that finds its master by a health script moves over: the files of examples/consul-role-check on a real Consul, three agents beside
 * them, then alone. The consumers ask the same all the time, by DNS and by HTTP, and never get nothing or a replica.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../tidy/sources.js';
import { ConsulServer } from './consul-lab.js';
import { Lab, MASTER_NAME, ask, textsOf, waitFor } from './lab.js';
import type { LabSentinel, RedisNode } from './lab.js';

const FOLDER = join(ROOT, 'examples/consul-role-check');
const SERVICE = `redis-${MASTER_NAME}`;
const lab = new Lab();
let consul: ConsulServer;
let master: RedisNode;

/** The example's definition for one Redis, as its host's Consul agent has it; here they share one agent. */
function definitionOf({ name, address }: RedisNode): object {
  const text = readFileSync(join(FOLDER, 'redis-cache.json'), 'utf8').replaceAll('10.0.0.11', address.host).replaceAll('6379', String(address.port))
    .replaceAll('/etc/consul.d', FOLDER).replace('"5s"', '"1s"').replace('"name": "redis-cache"', `"name": "${SERVICE}"`);
  const [service] = (JSON.parse(text) as { services: object[] }).services;
  return { ...service, id: `site-${name}` };
}

beforeAll(async () => {
  master = await lab.group(2);
  consul = await ConsulServer.start({ more: { enable_local_script_checks: true, services: lab.nodes.map(definitionOf) } });
});
afterAll(async () => {
  await lab.stop();
  await consul.end();
});

const textOf = ({ address }: RedisNode): string => `${address.host}:${address.port}`;

/** What a consumer gets: addresses by DNS, the set of `host:port` by HTTP. */
async function answers(): Promise<{ dns: readonly string[]; http: readonly string[] }> {
  const [{ addresses }, http] = await Promise.all([consul.ask(`${SERVICE}.service.consul`), consul.passing(SERVICE)]);
  return { dns: addresses, http: [...new Set(http)] };
}

const isOnly = async (node: RedisNode): Promise<boolean> => {
  const { dns, http } = await answers();
  return dns.join() === node.address.host && http.join() === textOf(node);
};

/** Asks until it is told to stop; all that was ever answered. */
function consumer(): { stop(): Promise<Set<string>> } {
  const seen = new Set<string>();
  let isAsking = true;
  const asking = (async () => {
    while (isAsking) {
      const { dns, http } = await answers();
      seen.add(`dns ${dns.join()}`).add(`http ${http.join()}`);
    }
  })();
  return {
    stop: async () => {
      isAsking = false;
      await asking;
      return seen;
    },
  };
}

async function failover(): Promise<RedisNode> {
  const [agent] = lab.sentinels as [LabSentinel];
  const old = master;
  await waitFor(() => `a failover\n${lab.logs()}`, 30_000, async () => JSON.stringify(await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME)).includes('OK'));
  let next: RedisNode | undefined;
  await waitFor(() => `a new master\n${lab.logs()}`, 30_000, async () => {
    const [host] = textsOf(await ask(agent, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME));
    next = lab.nodes.find(({ address }) => address.host === host);
    return next !== undefined && next !== old;
  });
  return next as RedisNode;
}

test('the same questions get the master before, during and after; once the scripts are gone, in every instant', async () => {
  await waitFor('the scripts to find the master', 30_000, () => isOnly(master));
  const early = consumer();
  const spec = { yaml: [`consul: { address: "${consul.url}", service: "redis-{master}" }`], lines: [`sentinel failover-timeout ${MASTER_NAME} 4000`] };
  for (let index = 0; index < 3; index++) await lab.agent(master, spec);
  await lab.settled(master, 60_000);
  await waitFor(() => `our entries beside theirs\n${lab.logs()}`, 30_000, async () => (await consul.passing(SERVICE)).length === 2);
  expect(await early.stop()).toEqual(new Set([`dns ${master.address.host}`, `http ${textOf(master)}`]));

  // Both at once: the script is late, so both for a moment, but never nothing.
  const both = consumer();
  const old = master;
  master = await failover();
  await waitFor(() => `the new master alone\n${lab.logs()}`, 30_000, () => isOnly(master));
  const seen = await both.stop();
  expect([...seen].filter((text) => text === 'dns ' || text === 'http ')).toEqual([]);
  await lab.settled(master, 60_000);
  expect(await isOnly(old)).toBe(false);

  const leaving = consumer();
  for (const { name } of [...lab.nodes.filter((node) => node !== master), master]) await consul.put(`/v1/agent/service/deregister/site-${name}`);
  await waitFor('our entries alone', 20_000, async () => (await consul.passing(SERVICE)).length === 1);
  expect(await leaving.stop()).toEqual(new Set([`dns ${master.address.host}`, `http ${textOf(master)}`]));

  const alone = consumer();
  const before = master;
  master = await failover();
  await waitFor(() => `the next master\n${lab.logs()}`, 30_000, () => isOnly(master));
  const either = [before, master].flatMap((node) => [`dns ${node.address.host}`, `http ${textOf(node)}`]);
  expect([...(await alone.stop())].filter((text) => !either.includes(text))).toEqual([]);
}, 180_000);
