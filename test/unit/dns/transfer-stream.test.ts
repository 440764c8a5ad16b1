/** Transfers through the real TCP listener: order among pipelined queries, peers that read slowly, not at all, or leave. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { addressRange } from '../../../src/dns/address-range.js';
import { Deliveries } from '../../../src/dns/deliveries.js';
import type { TransferGate } from '../../../src/dns/guarded-answer.js';
import { startDnsListeners } from '../../../src/dns/listeners.js';
import type { DnsListeners } from '../../../src/dns/listeners.js';
import { MessageFramer } from '../../../src/dns/tcp-framing.js';
import { updateZone } from '../../../src/dns/zone.js';
import type { Zone } from '../../../src/dns/zone.js';
import { NOW, queryBytes, route, sampleZone } from './ask.js';

const nothing = (): void => undefined;
const quiet = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const frame = (message: Buffer): Buffer => Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message]);
const AXFR = frame(queryBytes('redis.internal. AXFR id=1'));
const A = frame(queryBytes('cache.redis.internal. A id=2'));

let big: Zone = sampleZone();
for (let index = 0; index < 3_000; index++) big = updateZone(big, route(`m${index}`, `10.1.${index >> 8}.${index & 255}:6379`), NOW);

let listeners: DnsListeners;
let gate: TransferGate;
beforeEach(async () => {
  gate = { key: null, allow: [addressRange('127.0.0.1')], deliveries: new Deliveries(), whyClosed: () => null, clock: () => NOW };
  const tcpLimits = { connections: 6, connectionsPerAddress: 4, idleMs: 2_000, messageMs: 500 };
  listeners = await startDnsListeners({ listen: ['127.0.0.1:0'], zone: () => big, gate: () => gate, log: quiet, tcpLimits });
});
afterEach(() => listeners.close());

async function waitFor(what: string, holds: () => boolean): Promise<void> {
  const until = performance.now() + 15_000;
  while (!holds()) {
    if (performance.now() > until) throw new Error(`not in time: ${what}`);
    await new Promise((done) => setTimeout(done, 5));
  }
}

function client(): { socket: Socket; ids: number[]; closed: () => boolean } {
  const socket = connect({ port: listeners.addresses[0]?.port ?? 0, host: '127.0.0.1' });
  const framer = new MessageFramer();
  const ids: number[] = [];
  let closed = false;
  socket.on('data', (chunk) => {
    for (let at = 0; at < chunk.length;) {
      const taken = framer.take(chunk, at);
      at = taken.at;
      if (taken.message !== null) ids.push(taken.message.readUInt16BE(0));
    }
  });
  socket.on('error', nothing);
  socket.on('close', () => (closed = true));
  return { socket, ids, closed: () => closed };
}

test('queries behind a transfer are answered behind it, and a query on another connection meanwhile', async () => {
  const peer = client();
  peer.socket.write(Buffer.concat([A, AXFR, A, AXFR, A]));
  const other = client();
  other.socket.write(A);
  await waitFor('another asker', () => other.ids.length === 1);
  await waitFor('the last answer', () => peer.ids.filter((id) => id === 2).length === 3);
  expect(listeners.counters.transfers).toBe(2);
  const transfers = peer.ids.join('').split('2');
  expect([transfers[0], transfers[1]?.length, transfers[2]?.length]).toEqual(['', transfers[2]?.length, transfers[1]?.length]);
  expect(transfers[1]?.length).toBeGreaterThan(50);
  expect(gate.deliveries.find('127.0.0.1', big.serial)).toBe(big);
  for (const { socket } of [peer, other]) socket.destroy();
});

test('a peer that ends its side still gets the whole transfer', async () => {
  const peer = client();
  peer.socket.end(AXFR);
  await waitFor('the end', () => peer.closed());
  expect(listeners.counters.transfers).toBe(1);
});

test('a peer that does not read is dropped, and nothing was delivered to it', async () => {
  const peers = Array.from({ length: 3 }, client);
  for (const { socket } of peers) {
    socket.pause();
    socket.setNoDelay(true);
    // More than the kernel holds for both of them.
    socket.write(Buffer.concat(Array.from({ length: 20 }, () => AXFR)));
  }
  await waitFor('dropped', () => listeners.counters.tcpTimeouts === 3);
  expect(listeners.counters.transfers).toBeLessThan(60);
  for (const { socket } of peers) socket.destroy();
});

test('a slow reader is waited for; one that leaves is forgotten', async () => {
  const slow = client();
  slow.socket.write(AXFR);
  const pauses = setInterval(() => {
    slow.socket.pause();
    setTimeout(() => slow.socket.resume(), 30);
  }, 60);
  const gone = client();
  gone.socket.write(AXFR);
  await waitFor('its first message', () => gone.ids.length > 0);
  gone.socket.destroy();
  await waitFor('all of it', () => slow.ids.length > 50 && listeners.counters.transfers >= 1);
  clearInterval(pauses);
  slow.socket.destroy();
  await waitFor('no connection', () => listeners.counters.tcpOpen === 0);
});
