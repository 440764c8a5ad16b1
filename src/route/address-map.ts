/**
 * Two address books (publishing.md, rule 6): what the agent uses to reach a node, and what clients are told.
 *
 * Pure: a Route in, the Route as clients see it out. An address without an entry stays as it is.
 */
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress, parseAddress } from '../sentinel/wire/address.js';
import type { Route } from './route.js';

/** Clients get `to` where the agent uses `from`; `master` null means every master. */
export interface AddressMapping {
  readonly master: string | null;
  readonly from: string;
  readonly to: string;
}

export function mapRoute(route: Route, mappings: readonly AddressMapping[]): Route {
  if (mappings.length === 0) return route;
  const mapped = (address: Address): Address => mapAddress(address, route.master, mappings);
  return {
    ...route,
    primary: route.primary === null ? null : mapped(route.primary),
    previous: route.previous === null ? null : mapped(route.previous),
    replicas: route.replicas.map((replica) => ({ ...replica, address: mapped(replica.address) })),
  };
}

/** An entry for this very master beats one for all. */
function mapAddress(address: Address, master: string, mappings: readonly AddressMapping[]): Address {
  const from = formatAddress(address);
  const fits = mappings.filter((mapping) => mapping.from === from && (mapping.master === null || mapping.master === master));
  const chosen = fits.find((mapping) => mapping.master !== null) ?? fits[0];
  return chosen === undefined ? address : (parseAddress(chosen.to) ?? address);
}
