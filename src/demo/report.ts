/**
 * The result of `demo --once`, as an object for programs and as a table for people, and whether it is a good one.
 *
 * What the killed master acknowledged and had not yet sent on is lost with it: that is what asynchronous replication means, so it is
 * said and does not fail the demo. A write lost after the switch, or an agent of another opinion at the end, does.
 */
import type { CrashRound } from './crash-round.js';

export interface DemoReport {
  readonly downAfterMs: number;
  readonly rounds: readonly CrashRound[];
  readonly acknowledged: number;
  readonly lostAtKill: number;
  readonly lostAfterSwitch: number;
  /** Writes that were refused or not answered, and connections that could not be made: what an application would have logged. */
  readonly errors: { readonly refusedWrites: number; readonly failedConnects: number };
  /** What did not agree with the final master at the end, in words. */
  readonly disagreements: readonly string[];
  readonly ok: boolean;
}

/** Puts a report together; `ok` follows from the rest. */
export function concludeReport(facts: Omit<DemoReport, 'ok'>): DemoReport {
  const ok = facts.disagreements.length === 0 && facts.lostAfterSwitch === 0 && facts.rounds.length > 0;
  return { ...facts, ok };
}

/** The middle one, or the mean of the two in the middle; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]];
  return ((low ?? NaN) + (high ?? NaN)) / 2;
}

const TITLE_WIDTH = 40;

const ms = (value: number): string => `${Math.round(value)} ms`;
const times = (values: readonly number[]): string => values.map((value) => ms(value).padStart(9)).join('');

/** The table. Several rounds: a line each, then the medians. */
export function showReport(report: DemoReport): string {
  const heads = ['agent 1', 'agent 2', 'agent 3'].map((name) => name.padStart(9)).join('');
  const lines = [`down-after ${report.downAfterMs} ms`, '', `${''.padEnd(TITLE_WIDTH)}${heads}`];
  const put = (title: string, values: readonly number[], remark = ''): void => {
    lines.push(`${title.padEnd(TITLE_WIDTH)}${times(values)}${remark}`);
  };
  report.rounds.forEach((round, index) => {
    const title = report.rounds.length === 1 ? '' : `round ${index + 1}: `;
    put(`${title}kill → DNS`, round.dnsMs);
    put(`${title}kill → first accepted write`, [round.firstWriteMs]);
    put(`${title}old master back as replica`, [round.rejoinedMs], '   after its restart');
  });
  if (report.rounds.length > 1) {
    const perAgent = [0, 1, 2].map((agent) => median(report.rounds.map((round) => round.dnsMs[agent] ?? NaN)));
    put('median: kill → DNS', perAgent);
    put('median: kill → first accepted write', [median(report.rounds.map((round) => round.firstWriteMs))]);
  }
  const { refusedWrites, failedConnects } = report.errors;
  const count = (title: string, value: number, remark = ''): void => {
    lines.push(`${title.padEnd(TITLE_WIDTH)}${String(value).padStart(9)}${remark === '' ? '' : `   ${remark}`}`);
  };
  count('acknowledged writes', report.acknowledged);
  count('lost at the kill', report.lostAtKill, lossRemark(report));
  count('lost after the switch', report.lostAfterSwitch);
  count('errors the client saw', refusedWrites + failedConnects, `${refusedWrites} writes, ${failedConnects} connects`);
  lines.push('', ...report.disagreements.map((each) => `disagrees: ${each}`));
  lines.push(report.ok ? 'ok: all agents name the same master, no write was lost after the switch' : 'FAILED');
  return lines.join('\n');
}

function lossRemark({ rounds, lostAtKill }: DemoReport): string {
  if (lostAtKill === 0) return '';
  const oldestMs = Math.max(...rounds.map((round) => round.oldestLossMs ?? 0));
  return `asynchronous replication: acknowledged in the last ${oldestMs.toFixed(1)} ms before the kill`;
}
