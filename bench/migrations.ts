/**
 * `pointsman migrate` there and back, silent and coordinated, under six clients: what each client saw, what it took, what is missing,
 * what was left changed, and how the forced copies went.
 *
 * Run: npm run bench:migrate -- [--moves 20] [--only silent,barrier,coordinated] [--megabytes 0] [--writes 0] [--json]
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { must } from '../src/assert.js';
import { measure, WAYS, type Measured } from './migrations/measure.js';

const { values } = parseArgs({
  options: {
    moves: { type: 'string', default: '20' },
    only: { type: 'string', default: 'silent,barrier,coordinated' },
    /** Data that every full copy has to carry. */
    megabytes: { type: 'string', default: '0' },
    /** Writes per second of a seventh client. */
    writes: { type: 'string', default: '0' },
    json: { type: 'boolean', default: false },
  },
});

const quantile = (numbers: readonly number[], part: number): string => {
  const sorted = [...numbers].sort((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN).toFixed(0);
};

const spread = (numbers: readonly number[]): string => `p50 ${quantile(numbers, 0.5)} ms, max ${quantile(numbers, 1)}`;

function show(found: Measured): string[] {
  const per = (sum: number): string => (sum / found.moves).toFixed(1);
  return [
    `${found.way}: ${found.moves} moves, ${found.failed.length} failed; ${found.acknowledged} acknowledged writes (${found.writesPerSecond.toFixed(0)}/s), `
      + `${found.missing} missing on any of 3 nodes`,
    `  whole move ${spread(found.wholeMs)}; switch ${spread(found.switchMs)}; probe blind ${spread(found.probeMs)}`,
    `  ${per(found.cut)} connections cut and ${per(found.copies)} full copies per move; ${found.leftBehind} connections left behind at old masters beside the pinned one`,
    `  replicas that copied at one time: at most ${found.copyingAtOnce}; each without its link ${spread(found.absentMs)}`,
    `  settings of nodes and sentinels that are not as before: ${found.changed.length}`,
    ...[...found.clients].map(([name, { errors, blindMs }]) => {
      const blind = blindMs.length === 0 ? '' : `, blind ${spread(blindMs)}`;
      return `  ${name.padEnd(14)} ${per(errors).padStart(6)} errors per move${blind}`;
    }),
    ...found.failed.map((text) => `  FAILED ${text}`),
    ...found.changed.map((text) => `  CHANGED ${text}`),
  ];
}

const all: Measured[] = [];
const load = { megabytes: Number(values.megabytes), writesPerSecond: Number(values.writes) };
for (const way of values.only.split(',')) {
  must(WAYS[way], `a way is one of ${Object.keys(WAYS).join()}`);
  if (!values.json) process.stderr.write(`${way} `);
  all.push(await measure(way, Number(values.moves), load, (isGood) => void (values.json || process.stderr.write(isGood ? '.' : '!'))));
  if (!values.json) process.stderr.write('\n');
}
if (values.json) console.log(JSON.stringify({ loadavg: loadavg(), ways: all.map((each) => ({ ...each, clients: Object.fromEntries(each.clients) })) }));
else {
  console.log(`load average ${loadavg().map((each) => each.toFixed(1)).join(' ')}`);
  for (const found of all) console.log(show(found).join('\n'));
}
