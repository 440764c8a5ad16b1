/**
 * When a blocking query may go on from the index it got, and when it must start again at 0. Pure.
 *
 * An index that is kept too long means blindness for a whole wait: after a restore or an empty restart Consul's own is lower, and a
 * restored snapshot wakes waiters at once with the old data and the same index.
 */

/** The wait that is asked for; Consul adds up to a 16th of it. */
export const WAIT_MS = 5_000;
/** At most two queries a second for one master, whatever comes. */
export const MIN_SPACING_MS = 500;
const FIRST_BACKOFF_MS = 500;
/** Low enough that a Consul that is back is noticed in time for everything to be there within 10 s. */
const LONGEST_BACKOFF_MS = 2_000;
const LONGEST_BUSY_BACKOFF_MS = 5_000;

export interface IndexAnswer {
  /** X-Consul-Index; 0 or worse when it is missing or no number. */
  readonly index: number;
  readonly elapsedMs: number;
}

/** The index to ask with next, after asking with `asked`. */
export function nextIndex(asked: number, { index, elapsedMs }: IndexAnswer, waitMs: number): number {
  if (!Number.isSafeInteger(index) || index <= 0 || index < asked) return 0;
  return index === asked && elapsedMs < waitMs ? 0 : index;
}

/** How long to stay away after `failures` in a row, before jitter; `isBusy`: Consul asked for it (429, 503). */
export function watchBackoffMs(failures: number, isBusy: boolean): number {
  return Math.min(isBusy ? LONGEST_BUSY_BACKOFF_MS : LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 10));
}
