/**
 * From the dns block of pointsman.yaml to the settings of the zone and of its transfers.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { DnsSection } from './config/config.js';
import type { TransferSettings } from './dns/transfer-service.js';
import { tsigKey } from './dns/tsig-key.js';
import type { ZoneSettings } from './dns/zone-settings.js';

/** Without configured name servers: `ns.<zone>` with this agent's own address. */
export function zoneSettingsOf(section: DnsSection, allowLoopback: boolean): ZoneSettings {
  const ns = section.ns.length > 0 ? section.ns : [{ name: `ns.${section.zone}`, addresses: [ownAddress(section)] }];
  return {
    origin: section.zone,
    ttlSeconds: section.ttlSeconds,
    negativeTtlSeconds: section.negativeTtlSeconds,
    ns,
    labels: new Map(Object.entries(section.labels)),
    whenIsolated: section.whenIsolated,
    allowLoopback,
    replicaFallback: section.replicaFallback,
  };
}

/** Null where no block `transfer` is: nobody may have the zone. */
export function transferSettingsOf({ listen, transfer }: DnsSection): TransferSettings | null {
  if (transfer === null) return null;
  const { allow, notify, tsig } = transfer;
  const key = tsig === null ? null : tsigKey(tsig.name, Buffer.from(tsig.secret, 'base64'));
  return { allow, notify, key, sources: sourcesOf(listen.map(({ host }) => host)) };
}

/** NOTIFY comes from the address that is listened on, as secondaries list it; behind a wildcard only the routes know it. */
function sourcesOf(hosts: readonly string[]): TransferSettings['sources'] {
  const outward = [...hosts].sort((a, b) => Number(isLoopback(a)) - Number(isLoopback(b)));
  const four = outward.find((host) => isIPv4(host));
  const six = outward.find((host) => isIPv6(host));
  return {
    ...(four === undefined || four === '0.0.0.0' ? {} : { 4: four }),
    ...(six === undefined || /^[0:]+$/.test(six) ? {} : { 6: six }),
  };
}

const isLoopback = (host: string): boolean => host.startsWith('127.') || host === '::1';

function ownAddress(section: DnsSection): string {
  const specific = section.listen.map((address) => address.host).find((host) => host !== '0.0.0.0' && host !== '::');
  if (specific !== undefined) return specific;
  const outward = Object.values(networkInterfaces()).flat().find((entry) => entry !== undefined && !entry.internal && entry.family === 'IPv4');
  return outward?.address ?? '127.0.0.1';
}
