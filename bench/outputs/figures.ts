/**
 * Figures with the bars beside them: what misses one is marked.
 */

export interface Bar {
  readonly p50?: number;
  readonly p99?: number;
}

/** Milliseconds from the promotion. */
const BARS: Readonly<Record<string, Bar>> = {
  'dns, each agent': { p99: 5 },
  'hook started': { p50: 30, p99: 60 },
  'vip, IPv4': { p50: 50, p99: 150 },
  'vip, IPv6': { p50: 50, p99: 150 },
  'consul, one server': { p99: 20 },
  'consul, leader of three': { p99: 20 },
  'consul, follower, allow_stale=false': { p99: 20 },
  'consul, follower, defaults': { p99: 150 },
};

/** The end of a title: counted from the Route of the agent, not from the promotion. Its bar is the same. */
export const SINCE_ROUTE = ', since the Route';
const TITLE_WIDTH = 54;

export interface Figure {
  readonly what: string;
  readonly count: number;
  /** What a quiet machine comes near to. */
  readonly min: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly bar: Bar | null;
  readonly isMissed: boolean;
}

export function quantile(numbers: readonly number[], part: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

export function figureOf(what: string, each: readonly number[]): Figure {
  const [min, p50, p99, max] = [quantile(each, 0), quantile(each, 0.5), quantile(each, 0.99), quantile(each, 1)];
  const bar = BARS[what.replace(SINCE_ROUTE, '')] ?? null;
  const isMissed = bar !== null && !(p50 <= (bar.p50 ?? Infinity) && p99 <= (bar.p99 ?? Infinity));
  return { what, count: each.length, min, p50, p99, max, bar, isMissed };
}

export function lineOf({ what, count, min, p50, p99, max, bar, isMissed }: Figure): string {
  const cell = (ms: number): string => ms.toFixed(1).padStart(7);
  const bars = bar === null ? '' : `  bar ${[['p50', bar.p50], ['p99', bar.p99]].flatMap(([name, ms]) => (ms === undefined ? [] : [`${name} ${ms}`])).join(', ')}`;
  const numbers = `min ${cell(min)}  p50 ${cell(p50)}  p99 ${cell(p99)}  max ${cell(max)}`;
  return `${what.padEnd(TITLE_WIDTH)} n=${String(count).padStart(4)}  ${numbers}${bars}${isMissed ? '  MISSED' : ''}`;
}
