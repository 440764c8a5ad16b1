/**
 * What the histories say: who held a VIP when, and what Consul told at each index.
 */

/** One line of `ip -ts -o monitor address` on one host. */
export interface AddressChange {
  readonly atMs: number;
  readonly host: string;
  readonly address: string;
  readonly isGone: boolean;
}

export interface ConsulChange {
  readonly kind: 'primaries' | 'key';
  readonly at: number;
  readonly index: number;
  readonly primaries?: readonly string[];
  readonly epoch?: number;
  readonly value?: { readonly host: string; readonly order: number } | null;
}

/** `[2026-11-30T12:00:00.123456] Deleted 2: eth0 inet 10.77.0.100/32 …` */
export function addressChanges(text: string, host: string): AddressChange[] {
  return [...text.matchAll(/^\[([^\]]+)\] (Deleted )?\d+: +\S+ +inet6? ([0-9a-f.:]+)\/(?:32|128) /gm)].map(([, at = '', gone, address = '']) => ({
    atMs: Date.parse(`${at.slice(0, 23)}Z`), host, address, isGone: gone !== undefined,
  }));
}

/** The longest time, in milliseconds, that two hosts had the address at once, and how often that was. */
export function overlaps(changes: readonly AddressChange[], address: string): { longestMs: number; count: number; moves: number } {
  const holders = new Set<string>();
  let [longestMs, count, moves, sinceMs] = [0, 0, 0, 0];
  for (const { atMs, host, address: which, isGone } of [...changes].sort((a, b) => a.atMs - b.atMs)) {
    if (which !== address) continue;
    const before = holders.size;
    if (isGone) holders.delete(host);
    else holders.add(host);
    if (!isGone && holders.size !== before) moves += 1;
    if (before < 2 && holders.size === 2) sinceMs = atMs;
    if (before < 2 || holders.size >= 2) continue;
    longestMs = Math.max(longestMs, atMs - sinceMs);
    count += 1;
  }
  return { longestMs, count, moves };
}

/** How many of these numbers are lower than the one before. */
const falls = (numbers: readonly number[]): number => numbers.filter((each, at) => at > 0 && each < (numbers[at - 1] ?? 0)).length;

export interface ConsulVerdict {
  readonly answers: number;
  /** Answers to "who is primary" with two of them, and without one after the first that had one. */
  readonly twoPrimaries: number;
  readonly none: number;
  readonly orders: number;
  readonly stepsBack: number;
}

export function judgeConsul(changes: readonly ConsulChange[]): ConsulVerdict {
  const sorted = [...changes].sort((a, b) => a.index - b.index);
  const answers = sorted.flatMap(({ kind, primaries = [], epoch = 0 }) => (kind === 'primaries' ? [{ count: primaries.length, epoch }] : []));
  const orders = sorted.flatMap(({ kind, value }) => (kind === 'key' && value !== null && value !== undefined ? [value.order] : []));
  const named = answers.slice(answers.findIndex(({ count }) => count > 0));
  return {
    answers: answers.length,
    twoPrimaries: answers.filter(({ count }) => count > 1).length,
    none: named.filter(({ count }) => count === 0).length,
    orders: orders.length,
    stepsBack: falls(orders) + falls(answers.map(({ epoch }) => epoch)),
  };
}
