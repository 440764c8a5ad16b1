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
  readonly kind: 'catalog' | 'key';
  readonly at: number;
  readonly index: number;
  readonly primaries?: readonly string[];
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

export function judgeConsul(changes: readonly ConsulChange[]): { answers: number; twoPrimaries: number; orders: number; stepsBack: number } {
  const catalogs = changes.filter(({ kind }) => kind === 'catalog');
  const orders = changes.filter(({ kind }) => kind === 'key').sort((a, b) => a.index - b.index).flatMap(({ value }) => value?.order ?? []);
  return {
    answers: catalogs.length,
    twoPrimaries: catalogs.filter(({ primaries = [] }) => primaries.length > 1).length,
    orders: orders.length,
    stepsBack: orders.filter((order, at) => at > 0 && order < (orders[at - 1] ?? 0)).length,
  };
}
