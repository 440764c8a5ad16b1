/** The listeners as `dig` sees them: BIND's client is an independent reader of every byte we send. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startDnsListeners } from '../../src/dns/listeners.js';
import type { DnsListeners } from '../../src/dns/listeners.js';
import { updateZone } from '../../src/dns/zone.js';
import { NOW, route, sampleZone } from '../unit/dns/ask.js';

const run = promisify(execFile);
const nothing = (): void => undefined;
const quiet = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const replicas = Array.from({ length: 40 }, (_, index) => `10.9.0.${index + 1}:6379`);
const zone = updateZone(sampleZone(), route('crowd', '10.9.1.1:6379', replicas), NOW);

let listeners: DnsListeners;
beforeAll(async () => {
  listeners = await startDnsListeners({ listen: ['127.0.0.1:0', '[::1]:0'], zone: () => zone, log: quiet });
});
afterAll(() => listeners.close());

interface Dug {
  readonly status: string;
  readonly flags: string;
  readonly edns: string | null;
  /** Records by section, blanks made one space. */
  readonly answer: readonly string[];
  readonly authority: readonly string[];
  readonly additional: readonly string[];
  readonly text: string;
}

async function dig(args: string, family: 4 | 6 = 4): Promise<Dug> {
  const address = listeners.addresses[family === 4 ? 0 : 1];
  const server = [`@${address?.host ?? ''}`, '-p', String(address?.port ?? 0)];
  const { stdout, stderr } = await run('dig', [...server, '+tries=1', '+time=5', '+nocookie', ...args.split(' ')], { timeout: 20_000 });
  expect(stderr).toBe('');
  // dig says so itself when a message does not add up.
  expect(stdout).not.toMatch(/WARNING: (?!recursion)|malformed|extra bytes|bad packet|timed out/i);
  const section = (name: string): string[] => {
    const body = new RegExp(`;; ${name} SECTION:\\n([\\s\\S]*?)\\n\\n`).exec(stdout)?.[1] ?? '';
    return body.split('\n').filter((line) => line !== '').map((line) => line.replace(/\s+/g, ' '));
  };
  return {
    status: /status: (\w+)/.exec(stdout)?.[1] ?? '',
    flags: /flags: ([\w ]*);/.exec(stdout)?.[1] ?? '',
    edns: /; EDNS: (.*)/.exec(stdout)?.[1] ?? null,
    answer: section('ANSWER'),
    authority: section('AUTHORITY'),
    additional: section('ADDITIONAL'),
    text: stdout,
  };
}

const SOA = `redis.internal. 1 IN SOA ns1.redis.internal. hostmaster.redis.internal. ${zone.serial} 30 5 86400 1`;

describe('dig', () => {
  test.each([
    ['A', 'cache.redis.internal A', 'NOERROR', 'qr aa rd', ['cache.redis.internal. 1 IN A 10.0.0.1'], [], []],
    ['AAAA NODATA', 'cache.redis.internal AAAA', 'NOERROR', 'qr aa rd', [], [SOA], []],
    ['AAAA', 'six.redis.internal AAAA +norec', 'NOERROR', 'qr aa', ['six.redis.internal. 1 IN AAAA 2001:db8::1'], [], []],
    ['SRV with Additional', '_redis._tcp.cache.redis.internal SRV', 'NOERROR', 'qr aa rd',
      ['_redis._tcp.cache.redis.internal. 1 IN SRV 0 1 6379 n-10-0-0-1.cache.redis.internal.'], [],
        ['n-10-0-0-1.cache.redis.internal. 1 IN A 10.0.0.1']],
    ['SRV target', 'n-10-0-0-1.cache.redis.internal A',
      'NOERROR', 'qr aa rd', ['n-10-0-0-1.cache.redis.internal. 1 IN A 10.0.0.1'], [], []],
    ['TXT', 'cache.redis.internal TXT', 'NOERROR', 'qr aa rd', ['cache.redis.internal. 1 IN TXT "epoch=7 phase=steady"'], [], []],
    ['SOA', 'redis.internal SOA', 'NOERROR', 'qr aa rd', [SOA], [], []],
    ['NS', 'redis.internal NS', 'NOERROR', 'qr aa rd',
      ['redis.internal. 1 IN NS ns1.redis.internal.', 'redis.internal. 1 IN NS ns.example.org.'], [],
      ['ns1.redis.internal. 1 IN A 10.0.0.53', 'ns1.redis.internal. 1 IN AAAA 2001:db8::53']],
    ['NXDOMAIN', 'nobody.redis.internal A', 'NXDOMAIN', 'qr aa rd', [], [SOA], []],
    ['empty non-terminal', '_tcp.cache.redis.internal A', 'NOERROR', 'qr aa rd', [], [SOA], []],
    ['not ready', 'x.pending.redis.internal A', 'SERVFAIL', 'qr rd', [], [], []],
    ['foreign', 'example.org A', 'REFUSED', 'qr rd', [], [], []],
    ['chaos', 'version.bind TXT CH', 'REFUSED', 'qr rd', [], [], []],
    ['notify', 'redis.internal SOA +opcode=notify', 'NOTIMP', 'qr rd', [], [], []],
    ['own spelling', 'CaChE.rEdIs.internal A', 'NOERROR', 'qr aa rd', ['CaChE.rEdIs.internal. 1 IN A 10.0.0.1'], [], []],
  ] as const)('%s', async (_name, args, status, flags, answer, authority, additional) => {
    for (const extra of ['', ' +tcp', ' +noedns', ' +bufsize=512']) {
      const dug = await dig(args + extra);
      expect(dug).toMatchObject({ status, flags, answer, authority, additional });
      expect(dug.edns === null).toBe(extra === ' +noedns');
    }
    expect(await dig(args, 6)).toMatchObject({ status, answer });
  });

  test('EDNS: our size, DO copied, version 1 refused, Not Ready explained', async () => {
    expect((await dig('cache.redis.internal A +bufsize=4096')).edns).toBe('version: 0, flags:; udp: 1232');
    expect((await dig('cache.redis.internal A +dnssec')).edns).toBe('version: 0, flags: do; udp: 1232');
    expect((await dig('example.org A +edns=1 +noednsneg')).status).toBe('BADVERS');
    expect((await dig('cache.redis.internal A +cookie=0102030405060708 +subnet=10.0.0.0/8 +nsid')).status).toBe('NOERROR');
    expect((await dig('pending.redis.internal A')).text).toMatch(/EDE: 14 \(Not Ready\)/);
  });

  test('too long for UDP: TC, and dig comes by TCP on its own', async () => {
    const cut = await dig('replica.crowd.redis.internal A +noedns +ignore');
    expect(cut).toMatchObject({ status: 'NOERROR', flags: 'qr aa tc rd', answer: [] });
    const whole = await dig('replica.crowd.redis.internal A +noedns');
    expect(whole.answer).toHaveLength(40);
    expect(whole.text).toMatch(/Truncated, retrying in TCP/);
    expect((await dig('replica.crowd.redis.internal A +bufsize=1232')).flags).toBe('qr aa rd');
  });

  test('transfers are refused', async () => {
    await expect(dig('redis.internal AXFR')).resolves.toMatchObject({ text: expect.stringMatching(/Transfer failed/) });
    expect((await dig('redis.internal AXFR +notcp')).text).toMatch(/NOTIMP|Transfer failed|not supported/);
  });

  test('a signed query: no key is shared', async () => {
    const address = listeners.addresses[0];
    const args = [`@127.0.0.1`, '-p', String(address?.port), '-y', 'hmac-sha256:key:c2VjcmV0', 'cache.redis.internal', 'A', '+tries=1'];
    const { stdout } = await run('dig', args, { timeout: 20_000 });
    expect(stdout).toMatch(/status: NOTAUTH/);
    expect(stdout).toMatch(/TSIG.* BADKEY/);
  });

  test('several queries over one connection', async () => {
    const address = listeners.addresses[0];
    const names = ['cache', 'six', 'alone', 'none', 'pending'].flatMap((name) => [`${name}.redis.internal`, 'A']);
    const before = listeners.counters.tcpAccepted;
    const { stdout } = await run('dig', ['@127.0.0.1', '-p', String(address?.port), '+tcp', '+keepopen', ...names], { timeout: 20_000 });
    expect([...stdout.matchAll(/status: (\w+)/g)].map(([, status]) => status))
      .toEqual(['NOERROR', 'NOERROR', 'NOERROR', 'NXDOMAIN', 'SERVFAIL']);
    expect(listeners.counters.tcpAccepted - before).toBe(1);
  });
});
