/**
 * Case C14: clients reach the nodes by forwarded ports at another address. Every DNS answer gives the address of the clients' side, the
 * agent and the replicas use the one that they can reach, and two groups on one inner host never mix.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freePort, query, waitFor } from '../lab.js';
import { addressOf, Bench, fieldsOf, hurry, tell, type Started } from './bench.js';

const bench = new Bench();
const OUTSIDE = '127.0.9.1';
const GROUPS = ['cache', 'queue'] as const;
const nodes = new Map<string, Started[]>();
/** Inner `host:port` → the port that clients use. */
const forwards = new Map<string, number>();
/** What clients are told of a node. */
const outer = ({ access }: Started): string => `${OUTSIDE}:${forwards.get(`127.0.0.1:${access.port}`)}`;
let agent: Started;
let dnsPort = 0;

beforeAll(async () => {
  const lines: string[] = [];
  const maps: string[] = [];
  for (const [index, group] of GROUPS.entries()) {
    const members: Started[] = [];
    for (const role of ['a', 'b']) {
      const port = await freePort();
      const follow = members.length === 0 ? [] : ['--replicaof', '127.0.0.1', String(members[0]!.access.port)];
      const args = ['--port', String(port), '--bind', '127.0.0.1', ...follow];
      members.push(await bench.redis(`${group}-${role}`, args, { access: { host: '127.0.0.1', port } }));
      forwards.set(`127.0.0.1:${port}`, 9_001 + 10 * index + members.length);
    }
    nodes.set(group, members);
    lines.push(`sentinel monitor ${group} 127.0.0.1 ${members[0]!.access.port} 1`, `sentinel down-after-milliseconds ${group} 1500`);
    const pairs = members.map((member) => `"127.0.0.1:${member.access.port}": "${outer(member)}"`);
    maps.push(`    ${group}: { ${pairs.join(', ')} }`);
  }
  const port = await freePort();
  dnsPort = await freePort();
  const dns = `dns: { listen: ["127.0.0.1:${dnsPort}"], zone: redis.test., ttl: 1s }`;
  const yaml = ['route:', '  allow-loopback: true', '  address-map:', ...maps, dns];
  agent = await bench.agent('agent', [`port ${port}`, 'bind 127.0.0.1', ...lines], yaml, { access: { host: '127.0.0.1', port } });
  await hurry([agent]);
  for (const group of GROUPS) {
    await waitFor(() => `${group} with its replica\n${bench.logs()}`, 30_000, async () => {
      const replicas = await tell(agent, 'SENTINEL', 'REPLICAS', group);
      return Array.isArray(replicas) && replicas.length === 1 && fieldsOf(replicas[0]).get('master-link-status') === 'ok';
    });
  }
}, 240_000);

afterAll(() => bench.stop());

/** The SRV record's port, and the address of its target as it comes along. */
async function told(group: string): Promise<string> {
  const reply = await query(dnsPort, `_redis._tcp.${group}.redis.test`, 'SRV');
  const [record] = reply?.answers ?? [];
  const port = record?.type === 'SRV' ? record.data.port : 0;
  const hosts = (reply?.additionals ?? []).flatMap((each) => ('data' in each && each.type === 'A' ? [each.data] : []));
  return `${hosts.join('+')}:${port}`;
}

test.each(GROUPS)('%s: mapped before the failover and after it, and the others stay as they are', async (group) => {
  const others = GROUPS.filter((each) => each !== group);
  const before = new Map(await Promise.all(others.map(async (each) => [each, await told(each)] as const)));
  const [master, replica] = nodes.get(group) as [Started, Started];
  let last = '';
  await waitFor(() => `${outer(master)}, not ${last}\n${bench.logs()}`, 20_000, async () => (last = await told(group)) === outer(master));
  expect(await tell(agent, 'SENTINEL', 'FAILOVER', group)).toBe('OK');
  await waitFor(() => `${outer(replica)}, not ${last}\n${bench.logs()}`, 20_000, async () => (last = await told(group)) === outer(replica));
  // Those who speak to the nodes themselves go by the inner addresses.
  expect(await addressOf(agent, group)).toBe(`127.0.0.1:${replica.access.port}`);
  await waitFor(() => `the old master behind the new one\n${bench.logs()}`, 30_000, async () =>
    String(await tell(master, 'ROLE')).startsWith(`slave,127.0.0.1,${replica.access.port},connected`));
  for (const each of others) expect(await told(each)).toBe(before.get(each));
}, 90_000);
