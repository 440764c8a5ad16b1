/**
 * The door that every output stands behind: make one outside system agree with a Route.
 */
import type { Route } from '../route/route.js';

/** What an output says after it has read its own write back. */
export interface Published {
  /** The order that clients of this output now see. Higher than the Route's when somebody newer was there first. */
  readonly order: number;
  /** One short sentence for status and journal, e.g. `zone serial 1764456001`. */
  readonly detail: string;
}

/**
 * Makes one outside system agree with a Route.
 *
 * `apply` is repeated with the same Route after a failure, a restart or a missed event, so it must be idempotent; it must
 * leave alone a record that carries a higher fencing order than the Route. It resolves only after the result was read
 * back, and rejects (AgentError) when that is not certain. `signal` aborts when a newer Route makes this one pointless.
 */
export interface Publisher {
  /** Short and stable, e.g. `dns`, `client-reconfig-script`; the key in status, metrics and journal. */
  readonly name: string;
  /** Longest time one `apply` may take, milliseconds; the reconciler aborts it then. */
  readonly deadlineMs: number;
  /** False where an untrusted or unconfirmed Route must not reach `apply` (hooks, Consul); DNS handles both itself. */
  readonly wantsUntrusted: boolean;
  apply(route: Route, signal: AbortSignal): Promise<Published>;
  /** Whether `b` asks something else of this output than `a` (default: any field but `since`); only then a running attempt is aborted. */
  differs?(a: Route, b: Route): boolean;
  /** An operator's word: at the next `apply` of this master a higher order that is there counts for nothing. */
  forceNext?(master: string): void;
  /** The master is no longer monitored (SENTINEL REMOVE). */
  forget(master: string): Promise<void>;
  close(): Promise<void>;
}
