/**
 * The bench's findings as the tables of docs/performance.md.
 */
import type { Flood, Lateness } from './flooded-agent.js';
import type { Swaps } from './swaps.js';

export interface Report {
  readonly at: string;
  readonly loadavg: readonly number[];
  readonly rounds: number;
  readonly rows: readonly {
    readonly side: string; readonly perSecond: number; readonly cpuUs: number; readonly toEcho: number;
    readonly bar: string; readonly met: boolean; readonly lost: number; readonly wrong: number;
  }[];
  readonly latencies: readonly { readonly side: string; readonly p99Ms: number }[];
  readonly swaps: Swaps;
  readonly lateness: readonly Lateness[];
  readonly flood: Flood;
}

const BEGIN = '<!-- bench:dns -->';
const END = '<!-- /bench:dns -->';

const line = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
const count = (value: number): string => Math.round(value).toLocaleString('en').replaceAll(',', ' ');

export function tableOf({ at, loadavg, rounds, rows, latencies, swaps, lateness, flood }: Report): string {
  return [
    `Measured ${at.slice(0, 10)}; ${rounds} slices of 1 s in turn, medians; load average ${loadavg.map((each) => each.toFixed(1)).join(' ')}.`, '',
    line('server', 'queries/s', 'CPU per query', 'x echo', 'compared', 'lost', 'not NOERROR'), line(...Array<string>(7).fill('---')),
    ...rows.map(({ side, perSecond, cpuUs, toEcho, bar, met, lost, wrong }) =>
      line(side, count(perSecond), `${cpuUs.toFixed(1)} µs`, toEcho.toFixed(2), met ? bar : `**${bar}**`, String(lost), String(wrong))), '',
    line('99 % of the replies at 20 000 queries/s', 'ms'), line('---', '---'), ...latencies.map(({ side, p99Ms }) => line(side, p99Ms.toFixed(2))), '',
    `${count(swaps.swaps)} zone swaps under ${count(swaps.asked)} queries: ${swaps.lost} lost, ${swaps.wrong} wrong; ${count(swaps.checked)} answers of them`
      + ` checked one after the other, ${count(swaps.epochsSeen)} epochs seen, none after a later one.`, '',
    line('a timer of 1 ms in the agent, late by (ms)', 'datagrams/s', 'p50', 'p99', 'max'), line(...Array<string>(5).fill('---')),
    ...lateness.map(({ under, perSecond, p50, p99, max }) => line(under, count(perSecond), p50.toFixed(2), p99.toFixed(2), max.toFixed(1))), '',
    `${count(flood.taken)} messages of rubbish and ${count(flood.streams)} streams taken: ${flood.exceptions} exceptions, memory`
      + ` ${flood.rssMb.map((mb) => mb.toFixed(0)).join(' → ')} MB (before, highest, at the end); ${flood.good.asked} good queries`
      + ` between the bursts, ${flood.good.failed} without their answer, the slowest ${flood.good.slowestMs.toFixed(0)} ms.`, '',
  ].join('\n');
}

/** The page with `text` between its marks. */
export function putTable(page: string, text: string): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`docs/performance.md has no ${BEGIN} … ${END}`);
  return `${page.slice(0, from + BEGIN.length)}\n${text}${page.slice(to)}`;
}
