/**
 * What the sentinel suffers, and what a flood leaves behind: a whole agent that watches a real master, idle, under as many queries as it can
 * answer, and under rubbish by UDP and TCP. How late a timer of 1 ms comes; memory; how soon a good query is answered meanwhile.
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { LabSentinel } from '../../test/integration/lab.js';
import { Lab, answerOf } from '../../test/integration/lab.js';
import { slice } from './dnsperf.js';
import { Servers, until } from './servers.js';

const run = promisify(execFile);
const here = (name: string): string => new URL(name, import.meta.url).pathname;

export interface Lateness {
  readonly under: string;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Datagrams or streams per second, as the sender counts. */
  readonly perSecond: number;
}

export interface Flood {
  /** Messages that the agent took, UDP and TCP. */
  readonly taken: number;
  readonly streams: number;
  /** Resident memory in MB: before, at its highest, at the end. */
  readonly rssMb: readonly [number, number, number];
  /** Good queries, ten after each burst: how many, how many without the right answer, the slowest (ms). */
  readonly good: { readonly asked: number; readonly failed: number; readonly slowestMs: number };
  readonly exceptions: number;
}

export interface Suffered {
  readonly lateness: readonly Lateness[];
  readonly flood: Flood;
}

/** `datagrams`: how many of rubbish the agent must have taken at the end. */
export async function measureSuffering(folder: string, seconds: number, datagrams: number, say: (text: string) => void): Promise<Suffered> {
  const lab = new Lab();
  const queries = new Servers(folder).queriesFor('agent', ['mymaster.redis.test A']);
  const file = join(folder, 'lateness.json');
  try {
    const master = await lab.group(2);
    const agent = await lab.agent(master, { env: { NODE_OPTIONS: `--import ${here('lateness.mjs')}`, LATENESS_FILE: file } });
    await lab.settled(master, 40_000);
    const target = { host: '127.0.0.1', port: agent.dnsPort ?? 0, pid: agent.child.pid };
    const found = async (under: string, load: () => Promise<number>): Promise<Lateness> => {
      await read(agent.child.pid, file);
      const perSecond = await load();
      return { under, perSecond, ...(await read(agent.child.pid, file)) };
    };
    const lateness = [
      await found('nothing', () => new Promise((done) => void setTimeout(() => done(0), seconds * 1_000))),
      await found('all the queries it can answer', async () => (await slice(target, { seconds, queries })).perSecond),
      await found('rubbish by UDP', async () => (await rubbish('udp', agent, seconds)) / seconds),
      await found('rubbish by TCP, streams', async () => (await rubbish('tcp', agent, seconds)) / seconds),
    ];
    return { lateness, flood: await flood(agent, seconds, datagrams, say) };
  } finally {
    await lab.stop();
  }
}

async function rubbish(transport: 'udp' | 'tcp', { dnsPort }: LabSentinel, seconds: number): Promise<number> {
  return Number((await run(process.execPath, [here('flood.mjs'), transport, String(dnsPort), String(seconds)])).stdout);
}

async function flood(agent: LabSentinel, seconds: number, datagrams: number, say: (text: string) => void): Promise<Flood> {
  const rss = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent.child.pid}/status`, 'utf8'))?.[1]) / 1024;
  const first = rss();
  let [highest, streams] = [first, 0];
  const good = { asked: 0, failed: 0, slowestMs: 0 };
  const askGood = async (): Promise<void> => {
    for (let left = 10; left > 0; left--) {
      const startMs = performance.now();
      const answer = await answerOf(agent.dnsPort ?? 0, 'mymaster.redis.test', 'A', 2_000);
      good.asked += 1;
      if (!answer.startsWith('127.')) good.failed += 1;
      good.slowestMs = Math.max(good.slowestMs, performance.now() - startMs);
      highest = Math.max(highest, rss());
    }
  };
  const before = await takenBy(agent);
  for (let taken = 0; taken < datagrams; taken = (await takenBy(agent)).taken - before.taken) {
    say(`rubbish: ${Math.round(taken / 1_000)} 000 of ${datagrams / 1_000} 000 datagrams taken, ${rss().toFixed(0)} MB`);
    await rubbish('udp', agent, seconds);
    await askGood();
    streams += await rubbish('tcp', agent, 1);
    await askGood();
  }
  const after = await takenBy(agent);
  return { taken: after.taken - before.taken, streams, rssMb: [first, highest, rss()], good, exceptions: after.exceptions };
}

/** As the agent's own metrics count. */
async function takenBy({ folder }: LabSentinel): Promise<{ taken: number; exceptions: number }> {
  const [, address = ''] = /admin: \{ listen: "([^"]+)"/.exec(readFileSync(join(folder, 'pointsman.yaml'), 'utf8')) ?? [];
  const page = await (await fetch(`http://${address}/metrics`)).text();
  const sum = (pattern: RegExp): number => [...page.matchAll(pattern)].reduce((total, [, value]) => total + Number(value), 0);
  return { taken: sum(/^pointsman_dns_queries_total\{.*\} (\d+)/gm), exceptions: sum(/^pointsman_dns_errors_total\{kind="exception"\} (\d+)/gm) };
}

async function read(pid: number, file: string): Promise<Pick<Lateness, 'p50' | 'p99' | 'max'>> {
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  await until(async () => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'));
  return JSON.parse(readFileSync(file, 'utf8')) as Lateness;
}
