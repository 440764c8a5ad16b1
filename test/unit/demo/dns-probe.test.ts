import { describe, expect, test } from '@jest/globals';
import dnsPacket from 'dns-packet';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { DnsProbe, readReply, showReply } from '../../../src/demo/dns-probe.js';

const NAME = 'mymaster.redis.test';
const QUERY_BYTES = dnsPacket.encode({ type: 'query', id: 1, questions: [{ type: 'A', name: NAME }] }).length;

function response(rcode: number, answers: readonly dnsPacket.Answer[]): Buffer {
  return dnsPacket.encode({ type: 'response', id: 1, flags: rcode, questions: [{ type: 'A', name: NAME }], answers: [...answers] });
}

const a = (data: string): dnsPacket.Answer => ({ type: 'A', name: NAME, ttl: 1, data });

describe('readReply', () => {
  test.each([
    ['one address', response(0, [a('127.0.0.2')]), '127.0.0.2'],
    ['several', response(0, [a('10.0.0.1'), a('10.0.0.255')]), '10.0.0.1 10.0.0.255'],
    ['another type between', response(0, [{ type: 'TXT', name: 'x.test', data: 'epoch=1' }, a('10.0.0.1')]), '10.0.0.1'],
    ['none', response(0, []), 'no address'],
    ['SERVFAIL', response(2, []), 'SERVFAIL'],
    ['NXDOMAIN', response(3, []), 'NXDOMAIN'],
    ['a code without a name', response(11, []), 'rcode 11'],
  ])('%s', (_title, message, shown) => {
    const reply = readReply(message, QUERY_BYTES);
    expect(reply === null ? null : showReply(reply)).toBe(shown);
  });

  const whole = response(0, [a('127.0.0.2')]);
  test.each(Array.from({ length: whole.length - 1 }, (_, bytes) => bytes))('cut after %i bytes: no reply', (bytes) => {
    expect(readReply(whole.subarray(0, bytes), QUERY_BYTES)).toBeNull();
  });

  test('a query is no reply', () => {
    expect(readReply(dnsPacket.encode({ type: 'query', id: 1, questions: [{ type: 'A', name: NAME }] }), QUERY_BYTES)).toBeNull();
  });
});

describe('DnsProbe', () => {
  test('asks, matches by id, and takes silence and a closed port for silence', async () => {
    const server = createSocket('udp4').bind(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    let stray = false;
    server.on('message', (message, peer) => {
      const { id = 0 } = dnsPacket.decode(message);
      const answer = (forId: number, host: string): Buffer =>
        dnsPacket.encode({ type: 'response', id: forId, questions: [{ type: 'A', name: NAME }], answers: [a(host)] });
      if (!stray) server.send(answer(id ^ 1, '10.9.9.9'), peer.port, peer.address);
      if (!stray) server.send(answer(id, '10.0.0.1'), peer.port, peer.address);
    });
    const probe = new DnsProbe({ host: '127.0.0.1', port }, NAME);
    expect(await probe.ask()).toEqual({ kind: 'addresses', hosts: ['10.0.0.1'] });
    expect(await probe.askHost()).toBe('10.0.0.1');
    stray = true;
    expect(await probe.ask()).toEqual({ kind: 'silent' });
    server.close();
    await once(server, 'close');
    expect(await probe.ask()).toEqual({ kind: 'silent' });
    probe.close();
    expect(await probe.ask()).toEqual({ kind: 'silent' });
  });
});
