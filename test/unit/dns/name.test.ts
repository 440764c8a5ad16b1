import fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import { formatName, isBelow, knownName, labelFaults, labelFor, masterLabel, parseName } from '../../../src/dns/name.js';

describe('presentation format', () => {
  test.each([
    ['.', '00', '.'],
    ['redis.internal.', '05726564697308696e7465726e616c00', 'redis.internal.'],
    ['redis.internal', '05726564697308696e7465726e616c00', 'redis.internal.'],
    ['ReDiS.', '05526544695300', 'ReDiS.'],
    ['a\\.b.c', '03612e62016300', 'a\\.b.c.'],
    ['a\\046b', '03612e6200', 'a\\.b.'],
    ['\\000.x', '0100017800', '\\000.x.'],
    ['_redis._tcp', '065f7265646973045f74637000', '_redis._tcp.'],
    ['a'.repeat(63), `3f${'61'.repeat(63)}00`, `${'a'.repeat(63)}.`],
  ])('%s', (text, hex, printed) => {
    const name = parseName(text);
    expect(name?.toString('hex')).toBe(hex);
    expect(formatName(name as Buffer)).toBe(printed);
  });

  test.each(['', '..', '.a', 'a..b', 'a..', 'a b', 'ä.b', 'a\\', 'a\\25', 'a\\256',
    'a'.repeat(64), `${'a.'.repeat(127)}b.`, 'tab\t'])('%j is no name', (text) => {
    expect(parseName(text)).toBeNull();
  });

  test('what is printed is read back', () => {
    const label = fc.uint8Array({ minLength: 1, maxLength: 20 });
    fc.assert(fc.property(fc.array(label, { maxLength: 10 }), (labels) => {
      const name = Buffer.from([...labels.flatMap((bytes) => [bytes.length, ...bytes]), 0]);
      expect(parseName(formatName(name))).toEqual(name);
    }), { numRuns: 500, seed: 2 });
  });

  test.each([
    ['a.redis.internal.', 'redis.internal.', true], ['redis.internal.', 'redis.internal.', true], ['internal.', 'redis.internal.', false],
    ['xredis.internal.', 'redis.internal.', false], ['redis.internal.x.', 'redis.internal.', false], ['x.', '.', true],
  ])('%s below %s: %s', (name, origin, expected) => expect(isBelow(knownName(name), knownName(origin))).toBe(expected));
});

describe('labels of masters', () => {
  test.each([
    ['my_cache', 'my-cache'], ['my-cache', 'my-cache'], ['My.Cache', 'my-cache'], ['a.b', 'a-b'], ['1', '1'], ['M', 'm'],
    ['a'.repeat(63), 'a'.repeat(63)], ['a'.repeat(70), null], ['-x', null],
      ['x_', null], ['_x', null], ['', null], ['a b', null], ['ä', null], ['a:b', null],
  ])('%j -> %j', (master, label) => expect(masterLabel(master)).toBe(label));

  test('the operator\'s own label counts', () => {
    const overrides = new Map([['-x', 'Odd'], ['y', '-bad']]);
    expect([labelFor('-x', overrides), labelFor('y', overrides), labelFor('z', overrides)]).toEqual(['odd', null, 'z']);
  });

  const zone = { origin: 'redis.internal.',
    ns: [{ name: 'ns1.redis.internal.' }, { name: 'ns.eu.redis.internal.' }, { name: 'ns.example.org.' }] };
  test.each([
    ['two alike', ['my_cache', 'other', 'my-cache'], new Map(), [/master "my-cache" and master "my_cache" share the dns label "my-cache"/]],
    ['by case', ['Cache', 'cache'], new Map(), [/master "cache" and master "Cache"/]],
    ['a name server', ['ns1'], new Map(), [/master "ns1" and name server "ns1.redis.internal." share the dns label "ns1"/]],
    ['what stands above a name server', ['eu'], new Map(), [/master "eu" and name server "ns.eu.redis.internal."/]],
    ['a name server elsewhere', ['ns'], new Map(), []],
    ['no label', ['-x', 'a'.repeat(70)], new Map(), [/master "-x": "-x" makes no dns label/, /master "a{70}"/]],
    ['override mends a clash', ['a.b', 'a-b'], new Map([['a.b', 'ab']]), []],
    ['override makes a clash', ['a', 'b'], new Map([['a', 'b']]), [/master "b" and master "a" share/]],
    ['override is bad', ['a'], new Map([['a', 'x.y']]), [/master "a": "x.y" makes no dns label/]],
    ['said twice is once', ['a', 'a'], new Map(), []],
  ] as const)('%s', (_name, masters, overrides, expected) => {
    const faults = labelFaults(masters, overrides as ReadonlyMap<string, string>, zone);
    expect(faults).toHaveLength(expected.length);
    expected.forEach((pattern, index) => expect(faults[index]).toMatch(pattern));
  });

  test('a label with no room below it', () => {
    const origin = `${'o'.repeat(63)}.${'o'.repeat(63)}.${'o'.repeat(20)}.`;
    expect(labelFaults(['a'.repeat(63)], new Map(), { origin, ns: [] })).toEqual([expect.stringMatching(/longer than 255 bytes/)]);
    expect(labelFaults(['a'.repeat(60)], new Map(), { origin, ns: [] })).toEqual([]);
  });
});
