/**
 * How long after the promotion clients are told, per output, on three hosts in network namespaces (root only). The new master's own ROLE
 * is the zero; DNS is asked at each agent, hooks note their start, the VIPs are reached by TCP from a fourth namespace, Consul by its DNS.
 *
 * Run: npm run bench [-- --moves 20] [--only hosts,consul,cluster] [--json]. Rounds of their own: hosts (DNS, hooks, VIPs), consul (one server), cluster
 * (three servers). Bars stand beside the figures, and the cost of one process start, which hooks pay once and the VIP for arping.
 * npm run bench -- --only steady [--minutes 10] [--differ-minutes 5]: what is written to Consul while nothing changes, and while agents disagree;
 * exit status 1 when that is more than it should be.
 */
import { spawnSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { whyNoNetwork } from '../test/integration/netns-lab.js';
import { figureOf, lineOf } from './outputs/figures.js';
import { measure } from './outputs/moves.js';
import type { Round } from './outputs/moves.js';
import { steady } from './outputs/steady.js';

const ROUNDS: readonly Round[] = ['hosts', 'consul', 'cluster'];
const { values } = parseArgs({
  options: {
    moves: { type: 'string', default: '20' }, only: { type: 'string', default: ROUNDS.join() }, json: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '10' }, 'differ-minutes': { type: 'string', default: '5' },
  },
});

/** One `true`, started and waited for as a hook is. */
function processStarts(count: number): number[] {
  return Array.from({ length: count }, () => {
    const startMs = performance.now();
    spawnSync('/bin/true');
    return performance.now() - startMs;
  });
}

async function delays(rounds: readonly Round[]): Promise<void> {
  const all = [];
  for (const round of rounds) {
    const found = await measure(round, Number(values.moves));
    const figures = [...[...found].map(([title, each]) => figureOf(title, each)), figureOf('one process start', processStarts(100))];
    all.push(...figures.map((figure) => ({ round, ...figure })));
    if (values.json) continue;
    const loads = loadavg().map((each) => each.toFixed(1)).join(' ');
    process.stdout.write(`${round}: ${values.moves} coordinated moves, 3 hosts; ms after the new master says so; load average ${loads}\n`);
    for (const figure of figures) process.stdout.write(`${lineOf(figure)}\n`);
  }
  if (values.json && all.length > 0) process.stdout.write(`${JSON.stringify({ loadavg: loadavg(), figures: all })}\n`);
}

const reason = whyNoNetwork();
const wanted = values.only.split(',');
const unknown = wanted.filter((name) => name !== 'steady' && !ROUNDS.some((round) => round === name));
if (unknown.length > 0) {
  process.stderr.write(`bench: --only ${unknown.join()}: there are ${[...ROUNDS, 'steady'].join(', ')}\n`);
  process.exitCode = 64;
} else if (reason !== null) {
  process.stdout.write(`bench of outputs skipped: ${reason}\n`);
} else {
  await delays(ROUNDS.filter((round) => wanted.includes(round)));
  if (wanted.includes('steady')) {
    const report = await steady(Number(values.minutes), Number(values['differ-minutes']));
    process.stdout.write(`${values.json ? JSON.stringify(report) : JSON.stringify(report, null, 2)}\n`);
    if (!report.isSound) process.exitCode = 1;
  }
}
