/**
 * `pointsman migrate` there and back, silent and coordinated, under six clients: what each client saw, what it took, what is missing.
 * Run: npm run bench:migrate -- [--moves 20] [--only silent,barrier,coordinated] [--megabytes 0] [--json]
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { must } from '../src/assert.js';
import { ask, textOf } from '../test/integration/lab.js';
import { MigrateLab } from '../test/integration/migrate-lab.js';

const { values } = parseArgs({
  options: {
    moves: { type: 'string', default: '20' },
    only: { type: 'string', default: 'silent,barrier,coordinated' },
    /** Data that every full copy has to carry. */
    megabytes: { type: 'string', default: '0' },
    json: { type: 'boolean', default: false },
  },
});

const WAYS: Readonly<Record<string, readonly string[]>> = { silent: [], barrier: ['--barrier'], coordinated: ['--mode', 'coordinated'] };
const VALUE_BYTES = 10_000;
const CALM_LIMIT_MS = 300_000;

interface Measured {
  readonly way: string;
  readonly moves: number;
  readonly failed: readonly string[];
  readonly wholeMs: readonly number[];
  readonly switchMs: readonly number[];
  readonly probeMs: readonly number[];
  readonly copies: number;
  readonly cut: number;
  /** By client: errors in all moves, longest blind time of each move. */
  readonly clients: ReadonlyMap<string, { errors: number; blindMs: number[] }>;
  readonly acknowledged: number;
  readonly missing: number;
}

const quantile = (numbers: readonly number[], part: number): string => {
  const sorted = [...numbers].sort((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN).toFixed(0);
};

const spread = (numbers: readonly number[]): string => `p50 ${quantile(numbers, 0.5)} ms, max ${quantile(numbers, 1)}`;

async function fill(lab: MigrateLab, megabytes: number): Promise<void> {
  if (megabytes === 0) return;
  const count = Math.ceil((megabytes * 1024 * 1024) / VALUE_BYTES);
  const reply = await ask(lab.site.node(0), 'DEBUG', 'POPULATE', String(count), 'filler', String(VALUE_BYTES));
  if (textOf(reply) !== 'OK') throw new Error(`DEBUG POPULATE: ${textOf(reply)}`);
  // POPULATE is in no replication stream: the replicas copy once.
  for (const index of [1, 2]) {
    const { host, port } = lab.site.node(0).address;
    await ask(lab.site.node(index), 'REPLICAOF', 'NO', 'ONE');
    await ask(lab.site.node(index), 'REPLICAOF', host, String(port));
  }
}

async function measure(way: string, moves: number, megabytes: number): Promise<Measured> {
  const lab = new MigrateLab();
  try {
    await lab.start({ redisArgs: ['--replica-read-only', 'yes', '--enable-debug-command', 'yes'] });
    await fill(lab, megabytes);
    await lab.site.calm(lab.site.node(0), CALM_LIMIT_MS);
    const clients = await lab.withClients(lab.site.node(0));
    const found = { failed: [] as string[], wholeMs: [] as number[], switchMs: [] as number[], probeMs: [] as number[], copies: 0, cut: 0 };
    const seen = new Map<string, { errors: number; blindMs: number[] }>();
    for (let turn = 0; turn < moves; turn++) {
      const target = lab.site.node(turn % 2 === 0 ? 1 : 0);
      clients.mark();
      const startMs = performance.now();
      const ran = await lab.move(target, WAYS[way]);
      found.wholeMs.push(performance.now() - startMs);
      if (ran.status !== 0) found.failed.push(`${turn + 1}: ${ran.text}`);
      const report = ran.lines.find((line) => line['step'] === 'report') ?? {};
      const times = (report['times'] ?? {}) as Record<string, number>;
      found.switchMs.push(times['done'] ?? times['failover'] ?? NaN);
      found.probeMs.push(Number(report['longestBlindMs'] ?? NaN));
      found.copies += Number(report['fullCopies'] ?? 0);
      found.cut += Number(report['cut'] ?? 0);
      for (const { name, errors, blindMs } of clients.report()) {
        const sum = seen.get(name) ?? { errors: 0, blindMs: [] };
        sum.errors += errors;
        if (blindMs !== null) sum.blindMs.push(blindMs);
        seen.set(name, sum);
      }
      if (!values.json) process.stderr.write(`${ran.status === 0 ? '.' : '!'}`);
      await lab.site.calm(target, CALM_LIMIT_MS);
    }
    for (const writer of clients.writers) await writer.stop();
    const acknowledged = clients.writers.reduce((sum, writer) => sum + writer.acknowledged.length, 0);
    return { way, moves, ...found, clients: seen, acknowledged, missing: await lab.lost() };
  } finally {
    await lab.stop();
  }
}

function show(found: Measured): string[] {
  const per = (sum: number): string => (sum / found.moves).toFixed(1);
  return [
    `${found.way}: ${found.moves} moves, ${found.failed.length} failed; ${found.acknowledged} acknowledged writes, ${found.missing} missing on any of 3 nodes`,
    `  whole move ${spread(found.wholeMs)}; switch ${spread(found.switchMs)}; probe blind ${spread(found.probeMs)}`,
    `  ${per(found.cut)} connections cut and ${per(found.copies)} full copies per move`,
    ...[...found.clients].map(([name, { errors, blindMs }]) => {
      const blind = blindMs.length === 0 ? '' : `, blind ${spread(blindMs)}`;
      return `  ${name.padEnd(14)} ${per(errors).padStart(6)} errors per move${blind}`;
    }),
    ...found.failed.map((text) => `  FAILED ${text}`),
  ];
}

const all: Measured[] = [];
for (const way of values.only.split(',')) {
  must(WAYS[way], `a way is one of ${Object.keys(WAYS).join()}`);
  if (!values.json) process.stderr.write(`${way} `);
  all.push(await measure(way, Number(values.moves), Number(values.megabytes)));
  if (!values.json) process.stderr.write('\n');
}
if (values.json) console.log(JSON.stringify({ loadavg: loadavg(), ways: all.map((each) => ({ ...each, clients: Object.fromEntries(each.clients) })) }));
else {
  console.log(`load average ${loadavg().map((load) => load.toFixed(1)).join(' ')}`);
  for (const found of all) console.log(show(found).join('\n'));
}
