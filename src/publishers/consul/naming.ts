/**
 * What a master and its nodes are called in Consul: service, `-replica` service, synthetic node, IDs, key.
 *
 * All lower case, since Consul folds the case of node names and service IDs, and by the rule that DNS labels follow, since
 * Consul answers NXDOMAIN for a service with a dot, a blank or more than 63 bytes. Names that would meet are refused with both.
 */
import type { Address } from '../../sentinel/wire/address.js';

/** The settings that names depend on. */
export interface NamingSettings {
  /** `{master}` is replaced by the master's label. */
  readonly service: string;
  readonly kvPrefix: string;
}

/** Everything that one master is called. */
export interface MasterNames {
  /** The master's name in sentinel.conf. */
  readonly master: string;
  /** Its label: what stands in node names, Meta and key. */
  readonly label: string;
  readonly service: string;
  readonly replicaService: string;
  readonly key: string;
}

/** A master's name → its label by the rule for DNS (with the operator's overrides), null where there is none. */
export type LabelOf = (master: string) => string | null;

const SERVICE_NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Meta key that says whose an entry is. */
export const OWNER_META = 'pointsman';
export const NODE_PREFIX = 'pointsman-';

/** The names of a master, or the sentence that says why it can have none. */
export function namesOf(master: string, settings: NamingSettings, labelOf: LabelOf): MasterNames | string {
  const label = labelOf(master);
  if (label === null) return `master "${master}" makes no consul service name (letters, digits and inner hyphens, at most 63)`;
  const service = settings.service.replaceAll('{master}', label).toLowerCase();
  const replicaService = `${service}-replica`;
  if (!SERVICE_NAME.test(replicaService)) {
    const named = `"${service}", with its "${replicaService}"`;
    return `master "${master}": ${named}, is no consul service name (letters, digits and inner hyphens, at most 63)`;
  }
  return { master, label, service, replicaService, key: `${settings.kvPrefix.replace(/\/+$/, '')}/${label}` };
}

/** Every reason why Consul cannot carry these masters side by side; each names the masters that it concerns. */
export function nameFaults(masters: readonly string[], settings: NamingSettings, labelOf: LabelOf): string[] {
  const holders = new Map<string, string>();
  const faults: string[] = [];
  for (const master of new Set(masters)) {
    const names = namesOf(master, settings, labelOf);
    if (typeof names === 'string') {
      faults.push(names);
      continue;
    }
    const claims: [string, string][] = [['service', names.service], ['service', names.replicaService], ['key', names.key]];
    const clash = claims.find((claim) => holders.has(claim.join(' ')));
    if (clash === undefined) for (const claim of claims) holders.set(claim.join(' '), master);
    else faults.push(`master "${master}" and master "${holders.get(clash.join(' '))}" share the consul ${clash[0]} "${clash[1]}"`);
  }
  return faults;
}

/** `10.0.0.1:6379` → `10-0-0-1-6379`, `[2001:db8::3]:6379` → `2001-db8--3-6379`. */
export function addressSlug({ host, port }: Address): string {
  return `${host.toLowerCase().replace(/[^a-z0-9-]/g, '-')}-${port}`;
}

/** The external node that carries one address of a master in catalog mode. */
export function nodeName(names: MasterNames, address: Address): string {
  return `${NODE_PREFIX}${names.label}-${addressSlug(address)}`;
}

/** Unique per (service, address); service IDs fold case, so does this. */
export function serviceId(service: string, address: Address): string {
  return `${service}-${addressSlug(address)}`;
}

/** The check that says passing or critical for one service entry. */
export function checkId(id: string): string {
  return `${id}:role`;
}
