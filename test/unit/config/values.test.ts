// Readers of single values: one table of good and bad ones per kind.
import { describe, expect, test } from '@jest/globals';
import * as values from '../../../src/config/values.js';
import type { Reader } from '../../../src/config/values.js';

type Row = readonly [reader: string, raw: unknown, expected: unknown];
const readers: Readonly<Record<string, Reader<unknown>>> = {
  ...values, port: values.integer(1, 65535), mode: values.oneOf('catalog', 'agent'),
} as unknown as Record<string, Reader<unknown>>;

const good: readonly Row[] = [
  ['duration', '250ms', 250], ['duration', '1s', 1000], ['duration', '2m', 120_000], ['duration', '1h', 3_600_000], ['duration', 0, 0],
  ['duration', '0s', 0], ['wholeSeconds', '2m', 120], ['wholeSeconds', '1000ms', 1], ['positiveDuration', '1ms', 1],
  ['size', '512kb', 524_288], ['size', '1GB', 1_073_741_824], ['flag', false, false], ['port', 65535, 65535], ['mode', 'agent', 'agent'],
  ['listenAddress', '0.0.0.0:5353', { host: '0.0.0.0', port: 5353 }], ['listenAddress', '[::]:53', { host: '::', port: 53 }],
  ['listenAddress', 'localhost:0', { host: 'localhost', port: 0 }],
  ['nodeAddress', 'redis-a.example:6379', { host: 'redis-a.example', port: 6379 }], ['nodeAddressText', '[::1]:6379', '[::1]:6379'],
  ['ip', 'fe80::1', 'fe80::1'], ['ipPrefix', '10.0.0.100', '10.0.0.100/32'], ['ipPrefix', '2001:db8::/64', '2001:db8::/64'],
  ['domain', 'NS1.Redis.Internal', 'ns1.redis.internal.'], ['zone', 'redis.internal.', 'redis.internal.'],
  ['zone', 'notlocal', 'notlocal.'],
  ['label', 'Cache-1', 'cache-1'], ['httpUrl', '127.0.0.1:8500', 'http://127.0.0.1:8500'],
  ['httpUrl', 'https://[::1]:8501/', 'https://[::1]:8501'],
];

const bad: readonly Row[] = [
  ['duration', '1 sec', 'bad duration "1 sec", expected e.g. 250ms, 1s, 2m'], ['duration', 5, 'bad duration 5'],
  ['duration', '-1s', 'bad duration'],
  ['duration', '1.5s', 'bad duration'], ['duration', '', 'bad duration ""'], ['duration', null, 'bad duration nothing'],
  ['duration', '1S', 'bad duration'],
  ['duration', '9999h', 'longer than'], ['duration', '999999999999h', 'longer than'], ['wholeSeconds', '1500ms', 'whole seconds'],
  ['positiveDuration', '0s', 'more than 0'], ['size', '10', 'bad size'], ['size', '0kb', 'bad size'], ['size', 10, 'bad size 10'],
  ['flag', 'yes', 'bad value "yes", expected true or false'], ['port', 65536, 'from 1 to 65535'], ['port', 1.5, 'bad number 1.5'],
  ['port', '1', 'bad number "1"'],
  ['mode', 'Catalog', 'expected one of catalog, agent'], ['mode', null, 'bad value nothing'], ['mode', [], 'bad value a list'],
  ['listenAddress', '::1:53', 'bad address'], ['listenAddress', ':53', 'bad address'], ['listenAddress', '1.2.3.4:70000', 'bad address'],
  ['listenAddress', 'example.org:53', 'bad address'], ['listenAddress', '[1.2.3.4]:53', 'bad address'],
  ['listenAddress', 53, 'bad address 53'],
  ['nodeAddress', '10.0.0.256:6379', 'neither an ip nor a host name'], ['nodeAddress', 'a:0', 'bad address'],
  ['nodeAddress', '-a:1', 'neither'],
  ['ip', '1.2.3', 'bad ip'], ['ipPrefix', '10.0.0.0/33', 'bad address'], ['ipPrefix', '10.0.0.0/8/8', 'bad address'],
  ['ipPrefix', '10.0.0.0/-1', 'bad address'],
  ['domain', 'a..b', 'bad name'], ['domain', '.', 'bad name'], ['domain', `${'x'.repeat(64)}.y`, 'bad name'],
  ['domain', 'a b', 'bad name'], ['domain', 'ü.de', 'bad name'],
  ['domain', `${'abcdefg.'.repeat(32)}x`, 'bad name'],
  ['zone', 'foo.LOCAL', '.local belongs'], ['zone', 'local.', '.local belongs'], ['zone', '10.0.0.1', 'last label is a number'],
  ['label', 'a.b', 'bad label'], ['label', '-a', 'bad label'], ['path', 'a\0b', 'bad path'], ['text', 'a\nb', 'bad value'],
  ['absolutePath', 'page', 'absolute'],
  ['httpUrl', 'ftp://x', 'bad url'], ['httpUrl', 'http://x/path', 'bad url'], ['httpUrl', '', 'bad url'],
];

describe('values of pointsman.yaml', () => {
  test.each(good)('%s reads %j', (reader, raw, expected) => {
    expect(readers[reader]?.(raw)).toEqual({ kind: 'value', value: expected });
  });

  test.each(bad)('%s refuses %j', (reader, raw, message) => {
    expect(readers[reader]?.(raw)).toEqual({ kind: 'misfit', message: expect.stringContaining(message as string) });
  });

  test('a password in a url is refused and not repeated', () => {
    const read = values.httpUrl('http://root:hunter2@consul:8500');
    expect(read.kind).toBe('misfit');
    expect(JSON.stringify(read)).not.toContain('hunter2');
  });
});
