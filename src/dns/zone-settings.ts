/**
 * What the operator decides about the zone, and every fault in it, said at once.
 *
 * A name server inside the zone must have an address here, or secondaries reject the zone; `.local` belongs to mDNS.
 */
import { parseIp } from './ip.js';
import { formatName, isBelow, lowerCaseName, MAX_NAME_BYTES, parseName } from './name.js';

export interface ZoneSettings {
  /** Name of the zone, e.g. `redis.internal.`; the last dot may be missing. */
  readonly origin: string;
  readonly ttlSeconds: number;
  readonly negativeTtlSeconds: number;
  /** The zone's name servers, the first one named in the SOA. Addresses are needed for those inside the zone. */
  readonly ns: readonly { readonly name: string; readonly addresses: readonly string[] }[];
  /** Labels that replace the rule of `masterLabel`, by the master's name. */
  readonly labels: ReadonlyMap<string, string>;
  /** What an isolated agent answers: the last content it was sure of, or SERVFAIL. */
  readonly whenIsolated: 'serve-last' | 'servfail';
  readonly allowLoopback: boolean;
  /** Whether `replica.M` is the primary while no replica is healthy. */
  readonly replicaFallback: boolean;
}

/** Room that every origin must leave for the shortest label with its longest prefix, and for `hostmaster`. */
const MIN_ROOM_BYTES = 44;
/** RFC 2181 8: a TTL has 31 bits. */
const MAX_TTL_SECONDS = 0x7fff_ffff;

/** Every reason why no zone can be made of these settings; an empty list = none. */
export function zoneFaults(settings: ZoneSettings): string[] {
  const faults: string[] = [];
  const parsed = parseName(settings.origin);
  if (parsed === null || parsed.length === 1) return [`zone "${settings.origin}" is no domain name`];
  const origin = lowerCaseName(parsed);
  if (/(^|\.)local\.$/.test(formatName(origin))) faults.push(`zone "${settings.origin}": .local belongs to multicast dns`);
  if (origin.length + MIN_ROOM_BYTES > MAX_NAME_BYTES) faults.push(`zone "${settings.origin}" is too long to hold names of masters`);
  for (const [what, seconds] of [['ttl', settings.ttlSeconds], ['negative ttl', settings.negativeTtlSeconds]] as const) {
    const fine = Number.isInteger(seconds) && seconds >= 0 && seconds <= MAX_TTL_SECONDS;
    if (!fine) faults.push(`zone ${what} ${seconds} is no whole number of seconds`);
  }
  if (settings.ns.length === 0) faults.push(`zone "${settings.origin}" has no name server`);
  for (const { name, addresses } of settings.ns) {
    const host = parseName(name);
    if (host === null || host.length === 1) faults.push(`name server "${name}" is no domain name`);
    else if (isBelow(lowerCaseName(host), origin) && addresses.length === 0) {
      faults.push(`name server "${name}" is inside the zone and has no address`);
    }
    for (const address of addresses) if (parseIp(address) === null) faults.push(`name server "${name}": "${address}" is no ip address`);
  }
  return faults;
}
