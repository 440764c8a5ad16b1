/**
 * Planned moves of a master under load, side by side: what is lost, and how long a client that reconnects at once is without a
 * master. Run: npm run bench:moves -- [--moves 20] [--baseline-moves 3] [--only silent,coordinated] [--json]
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { measure, WAYS, type Measured, type Way } from './moves/measure.js';

const { values } = parseArgs({
  options: {
    moves: { type: 'string', default: '20' },
    'baseline-moves': { type: 'string', default: '3' },
    only: { type: 'string', default: WAYS.join() },
    json: { type: 'boolean', default: false },
  },
});

const BASELINES: ReadonlySet<Way> = new Set(['failover-to', 'stock']);
const TITLES: Readonly<Record<Way, string>> = {
  silent: 'silent: prepare, done',
  coordinated: 'FAILOVER COORDINATED',
  plain: 'FAILOVER (ours)',
  'failover-to': 'Redis: FAILOVER TO',
  stock: 'stock: SENTINEL FAILOVER',
};

const quantile = (numbers: readonly number[], part: number): string => {
  const sorted = [...numbers].sort((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN).toFixed(1);
};

function row(found: Measured): string[] {
  return [
    TITLES[found.way], String(found.gapsMs.length), quantile(found.gapsMs, 0.5), quantile(found.gapsMs, 1), quantile(found.calmGapsMs, 0.5),
    quantile(found.calmGapsMs, 1), String(found.acknowledged), String(found.missingValues + found.missingIncrements),
    String(found.differingKeys), (found.fullResyncs / found.gapsMs.length).toFixed(1),
  ];
}

const HEAD = ['way', 'moves', 'gap p50', 'gap max', 'calm p50', 'calm max', 'acked', 'missing', 'unequal keys', 'full copies/move'];

const found: Measured[] = [];
for (const way of WAYS.filter((each) => values.only.split(',').includes(each))) {
  const moves = Number(BASELINES.has(way) ? values['baseline-moves'] : values.moves);
  if (!values.json) process.stderr.write(`${TITLES[way]} `);
  found.push(await measure(way, moves, (gapMs) => void (values.json || process.stderr.write(`${gapMs.toFixed(0)} `))));
  if (!values.json) process.stderr.write('\n');
}
if (values.json) {
  console.log(JSON.stringify({ loadavg: loadavg(), ways: found }));
} else {
  console.log(`load average ${loadavg().map((load) => load.toFixed(1)).join(' ')}; gaps in ms, writes missing on any of 3 nodes`);
  const rows = [HEAD, ...found.map(row)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  const aligned = (cell: string, column: number): string => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0));
  for (const cells of rows) console.log(cells.map(aligned).join('  '));
}
