/**
 * From the dns block of pointsman.yaml to the settings of the zone.
 */
import { networkInterfaces } from 'node:os';
import type { DnsSection } from './config/config.js';
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

function ownAddress(section: DnsSection): string {
  const specific = section.listen.map((address) => address.host).find((host) => host !== '0.0.0.0' && host !== '::');
  if (specific !== undefined) return specific;
  const outward = Object.values(networkInterfaces()).flat().find((entry) => entry !== undefined && !entry.internal && entry.family === 'IPv4');
  return outward?.address ?? '127.0.0.1';
}
