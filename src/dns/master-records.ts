/**
 * From a Route to the names below a master's label: who is primary, which replicas may be shown, and each node by its address.
 *
 * Only the primary decides whether there is anything to tell: if it cannot be published, nothing is. A replica that cannot be
 * published is left out. Node names (`n-...`) outlive their node by twice the TTL, so that an SRV answer in a cache still resolves.
 */
import type { Route, RoutePhase } from '../route/route.js';
import { formatAddress } from '../sentinel/wire/address.js';
import { addMs } from '../time.js';
import type { Millis } from '../time.js';
import { encodeRrset, pointerTo } from './encode.js';
import { nodeLabel, parseIp, whyNotPublishable } from './ip.js';
import { knownName, wireLabel } from './name.js';
import { NameTable } from './name-table.js';
import { addressRrsets, HEADER_BYTES, TYPE } from './record.js';
import type { RecordData, Rrset } from './record.js';
import type { ZoneSettings } from './zone-settings.js';
import { compileNode, fitRecords } from './zone-node.js';
import type { Additional, ZoneNode } from './zone-node.js';

/** A node as the zone shows it. */
export interface KnownNode {
  readonly ip: Buffer;
  readonly port: number;
}

/** What the zone tells about a master. */
export interface MasterContent {
  readonly epoch: number;
  readonly phase: RoutePhase;
  readonly primary: KnownNode;
  readonly healthyReplicas: readonly KnownNode[];
  /** Every known node: primary and replicas, healthy or not. */
  readonly known: readonly KnownNode[];
}

/** The address of a node that is gone, still answered until `until`. */
export interface RetiredNode {
  readonly ip: Buffer;
  readonly until: Millis;
}

/** Why parts of a Route cannot be told to clients. `primary` null = it can. */
export interface RouteFaults {
  readonly primary: string | null;
  readonly replicas: readonly string[];
}

/** What {@link contentOf} leaves out of this Route, and why, each with its address. */
export function routeFaults(route: Route, settings: ZoneSettings): RouteFaults {
  const judge = (address: { host: string; port: number }, role: string): string[] => {
    const reason = whyNotPublishable(address.host, settings.allowLoopback);
    return reason === null ? [] : [`${role} ${formatAddress(address)} ${reason}`];
  };
  return {
    primary: route.primary === null ? null : judge(route.primary, 'primary')[0] ?? null,
    replicas: route.replicas.flatMap(({ address }) => judge(address, 'replica')),
  };
}

/** Null = clients must be told "not ready": nobody confirmed a primary, or its address must not be published. */
export function contentOf(route: Route, settings: ZoneSettings): MasterContent | null {
  if (!route.confirmed || route.primary === null) return null;
  const primary = knownNode(route.primary, settings);
  if (primary === null) return null;
  const replicas = route.replicas.flatMap(({ address, healthy }) => {
    const node = knownNode(address, settings);
    return node === null ? [] : [{ node, healthy }];
  });
  replicas.sort((a, b) => compareNodes(a.node, b.node));
  return {
    epoch: route.configEpoch,
    phase: route.phase,
    primary,
    healthyReplicas: replicas.filter(({ healthy }) => healthy).map(({ node }) => node),
    known: [primary, ...replicas.map(({ node }) => node)],
  };
}

function knownNode(address: { readonly host: string; readonly port: number }, settings: ZoneSettings): KnownNode | null {
  const ip = whyNotPublishable(address.host, settings.allowLoopback) === null ? parseIp(address.host) : null;
  return ip === null ? null : { ip, port: address.port };
}

// A fixed order, so that the same replicas in another order are the same content and no new serial.
function compareNodes(a: KnownNode, b: KnownNode): number {
  return a.ip.length - b.ip.length || Buffer.compare(a.ip, b.ip) || a.port - b.port;
}

/** Whether two contents make the same records. */
export function sameContent(a: MasterContent | null, b: MasterContent | null): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The nodes that `before` or the old retirement list knew and `content` does not; TTL 0 retires at once. */
export function retire(
  before: MasterContent | null,
  retired: readonly RetiredNode[],
  content: MasterContent | null,
  settings: ZoneSettings,
  now: Millis,
): RetiredNode[] {
  const until = addMs(now, 2000 * settings.ttlSeconds);
  const gone = new Map(retired.map((node) => [node.ip.toString('hex'), node]));
  for (const { ip } of before?.known ?? []) gone.set(ip.toString('hex'), { ip, until });
  for (const { ip } of content?.known ?? []) gone.delete(ip.toString('hex'));
  return [...gone.values()].filter((node) => node.until > now);
}

const prefixOf = (text: string): Buffer => (text === '' ? Buffer.alloc(0) : knownName(text).subarray(0, -1));
const PREFIX = {
  self: prefixOf(''),
  master: prefixOf('master'),
  replica: prefixOf('replica'),
  tcp: prefixOf('_tcp'),
  srv: prefixOf('_redis._tcp'),
  replicaTcp: prefixOf('_tcp.replica'),
  replicaSrv: prefixOf('_redis._tcp.replica'),
} as const;

/** The names below `owner` (wire name of `M.<zone>`), keyed by what stands before it. */
export function masterNodes(
  owner: Buffer,
  content: MasterContent,
  retired: readonly RetiredNode[],
  settings: ZoneSettings,
): NameTable<ZoneNode> {
  const { ttlSeconds } = settings;
  const { primary, healthyReplicas } = content;
  const readers = healthyReplicas.length === 0 && settings.replicaFallback ? [primary] : healthyReplicas;
  const text: RecordData = { kind: 'txt', text: `epoch=${content.epoch} phase=${content.phase}` };
  const primarySets: Rrset[] = [...addressRrsets([primary.ip], ttlSeconds), { type: TYPE.TXT, ttlSeconds, records: [text] }];
  const replicaSets = addressRrsets(distinctIps(readers), ttlSeconds).map((rrset) => fitted(rrset, PREFIX.replica, owner));
  const primaryNode = compileNode(primarySets);
  const empty = compileNode([]);

  return NameTable.of([
    [PREFIX.self, primaryNode],
    [PREFIX.master, primaryNode],
    [PREFIX.replica, compileNode(replicaSets)],
    [PREFIX.tcp, empty],
    [PREFIX.replicaTcp, empty],
    [PREFIX.srv, srvNode([primary], PREFIX.srv, owner, ttlSeconds)],
    [PREFIX.replicaSrv, srvNode(readers, PREFIX.replicaSrv, owner, ttlSeconds)],
    ...distinctIps([...content.known, ...retired]).map((ip) =>
      [wireLabel(nodeLabel(ip)), compileNode(addressRrsets([ip], ttlSeconds))] as const),
  ]);
}

function fitted(rrset: Rrset, prefix: Buffer, owner: Buffer): Rrset {
  return { ...rrset, records: fitRecords(rrset.records, prefix.length + owner.length) };
}

/** The SRV set of these nodes, with the addresses of its targets in Additional. */
function srvNode(nodes: readonly KnownNode[], prefix: Buffer, owner: Buffer, ttlSeconds: number): ZoneNode {
  if (nodes.length === 0) return compileNode([]);
  const targetOf = (ip: Buffer): Buffer => Buffer.concat([wireLabel(nodeLabel(ip)), owner]);
  const all = nodes.map(({ ip, port }): RecordData => ({ kind: 'srv', port, target: targetOf(ip) }));
  const srv = fitted({ type: TYPE.SRV, ttlSeconds, records: all }, prefix, owner);
  const ips = distinctIps(nodes.slice(0, srv.records.length));
  // The targets' owners end in a pointer to `M.<zone>` inside the question; the targets themselves are never compressed.
  const toOwner = pointerTo(HEADER_BYTES + prefix.length);
  const additional: Additional = {
    count: ips.length,
    bytes: Buffer.concat(ips.flatMap((ip) =>
      addressRrsets([ip], ttlSeconds).map((rrset) => encodeRrset(Buffer.concat([wireLabel(nodeLabel(ip)), toOwner]), rrset)))),
  };
  return compileNode([srv], null, () => additional);
}

function distinctIps(nodes: readonly { readonly ip: Buffer }[]): Buffer[] {
  return [...new Map(nodes.map(({ ip }) => [ip.toString('hex'), ip])).values()];
}
