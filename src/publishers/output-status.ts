/**
 * How far each output is with each master, as `status`, the journal and the admin port tell it.
 */
import type { Route } from '../route/route.js';
import type { Millis } from '../time.js';

/**
 * `frozen`: the Route is untrusted or unconfirmed and this output must not move (rules 3 and 4). `fenced`: a higher order than ours has
 * been there for 30 s, nothing is written until it is reached or an operator forces ours (rule 2).
 */
export type OutputState = 'published' | 'pending' | 'failing' | 'frozen' | 'fenced';

export interface OutputError {
  readonly code: string;
  readonly message: string;
  readonly atMs: Millis;
}

/** How far one output is with one master. */
export interface OutputStatus {
  readonly output: string;
  readonly master: string;
  readonly state: OutputState;
  readonly wantedOrder: number;
  readonly wantedEpoch: number;
  /** null until the first success. Higher than wanted when somebody newer was there first. */
  readonly publishedOrder: number | null;
  readonly publishedEpoch: number | null;
  /** Since when `state` holds. */
  readonly sinceMs: Millis;
  /** Attempts for this wish, the running one included; re-checks of a success don't count. */
  readonly attempts: number;
  /** The last failure of this wish; null once it is published. */
  readonly lastError: OutputError | null;
  /** From the Route's change to the first read-back of its success, milliseconds; null before. */
  readonly lagMs: number | null;
  readonly detail: string;
}

/** One attempt that ended. */
export interface OutputResult {
  readonly output: string;
  readonly master: string;
  readonly route: Route;
  readonly outcome: 'published' | 'failed' | 'superseded' | 'fenced';
  /** True where an already published Route was only looked at again. */
  readonly recheck: boolean;
  readonly publishedOrder: number | null;
  readonly detail: string;
  readonly error: OutputError | null;
  readonly attempts: number;
  /** Route change → now. */
  readonly latencyMs: number;
  readonly atMs: Millis;
}
