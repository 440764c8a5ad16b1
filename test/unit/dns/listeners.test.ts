/** The transports on real sockets: garbage, limits, deadlines, ports. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import dns2 from 'dns2';
import { startDnsListeners } from '../../../src/dns/listeners.js';
import type { DnsListeners } from '../../../src/dns/listeners.js';
import { EXIT } from '../../../src/errors.js';
import { createPrng, nextBelow, nextUint32 } from '../../../src/prng.js';
import { queryBytes, render, sampleZone } from './ask.js';

const nothing = (): void => undefined;
const quiet = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const zone = sampleZone();
const start = (listen: string[],
  tcpLimits = { connections: 6, connectionsPerAddress: 4, idleMs: 400, messageMs: 250 }): Promise<DnsListeners> =>
  startDnsListeners({ listen, zone: () => zone, log: quiet, tcpLimits });

async function waitFor(what: string, condition: () => boolean, deadlineMs = 5000): Promise<void> {
  const until = Date.now() + deadlineMs;
  while (!condition()) {
    if (Date.now() > until) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

let listeners: DnsListeners;
let port: number;
beforeEach(async () => {
  listeners = await start(['127.0.0.1:0', '[::1]:0']);
  port = listeners.addresses[0]?.port ?? 0;
});
afterEach(() => listeners.close());

const GOOD = queryBytes('cache.redis.internal. A');
const ANSWER = 'NOERROR aa; AN cache.redis.internal. 1 A 10.0.0.1';

async function askUdp(query: Buffer, to = port, host = '127.0.0.1'): Promise<string> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  try {
    const reply = once(socket, 'message', { signal: AbortSignal.timeout(5000) });
    socket.send(query, to, host);
    return render((await reply)[0] as Buffer);
  } finally {
    socket.close();
  }
}

const frame = (message: Buffer): Buffer => Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message]);

/** A TCP client that collects whole replies. */
function client(to = port): { socket: Socket; replies: string[]; closed: () => boolean } {
  const socket = connect({ port: to, host: '127.0.0.1', allowHalfOpen: true });
  const replies: string[] = [];
  let buffered = Buffer.alloc(0);
  let closed = false;
  socket.setNoDelay(true);
  socket.on('error', nothing);
  socket.on('close', () => (closed = true));
  socket.on('end', () => socket.end());
  socket.on('data', (chunk) => {
    buffered = Buffer.concat([buffered, chunk]);
    while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
      replies.push(render(buffered.subarray(2, 2 + buffered.readUInt16BE(0))));
      buffered = buffered.subarray(2 + buffered.readUInt16BE(0));
    }
  });
  return { socket, replies, closed: () => closed };
}

describe('udp', () => {
  test('answers over IPv4 and IPv6', async () => {
    expect(await askUdp(GOOD)).toBe(ANSWER);
    expect(await askUdp(GOOD, listeners.addresses[1]?.port, '::1')).toBe(ANSWER);
  });

  test('garbage does not end it, and the next good query is answered', async () => {
    const socket = createSocket('udp4');
    const prng = createPrng(36);
    const shortest = Array.from({ length: 12 }, (_, length) => Buffer.alloc(length));
    for (const message of [...shortest, Buffer.alloc(12), Buffer.alloc(19, 0xff), Buffer.alloc(300, 63)])
      socket.send(message, port, '127.0.0.1');
    for (let round = 0; round < 2000; round++) {
      const message = Buffer.from(Array.from({ length: nextBelow(prng, 60) }, () => nextUint32(prng) & 255));
      await new Promise<void>((resolve) => socket.send(message, port, '127.0.0.1', () => resolve()));
    }
    // Closed at once: replies on their way meet a closed port, and the kernel says so to the listener.
    socket.close();
    expect(await askUdp(GOOD)).toBe(ANSWER);
    expect(listeners.counters.exceptions).toBe(0);
    expect(listeners.counters.udpQueries).toBeGreaterThan(1000);
  });

  test('a client of another make understands it', async () => {
    const resolve = dns2.UDPClient({ dns: '127.0.0.1', port, timeout: 5000 });
    const packet = await resolve('replica.cache.redis.internal', 'A');
    expect(packet.answers.map(({ address }) => address).sort()).toEqual(['10.0.0.2', '10.0.0.3']);
  });
});

describe('tcp', () => {
  test('pipelined, in one segment and byte by byte', async () => {
    const queries = ['cache.redis.internal. A', 'none.redis.internal. A', 'pending.redis.internal. A', 'example.org. A']
      .map((line) => frame(queryBytes(line)));
    const stream = Buffer.concat(queries);
    const whole = client();
    whole.socket.write(stream);
    await waitFor('four replies', () => whole.replies.length === 4);
    expect(whole.replies.map((reply) => reply.split(/[ ;]/)[0])).toEqual(['NOERROR', 'NXDOMAIN', 'SERVFAIL', 'REFUSED']);
    const dripping = client();
    for (const byte of stream) {
      dripping.socket.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await waitFor('four replies', () => dripping.replies.length === 4);
    expect(dripping.replies).toEqual(whole.replies);
    whole.socket.destroy();
    dripping.socket.destroy();
  });

  test('a peer that has ended its side still gets its answers, then the connection closes', async () => {
    const { socket, replies, closed } = client();
    socket.end(Buffer.concat([frame(GOOD), frame(GOOD)]));
    await waitFor('closed', closed);
    expect(replies).toEqual([ANSWER, ANSWER]);
    await waitFor('counted', () => listeners.counters.tcpOpen === 0);
    expect(listeners.counters.tcpTimeouts).toBe(0);
  });

  test.each([
    ['length 0', Buffer.from([0, 0])],
    ['shorter than a header', frame(Buffer.alloc(5))],
  ])('%s ends that connection only', async (_name, bytes) => {
    const other = client();
    const { socket, closed } = client();
    socket.write(bytes);
    await waitFor('closed', closed);
    other.socket.write(frame(GOOD));
    await waitFor('answered', () => other.replies.length === 1);
    other.socket.destroy();
  });

  test('a response gets silence, the connection stays', async () => {
    const { socket, replies } = client();
    const response = Buffer.from(GOOD);
    response[2] = 0x80;
    socket.write(Buffer.concat([frame(response), frame(GOOD)]));
    await waitFor('answered', () => replies.length === 1);
    expect(replies).toEqual([ANSWER]);
    socket.destroy();
  });

  test('an idle connection closes; dripping bytes renew nothing', async () => {
    const idle = client();
    const started = Date.now();
    const slow = client();
    const stream = frame(GOOD);
    let at = 0;
    const drip = setInterval(() => slow.socket.write(stream.subarray(at, ++at)), 50);
    await waitFor('both closed', () => idle.closed() && slow.closed());
    clearInterval(drip);
    expect(Date.now() - started).toBeLessThan(3000);
    expect(at).toBeLessThan(stream.length);
    expect(slow.replies).toEqual([]);
    expect(listeners.counters.tcpTimeouts).toBe(2);
  });

  test('caps: per address, then in all', async () => {
    const clients = Array.from({ length: 6 }, () => client());
    await waitFor('two refused', () => clients.filter(({ closed }) => closed()).length === 2);
    expect(listeners.counters.tcpOpen).toBe(4);
    expect(listeners.counters.tcpRefused).toBe(2);
    for (const { socket } of clients) socket.destroy();
    await waitFor('all gone', () => listeners.counters.tcpOpen === 0);
    const again = client();
    again.socket.write(frame(GOOD));
    await waitFor('answered', () => again.replies.length === 1);
    again.socket.destroy();
  });

  test('in all, over several addresses', async () => {
    const few = await start(['127.0.0.1:0'], { connections: 2, connectionsPerAddress: 4, idleMs: 5000, messageMs: 5000 });
    const clients = Array.from({ length: 3 }, () => client(few.addresses[0]?.port));
    await waitFor('one refused', () => few.counters.tcpRefused === 1 && clients.filter(({ closed }) => closed()).length === 1);
    for (const { socket } of clients) socket.destroy();
    await few.close();
  });

  test('a peer that asks without reading is not answered without end, and is dropped', async () => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', nothing);
    socket.pause();
    const bulk = Buffer.concat(Array.from({ length: 1000 }, () => frame(queryBytes('_redis._tcp.replica.cache.redis.internal. SRV'))));
    // More than the kernel's buffers hold both ways, so that our side must stop at some point.
    for (let round = 0; round < 300; round++) socket.write(bulk);
    await waitFor('dropped', () => listeners.counters.tcpTimeouts === 1, 20_000);
    expect(listeners.counters.tcpQueries).toBeLessThan(300_000);
    socket.destroy();
  });

  test('closing ends open connections', async () => {
    const { socket, replies, closed } = client();
    socket.write(frame(GOOD));
    await waitFor('answered', () => replies.length === 1);
    await listeners.close();
    await waitFor('closed', closed);
    listeners = await start(['127.0.0.1:0']);
  });
});

describe('ports', () => {
  test.each(['udp', 'tcp'] as const)('taken by %s', async (transport) => {
    const udp = createSocket('udp4');
    const tcp = createServer();
    if (transport === 'udp') await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve));
    else await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve));
    const { port: taken } = transport === 'udp' ? udp.address() : tcp.address() as AddressInfo;
    const text = `127.0.0.1:${taken}`;
    await expect(start(['127.0.0.1:0', text])).rejects.toMatchObject({
      code: 'PORT_IN_USE', message: `dns cannot listen on ${text}: address already in use`, exitCode: EXIT.portInUse,
    });
    udp.close();
    tcp.close();
    // Nothing was left open: the port works as soon as its owner is gone.
    const later = await start([text]);
    expect(later.addresses).toEqual([{ host: '127.0.0.1', port: taken }]);
    await later.close();
  });

  test('an address of another host', async () => {
    await expect(start(['192.0.2.1:0'])).rejects.toMatchObject({ code: 'LISTEN_FAILED',
      message: 'dns cannot listen on 192.0.2.1:0: address is not on this host' });
  });

  test('no address', async () => {
    await expect(start(['localhost:53'])).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
  });

  test('wildcards of both families share a port', async () => {
    const first = await start(['0.0.0.0:0']);
    const shared = first.addresses[0]?.port ?? 0;
    const second = await start([`[::]:${shared}`]);
    expect(await askUdp(GOOD, shared)).toBe(ANSWER);
    expect(await askUdp(GOOD, shared, '::1')).toBe(ANSWER);
    await Promise.all([first.close(), second.close()]);
  });
});
