/**
 * C36: one datagram must not kill the listener. Rubbish by UDP and TCP against a whole agent, connections without end, case and foreign
 * zones; after each the next good query is answered, memory stays, and the sentinel beside it goes on.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { queryBytes, render } from '../../unit/dns/ask.js';
import { Lab, NAME, ask, converse, datagram, waitFor } from '../lab.js';
import type { LabSentinel } from '../lab.js';

const lab = new Lab();
let agent: LabSentinel;
let port = 0;
const good = queryBytes(`${NAME}. A id=7`);
const pause = (ms: number): Promise<void> => new Promise((done) => void setTimeout(done, ms));

beforeAll(async () => {
  const master = await lab.group(0);
  agent = await lab.agent(master);
  await lab.settled(master, 40_000);
  port = agent.dnsPort ?? 0;
}, 90_000);

afterAll(() => lab.stop());

/** Milliseconds until the next good query has its answer; throws without one. */
async function nextGood(): Promise<number> {
  const startMs = performance.now();
  const reply = await datagram(port, good, 2_000);
  if (reply === null || !render(reply).includes('127.0.0.')) throw new Error(`the good query got ${reply === null ? 'nothing' : render(reply)}\n${lab.logs()}`);
  return performance.now() - startMs;
}

const framed = (message: Buffer): Buffer => {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
};

async function goodByTcp(): Promise<string> {
  const stream = connect(port, '127.0.0.1');
  try {
    stream.write(framed(good));
    const [data] = (await once(stream, 'data', { signal: AbortSignal.timeout(2_000) })) as [Buffer];
    return render(data.subarray(2));
  } finally {
    stream.destroy();
  }
}

const residentMb = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent.child.pid}/status`, 'utf8'))?.[1]) / 1024;
const header = (counts: readonly number[]): Buffer => Buffer.from([0, 7, 0, 0, ...counts.flatMap((count) => [count >> 8, count & 255])]);

const LABEL_OF_60 = Buffer.concat([Buffer.from([59]), Buffer.alloc(59, 0x61)]);

const RUBBISH: readonly (readonly [string, Buffer])[] = [
  ['nothing', Buffer.alloc(0)],
  ...Array.from({ length: 11 }, (_, index) => [`${index + 1} bytes`, Buffer.alloc(index + 1, 0x20)] as const),
  ['12 zero bytes', Buffer.alloc(12)],
  ['a pointer to itself', Buffer.concat([header([1, 0, 0, 0]), Buffer.from('c00c00010001', 'hex')])],
  ['two pointers in a ring', Buffer.concat([header([1, 0, 0, 0]), Buffer.from('c00ec00c00010001', 'hex')])],
  ['a label of 64 bytes', Buffer.concat([header([1, 0, 0, 0]), Buffer.from([64]), Buffer.alloc(64, 0x61), Buffer.from('0000010001', 'hex')])],
  ['a name of 300 bytes', Buffer.concat([header([1, 0, 0, 0]), ...Array.from({ length: 5 }, () => LABEL_OF_60), Buffer.from('0000010001', 'hex')])],
  ['counts of 65535', Buffer.concat([header([65535, 65535, 65535, 65535]), Buffer.alloc(300)])],
  ['counts of 65535 in 19 bytes', Buffer.concat([header([1, 65535, 65535, 65535]), Buffer.from('016100' + '00010001', 'hex')])],
  ['half a query', good.subarray(0, good.length - 3)],
  ['a query with a tail', Buffer.concat([good, Buffer.alloc(40)])],
];

describe('C36', () => {
  test.each(RUBBISH)('%s, by UDP and TCP: a short answer or none, and the next good query has its own', async (_what, bytes) => {
    const reply = await datagram(port, bytes, 60);
    // Header, question and one OPT at most.
    if (reply !== null) expect(reply.length).toBeLessThanOrEqual(Math.max(12, bytes.length) + 11);
    await converse(port, framed(bytes), 100);
    expect(await nextGood()).toBeLessThan(1_000);
    expect(await goodByTcp()).toMatch(/^NOERROR aa; AN .* A 127\.0\.0\./);
  });

  test('100 000 random datagrams, twice: the second time takes no more memory', async () => {
    const flood = async (): Promise<void> => {
      const socket = createSocket('udp4').on('error', () => undefined);
      socket.on('message', () => undefined);
      for (let sent = 0; sent < 100_000; sent += 100) {
        for (let index = 0; index < 100; index++) socket.send(randomBytes(1 + ((sent + index) % 400)), port, '127.0.0.1');
        await pause(1);
      }
      socket.close();
      expect(await nextGood()).toBeLessThan(1_000);
    };
    await flood();
    const before = residentMb();
    await flood();
    expect(residentMb() - before).toBeLessThan(30);
    // One line per kind and ten seconds.
    const log = readFileSync(agent.child.logPath, 'utf8');
    expect(log.match(/dns message (?:malformed|ignored)/g)?.length).toBeLessThan(40);
  }, 120_000);

  test('askers that are gone when the answer comes (ICMP port unreachable)', async () => {
    for (let round = 0; round < 200; round++) {
      const socket = createSocket('udp4');
      await new Promise((sent) => socket.send(good, port, '127.0.0.1', sent));
      socket.close();
    }
    expect(await nextGood()).toBeLessThan(1_000);
  });

  test('2 000 connections that say nothing, from many addresses; some drip, some are half open', async () => {
    const streams: Socket[] = [];
    for (let index = 0; index < 2_000; index++) {
      const stream = connect({ port, host: '127.0.0.1', localAddress: `127.0.1.${1 + (index % 200)}` }).on('error', () => undefined);
      streams.push(stream);
      if (index % 100 === 99) await Promise.race([once(stream, 'connect').catch(() => undefined), pause(500)]);
    }
    // A length, then a byte now and then: the deadline is the message's.
    for (const stream of streams.slice(0, 50)) stream.write(Buffer.from([0, good.length, 0]));
    for (const stream of streams.slice(50, 100)) stream.end();
    expect(await nextGood()).toBeLessThan(2_000);
    expect((await ask(agent, 'PING')).kind).toBe('simple');
    for (const stream of streams) stream.destroy();
    await waitFor(() => `TCP answers again\n${lab.logs()}`, 15_000, async () => (await goodByTcp().catch(() => '')).startsWith('NOERROR'));
    expect(agent.child.status).toBeNull();
  }, 60_000);

  test('the case of the question comes back, owners too; foreign names are refused without AA and SOA', async () => {
    const [mixed, plain] = await Promise.all([datagram(port, queryBytes('MyMaStEr.ReDiS.tEsT. A id=7')), datagram(port, good)]);
    expect(mixed?.includes(Buffer.from('MyMaStEr'))).toBe(true);
    expect(render(mixed ?? Buffer.alloc(0)).toLowerCase()).toBe(render(plain ?? Buffer.alloc(0)).toLowerCase());
    for (const name of ['example.org.', 'redis.test.example.org.', 'xredis.test.']) {
      expect(render((await datagram(port, queryBytes(`${name} A edns=1232`))) ?? Buffer.alloc(0))).toBe('REFUSED; AR OPT 1232');
    }
  });
});
