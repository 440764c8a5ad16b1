import { isIP } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { nodeLabel, parseIp, parseListenAddress, whyNotPublishable } from '../../../src/dns/ip.js';

test.each([
  ['10.0.0.1', '0a000001', 'n-10-0-0-1'],
  ['255.255.255.255', 'ffffffff', 'n-255-255-255-255'],
  ['::', '00'.repeat(16), 'n-0-0-0-0-0-0-0-0'],
  ['::1', `${'00'.repeat(15)}01`, 'n-0-0-0-0-0-0-0-1'],
  ['2001:DB8::1', '20010db8000000000000000000000001', 'n-2001-db8-0-0-0-0-0-1'],
  ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008', 'n-1-2-3-4-5-6-7-8'],
  ['1:2:3:4:5:6:7::', '00010002000300040005000600070000', 'n-1-2-3-4-5-6-7-0'],
  ['64:ff9b::192.0.2.1', '0064ff9b0000000000000000c0000201', 'n-64-ff9b-0-0-0-0-c000-201'],
  ['::ffff:10.0.0.1', '0a000001', 'n-10-0-0-1'],
  ['fe80::1%eth0', 'fe800000000000000000000000000001', 'n-fe80-0-0-0-0-0-0-1'],
])('%s', (text, hex, label) => {
  const ip = parseIp(text);
  expect(ip?.toString('hex')).toBe(hex);
  expect(nodeLabel(ip as Buffer)).toBe(label);
  expect(isIP(text)).not.toBe(0);
});

test.each(['', '1.2.3', '1.2.3.4.5', '256.0.0.1', '01.2.3.4', '1.2.3.4 ', 'redis-a', ':', ':::', '1::2::3', '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  '1:2:3:4:5:6:7:8::', '12345::', 'g::', '1.2.3.4::', '::1.2.3', ':1:2:3:4:5:6:7', '1:2:3:4:5:6:7:'])('%j is no ip', (text) => {
  expect(parseIp(text)).toBeNull();
  expect(isIP(text)).toBe(0);
});

describe('what clients may be told', () => {
  test.each([
    ['10.0.0.1', null, null],
    ['2001:db8::1', null, null],
    ['127.0.0.1', /loopback/, null],
    ['127.9.9.9', /loopback/, null],
    ['::1', /loopback/, null],
    ['::ffff:127.0.0.1', /loopback/, null],
    ['0.0.0.0', /unspecified/, null],
    ['::', /unspecified/, null],
    ['169.254.1.1', /link-local/, null],
    ['fe80::1%eth0', /link-local/, null],
    ['febf::1', /link-local/, null],
    ['fec0::1', null, null],
    ['redis-a.example', /host name/, /host name/],
  ] as const)('%s', (host, strict, allowed) => {
    for (const [allowLoopback, expected] of [[false, strict], [true, allowed]] as const) {
      const reason = whyNotPublishable(host, allowLoopback);
      if (expected === null) expect(reason).toBeNull();
      else expect(reason).toMatch(expected);
    }
  });
});

test.each([
  ['127.0.0.1:5301', { host: '127.0.0.1', port: 5301 }], ['[::]:5353', { host: '::', port: 5353 }],
    ['0.0.0.0:0', { host: '0.0.0.0', port: 0 }],
  ['localhost:53', null], ['127.0.0.1', null], [':53', null], ['127.0.0.1:70000', null],
])('listen %s', (text, expected) => expect(parseListenAddress(text)).toEqual(expected));
