/**
 * What Consul should say: a Route, turned into the nodes, entries and key of one master.
 *
 * Pure. Every known node has one entry under the service and one under `-replica`: the check under the service passes on the
 * primary alone, the one under `-replica` on healthy replicas alone, so that plain look-ups answer right without any polling.
 */
import { AgentError } from '../../errors.js';
import type { Route } from '../../route/route.js';
import { formatAddress, sameAddress } from '../../sentinel/wire/address.js';
import type { Address } from '../../sentinel/wire/address.js';
import type { Fence } from './entry.js';
import { nodeName } from './naming.js';
import type { MasterNames } from './naming.js';

/** One Redis node as clients of Consul should find it. */
export interface WantedNode {
  /** Name of the synthetic node (catalog mode). */
  readonly node: string;
  readonly address: Address;
  readonly role: 'primary' | 'replica';
  /** Whether clients may read from it as a replica; always false for the primary. */
  readonly healthy: boolean;
}

export interface Wish {
  readonly names: MasterNames;
  readonly fence: Fence;
  readonly phase: 'steady' | 'prepared';
  /** Primary first. */
  readonly nodes: readonly WantedNode[];
  /** Nodes that are left out, each with the reason, for `detail`. */
  readonly leftOut: readonly string[];
}

export interface WishOptions {
  readonly names: MasterNames;
  readonly writer: string;
  /** Why clients must not get this host as an address (publishing.md, rule 5); null when they may. */
  readonly whyNotPublishable: (host: string) => string | null;
}

export const PRIMARY_TAGS: readonly string[] = ['master', 'primary'];
export const REPLICA_TAGS: readonly string[] = ['replica', 'slave'];

/** Throws AgentError PUBLISH_FAILED where the Route names no primary that clients may be told. */
export function wishOf(route: Route, { names, writer, whyNotPublishable }: WishOptions): Wish {
  const { master, primary } = route;
  if (primary === null) throw new AgentError('PUBLISH_FAILED', `consul cannot publish ${master}: no primary is confirmed`, { master });
  const fault = whyNotPublishable(primary.host);
  if (fault !== null) {
    throw new AgentError('PUBLISH_FAILED', `consul cannot publish ${master}: primary ${formatAddress(primary)} ${fault}`, { master });
  }
  const nodes: WantedNode[] = [{ node: nodeName(names, primary), address: primary, role: 'primary', healthy: false }];
  const leftOut: string[] = [];
  for (const { address, healthy } of route.replicas) {
    const node = nodeName(names, address);
    const twin = nodes.find((each) => each.node === node);
    const reason = whyNotPublishable(address.host);
    if (reason !== null) leftOut.push(`replica ${formatAddress(address)} ${reason}`);
    else if (twin === undefined) nodes.push({ node, address, role: 'replica', healthy });
    else if (!sameAddress(twin.address, address)) {
      leftOut.push(`replica ${formatAddress(address)} has the consul node name of ${formatAddress(twin.address)}`);
    }
  }
  return {
    names, nodes, leftOut, phase: route.phase === 'prepared' ? 'prepared' : 'steady',
    fence: { ...primary, epoch: route.configEpoch, order: route.order, writer, since: new Date(route.since).toISOString() },
  };
}

/** Whether `b` asks something else of Consul than `a`; who led the move or what came before it does not show there. */
export function asksElse(a: Route, b: Route): boolean {
  const shown = ({ primary, replicas, configEpoch, order, phase, trusted, confirmed }: Route): string =>
    JSON.stringify([primary, replicas, configEpoch, order, phase === 'prepared', trusted, confirmed]);
  return shown(a) !== shown(b);
}
