/**
 * From the dns block of pointsman.yaml to the settings of the zone, of its transfers and of its limits.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { DnsSection } from './config/config.js';
import { addressRange } from './dns/address-range.js';
import { RateLimit } from './dns/rate-limit.js';
import type { RateLimitSettings } from './dns/rate-limit.js';
import type { TransferSettings } from './dns/transfer-service.js';
import { tsigKey } from './dns/tsig-key.js';
import type { WorkerService } from './dns/workers/messages.js';
import type { ZoneSettings } from './dns/zone-settings.js';
import type { Millis } from './time.js';

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

/** Null where no block `rate-limit` is. */
export function rateLimitOf(section: DnsSection): RateLimit | null {
  const settings = limitSettingsOf(section);
  return settings === null ? null : new RateLimit(settings, () => performance.now());
}

/** Never limited are the secondaries, and this host itself: the read-back asks from here. */
function limitSettingsOf({ listen, rateLimit, transfer }: DnsSection): RateLimitSettings | null {
  if (rateLimit === null) return null;
  const own = listen.map(({ host }) => host).filter((host) => !isWildcard(host));
  return { ...rateLimit, exempt: ['127.0.0.0/8', '::1', ...own, ...(transfer?.allow ?? []), ...rateLimit.exempt].map(addressRange) };
}

/** The same for each of the workers; they share the limit, as datagrams are shared out among them. */
export function workerServiceOf(section: DnsSection, startedAt: Millis): WorkerService {
  const { transfer, workers } = section;
  const tsig = transfer?.tsig ?? null;
  const limit = limitSettingsOf(section);
  return {
    gate: transfer === null ? null : {
      key: tsig === null ? null : { name: tsig.name, secret: Buffer.from(tsig.secret, 'base64') },
      allow: transfer.allow,
      startedAt,
    },
    rateLimit: limit === null ? null : { ...limit, responsesPerSecond: Math.ceil(limit.responsesPerSecond / Math.max(workers, 1)) },
  };
}

/** NOTIFY comes from the address that is listened on, as secondaries list it; behind a wildcard only the routes know it. */
function sourcesOf(hosts: readonly string[]): TransferSettings['sources'] {
  const outward = [...hosts].sort((a, b) => Number(isLoopback(a)) - Number(isLoopback(b)));
  const four = outward.find((host) => isIPv4(host));
  const six = outward.find((host) => isIPv6(host));
  return {
    ...(four === undefined || isWildcard(four) ? {} : { 4: four }),
    ...(six === undefined || isWildcard(six) ? {} : { 6: six }),
  };
}

const isWildcard = (host: string): boolean => host === '0.0.0.0' || /^[0:]+$/.test(host);
const isLoopback = (host: string): boolean => host.startsWith('127.') || host === '::1';

function ownAddress(section: DnsSection): string {
  const specific = section.listen.map((address) => address.host).find((host) => host !== '0.0.0.0' && host !== '::');
  if (specific !== undefined) return specific;
  const outward = Object.values(networkInterfaces()).flat().find((entry) => entry !== undefined && !entry.internal && entry.family === 'IPv4');
  return outward?.address ?? '127.0.0.1';
}
