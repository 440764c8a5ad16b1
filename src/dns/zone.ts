/**
 * The zone: an immutable value; a change makes a new one that shares everything but what changed with the old one.
 *
 * A master is known by name before anyone knows its primary, and then answers SERVFAIL, never NXDOMAIN (RFC 8020 would cut its
 * whole subtree off). The serial is max(last + 1, unix seconds), so that "who changed last" wins among agents that share no
 * counter, and is raised only when the content changes: an isolated agent answers differently, but its content stays.
 *
 * Invariants: Z1 two masters never share a label, nor take a label of the apex; Z2 `nodes` is empty exactly when `content` is null;
 * Z3 `silence` counts the blocks that it names.
 */
import { assert, must } from '../assert.js';
import type { Route } from '../route/route.js';
import type { Millis } from '../time.js';
import { encodeData, encodeRecord, encodeRrset, pointerTo } from './encode.js';
import { parseIp } from './ip.js';
import { contentOf, masterNodes, retire, sameContent } from './master-records.js';
import type { MasterContent, RetiredNode } from './master-records.js';
import { isBelow, knownName, labelFaults, labelFor, wireLabel } from './name.js';
import { equalsIgnoringCase, NameTable } from './name-table.js';
import { addressRrsets, HEADER_BYTES, TYPE } from './record.js';
import type { Rrset, Soa } from './record.js';
import { compileNode, NO_ADDITIONAL } from './zone-node.js';
import type { Additional, ZoneNode } from './zone-node.js';
import { zoneFaults } from './zone-settings.js';
import type { ZoneSettings } from './zone-settings.js';

export type { ZoneSettings } from './zone-settings.js';

const REFRESH_SECONDS = 30;
const RETRY_SECONDS = 5;
const EXPIRE_SECONDS = 86_400;

/** One monitored master. */
export interface MasterBlock {
  readonly master: string;
  readonly label: Buffer;
  /** The highest order ever shown here; -1 before the first. */
  readonly order: number;
  /** Answer SERVFAIL although there is content: the agent is cut off, and the operator wants it silent then. */
  readonly muted: boolean;
  readonly content: MasterContent | null;
  readonly retired: readonly RetiredNode[];
  readonly nodes: NameTable<ZoneNode>;
}

export interface Zone {
  readonly settings: ZoneSettings;
  readonly origin: Buffer;
  readonly serial: number;
  /** Names of the zone itself: the apex (empty key), its name servers, what stands between. */
  readonly apex: NameTable<ZoneNode>;
  readonly blocks: NameTable<MasterBlock>;
  readonly blockOf: ReadonlyMap<string, Buffer>;
  /** Z3: how many blocks have no content, and how many are muted. */
  readonly silence: { readonly unready: number; readonly muted: number };
  readonly negativeSoa: NegativeSoa;
}

/** The SOA record for Authority, and the places in it where a pointer to the origin in the question belongs. */
interface NegativeSoa {
  readonly bytes: Buffer;
  readonly pointersAt: readonly number[];
}

/** A zone in which every master is known by name and none is ready. `lastSerial` is the last one ever given out, 0 = none. */
export function buildZone(settings: ZoneSettings, masters: readonly string[], lastSerial: number, now: Millis): Zone {
  const faults = [...zoneFaults(settings), ...labelFaults(masters, settings.labels, settings)];
  assert(faults.length === 0, `zone from faulty settings: ${faults.join('; ')}`);
  let zone = withSerial({
    settings,
    origin: knownName(settings.origin),
    apex: apexNodes(settings),
    blocks: NameTable.empty<MasterBlock>(),
    blockOf: new Map(),
    silence: { unready: 0, muted: 0 },
  }, nextSerial(lastSerial, now));
  const blockOf = new Map<string, Buffer>();
  for (const master of new Set(masters)) {
    const block = emptyBlock(zone, master);
    blockOf.set(master, block.label);
    zone = withBlock(zone, block);
  }
  return { ...zone, blockOf };
}

/** max(last + 1, unix seconds), modulo 2^32 as RFC 1982 counts. */
export function nextSerial(last: number, now: Millis): number {
  return Math.max(last + 1, Math.floor(now / 1000)) >>> 0;
}

/** Why the zone cannot carry this master beside those it has (both named); null when it can. */
export function whyNotAddable(zone: Zone, master: string): string | null {
  if (zone.blockOf.has(master)) return null;
  const label = labelFor(master, zone.settings.labels);
  const holder = label === null ? null : zone.blocks.get(wireLabel(label));
  return labelFaults(holder === null ? [master] : [holder.master, master], zone.settings.labels, zone.settings)[0] ?? null;
}

/** The zone with `master` known by name; the same zone when it was. The name must be addable. */
export function addMaster(zone: Zone, master: string, now: Millis): Zone {
  if (zone.blockOf.has(master)) return zone;
  assert(whyNotAddable(zone, master) === null, `Z1: master ${master} has no label of its own`);
  const block = emptyBlock(zone, master);
  const blockOf = new Map(zone.blockOf).set(master, block.label);
  return bumped({ ...withBlock(zone, block), blockOf }, now);
}

/** The zone without `master`; its names do not exist any more. */
export function removeMaster(zone: Zone, master: string, now: Millis): Zone {
  return zone.blockOf.has(master) ? bumped(withoutBlock(zone, master), now) : zone;
}

/** The block of a master; null when it is not monitored. */
export function blockFor(zone: Zone, master: string): MasterBlock | null {
  const label = zone.blockOf.get(master);
  return label === undefined ? null : zone.blocks.get(label);
}

/**
 * The zone after a Route, which must not have a lower order than the one shown; the same zone when nothing changes.
 *
 * An untrusted Route changes no content: it either leaves the last trusted answers or mutes them.
 */
export function updateZone(zone: Zone, route: Route, now: Millis): Zone {
  const known = addMaster(zone, route.master, now);
  const block = must(blockFor(known, route.master), `master ${route.master} is in the zone`);
  const order = Math.max(block.order, route.order);
  if (!route.trusted && route.confirmed && route.primary !== null) {
    const muted = known.settings.whenIsolated === 'servfail';
    return muted === block.muted ? known : withBlock(known, { ...block, muted });
  }
  const content = contentOf(route, known.settings);
  if (sameContent(content, block.content)) {
    return !block.muted && order === block.order ? known : withBlock(known, { ...block, order, muted: false });
  }
  const retired = retire(block.content, block.retired, content, known.settings, now);
  const changed = withBlock(known, rebuilt(known, { ...block, order, muted: false, content, retired }));
  return known === zone ? bumped(changed, now) : changed;
}

/** The zone without the node names of `master` whose time is over; the same zone when there is none. */
export function purgeZone(zone: Zone, master: string, now: Millis): Zone {
  const block = blockFor(zone, master);
  const retired = block?.retired.filter(({ until }) => until > now) ?? [];
  if (block === null || retired.length === block.retired.length) return zone;
  return bumped(withBlock(zone, rebuilt(zone, { ...block, retired })), now);
}

/** What is known of one master; with the settings it says all that its block holds. */
export type BlockFacts = Pick<MasterBlock, 'master' | 'order' | 'muted' | 'content' | 'retired'>;

/** The zone that has exactly these blocks, under this serial: as another process built it. */
export function restoreZone(settings: ZoneSettings, serial: number, blocks: readonly BlockFacts[]): Zone {
  const empty = withSerial(buildZone(settings, [], 0, 0 as Millis), serial);
  const blockOf = new Map(blocks.map(({ master }) => [master, emptyBlock(empty, master).label]));
  return blocks.reduce<Zone>((zone, block) => placeBlock(zone, serial, block), { ...empty, blockOf });
}

/** The zone with this block in the place of the one that the master had, if any. */
export function placeBlock(zone: Zone, serial: number, facts: BlockFacts): Zone {
  const { label } = emptyBlock(zone, facts.master);
  const blockOf = zone.blockOf.has(facts.master) ? zone.blockOf : new Map(zone.blockOf).set(facts.master, label);
  const next = withBlock({ ...zone, blockOf }, rebuilt(zone, { ...facts, label, nodes: NameTable.empty() }));
  return zone.serial === serial ? next : withSerial(next, serial);
}

/** The zone without that master, if it had it, under this serial. */
export function dropBlock(zone: Zone, serial: number, master: string): Zone {
  const next = zone.blockOf.has(master) ? withoutBlock(zone, master) : zone;
  return zone.serial === serial ? next : withSerial(next, serial);
}

/** What a lookup finds; `notReady` for every name of a master that nobody can answer for. */
export type Found =
  | { readonly kind: 'outside' }
  | { readonly kind: 'notReady' }
  | { readonly kind: 'absent' }
  | { readonly kind: 'node'; readonly node: ZoneNode };

const OUTSIDE: Found = { kind: 'outside' };
const NOT_READY: Found = { kind: 'notReady' };
const ABSENT: Found = { kind: 'absent' };

/** Looks up the wire name `message[from, to)`, in any case of letters. */
export function findName(zone: Zone, message: Buffer, from: number, to: number): Found {
  const originAt = to - zone.origin.length;
  let [at, topAt] = [from, from];
  while (at < originAt) {
    topAt = at;
    at += 1 + (message[at] ?? 0);
  }
  // A label that merely ends like the origin is no boundary: `xredis.internal` is outside.
  if (at !== originAt || !equalsIgnoringCase(zone.origin, message, originAt, to)) return OUTSIDE;
  const block = from === originAt ? null : zone.blocks.find(message, topAt, originAt);
  if (block === null) return foundOr(zone.apex.find(message, from, originAt));
  if (block.content === null || block.muted) return NOT_READY;
  return foundOr(block.nodes.find(message, from, topAt));
}

function foundOr(node: ZoneNode | null): Found {
  return node === null ? ABSENT : { kind: 'node', node };
}

/** The SOA record for the Authority of a negative answer to a question whose name ends in the origin at `originAt`. */
export function soaFor(zone: Zone, originAt: number): Buffer {
  const { bytes, pointersAt } = zone.negativeSoa;
  const record = Buffer.from(bytes);
  for (const at of pointersAt) record.writeUInt16BE(0xc000 | originAt, at);
  return record;
}

function emptyBlock(zone: Pick<Zone, 'settings'>, master: string): MasterBlock {
  const label = wireLabel(must(labelFor(master, zone.settings.labels), `Z1: master ${master} has a label`));
  return { master, label, order: -1, muted: false, content: null, retired: [], nodes: NameTable.empty() };
}

function rebuilt(zone: Zone, block: MasterBlock): MasterBlock {
  if (block.content === null) return { ...block, nodes: NameTable.empty() };
  const owner = Buffer.concat([block.label, zone.origin]);
  return { ...block, nodes: masterNodes(owner, block.content, block.retired, zone.settings) };
}

function withBlock(zone: Zone, block: MasterBlock): Zone {
  const silence = recounted(zone, zone.blocks.get(block.label), block);
  return { ...zone, blocks: zone.blocks.with(block.label, block), silence };
}

function withoutBlock(zone: Zone, master: string): Zone {
  const label = must(zone.blockOf.get(master), `master ${master} is in the zone`);
  const blockOf = new Map(zone.blockOf);
  blockOf.delete(master);
  return { ...zone, blocks: zone.blocks.without(label), blockOf, silence: recounted(zone, zone.blocks.get(label), null) };
}

/** Z3 after `before` has given way to `after`. */
function recounted({ silence }: Zone, before: MasterBlock | null, after: MasterBlock | null): Zone['silence'] {
  const unready = (block: MasterBlock | null): number => Number(block !== null && block.content === null);
  const muted = (block: MasterBlock | null): number => Number(block?.muted === true);
  return { unready: silence.unready + unready(after) - unready(before), muted: silence.muted + muted(after) - muted(before) };
}

function bumped(zone: Zone, now: Millis): Zone {
  return withSerial(zone, nextSerial(zone.serial, now));
}

/** Sets the serial, and with it the only two things that show it: the SOA answer of the apex and the SOA of negative answers. */
function withSerial(zone: Omit<Zone, 'serial' | 'negativeSoa'>, serial: number): Zone {
  const { settings, origin } = zone;
  const soa: Soa = {
    primaryServer: knownName(must(settings.ns[0], 'a zone has a name server').name),
    mailbox: Buffer.concat([wireLabel('hostmaster'), origin]),
    serial,
    refreshSeconds: REFRESH_SECONDS,
    retrySeconds: RETRY_SECONDS,
    expireSeconds: EXPIRE_SECONDS,
    minimumSeconds: settings.negativeTtlSeconds,
  };
  const anchor = { name: origin, at: HEADER_BYTES };
  const empty = Buffer.alloc(0);
  const rrsets = must(zone.apex.get(empty), 'a zone has an apex').rrsets.filter(({ type }) => type !== TYPE.SOA);
  const soaSet: Rrset = { type: TYPE.SOA, ttlSeconds: settings.ttlSeconds, records: [{ kind: 'soa', soa }] };
  const additionalFor = (rrset: Rrset): Additional => (rrset.type === TYPE.NS ? nsAdditional(settings, origin) : NO_ADDITIONAL);
  const apexNode = compileNode([soaSet, ...rrsets], anchor, additionalFor);
  return { ...zone, serial, apex: zone.apex.with(empty, apexNode), negativeSoa: negativeSoaOf(soa, settings, origin) };
}

/** RFC 2308: the TTL of a negative answer is the smaller of the SOA's own and its minimum. */
function negativeSoaOf(soa: Soa, settings: ZoneSettings, origin: Buffer): NegativeSoa {
  const ttlSeconds = Math.min(settings.ttlSeconds, settings.negativeTtlSeconds);
  const data = encodeData({ kind: 'soa', soa }, { name: origin, at: 0 });
  const dataAt = 12;
  // The mailbox ends in a pointer right before the five numbers; the first name only where it is inside the zone.
  const pointersAt = [0, dataAt + data.length - 22];
  if (isBelow(soa.primaryServer, origin)) pointersAt.push(dataAt + soa.primaryServer.length - origin.length);
  return { bytes: encodeRecord(pointerTo(0), TYPE.SOA, ttlSeconds, data), pointersAt };
}

/** The apex with its NS set, the servers inside the zone, and the names between them and the apex. */
function apexNodes(settings: ZoneSettings): NameTable<ZoneNode> {
  const origin = knownName(settings.origin);
  const { ttlSeconds } = settings;
  const hosts = settings.ns.map(({ name }) => knownName(name));
  const apexSets: Rrset[] = [{ type: TYPE.NS, ttlSeconds, records: hosts.map((host) => ({ kind: 'ns' as const, host })) }];
  let nodes = NameTable.empty<ZoneNode>().with(Buffer.alloc(0), compileNode(apexSets));
  for (const { name, addresses } of settings.ns) {
    const host = knownName(name);
    if (!isBelow(host, origin)) continue;
    const prefix = host.subarray(0, host.length - origin.length);
    const sets = addressRrsets(ipsOf(addresses), ttlSeconds);
    nodes = nodes.with(prefix, compileNode(prefix.length === 0 ? [...apexSets, ...sets] : sets));
    for (let at = 1 + (prefix[0] ?? 0); at < prefix.length; at += 1 + (prefix[at] ?? 0)) {
      const between = prefix.subarray(at);
      if (nodes.get(between) === null) nodes = nodes.with(between, compileNode([]));
    }
  }
  return nodes;
}

/** Addresses of the name servers inside the zone, for the Additional of an NS answer. */
function nsAdditional(settings: ZoneSettings, origin: Buffer): Additional {
  const parts: Buffer[] = [];
  let count = 0;
  for (const { name, addresses } of settings.ns) {
    const host = knownName(name);
    if (!isBelow(host, origin)) continue;
    const owner = Buffer.concat([host.subarray(0, host.length - origin.length), pointerTo(HEADER_BYTES)]);
    for (const rrset of addressRrsets(ipsOf(addresses), settings.ttlSeconds)) {
      parts.push(encodeRrset(owner, rrset));
      count += rrset.records.length;
    }
  }
  return { count, bytes: Buffer.concat(parts) };
}

function ipsOf(addresses: readonly string[]): Buffer[] {
  return addresses.map((address) => must(parseIp(address), `${address} is an ip address`));
}
