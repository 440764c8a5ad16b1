/**
 * `dns.workers`: other processes answer UDP, from the agent's zone, and nobody can tell.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Lab, MASTER_NAME, NAME, answerOf, ask, datagram, freePort, query, waitFor } from './lab.js';
import type { LabSentinel, RedisNode } from './lab.js';
import { queryBytes } from '../unit/dns/ask.js';

const WORKERS = { POINTSMAN_DNS_WORKERS: '2' };
const lab = new Lab();
let master: RedisNode;
let agent: LabSentinel;

beforeAll(async () => {
  master = await lab.group(1);
  agent = await lab.agent(master, { env: WORKERS });
  await lab.settled(master, 40_000);
}, 90_000);

afterAll(() => lab.stop());

const portOf = ({ dnsPort }: LabSentinel): number => dnsPort ?? 0;
const log = (of = agent): string => readFileSync(of.child.logPath, 'utf8');

/** Pids of the agent's workers. */
function workersOf({ child }: LabSentinel): number[] {
  const pids = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').filter((word) => word !== '').map(Number);
  return pids.filter((pid) => /dns worker|worker\.js/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8')));
}

/** The distinct answers of many askers. */
async function answers(count: number, of = agent): Promise<string[]> {
  const all: string[] = [];
  for (let round = 0; round < count / 20; round++) all.push(...await Promise.all(Array.from({ length: 20 }, () => answerOf(portOf(of), NAME, 'A'))));
  return [...new Set(all)];
}

describe('two workers', () => {
  test('answer, and all of them by the new zone after a failover', async () => {
    expect(workersOf(agent)).toHaveLength(2);
    expect(await answers(200)).toEqual([master.address.host]);
    expect((await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME)).kind).toBe('simple');
    const promoted = lab.nodes[1]?.address.host ?? '';
    await waitFor(() => `the new master\n${lab.logs()}`, 30_000, async () => (await answerOf(portOf(agent), NAME, 'A')) === promoted);
    await new Promise((done) => void setTimeout(done, 100));
    expect(await answers(400)).toEqual([promoted]);
    expect(log()).not.toMatch(/cannot publish|cannot read/);
  }, 60_000);

  test('garbage is told once, by the agent\'s log', async () => {
    for (let round = 0; round < 40; round++) await datagram(portOf(agent), Buffer.alloc(12), 200);
    await waitFor(() => log(), 5_000, () => /dns message malformed/.test(log()));
    expect(log().match(/dns message malformed/g)?.length).toBeLessThanOrEqual(2);
  });

  test('a SIGTERM to all processes ends them by the agent; signals to a worker alone are nothing', async () => {
    const [pid = 0] = workersOf(agent);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.kill(pid, signal);
    expect(await answers(100)).toHaveLength(1);
    expect(workersOf(agent)).toContain(pid);
  });

  test('one that is killed is replaced, and its place is never empty: no answer is wrong', async () => {
    const right = await answers(20);
    const [pid = 0] = workersOf(agent);
    process.kill(pid, 'SIGKILL');
    const seen = new Set<string>();
    await waitFor(() => log(), 10_000, async () => {
      for (const answer of await answers(20)) seen.add(answer);
      return workersOf(agent).length === 2 && !workersOf(agent).includes(pid);
    });
    for (const answer of await answers(200)) seen.add(answer);
    // What the dead one had read is lost, as a datagram may be.
    seen.delete('silence');
    expect([...seen]).toEqual(right);
    expect(log()).toMatch(/dns worker ended/);
  }, 30_000);

  test('all killed at once: back within a second or two, and the next failover reaches them', async () => {
    for (const pid of workersOf(agent)) process.kill(pid, 'SIGKILL');
    await waitFor(() => log(), 15_000, async () => workersOf(agent).length === 2 && (await answerOf(portOf(agent), NAME, 'A', 200)) !== 'silence');
    const before = await answers(100);
    expect(before).toHaveLength(1);
    await waitFor(() => `a failover\n${lab.logs()}`, 40_000, async () => (await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME)).kind === 'simple');
    await waitFor(() => `the new master\n${lab.logs()}`, 30_000, async () => (await answerOf(portOf(agent), NAME, 'A')) !== before[0]);
    await new Promise((done) => void setTimeout(done, 100));
    expect(await answers(200)).toHaveLength(1);
  }, 90_000);

  test('SIGHUP: a new ttl on all of them; another number waits for a restart, which the log says', async () => {
    const yaml = join(agent.folder, 'pointsman.yaml');
    const text = readFileSync(yaml, 'utf8');
    writeFileSync(yaml, text.replace('ttl: 1s', 'ttl: 9s'));
    agent.child.kill('SIGHUP');
    const ttl = async (): Promise<unknown> => (await query(portOf(agent), NAME, 'A'))?.answers?.map((answer) => ('ttl' in answer ? answer.ttl : null))[0];
    await waitFor(() => log(), 10_000, async () => (await ttl()) === 9);
    await new Promise((done) => void setTimeout(done, 100));
    for (let round = 0; round < 50; round++) expect(await ttl()).toBe(9);
  }, 30_000);
});

describe('an agent with workers', () => {
  test('never limits this host, however low the limit (others: test/unit/dns/rate-limit.test.ts)', async () => {
    const limited = await lab.agent(master, {
      env: { ...WORKERS, POINTSMAN_DNS_RATE_LIMIT_RESPONSES_PER_SECOND: '5', POINTSMAN_DNS_RATE_LIMIT_SLIP: '1' },
    });
    await waitFor(() => log(limited), 20_000, async () => (await answerOf(portOf(limited), NAME, 'A')).startsWith('127.'));
    for (let round = 0; round < 50; round++) expect(await answerOf(portOf(limited), NAME, 'A')).toMatch(/^127\./);
    limited.child.kill('SIGTERM');
    await limited.child.ended;
  }, 60_000);

  test('that is killed takes its workers with it', async () => {
    const doomed = await lab.agent(master, { env: WORKERS });
    const pids = workersOf(doomed);
    expect(pids).toHaveLength(2);
    doomed.child.kill('SIGKILL');
    await waitFor('the workers end', 5_000, () => pids.every((pid) => !isAlive(pid)));
    expect(await datagram(portOf(doomed), queryBytes(`${NAME}. A`), 300)).toBeNull();
  }, 60_000);

  test('whose port is taken says so and leaves nothing behind', async () => {
    const port = await freePort();
    const other = createSocket('udp4').bind(port, '127.0.0.1');
    await once(other, 'listening');
    const refused = await lab.agent(master, { env: WORKERS, dnsPort: port, unwaited: true });
    await refused.child.ended;
    expect([refused.child.status, /dns cannot listen on 127\.0\.0\.1:\d+: address already in use/.test(log(refused))]).toEqual(['status 71', true]);
    other.close();
  }, 60_000);

  test('answers on IPv4 and IPv6 under one port', async () => {
    const both = await lab.agent(master, { env: { ...WORKERS, POINTSMAN_DNS_LISTEN: '0.0.0.0:0,[::]:0' }, unwaited: true });
    const ports = (): string[] => [...log(both).matchAll(/address[:=] ?"?(?:0\.0\.0\.0|\[::\]):(\d+)/g)].map(([, port]) => port ?? '');
    await waitFor(() => log(both), 20_000, () => ports().length >= 2);
    const [four = '', six = ''] = ports();
    for (const [port, family, host] of [[four, 'udp4', '127.0.0.1'], [six, 'udp6', '::1']] as const) {
      const socket = createSocket(family);
      const reply = once(socket, 'message', { signal: AbortSignal.timeout(3_000) });
      socket.send(queryBytes('redis.test. SOA'), Number(port), host);
      expect((((await reply)[0] as Buffer)[3] ?? 0) & 15).toBe(0);
      socket.close();
    }
    both.child.kill('SIGTERM');
    await both.child.ended;
  }, 60_000);
});

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
