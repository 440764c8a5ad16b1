/**
 * From the sentinel's state to the Route of one master. Pure; the only place where a Route is made.
 *
 * The primary is the elected one and no other, even when some node says `role:master` (publishing.md, rule 5).
 */
import { precedes } from '../sentinel/wire/address.js';
import type { Address } from '../sentinel/wire/address.js';
import { sameNode } from '../sentinel/core/hosts.js';
import { isForeign } from '../sentinel/core/caution/foreign.js';
import { advertisedAddress } from '../sentinel/core/silent/prepared.js';
import type { Master, NodeAddress, Replica, SentinelState } from '../sentinel/core/state.js';
import { announcedHost } from '../sentinel/core/state.js';
import type { Route, RouteReplica } from './route.js';

/** The Route of a monitored master; null when no such master is known. */
export function projectRoute(state: Readonly<SentinelState>, masterName: string): Route | null {
  const master = state.masters.get(masterName);
  if (master === undefined) return null;
  const { published } = master;
  const primary = shown(state, advertisedAddress(master));
  const { silent } = master;
  const prepared = silent?.effective === true;
  return {
    master: master.name,
    primary: primary.host === '' ? null : primary,
    replicas: replicasOf(state, master),
    configEpoch: master.configEpoch,
    // While prepared, between the old configuration and the one that will end it (publishing.md, rule 2).
    order: prepared ? 2 * silent.doneEpoch - 1 : 2 * master.configEpoch,
    phase: prepared ? 'prepared' : published.phase,
    trusted: published.trusted,
    confirmed: published.confirmed,
    role: published.role,
    previous: published.previous === null ? null : shown(state, published.previous),
    since: published.sinceMs,
  };
}

function shown(state: Readonly<SentinelState>, address: NodeAddress): Address {
  return { host: announcedHost(state.settings, address), port: address.port };
}

function replicasOf(state: Readonly<SentinelState>, master: Master): RouteReplica[] {
  const advertised = advertisedAddress(master);
  const replicas: RouteReplica[] = [];
  for (const replica of master.replicas.values()) {
    if (sameNode(replica.address, advertised) || !replica.announced || isForeign(master, replica)) continue;
    replicas.push({ address: shown(state, replica.address), healthy: isHealthy(replica) });
  }
  return replicas.sort((a, b) => (precedes(a.address, b.address) ? -1 : 1));
}

/** A connection that was cut, as each move does, tells nothing of the node: only that it can't be opened again does. */
function isHealthy(replica: Replica): boolean {
  return replica.sdownSinceMs === null && !replica.link.unreachable && replica.roleReported === 'replica' && replica.masterLinkUp;
}
