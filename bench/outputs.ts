/**
 * How long after the promotion clients are told, per output, on three hosts in network namespaces (root only). The new master's own ROLE
 * is the zero; DNS is asked at each agent, hooks note their start, the VIP is reached by TCP from a fourth namespace.
 * Run: npm run bench [-- --moves 20] [--json]. The cost of one process start stands beside it: hooks pay it once, the VIP for arping.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { whyNoNetwork } from '../test/integration/netns-lab.js';
import { CACHE, SENTINEL_PORT, VipLab } from '../test/integration/vip-lab.js';
import type { Host } from '../test/integration/netns-lab.js';
import { waitFor } from '../test/integration/lab.js';

const { values } = parseArgs({ options: { moves: { type: 'string', default: '20' }, json: { type: 'boolean', default: false } } });

interface Note {
  readonly at: number;
  readonly what: string;
  readonly says: string;
}

const linesOf = (path: string): string[] => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter((line) => line !== '') : []);

function quantile(numbers: readonly number[], part: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

/** One `true`, started and waited for as a hook is. */
function processStarts(count: number): number[] {
  return Array.from({ length: count }, () => {
    const startMs = performance.now();
    spawnSync('/bin/true');
    return performance.now() - startMs;
  });
}

/** Milliseconds from promotion, by output. */
type Delays = Readonly<Record<'dns' | 'hook' | 'vip', number[]>>;

function delaysOf(notes: readonly Note[], hookStarts: readonly number[], next: Host, sinceMs: number): Delays | string {
  const later = notes.filter(({ at }) => at >= sinceMs);
  const promotedMs = later.find(({ what, says }) => what === `role ${next.ip}` && says === 'master')?.at;
  if (promotedMs === undefined) return 'no promotion seen';
  const dns = later.filter(({ what, says }) => what.startsWith('dns ') && says === next.ip).map(({ at }) => at - promotedMs);
  const vip = later.filter(({ what, says }) => what === 'vip' && says === next.ip).slice(0, 1).map(({ at }) => at - promotedMs);
  const hook = hookStarts.map((at) => at - promotedMs);
  if (dns.length < 3 || vip.length < 1 || hook.length < 3) return `seen: ${dns.length} dns, ${hook.length} hooks, ${vip.length} vip`;
  return { dns, hook, vip };
}

async function measure(lab: VipLab, hookFile: string, moves: number): Promise<Delays> {
  const all: Delays = { dns: [], hook: [], vip: [] };
  const notesFile = join(lab.folder, 'notes');
  writeFileSync(notesFile, '');
  const nodes = lab.network.hosts.map(({ ip }) => `${ip}:${CACHE.port}`);
  const words = [notesFile, `${CACHE.vips[0] ?? ''}:${CACHE.port}`, ...nodes, '--', ...lab.network.hosts.map(({ ip }) => ip)];
  lab.children.start('probe', [...lab.client.wrap, process.execPath, new URL('outputs/probe.mjs', import.meta.url).pathname, ...words], lab.folder);
  let home = lab.host(1);
  for (let move = 0; move < moves; move++) {
    await lab.ready(CACHE, home);
    const next = lab.network.hosts[home.number % 3] as Host;
    writeFileSync(hookFile, '');
    const sinceMs = Date.now();
    const target = `${next.ip}:${CACHE.port}`;
    await waitFor(() => `move ${move}\n${lab.logs()}`, 30_000, async () =>
      (await lab.ask(home, SENTINEL_PORT, 'sentinel', 'failover', 'cache', 'coordinated', target)) === 'OK');
    let found: Delays | string = '';
    await waitFor(() => `move ${move} seen everywhere: ${String(found)}\n${lab.logs()}`, 30_000, () => {
      const notes = linesOf(notesFile).map((line) => JSON.parse(line) as Note);
      found = delaysOf(notes, linesOf(hookFile).map((line) => Number(line) * 1000), next, sinceMs);
      return typeof found !== 'string';
    });
    for (const [output, delays] of Object.entries(found as unknown as Delays)) all[output as keyof Delays].push(...delays);
    home = next;
  }
  return all;
}

const reason = whyNoNetwork();
if (reason !== null) {
  process.stdout.write(`bench of outputs skipped: ${reason}\n`);
} else {
  const lab = new VipLab({
    withClient: false, downAfterMs: 5_000,
    yaml: [
      'dns: { listen: ["0.0.0.0:5353"], zone: redis.internal., ns: { ns.redis.internal.: 10.77.0.1 } }',
      'hooks: [{ name: bench, command: [/bin/bash, HOOK] }]',
    ],
  });
  try {
    const hookFile = join(lab.folder, 'hook-starts');
    const script = join(lab.folder, 'hook.sh');
    writeFileSync(hookFile, '', { mode: 0o666 });
    writeFileSync(script, `echo $EPOCHREALTIME >> ${hookFile}\n`, { mode: 0o755 });
    spawnSync('chmod', ['666', hookFile]);
    await lab.start((text) => text.replace('HOOK', script));
    const found = await measure(lab, hookFile, Number(values.moves));
    const rows = { ...found, 'one process start': processStarts(100) };
    const figures = Object.entries(rows).map(([what, each]) =>
      ({ what, count: each.length, p50: quantile(each, 0.5), p99: quantile(each, 0.99), max: quantile(each, 1) }));
    const load = loadavg();
    if (values.json) process.stdout.write(`${JSON.stringify({ loadavg: load, figures })}\n`);
    else {
      const loads = load.map((each) => each.toFixed(1)).join(' ');
      process.stdout.write(`${values.moves} coordinated moves, 3 hosts; ms after the new master says so; load average ${loads}\n`);
      const cell = (ms: number): string => ms.toFixed(1).padStart(7);
      for (const { what, count, p50, p99, max } of figures) {
        process.stdout.write(`${what.padEnd(18)} n=${String(count).padStart(4)}  p50 ${cell(p50)}  p99 ${cell(p99)}  max ${cell(max)}\n`);
      }
    }
  } finally {
    await lab.stop();
  }
}
