/**
 * A Route: where clients of one master should go. The one value that every output follows.
 *
 * It is a pure projection of the sentinel core's state (see project.ts) and changes at promotion, when the new
 * configuration exists, not at the failover leader's own late `+switch-master`.
 */
import { sameAddress } from '../sentinel/wire/address.js';
import type { Address } from '../sentinel/wire/address.js';
import type { Millis } from '../time.js';

/** What the group is doing: nothing, a prepared silent move, a failover just done, a move just given up. */
export type RoutePhase = 'steady' | 'prepared' | 'failover' | 'aborted';

/** A replica as clients may see it. */
export interface RouteReplica {
  readonly address: Address;
  readonly healthy: boolean;
}

export interface Route {
  /** The master's name in sentinel.conf. */
  readonly master: string;
  /** null: the master is known by name, but nobody has confirmed yet which node it is. */
  readonly primary: Address | null;
  readonly replicas: readonly RouteReplica[];
  readonly configEpoch: number;
  /** Fencing order: 2 x configEpoch, or 2 x D - 1 while prepared with done-epoch D. A lower one never overwrites a higher one. */
  readonly order: number;
  readonly phase: RoutePhase;
  /** False while this sentinel hears no majority of its peers; in TILT until a majority has told its configuration since. Outputs then freeze. */
  readonly trusted: boolean;
  /** False until a quorum (or, alone, the master's own INFO) has confirmed the state file after a start. */
  readonly confirmed: boolean;
  /** Whether this agent led the failover that made this Route: the `leader`/`observer` of client-reconfig-script. */
  readonly role: 'leader' | 'observer';
  /** The primary before this one, where a change has been seen since the start; else null. */
  readonly previous: Address | null;
  /** Since when this primary is the primary, by this agent's clock. */
  readonly since: Millis;
}

/** Whether two Routes tell clients the same, field by field (`since` aside). */
export function sameRoute(a: Route, b: Route): boolean {
  return (
    a.order === b.order &&
    a.configEpoch === b.configEpoch &&
    a.phase === b.phase &&
    a.trusted === b.trusted &&
    a.confirmed === b.confirmed &&
    a.role === b.role &&
    a.master === b.master &&
    sameOrNone(a.primary, b.primary) &&
    sameOrNone(a.previous, b.previous) &&
    a.replicas.length === b.replicas.length &&
    a.replicas.every((replica, at) => sameReplica(replica, b.replicas[at]))
  );
}

function sameOrNone(a: Address | null, b: Address | null): boolean {
  return a === b || (a !== null && b !== null && sameAddress(a, b));
}

function sameReplica(a: RouteReplica, b: RouteReplica | undefined): boolean {
  return b !== undefined && a.healthy === b.healthy && sameAddress(a.address, b.address);
}
