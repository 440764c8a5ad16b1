/**
 * dnsperf as a function: one slice of load against one server, and what the server's processes spent on it.
 */
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Linux counts CPU time in 1/100 s. */
const TICK_US = 10_000;

export interface Target {
  readonly host: string;
  readonly port: number;
  /** The server's process; its children count, too. */
  readonly pid: number;
}

export interface Load {
  readonly seconds: number;
  /** A file of lines `name type`. */
  readonly queries: string;
  readonly transport?: 'udp' | 'tcp';
  /** At most so many per second; absent: as fast as they are answered. */
  readonly perSecond?: number;
}

export interface Slice {
  readonly perSecond: number;
  readonly lost: number;
  /** Replies that were not NOERROR. */
  readonly wrong: number;
  /** CPU of the server, in microseconds per answered query. */
  readonly cpuUs: number;
  /** Seconds, 99 % of the replies; null unless the load had a rate. */
  readonly p99Ms: number | null;
}

export async function slice({ host, port, pid }: Target, { seconds, queries, transport = 'udp', perSecond }: Load): Promise<Slice> {
  const before = cpuUsOf(pid);
  const limited = perSecond === undefined ? [] : ['-Q', String(perSecond), '-v'];
  const args = ['-s', host, '-p', String(port), '-d', queries, '-c', '8', '-q', '100', '-T', '1', '-t', '2', '-m', transport, '-l', String(seconds), ...limited];
  const { stdout } = await run('dnsperf', args, { maxBuffer: 1 << 28 });
  const spent = cpuUsOf(pid) - before;
  const numberAt = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1] ?? NaN);
  const completed = numberAt(/Queries completed:\s+(\d+)/);
  return {
    perSecond: numberAt(/Queries per second:\s+([\d.]+)/),
    lost: numberAt(/Queries lost:\s+(\d+)/),
    wrong: completed - (Number(/NOERROR (\d+)/.exec(stdout)?.[1] ?? 0)),
    cpuUs: spent / completed,
    p99Ms: perSecond === undefined ? null : p99Of(stdout),
  };
}

function p99Of(stdout: string): number {
  const seconds = stdout.split('\n').filter((line) => line.startsWith('> ')).map((line) => Number(line.trim().split(/\s+/).at(-1)));
  const sorted = Float64Array.from(seconds.filter((each) => Number.isFinite(each))).sort();
  return (sorted[Math.floor(sorted.length * 0.99)] ?? NaN) * 1_000;
}

/** CPU time of a process and its children, in microseconds. */
export function cpuUsOf(pid: number): number {
  const own = (each: number): number => {
    const fields = readFileSync(`/proc/${each}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_US;
  };
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' '));
  return [pid, ...children.filter((word) => word !== '').map(Number)].reduce((sum, each) => sum + own(each), 0);
}
