/**
 * The DNS beside others on this machine, all in one run: queries per second, CPU per query, latency at a rate, zone swaps under load,
 * and what the agent's own timers suffer. Slices of one second in turn, since these machines are noisy; ratios are of medians.
 *
 * Run: npm run bench:dns [-- --rounds 9] [--rubbish 1000000] [--json] [--write]; `--write` puts the tables into docs/performance.md.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Target } from './dns/dnsperf.js';
import { slice } from './dns/dnsperf.js';
import { measureSuffering } from './dns/flooded-agent.js';
import { Servers } from './dns/servers.js';
import { swapUnderLoad } from './dns/swaps.js';
import { putTable, tableOf } from './dns/tables.js';

const PAGE = new URL('../docs/performance.md', import.meta.url).pathname;
const RATE = 20_000;
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' }, rubbish: { type: 'string', default: '1000000' },
    json: { type: 'boolean', default: false }, write: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const median = (numbers: readonly number[]): number => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] ?? NaN;
const say = (text: string): void => void process.stderr.write(`${text}\n`);

interface Side {
  readonly name: string;
  readonly target: Target;
  readonly queries: string;
  readonly transport?: 'tcp';
  /** What is asked of it, as a part of another side's queries per second. */
  readonly bar?: { readonly of: string; readonly atLeast: number };
}

interface Row {
  readonly side: string;
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly toEcho: number;
  readonly bar: string;
  readonly met: boolean;
  readonly lost: number;
  readonly wrong: number;
}

async function sidesOf(servers: Servers): Promise<Side[]> {
  const one = servers.queriesFor('one', ['m0.redis.internal A']);
  const many = servers.queriesFor('many', Array.from({ length: 5_000 }, (_, index) => `m${(index * 7919) % 5_000}.redis.internal A`));
  const four = '127.0.0.1';
  const ours = await servers.node('ours', four, '1');
  return [
    { name: 'bare UDP echo', target: await servers.node('echo', four), queries: one },
    { name: 'echo, 5 000 names', target: await servers.node('echo', four), queries: many },
    { name: 'ours, 1 master', target: ours, queries: one, bar: { of: 'bare UDP echo', atLeast: 0.9 } },
    { name: 'ours, 5 000 masters, all asked', target: await servers.node('ours', four, '5000'), queries: many, bar: { of: 'echo, 5 000 names', atLeast: 0.8 } },
    { name: 'ours, 2 workers', target: await servers.node('ours', four, '1', '2'), queries: one, bar: { of: 'ours, 1 master', atLeast: 1.1 } },
    { name: 'ours, IPv6', target: await servers.node('ours', '::1', '1'), queries: one },
    { name: 'ours, TCP', target: ours, queries: one, transport: 'tcp' },
    { name: 'dns2 3.0.0', target: await servers.node('dns2', four), queries: one },
    { name: 'Consul 1.8.7', target: await servers.consul(), queries: servers.queriesFor('consul', ['m0.service.consul A']) },
    { name: 'BIND named', target: await servers.named(), queries: one },
  ];
}

async function throughput(sides: readonly Side[]): Promise<Row[]> {
  const found = new Map(sides.map(({ name }) => [name, [] as Awaited<ReturnType<typeof slice>>[]]));
  for (let round = -1; round < rounds; round++) {
    // Each round begins with another side, so that nobody is always behind the same neighbour.
    for (let index = 0; index < sides.length; index++) {
      const { name, target, queries, transport } = sides[(index + Math.max(round, 0)) % sides.length] as Side;
      const taken = await slice(target, { seconds: 1, queries, ...(transport === undefined ? {} : { transport }) });
      if (round >= 0) found.get(name)?.push(taken);
    }
    say(round < 0 ? 'warmed up' : `round ${round + 1} of ${rounds}`);
  }
  const rate = (name: string): number => median((found.get(name) ?? []).map(({ perSecond }) => perSecond));
  return sides.map(({ name, bar }) => {
    const slices = found.get(name) ?? [];
    const bars = [...(bar === undefined ? [] : [bar]), ...(name === 'ours, 1 master' ? [{ of: 'dns2 3.0.0', atLeast: 5 }, { of: 'Consul 1.8.7', atLeast: 3 }] : [])];
    return {
      side: name,
      perSecond: rate(name),
      cpuUs: median(slices.map(({ cpuUs }) => cpuUs)),
      toEcho: rate(name) / rate('bare UDP echo'),
      bar: bars.map(({ of, atLeast }) => `${(rate(name) / rate(of)).toFixed(2)} x ${of} (bar ${atLeast})`).join('; '),
      met: bars.every(({ of, atLeast }) => rate(name) / rate(of) >= atLeast),
      lost: slices.reduce((sum, { lost }) => sum + lost, 0),
      wrong: slices.reduce((sum, { wrong }) => sum + wrong, 0),
    };
  });
}

/** 99 % of the replies at a fixed rate, in milliseconds, per side. */
async function latencies(sides: readonly Side[]): Promise<{ side: string; p99Ms: number }[]> {
  const compared = sides.filter(({ name }) => name === 'bare UDP echo' || name === 'ours, 1 master' || name.includes('5 000'));
  const found = new Map(compared.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    for (const { name, target, queries } of compared) {
      found.get(name)?.push((await slice(target, { seconds: 1, queries, perSecond: RATE })).p99Ms ?? NaN);
    }
  }
  return compared.map(({ name }) => ({ side: name, p99Ms: median(found.get(name) ?? []) }));
}

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-bench-dns-'));
  const servers = new Servers(folder);
  try {
    const sides = await sidesOf(servers);
    const rows = await throughput(sides);
    const late = await latencies(sides);
    say('zone swaps under load');
    const swaps = await swapUnderLoad(servers);
    servers.end();
    say('timers of an agent under load');
    const suffered = await measureSuffering(folder, 10, Number(values.rubbish), say);
    const report = { at: new Date().toISOString(), loadavg: loadavg(), rounds, rows, latencies: late, swaps, ...suffered };
    const text = tableOf(report);
    process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : text);
    if (values.write) writeFileSync(PAGE, putTable(readFileSync(PAGE, 'utf8'), text));
    return rows.every(({ met }) => met) && swaps.lost === 0 && swaps.wrong === 0 ? 0 : 1;
  } finally {
    servers.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exitCode = await main();
