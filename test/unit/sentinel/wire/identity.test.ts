/** As which server a sentinel presents itself, and what it lists as that one. */
import { describe, expect, test } from '@jest/globals';
import { listedCommands } from '../../../../src/sentinel/runtime/server-command-table.js';
import { DEFAULT_IDENTITY, bannerOf, isIn, parseIdentity, redisVersionOf } from '../../../../src/sentinel/wire/identity.js';
import { must } from '../../../../src/assert.js';
import { ask, emptyState } from '../core/commands/fixture.js';

const identity = (text: string) => must(parseIdentity(text), text);

describe('parseIdentity', () => {
  test.each(['redis-7.0.0', 'redis-7.0.15', 'redis-7.2.4', 'redis-10.0.0', 'valkey-8.0.1', 'valkey-9.10.11'])('%s', (text) => {
    const { product, version } = identity(text);
    expect(`${product}-${version}`).toBe(text);
  });

  test.each([
    '', 'redis', 'redis-', 'redis-7', 'redis-7.2', 'redis-7.2.4.1', 'redis-6.2.14', 'valkey-7.2.4', 'Redis-7.2.4', 'redis 7.2.4',
    'keydb-7.0.0', 'redis-7.2.x', 'redis-7.2.4\n', ' redis-7.2.4', 'redis--7.2.4', 'redis-1000.0.0',
  ])('%j is none', (text) => expect(parseIdentity(text)).toBeNull());
});

test.each([
  ['redis-7.0.15', '7.0.0', 'redis', true],
  ['redis-7.0.15', '7.0.15', 'redis', true],
  ['redis-7.0.15', '7.0.16', 'redis', false],
  ['redis-7.0.15', '7.2.0', 'redis', false],
  ['redis-7.10.0', '7.2.0', 'redis', true],
  ['redis-8.0.0', '8.0.0', 'valkey', false],
  ['valkey-8.0.1', '8.0.0', 'valkey', true],
  ['valkey-8.0.1', '9.0.0', 'valkey', false],
  ['valkey-8.0.1', '7.2.0', 'redis', true],
  ['valkey-8.0.1', '7.4.0', 'redis', false],
] as const)('%s has what came with %s of %s: %s', (text, since, origin, has) => {
  expect(isIn(identity(text), since, origin)).toBe(has);
});

test('Valkey keeps the version of the Redis it is compatible with', () => {
  expect([redisVersionOf(identity('valkey-8.0.1')), redisVersionOf(identity('redis-7.4.1'))]).toEqual(['7.2.4', '7.4.1']);
  expect([bannerOf(identity('valkey-8.0.1')), bannerOf(DEFAULT_IDENTITY)]).toEqual(['Version 8.0.1', 'Redis 7.2.4']);
});

test.each([
  ['redis-7.0.15', 72],
  ['redis-7.2.4', 73],
  ['redis-7.4.1', 73],
  ['valkey-8.0.1', 77],
])('as %s COMMAND LIST has %i names', (text, count) => {
  const names = listedCommands(identity(text)).map((command) => command.fullName);
  expect(names).toHaveLength(count);
  expect(names.includes('client|setinfo')).toBe(text !== 'redis-7.0.15');
  expect(names.includes('sentinel|primaries')).toBe(text.startsWith('valkey'));
});

describe('SENTINEL words', () => {
  const as = (text: string, line: string): string => {
    const state = emptyState();
    state.settings.identity = identity(text);
    return JSON.stringify(ask(state, line).reply);
  };

  test('HELP speaks of masters or of primaries', () => {
    expect(as('redis-7.2.4', 'SENTINEL HELP')).toMatch(/\+MASTERS.*\+MONITOR <master-name>/);
    expect(as('redis-7.2.4', 'SENTINEL HELP')).not.toMatch(/PRIMAR/i);
    expect(as('valkey-8.0.1', 'SENTINEL HELP')).toMatch(/\+MONITOR <primary-name>.*\+PRIMARIES/);
    expect(as('valkey-8.0.1', 'SENTINEL HELP')).not.toMatch(/master/i);
  });

  test('both spellings work as either', () => {
    for (const text of ['redis-7.0.15', 'valkey-8.0.1']) {
      for (const line of ['SENTINEL MASTERS', 'SENTINEL PRIMARIES']) expect(as(text, line)).toBe('[]');
    }
  });

  test.each([
    ['redis-7.0.15', 'GET <option> / SET <option> <value> are'],
    ['redis-7.2.4', '...]/ SET <param>'],
    ['redis-7.4.1', '...] / SET <param>'],
    ['valkey-8.0.1', '...] / SET <param>'],
  ])('the usage of CONFIG as %s', (text, part) => expect(as(text, 'SENTINEL CONFIG NOPE x')).toContain(part));
});
