/**
 * The report of a chaos run: what it is, when it is good, and how it is printed.
 */
import type { Loss } from './audit.js';
import type { Deed } from './chaos.js';
import type { LossKind } from './lineage.js';
import type { Gap } from './receipts.js';
import { showSettings, type ChaosSettings } from './settings.js';

export interface Round {
  readonly steps: number;
  /** From the end of its last fault until all agreed; null = not in time. */
  readonly settledMs: number | null;
}

export interface Blind {
  readonly client: string;
  readonly ms: number;
  /** After the beginning of the run. */
  readonly fromMs: number;
  /** The client's own host was cut or its server at hand. */
  readonly isOwnCut: boolean;
  readonly during: readonly string[];
}

export interface ChaosReport {
  readonly settings: ChaosSettings;
  readonly tookMs: number;
  readonly rounds: readonly Round[];
  readonly deeds: readonly { readonly title: string; readonly startMs: number; readonly endMs: number }[];
  readonly skipped: number;
  readonly accepted: Readonly<Record<string, number>>;
  readonly acknowledged: number;
  readonly lost: Readonly<Record<LossKind, number>>;
  readonly losses: readonly Loss[];
  readonly blind: readonly Blind[];
  readonly digs: Readonly<Record<string, number>>;
  /** Everything that must not be; empty = a good run. */
  readonly failures: readonly string[];
  readonly isOk: boolean;
}

const MOST_BLIND = 5;
const WIDTH = 46;

/** Names what was going on while a client had nothing acknowledged. */
export function explainGap(gap: Gap, deeds: readonly Deed[], startMs: number): Blind {
  const during = deeds.filter((deed) => deed.startMs < gap.toMs && deed.endMs > gap.fromMs - 1_000);
  return {
    client: gap.client,
    ms: gap.toMs - gap.fromMs,
    fromMs: gap.fromMs - startMs,
    isOwnCut: during.some(({ hostNames }) => hostNames.includes(gap.host)),
    during: during.map(({ title }) => title),
  };
}

export function sumLosses(losses: readonly Loss[]): Record<LossKind, number> {
  const sums: Record<LossKind, number> = { crash: 0, partition: 0, aborted: 0, unexplained: 0 };
  for (const { kind, count } of losses) sums[kind] += count;
  return sums;
}

const LOSS_TITLES: readonly (readonly [LossKind, string])[] = [
  ['crash', 'lost when a server was killed'],
  ['partition', 'lost when a server was cut off or stopped'],
  ['aborted', 'lost with a silent window that was aborted'],
  ['unexplained', 'lost otherwise (planned moves, calm times)'],
];

export function showReport(report: ChaosReport): string {
  const lines = [showSettings(report.settings), ''];
  const put = (title: string, value: string | number, remark = ''): void => {
    lines.push(`${title.padEnd(WIDTH)}${String(value).padStart(9)}${remark === '' ? '' : `   ${remark}`}`);
  };
  const settled = report.rounds.map(({ settledMs }) => (settledMs === null ? 'never' : (settledMs / 1000).toFixed(1)));
  put('faults and moves', report.deeds.length, `in ${report.rounds.length} rounds; ${report.skipped} left out`);
  put('moves that were answered OK', sum(Object.values(report.accepted)), Object.entries(report.accepted).map(([kind, count]) => `${count} ${kind}`).join(', '));
  put('acknowledged writes', report.acknowledged);
  for (const [kind, title] of LOSS_TITLES) put(title, report.lost[kind]);
  const foreign = report.blind.find(({ isOwnCut }) => !isOwnCut);
  put('longest blind time of a client', `${foreign?.ms ?? 0} ms`, foreign?.during.join('; ') ?? '');
  const own = report.blind.find(({ isOwnCut }) => isOwnCut);
  if (own !== undefined) put('… of one that was cut off itself', `${own.ms} ms`, own.during.join('; '));
  put('agreement after each round, s', settled.join(' '), 'agents, DNS by dig, roles of all nodes');
  put('answers to dig', sum(Object.values(report.digs)), Object.entries(report.digs).map(([answer, count]) => `${count} ${answer}`).join(', '));
  if (report.losses.length > 0) lines.push('', 'Losses');
  for (const { kind, count, client, reason, sentMs } of report.losses) {
    lines.push(`  ${kind === 'unexplained' ? 'FAULT ' : ''}${count} of ${client} at ${new Date(sentMs).toISOString()}: ${reason}`);
  }
  const blind = report.blind.slice(0, MOST_BLIND);
  if (blind.length > 0) lines.push('', 'Longest times without an acknowledged write');
  for (const { client, ms, fromMs, during, isOwnCut } of blind) {
    lines.push(`  ${client} ${ms} ms from ${(fromMs / 1000).toFixed(1)} s${isOwnCut ? ' (itself cut off)' : ''}: ${during.join('; ') || 'nothing was done'}`);
  }
  lines.push('', ...report.failures.map((failure) => `FAULT ${failure}`), report.isOk ? 'ok' : 'FAILED');
  return lines.join('\n');
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
