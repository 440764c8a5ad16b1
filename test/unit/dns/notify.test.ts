/** NOTIFY: its bytes, what counts as an answer, and the sender on real sockets with secondaries that misbehave. */
import { afterEach, describe, expect, test } from '@jest/globals';
import * as dnsPacket from 'dns-packet';
import { createSocket } from 'node:dgram';
import type { RemoteInfo, Socket } from 'node:dgram';
import { once } from 'node:events';
import { encodeNotify, readNotifyReply } from '../../../src/dns/notification.js';
import { NotifySender } from '../../../src/dns/notify-sender.js';
import { READY_GRACE_MS, TransferService, whyNotTransferable } from '../../../src/dns/transfer-service.js';
import { signed } from '../../../src/dns/tsig.js';
import { tsigKey } from '../../../src/dns/tsig-key.js';
import { removeMaster, updateZone } from '../../../src/dns/zone.js';
import type { Zone } from '../../../src/dns/zone.js';
import { addMs, millis } from '../../../src/time.js';
import type { Millis } from '../../../src/time.js';
import { assertStrict, NOW, route, sampleZone } from './ask.js';

const zone = sampleZone();
const key = tsigKey('key.example.', Buffer.alloc(32, 5));
const clock = (): Millis => millis(Date.now());
const nowSeconds = (): number => Math.floor(Date.now() / 1000);

/** A reply as a secondary makes it: the header and question of the request. */
function replyTo(request: Buffer, change: (reply: Buffer) => void = () => undefined): Buffer {
  const reply = Buffer.from(request.subarray(0, 12 + zone.origin.length + 4));
  reply[2] = 0xa4;
  reply.writeUInt32BE(0, 6);
  reply.writeUInt16BE(0, 10);
  change(reply);
  return reply;
}

test('the request: opcode 4, AA, the zone asked for its SOA, and the SOA as a hint', () => {
  const request = encodeNotify(77, zone);
  request[2] = (request[2] ?? 0) | 0x80;
  assertStrict(request);
  const { id, questions, answers } = dnsPacket.decode(request);
  expect([id, request.readUInt8(2), questions]).toEqual([77, 0xa4, [{ name: 'redis.internal', type: 'SOA', class: 'IN' }]]);
  expect(answers).toMatchObject([{ name: 'redis.internal', type: 'SOA', data: { serial: zone.serial, mname: 'ns1.redis.internal' } }]);
});

describe('what counts as an answer', () => {
  const request = encodeNotify(77, zone);
  const sent = { id: 77, origin: zone.origin, signature: null };
  const judge = (message: Buffer): string => {
    const reply = readNotifyReply(message, sent, nowSeconds());
    return reply.kind === 'stray' ? 'stray' : `${reply.kind} ${reply.rcode}`;
  };
  test.each([
    ['a good one', replyTo(request), 'answered 0'],
    ['a refusal', replyTo(request, (reply) => (reply[3] = 5)), 'answered 5'],
    ['a refusal without the question', Buffer.from('004da4010000000000000000', 'hex'), 'answered 1'],
    ['the question in capitals', replyTo(request, (reply) => reply.write('REDIS', 13, 'latin1')), 'answered 0'],
    ['another id', replyTo(request, (reply) => reply.writeUInt16BE(78, 0)), 'stray'],
    ['another opcode', replyTo(request, (reply) => (reply[2] = 0x84)), 'stray'],
    ['no reply', replyTo(request, (reply) => (reply[2] = 0x24)), 'stray'],
    ['another zone', replyTo(request, (reply) => reply.write('radis', 13, 'latin1')), 'stray'],
    ['two questions', replyTo(request, (reply) => reply.writeUInt16BE(2, 4)), 'stray'],
    ['half a header', replyTo(request).subarray(0, 11), 'stray'],
    ['half a question', replyTo(request).subarray(0, 20), 'stray'],
  ] as const)('%s', (_name, message, expected) => expect(judge(message)).toBe(expected));

  test('where the request was signed: only what the key has signed, for this request', () => {
    const made = signed(key, request, null, nowSeconds());
    const kindOf = (message: Buffer): string => readNotifyReply(message, { ...sent, signature: { key, mac: made.mac } }, nowSeconds()).kind;
    const reply = replyTo(request);
    expect(kindOf(signed(key, reply, made.mac, nowSeconds()).message)).toBe('answered');
    expect(kindOf(reply)).toBe('unproven');
    expect(kindOf(reply.subarray(0, 30))).toBe('unproven');
    expect(kindOf(signed(key, reply, Buffer.alloc(32), nowSeconds()).message)).toBe('unproven');
    expect(kindOf(signed(tsigKey('key.example.', Buffer.alloc(32)), reply, made.mac, nowSeconds()).message)).toBe('unproven');
  });
});

describe('the sender', () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });
  const lines: string[] = [];
  const at = (level: string) => (context: object, message: string) => void lines.push(`${level} ${message} ${JSON.stringify(context)}`);
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };

  interface Heard {
    readonly message: Buffer;
    readonly from: RemoteInfo;
    readonly atMs: number;
  }
  interface Listener {
    readonly socket: Socket;
    readonly port: number;
    readonly heard: Heard[];
  }
  async function secondary(host = '127.0.0.1'): Promise<Listener> {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    socket.bind(0, host);
    await once(socket, 'listening');
    closers.push(() => socket.close());
    const heard: Heard[] = [];
    socket.on('message', (message, from) => heard.push({ message, from, atMs: performance.now() }));
    return { socket, port: socket.address().port, heard };
  }
  const senderTo = (targets: readonly { host: string; port: number }[], signedBy: typeof key | null = null): NotifySender => {
    const sender = new NotifySender({ targets, sources: { 4: '127.0.0.3' }, key: signedBy, clock, log });
    closers.push(() => sender.close());
    return sender;
  };
  async function waitFor(what: string, holds: () => boolean): Promise<void> {
    const until = performance.now() + 5000;
    while (!holds()) {
      if (performance.now() > until) throw new Error(`not in time: ${what}`);
      await new Promise((done) => setTimeout(done, 5));
    }
  }
  const pause = (ms: number): Promise<void> => new Promise((done) => void setTimeout(done, ms));

  test('from the listed address, again and again with growing pauses, until it is answered', async () => {
    const { socket, port, heard } = await secondary();
    senderTo([{ host: '127.0.0.1', port }]).announce(zone);
    await waitFor('three', () => heard.length === 3);
    const [first, second, third] = heard.map(({ atMs }) => atMs) as [number, number, number];
    expect(second - first).toBeGreaterThan(200);
    expect(third - second).toBeGreaterThan(450);
    const [{ message, from }] = heard as [Heard];
    expect([from.address, heard[2]?.message.equals(message)]).toEqual(['127.0.0.3', true]);
    // A stray one does not end it: the right bytes from another port.
    const stranger = await secondary();
    stranger.socket.send(replyTo(message), from.port, from.address);
    await waitFor('a fourth', () => heard.length === 4);
    socket.send(replyTo(message), from.port, from.address);
    await waitFor('the answer', () => lines.some((line) => line.startsWith('debug dns notify answered')));
    await pause(300);
    expect(heard).toHaveLength(4);
  }, 15_000);

  test('a newer serial takes the place of the older one; close changes share one', async () => {
    const { port, heard } = await secondary();
    const sender = senderTo([{ host: '127.0.0.1', port }]);
    let later = zone;
    for (let epoch = 10; epoch < 15; epoch++) {
      later = updateZone(later, route('cache', `10.0.0.${epoch}:6379`, [], { configEpoch: epoch }), addMs(NOW, 1000 * epoch));
      sender.announce(later);
    }
    await waitFor('the last', () => heard.length >= 2);
    const serials = heard.map(({ message }) => message.readUInt32BE(message.length - 20));
    expect(serials.slice(1, 2)).toEqual([later.serial]);
    expect(serials[0]).toBeLessThan(later.serial);
  });

  test('signed, and an unsigned answer counts for nothing', async () => {
    const { socket, port, heard } = await secondary();
    senderTo([{ host: '127.0.0.1', port }], key).announce(zone);
    await waitFor('one', () => heard.length === 1);
    const { message, from } = heard[0] as Heard;
    socket.send(replyTo(message), from.port, from.address);
    await waitFor('a second one', () => heard.length === 2);
    expect(lines.some((line) => line.startsWith('warn dns notify answered without a valid signature'))).toBe(true);
    const mac = message.subarray(message.length - 6 - 32, message.length - 6);
    socket.send(signed(key, replyTo(message), mac, nowSeconds()).message, from.port, from.address);
    await pause(700);
    expect(heard).toHaveLength(2);
  });

  test('a refusal ends it and is told; another one is not held up by a bad address', async () => {
    const { socket, port, heard } = await secondary('::1');
    senderTo([{ host: '240.0.0.1', port: 53 }, { host: '::1', port }]).announce(zone);
    await waitFor('one', () => heard.length === 1);
    const { message, from } = heard[0] as Heard;
    socket.send(replyTo(message, (reply) => (reply[3] = 9)), from.port, from.address);
    await waitFor('the warning', () => lines.some((line) => line.startsWith('warn dns notify refused')));
    await pause(400);
    expect(heard).toHaveLength(1);
  });

  test('a source that is not on this host is a line in the log, not an exception', async () => {
    const sender = new NotifySender({ targets: [{ host: '127.0.0.1', port: 9 }], sources: { 4: '192.0.2.1' }, key: null, clock, log });
    closers.push(() => sender.close());
    lines.length = 0;
    sender.announce(zone);
    await waitFor('the warning', () => lines.some((line) => line.startsWith('warn dns notify not sent')));
    sender.close();
    sender.announce(zone);
  });

  describe('transfers of a publisher', () => {
    const ready = removeMaster(zone, 'pending', NOW);
    const untrusted = (of: Zone): Zone => updateZone(of, route('cache', '10.0.0.1:6379', [], { configEpoch: 9, trusted: false }), NOW);

    test('closed while a master is muted, and at first while one is not ready', () => {
      expect(whyNotTransferable(ready, 0)).toBeNull();
      expect([whyNotTransferable(zone, READY_GRACE_MS - 1), whyNotTransferable(zone, READY_GRACE_MS)]).toEqual(['not ready', null]);
      const muted = untrusted(removeMaster(sampleZone({ whenIsolated: 'servfail' }), 'pending', NOW));
      expect(whyNotTransferable(muted, READY_GRACE_MS)).toBe('isolated');
      expect(whyNotTransferable(untrusted(ready), READY_GRACE_MS)).toBeNull();
      expect(whyNotTransferable(updateZone(muted, route('cache', '10.0.0.1:6379', [], { configEpoch: 9 }), NOW), 0)).toBeNull();
      expect(whyNotTransferable(removeMaster(muted, 'cache', NOW), 0)).toBeNull();
    });

    test('silent until opened and while closed; each serial once', async () => {
      const { port, socket, heard } = await secondary();
      socket.on('message', (message, from) => socket.send(replyTo(message), from.port, from.address));
      let current = zone;
      const service = new TransferService({ allow: [], notify: [{ host: '127.0.0.1', port }], key: null, sources: {} }, () => current, clock, log);
      closers.push(() => service.close());
      service.changed();
      service.open();
      await pause(50);
      expect(heard).toHaveLength(0);
      current = ready;
      service.changed();
      service.changed();
      await pause(100);
      expect(heard).toHaveLength(1);
      expect(service.gate.whyClosed(ready, clock())).toBeNull();
    });
  });
});
