/** Zone transfers as messages: who gets which, what is in them, how they are cut and signed. Decoded by dns-packet. */
import { describe, expect, test } from '@jest/globals';
import * as dnsPacket from 'dns-packet';
import { addressRange, isListed } from '../../../src/dns/address-range.js';
import { Deliveries } from '../../../src/dns/deliveries.js';
import { answerGuarded } from '../../../src/dns/guarded-answer.js';
import type { Reply, TransferGate, TransferStream } from '../../../src/dns/guarded-answer.js';
import { endOfName, readRecords } from '../../../src/dns/query.js';
import { isAtLeast, MAX_TRANSFER_BYTES } from '../../../src/dns/transfer.js';
import { signed, verify } from '../../../src/dns/tsig.js';
import { tsigKey } from '../../../src/dns/tsig-key.js';
import { removeMaster, updateZone } from '../../../src/dns/zone.js';
import type { Zone } from '../../../src/dns/zone.js';
import { addMs } from '../../../src/time.js';
import { assertStrict, NOW, queryBytes, render, route, sampleZone } from './ask.js';

const SECONDARY = '10.0.0.53';
const NOW_SECONDS = Math.floor(NOW / 1000);
const key = tsigKey('key.example.', Buffer.alloc(32, 5));
const gateWith = (override: Partial<TransferGate> = {}): TransferGate => ({
  key: null, allow: [addressRange('10.0.0.53')], deliveries: new Deliveries(), whyClosed: () => null, clock: () => NOW, ...override,
});
const zone = sampleZone();

/** An IXFR query from `serial`; `owner` is the name in Authority. */
function ixfrBytes(serial: number, owner = 'redis.internal.', type = 6): Buffer {
  const query = queryBytes('redis.internal. IXFR');
  query.writeUInt16BE(1, 8);
  const data = dnsPacket.encode({ type: 'query', authorities: [{ type: 'SOA', name: owner.slice(0, -1), ttl: 0,
    data: { mname: 'a', rname: 'b', serial, refresh: 0, retry: 0, expire: 0, minimum: 0 } }] } as unknown as dnsPacket.Packet).subarray(12);
  data.writeUInt16BE(type, endOfName(data, 0, false));
  return Buffer.concat([query, data]);
}

const isStream = (reply: Reply): reply is TransferStream => reply !== null && !Buffer.isBuffer(reply);
const drain = (reply: Reply): Buffer[] => {
  if (!isStream(reply)) throw new Error(`no transfer: ${reply === null ? 'silence' : render(reply)}`);
  const messages: Buffer[] = [];
  for (let next = reply.messages.next(); next.done !== true; next = reply.messages.next()) messages.push(next.value);
  return messages;
};
const fetched = (gate: TransferGate, from: Zone, question: Buffer = queryBytes('redis.internal. AXFR')): string[] =>
  drain(answerGuarded(gate, from, question, 'tcp', SECONDARY)).flatMap(recordsIn);

/** Records of the Answer section: `owner TYPE data`. */
function recordsIn(message: Buffer): string[] {
  assertStrict(message);
  return (dnsPacket.decode(message).answers ?? []).map((record) => {
    if (record.type === 'SOA') return `SOA ${record.data.serial}`;
    const data = (record as { data: unknown }).data;
    return `${record.name} ${record.type} ${record.type === 'SRV' ? `${record.data.target}:${record.data.port}` : String(data)}`;
  });
}

const reply = (gate: TransferGate | null, message: Buffer, transport: 'udp' | 'tcp' = 'tcp', from = SECONDARY): string => {
  const answer = answerGuarded(gate, zone, message, transport, from);
  return isStream(answer) ? answer.kind : answer === null ? 'silence' : render(answer);
};

describe('the whole zone', () => {
  const records = fetched(gateWith(), zone);

  test('SOA first and last, every name with records once, none of a master that is not ready', () => {
    expect([records[0], records.at(-1)]).toEqual([`SOA ${zone.serial}`, `SOA ${zone.serial}`]);
    expect(records.filter((each) => each.startsWith('SOA'))).toHaveLength(2);
    expect(new Set(records.slice(1)).size).toBe(records.length - 1);
    expect(records).toEqual(expect.arrayContaining([
      'redis.internal NS ns1.redis.internal', 'redis.internal NS ns.example.org', 'ns1.redis.internal A 10.0.0.53',
      'ns1.redis.internal AAAA 2001:db8::53', 'cache.redis.internal A 10.0.0.1', 'master.cache.redis.internal A 10.0.0.1',
      'cache.redis.internal TXT epoch=7 phase=steady', '_redis._tcp.cache.redis.internal SRV n-10-0-0-1.cache.redis.internal:6379',
      'replica.cache.redis.internal A 10.0.0.2', 'n-10-0-0-4.cache.redis.internal A 10.0.0.4', 'six.redis.internal AAAA 2001:db8::1',
    ]));
    expect(records.join()).not.toContain('pending');
  });

  test('in messages of at most 16 KiB, each with the question, OPT where it was asked for', () => {
    let big = zone;
    for (let index = 0; index < 300; index++) big = updateZone(big, route(`m${index}`, `10.1.${index >> 8}.${index & 255}:6379`), NOW);
    const messages = drain(answerGuarded(gateWith(), big, queryBytes('redis.internal. AXFR edns=1232 id=77'), 'tcp', SECONDARY));
    expect(messages.length).toBeGreaterThan(5);
    for (const message of messages) {
      expect([message.length <= MAX_TRANSFER_BYTES, message.readUInt16BE(0), message.readUInt16BE(4), message.readUInt16BE(10)]).toEqual([true, 77, 1, 1]);
      expect(message.readUInt8(2)).toBe(0x84);
    }
    const all = messages.flatMap(recordsIn);
    expect(all).toHaveLength(records.length + 300 * 8);
    expect(new Set(all.slice(1)).size).toBe(all.length - 1);
  });
});

describe('what is new', () => {
  test('from a version delivered to this address: one difference', () => {
    const gate = gateWith();
    fetched(gate, zone);
    const later = removeMaster(updateZone(zone, route('cache', '10.0.0.2:6380', ['10.0.0.3:6379', '!10.0.0.1:6379', '!10.0.0.4:6379'],
      { configEpoch: 8 }), addMs(NOW, 9000)), 'alone', addMs(NOW, 9000));
    const records = fetched(gate, later, ixfrBytes(zone.serial));
    const marks = records.flatMap((each, index) => (each.startsWith('SOA') ? [index] : []));
    expect(marks.map((index) => records[index])).toEqual([later, zone, later, later].map(({ serial }) => `SOA ${serial}`));
    const [gone, come] = [records.slice(2, marks[2]), records.slice((marks[2] ?? 0) + 1, -1)];
    expect(gone).toEqual(expect.arrayContaining(['cache.redis.internal A 10.0.0.1', 'alone.redis.internal A 10.0.2.1', 'cache.redis.internal TXT epoch=7 phase=steady']));
    expect(come).toEqual(expect.arrayContaining(['cache.redis.internal A 10.0.0.2', 'cache.redis.internal TXT epoch=8 phase=steady']));
    expect([...gone, ...come].join()).not.toMatch(/ns1|six|n-10-0-0-4/);
    // The difference makes the old zone the new one.
    const before = fetched(gateWith(), zone).slice(1, -1).filter((each) => !gone.includes(each));
    expect([...before, ...come].sort()).toEqual(fetched(gateWith(), later).slice(1, -1).sort());
    // And the new one was delivered too.
    expect(fetched(gate, updateZone(later, route('six', '10.0.1.2:7001', [], { configEpoch: 2 }), addMs(NOW, 12_000)), ixfrBytes(later.serial))[1])
      .toBe(`SOA ${later.serial}`);
  });

  test('whatever else is asked from: the whole zone', () => {
    const gate = gateWith({ allow: [addressRange('10.0.0.0/24')] });
    fetched(gate, zone);
    const later = updateZone(zone, route('six', '10.0.1.2:7001', [], { configEpoch: 2 }), addMs(NOW, 9000));
    const kindOf = (serial: number, from: string): string => (answerGuarded(gate, later, ixfrBytes(serial), 'tcp', from) as TransferStream).kind;
    expect([kindOf(zone.serial, SECONDARY), kindOf(zone.serial - 1, SECONDARY), kindOf(zone.serial, '10.0.0.54')]).toEqual(['ixfr', 'axfr', 'axfr']);
  });

  test('a transfer that was broken off was not delivered', () => {
    const gate = gateWith();
    const begun = answerGuarded(gate, zone, queryBytes('redis.internal. AXFR'), 'tcp', SECONDARY) as TransferStream;
    begun.messages.next();
    expect(gate.deliveries.find(SECONDARY, zone.serial)).toBeNull();
    begun.messages.next();
    expect(gate.deliveries.find(SECONDARY, zone.serial)).toBe(zone);
  });

  test('an equal or newer serial, and every question by UDP: one SOA', () => {
    for (const [serial, transport] of [[zone.serial, 'tcp'], [zone.serial + 5, 'tcp'], [zone.serial - 5, 'udp'], [zone.serial, 'udp']] as const) {
      const answer = answerGuarded(gateWith(), zone, ixfrBytes(serial), transport, SECONDARY);
      expect(recordsIn(answer as Buffer)).toEqual([`SOA ${zone.serial}`]);
    }
  });

  test.each([
    [1, 0, true], [0, 1, false], [7, 7, true], [0, 0xffff_ffff, true], [0xffff_ffff, 0, false], [0x7fff_ffff, 0, true], [0x8000_0000, 0, false],
  ])('serial %d is %d or newer: %s', (a, b, expected) => expect(isAtLeast(a, b)).toBe(expected));
});

describe('who gets none', () => {
  const axfr = queryBytes('redis.internal. AXFR');
  const closed = gateWith({ whyClosed: () => 'isolated' });
  test.each([
    ['nobody is listed', null, axfr, 'tcp', 'REFUSED'],
    ['another address', gateWith({ allow: [addressRange('10.0.0.0/27')] }), axfr, 'tcp', 'REFUSED'],
    ['by UDP', gateWith(), axfr, 'udp', 'NOTIMP'],
    ['a foreign zone', gateWith(), queryBytes('example.org. AXFR'), 'tcp', 'NOTAUTH'],
    ['a name inside the zone', gateWith(), queryBytes('cache.redis.internal. AXFR'), 'tcp', 'NOTAUTH'],
    ['another class', gateWith(), queryBytes('redis.internal. AXFR class=CH'), 'tcp', 'REFUSED'],
    ['another version of EDNS', gateWith(), queryBytes('redis.internal. AXFR edns=1232 version=1'), 'tcp', 'BADVERS; AR OPT 1232'],
    ['while isolated', closed, axfr, 'tcp', 'SERVFAIL'],
    ['while isolated, IXFR', closed, ixfrBytes(1), 'udp', 'SERVFAIL'],
    ['IXFR without an SOA', gateWith(), queryBytes('redis.internal. IXFR'), 'tcp', 'FORMERR'],
    ['IXFR with the SOA of another zone', gateWith(), ixfrBytes(1, 'example.org.'), 'tcp', 'FORMERR'],
    ['IXFR with another record', gateWith(), ixfrBytes(1, 'redis.internal.', 16), 'tcp', 'FORMERR'],
    ['no signature where a key is set', gateWith({ key }), axfr, 'tcp', 'REFUSED'],
    ['a NOTIFY', gateWith(), queryBytes('redis.internal. SOA opcode=4'), 'udp', 'NOTIMP'],
  ] as const)('%s', (_name, gate, message, transport, expected) => {
    expect(reply(gate, message, transport).replace('; NS redis', ' NS redis')).toBe(expected);
  });

  test.each([
    ['10.0.0.53', '10.0.0.53', true], ['10.0.0.53', '::ffff:10.0.0.53', true], ['10.0.0.0/8', '10.255.0.1', true], ['10.0.0.0/8', '11.0.0.1', false],
    ['10.0.0.32/27', '10.0.0.63', true], ['10.0.0.32/27', '10.0.0.64', false], ['0.0.0.0/0', '2001:db8::1', false], ['::/0', '2001:db8::1', true],
    ['2001:db8::/33', '2001:db8:7fff::1', true], ['2001:db8::/33', '2001:db8:8000::1', false], ['::ffff:10.0.0.0/104', '10.9.9.9', true],
    ['10.0.0.53', 'nobody', false],
  ])('%s holds %s: %s', (range, address, expected) => expect(isListed([addressRange(range)], address)).toBe(expected));
});

describe('signed', () => {
  const gate = (): TransferGate => gateWith({ key });
  const tsigOf = (message: Buffer) => readRecords(message, endOfName(message, 12, false) + 4)?.tsig ?? null;

  test('each message of a transfer', () => {
    let big = zone;
    for (let index = 0; index < 100; index++) big = updateZone(big, route(`m${index}`, `10.1.0.${index}:6379`), NOW);
    const request = signed(key, queryBytes('redis.internal. AXFR edns=1232'), null, NOW_SECONDS);
    const messages = drain(answerGuarded(gate(), big, request.message, 'tcp', SECONDARY));
    expect(messages.length).toBeGreaterThan(2);
    for (const message of messages) {
      assertStrict(message);
      expect([message.length <= MAX_TRANSFER_BYTES, message.readUInt16BE(10), tsigOf(message)?.mac.length]).toEqual([true, 2, 32]);
    }
    const first = messages[0] as Buffer;
    expect(verify(key, first, tsigOf(first) as NonNullable<ReturnType<typeof tsigOf>>, request.mac, NOW_SECONDS)).toEqual({ kind: 'valid' });
  });

  test.each([
    ['cache.redis.internal. A', 'udp', 'NOERROR aa; AN cache.redis.internal. 1 A 10.0.0.1; AR key.example. TSIG'],
    ['example.org. A edns=1232', 'udp', 'REFUSED; AR OPT 1232, key.example. TSIG'],
    ['pending.redis.internal. A', 'tcp', 'SERVFAIL; AR key.example. TSIG'],
    ['redis.internal. AXFR', 'udp', 'NOTIMP; AR key.example. TSIG'],
    ['example.org. AXFR', 'tcp', 'NOTAUTH; AR key.example. TSIG'],
  ] as const)('%s by %s', (question, transport, expected) => {
    const request = signed(key, queryBytes(question), null, NOW_SECONDS);
    const answer = answerGuarded(gate(), zone, request.message, transport, SECONDARY) as Buffer;
    expect(render(answer)).toBe(expected);
    expect(verify(key, answer, tsigOf(answer) as NonNullable<ReturnType<typeof tsigOf>>, request.mac, NOW_SECONDS)).toEqual({ kind: 'valid' });
  });

  test('an answer leaves room for its signature', () => {
    const crowd = updateZone(zone, route('crowd', '10.9.1.1:6379', Array.from({ length: 26 }, (_, index) => `10.9.0.${index + 1}:6379`)), NOW);
    const ask = (message: Buffer): Buffer => answerGuarded(gate(), crowd, message, 'udp', '10.9.9.9') as Buffer;
    const query = queryBytes('replica.crowd.redis.internal. A');
    expect(render(ask(query))).toMatch(/^NOERROR aa; AN/);
    const small = ask(signed(key, query, null, NOW_SECONDS).message);
    expect(render(small)).toBe('NOERROR aa tc; AR key.example. TSIG');
    expect(small.length).toBeLessThanOrEqual(512);
  });

  test('wrong in any way: the error of RFC 8945, and no answer', () => {
    const query = queryBytes('cache.redis.internal. A');
    const errorOf = (by: typeof key, nowSeconds: number): unknown => {
      const answer = answerGuarded(gate(), zone, signed(by, query, null, nowSeconds).message, 'udp', SECONDARY) as Buffer;
      const tsig = tsigOf(answer);
      return [render(answer).split(';')[0], tsig?.error, tsig?.mac.length];
    };
    expect(errorOf(tsigKey('other.', Buffer.alloc(32)), NOW_SECONDS)).toEqual(['NOTAUTH', 17, 0]);
    expect(errorOf(tsigKey('key.example.', Buffer.alloc(32)), NOW_SECONDS)).toEqual(['NOTAUTH', 16, 0]);
    expect(errorOf(key, NOW_SECONDS - 400)).toEqual(['NOTAUTH', 18, 32]);
  });
});
