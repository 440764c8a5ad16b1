/**
 * Moves there and back by `pointsman migrate`, in a lab of its own for each way, with everything that is asked of a move counted.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { ask, textOf, type RedisNode } from '../../test/integration/lab.js';
import { MigrateLab, type Ran } from '../../test/integration/migrate-lab.js';
import type { MigrateClients } from '../../test/integration/migrate-clients.js';
import { watchAbsences } from './absence.js';

export const WAYS: Readonly<Record<string, readonly string[]>> = { silent: [], barrier: ['--barrier'], coordinated: ['--mode', 'coordinated'] };

const VALUE_BYTES = 10_000;
const FILL_PART = 5_000;
const LEAVE_LIMIT_MS = 5_000;
const CALM_LIMIT_MS = 600_000;
/** Unique values that one connection of a pool sends at a time. */
const BATCH = 5;

export interface Load {
  /** Data that every full copy has to carry. */
  readonly megabytes: number;
  /** Writes of one more client by DNS, per second. */
  readonly writesPerSecond: number;
}

export interface Measured {
  readonly way: string;
  readonly moves: number;
  readonly failed: string[];
  readonly wholeMs: number[];
  readonly switchMs: number[];
  readonly probeMs: number[];
  copies: number;
  cut: number;
  /** Connections at the former master after a move that are not the pinned client's. */
  leftBehind: number;
  /** Settings of nodes and sentinels that a move left otherwise than it found them. */
  readonly changed: string[];
  /** By client: errors in all moves, longest blind time of each move. */
  readonly clients: Map<string, { errors: number; blindMs: number[] }>;
  /** Replicas that copied at one time, at most; and how long each was without its link, whatever for. */
  copyingAtOnce: number;
  readonly absentMs: number[];
  acknowledged: number;
  writesPerSecond: number;
  missing: number;
}

async function fill(lab: MigrateLab, megabytes: number): Promise<void> {
  if (megabytes === 0) return;
  const count = Math.ceil((megabytes * 1024 * 1024) / VALUE_BYTES);
  // In parts, so that the sentinels hear of the master in between.
  for (let done = 0; done < count; done += FILL_PART) {
    const reply = await ask(lab.site.node(0), 'DEBUG', 'POPULATE', String(Math.min(FILL_PART, count - done)), `filler:${done}`, String(VALUE_BYTES));
    if (textOf(reply) !== 'OK') throw new Error(`DEBUG POPULATE: ${textOf(reply)}`);
  }
  // POPULATE is in no replication stream: the replicas copy once.
  const { host, port } = lab.site.node(0).address;
  for (const index of [1, 2]) {
    await ask(lab.site.node(index), 'REPLICAOF', 'NO', 'ONE');
    await ask(lab.site.node(index), 'REPLICAOF', host, String(port));
  }
}

/** Moves `moves` times between the first two nodes. `onMove` hears of each whether it was good. */
export async function measure(way: string, moves: number, load: Load, onMove: (isGood: boolean) => void): Promise<Measured> {
  const lab = new MigrateLab();
  if (load.megabytes > 0) lab.runLimitMs = CALM_LIMIT_MS;
  const found: Measured = {
    way, moves, failed: [], wholeMs: [], switchMs: [], probeMs: [], copies: 0, cut: 0, leftBehind: 0, changed: [], clients: new Map(), copyingAtOnce: 0, absentMs: [],
    acknowledged: 0, writesPerSecond: 0, missing: 0,
  };
  try {
    await lab.start({ redisArgs: ['--replica-read-only', 'yes', '--enable-debug-command', 'yes', '--rdbcompression', 'no'] });
    await fill(lab, load.megabytes);
    await lab.site.calm(lab.site.node(0), CALM_LIMIT_MS);
    const clients = await lab.withClients(lab.site.node(0), { batch: BATCH, writesPerSecond: load.writesPerSecond });
    const startMs = performance.now();
    for (let turn = 0; turn < moves; turn++) onMove(await moveOnce(lab, clients, turn, found));
    for (const writer of clients.writers) await writer.stop();
    found.acknowledged = clients.writers.reduce((sum, writer) => sum + writer.acknowledged.length, 0);
    found.writesPerSecond = (found.acknowledged / (performance.now() - startMs)) * 1_000;
    found.missing = await lab.lost();
    return found;
  } finally {
    await lab.stop();
  }
}

async function moveOnce(lab: MigrateLab, clients: MigrateClients, turn: number, found: Measured): Promise<boolean> {
  const [from, to] = turn % 2 === 0 ? [lab.site.node(0), lab.site.node(1)] : [lab.site.node(1), lab.site.node(0)];
  const before = await lab.everything();
  clients.mark();
  const startMs = performance.now();
  const absences = watchAbsences(lab.site.lab.nodes);
  const ran = await lab.move(to, WAYS[found.way]);
  found.wholeMs.push(performance.now() - startMs);
  const { mostCopying, stretchesMs } = await absences.stop();
  found.copyingAtOnce = Math.max(found.copyingAtOnce, mostCopying);
  found.absentMs.push(...stretchesMs);
  note(found, turn, ran);
  for (const { name, errors, blindMs } of clients.report()) {
    const sum = found.clients.get(name) ?? { errors: 0, blindMs: [] };
    sum.errors += errors;
    if (blindMs !== null) sum.blindMs.push(blindMs);
    found.clients.set(name, sum);
  }
  found.leftBehind += await leftBehind(lab, from);
  await lab.site.calm(to, CALM_LIMIT_MS);
  found.changed.push(...differences(before, await lab.everything()).map((name) => `move ${turn + 1}: ${name}`));
  return ran.status === 0;
}

function note(found: Measured, turn: number, ran: Ran): void {
  if (ran.status !== 0) found.failed.push(`${turn + 1}: ${ran.text}`);
  const report = ran.lines.find((line) => line['step'] === 'report') ?? {};
  const times = (report['times'] ?? {}) as Record<string, number>;
  found.switchMs.push(times['done'] ?? times['failover'] ?? NaN);
  found.probeMs.push(Number(report['longestBlindMs'] ?? NaN));
  found.copies += Number(report['fullCopies'] ?? 0);
  found.cut += Number(report['cut'] ?? 0);
}

/** Whoever asked the name a moment too early is given time to come back. The pinned client stays at the first node by its nature. */
async function leftBehind(lab: MigrateLab, from: RedisNode): Promise<number> {
  const pinned = from === lab.site.node(0) ? 1 : 0;
  const count = async (): Promise<number> => Math.max(0, (await lab.guests(from)) - pinned);
  for (const untilMs = performance.now() + LEAVE_LIMIT_MS; performance.now() < untilMs && (await count()) > 0;) await sleep(100);
  return count();
}

function differences(before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(before).filter((name) => !isDeepStrictEqual(before[name], after[name]));
}
