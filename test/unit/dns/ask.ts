/**
 * A small language for DNS tests: a question as one line of text in, the reply as one line of text out.
 *
 * In: `cache.redis.internal. A +rd edns=1232 do id=7 opcode=4 class=CH`. Out: `NOERROR aa rd; AN cache.redis.internal. 1 A 10.0.0.1`.
 * Replies are walked by a strict reader of our own first (sizes, counts, pointers), then decoded by dns-packet, a second voice.
 */
import * as dnsPacket from 'dns-packet';
import type { Answer, DecodedPacket } from 'dns-packet';
import { answerQuery } from '../../../src/dns/answer.js';
import type { Transport } from '../../../src/dns/answer.js';
import { parseName } from '../../../src/dns/name.js';
import { buildZone, updateZone } from '../../../src/dns/zone.js';
import type { Zone, ZoneSettings } from '../../../src/dns/zone.js';
import type { Route } from '../../../src/route/route.js';
import { parseAddress } from '../../../src/sentinel/wire/address.js';
import { millis } from '../../../src/time.js';

export const NOW = millis(1_764_456_000_000);
export const SERIAL = 1_764_456_000;

const TYPES: Record<string, number> = {
  A: 1, NS: 2, SOA: 6, MX: 15, TXT: 16, AAAA: 28, SRV: 33, OPT: 41, RRSIG: 46,
    TKEY: 249, TSIG: 250, IXFR: 251, AXFR: 252, MAILB: 253, ANY: 255,
};
const CLASSES: Record<string, number> = { IN: 1, CH: 3, NONE: 254, ANY: 255 };
const RCODES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED', '6', '7', '8', 'NOTAUTH'];

/** `Map` entries and flags of a zone with two name servers; override what a test is about. */
export function settings(override: Partial<ZoneSettings> = {}): ZoneSettings {
  return {
    origin: 'redis.internal.',
    ttlSeconds: 1,
    negativeTtlSeconds: 1,
    ns: [{ name: 'ns1.redis.internal.', addresses: ['10.0.0.53', '2001:db8::53'] }, { name: 'ns.example.org.', addresses: [] }],
    labels: new Map(),
    whenIsolated: 'serve-last',
    allowLoopback: false,
    replicaFallback: true,
    ...override,
  };
}

/** A Route from text: `route('cache', '10.0.0.1:6379', ['10.0.0.2:6379', '!10.0.0.3:6379'])`; `!` = unhealthy. */
export function route(master: string, primary: string | null, replicas: readonly string[] = [], override: Partial<Route> = {}): Route {
  const addressOf = (text: string): { host: string; port: number } => parseAddress(text) ?? { host: text, port: 0 };
  const configEpoch = override.configEpoch ?? 1;
  return {
    master,
    primary: primary === null ? null : addressOf(primary),
    replicas: replicas.map((text) => ({ address: addressOf(text.replace('!', '')), healthy: !text.startsWith('!') })),
    configEpoch,
    order: 2 * configEpoch,
    phase: 'steady',
    trusted: true,
    confirmed: true,
    role: 'observer',
    previous: null,
    since: NOW,
    ...override,
  };
}

/** `cache` at 10.0.0.1 with two healthy replicas, `six` on IPv6, `alone` without replicas, `pending` without a Route. */
export function sampleZone(override: Partial<ZoneSettings> = {}): Zone {
  let zone = buildZone(settings(override), ['cache', 'six', 'alone', 'pending'], 0, NOW);
  for (const each of [
    route('cache', '10.0.0.1:6379', ['10.0.0.2:6380', '10.0.0.3:6379', '!10.0.0.4:6379'], { configEpoch: 7 }),
    route('six', '[2001:db8::1]:7000', ['10.0.1.2:7001']),
    route('alone', '10.0.2.1:6379'),
  ]) zone = updateZone(zone, each, NOW);
  // Serials have moved on by one for each change; tests see the first one.
  return zone;
}

/** The bytes of a query line. */
export function queryBytes(line: string): Buffer {
  const [name = '.', type = 'A', ...options] = line.split(' ');
  const option = (key: string, fallback: string): string =>
    options.find((each) => each.startsWith(`${key}=`))?.slice(key.length + 1) ?? fallback;
  const header = Buffer.alloc(12);
  header.writeUInt16BE(Number(option('id', '4660')), 0);
  header[2] = (Number(option('opcode', '0')) << 3) | (options.includes('+rd') ? 1 : 0);
  header[3] = options.includes('+ad+cd+z') ? 0x70 : 0;
  header.writeUInt16BE(1, 4);
  const qname = parseName(name);
  if (qname === null) throw new Error(`no name: ${name}`);
  const tail = Buffer.alloc(4);
  tail.writeUInt16BE(TYPES[type] ?? Number(type), 0);
  const klass = option('class', 'IN');
  tail.writeUInt16BE(CLASSES[klass] ?? Number(klass), 2);
  const parts = [header, qname, tail];
  if (option('edns', '') !== '') {
    header.writeUInt16BE(1, 10);
    const data = Buffer.from(option('opt', ''), 'hex');
    parts.push(optRecord(Number(option('edns', '')), Number(option('version', '0')), options.includes('do'), data));
  }
  return Buffer.concat(parts);
}

export function optRecord(size: number, version = 0, dnssecOk = false, data: Buffer = Buffer.alloc(0)): Buffer {
  const opt = Buffer.alloc(11);
  opt.writeUInt16BE(41, 1);
  opt.writeUInt16BE(size, 3);
  opt[6] = version;
  opt[7] = dnssecOk ? 0x80 : 0;
  opt.writeUInt16BE(data.length, 9);
  return Buffer.concat([opt, data]);
}

/** Asks the zone and renders the reply; `silence` for none. */
export function ask(zone: Zone, question: string | Buffer, transport: Transport = 'udp'): string {
  const message = typeof question === 'string' ? queryBytes(question) : question;
  const reply = answerQuery(zone, message, transport);
  return reply === null ? 'silence' : render(reply);
}

/** A reply as text, after {@link assertStrict}. */
export function render(reply: Buffer): string {
  assertStrict(reply);
  const packet = dnsPacket.decode(reply);
  const opt = packet.additionals?.find((record) => record.type === 'OPT') as unknown as { extendedRcode: number } | undefined;
  const code = (reply.readUInt8(3) & 15) + ((opt?.extendedRcode ?? 0) << 4);
  const flags = [['qr', 2, 0x80], ['aa', 2, 4], ['tc', 2, 2], ['rd', 2, 1],
    ['ra', 3, 0x80], ['z', 3, 0x40], ['ad', 3, 0x20], ['cd', 3, 0x10]] as const;
  const set = flags.filter(([name, at, bit]) => name !== 'qr' && (reply.readUInt8(at) & bit) !== 0).map(([name]) => name);
  const head = [code === 16 ? 'BADVERS' : RCODES[code] ?? String(code), ...set,
    ...(packet.questions?.length === 0 ? ['no-question'] : [])].join(' ');
  const section = (name: string, records: readonly Answer[] | undefined): string[] =>
    records === undefined || records.length === 0 ? [] : [`${name} ${records.map(renderRecord).join(', ')}`];
  return [head, ...section('AN', packet.answers), ...section('NS', packet.authorities), ...section('AR', packet.additionals)].join('; ');
}

function renderRecord(record: Answer): string {
  if (record.type === 'OPT') {
    const codes = record.options.map((option) => (option as { code: number }).code);
    const notes = [...((record.flags & 0x8000) !== 0 ? ['do'] : []), ...codes.map((code) => `option=${code}`)];
    return ['OPT', String(record.udpPayloadSize), ...notes].join(' ');
  }
  const type = record.type as string;
  if (type === 'TSIG' || type.startsWith('UNKNOWN')) return `${record.name}. ${type}`;
  return `${record.name}. ${(record as { ttl: number }).ttl} ${type} ${renderData(record)}`;
}

function renderData(record: Answer): string {
  switch (record.type) {
    case 'A':
    case 'AAAA':
    case 'NS':
      return String(record.data);
    case 'TXT':
      return `"${String(record.data)}"`;
    case 'SRV':
      return `${record.data.priority ?? 0} ${record.data.weight ?? 0} ${record.data.port} ${record.data.target}.`;
    case 'SOA': {
      const { mname, rname, serial, refresh, retry, expire, minimum } = record.data;
      return `${mname}. ${rname}. ${serial} ${refresh} ${retry} ${expire} ${minimum}`;
    }
    default:
      return JSON.stringify((record as unknown as DecodedPacket & { data?: unknown }).data);
  }
}

/** Throws unless every count, length and pointer of the reply is right and the last record ends with the message. */
export function assertStrict(reply: Buffer): void {
  if (reply.length < 12 || (reply.readUInt8(2) & 0x80) === 0) throw new Error('no response');
  let at = 12;
  for (let index = 0; index < reply.readUInt16BE(4); index++) at = nameEnd(reply, at) + 4;
  const records = reply.readUInt16BE(6) + reply.readUInt16BE(8) + reply.readUInt16BE(10);
  for (let index = 0; index < records; index++) {
    at = nameEnd(reply, at) + 10;
    at += reply.readUInt16BE(at - 2);
  }
  if (at !== reply.length) throw new Error(`records end at ${at} of ${reply.length} bytes`);
}

function nameEnd(reply: Buffer, start: number): number {
  for (let at = start; ; ) {
    const length = reply.readUInt8(at);
    if (length >= 0xc0) {
      const target = reply.readUInt16BE(at) & 0x3fff;
      if (target < 12 || target >= start) throw new Error(`pointer at ${at} to ${target}`);
      return at + 2;
    }
    if (length > 63) throw new Error(`label type at ${at}`);
    at += 1 + length;
    if (length === 0) return at;
  }
}
