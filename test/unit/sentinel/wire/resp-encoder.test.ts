import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { RequestDecoder, RespReplyDecoder } from '../../../../src/sentinel/wire/resp-decoder.js';
import { encodeCommand, encodeReply } from '../../../../src/sentinel/wire/resp-encoder.js';
import { NULL, NULL_ARRAY, OK, array, bulk, bulkMap, error, integer, map, simple } from '../../../../src/sentinel/wire/resp-value.js';
import type { RespValue } from '../../../../src/sentinel/wire/resp-value.js';
import { chunksOf } from './feeding.js';

const ROWS: readonly (readonly [name: string, value: RespValue, resp2: string, resp3: string])[] = [
  ['simple', OK, '+OK\r\n', '+OK\r\n'],
  ['line breaks in one-line replies', error('ERR a\r\nb'), '-ERR a  b\r\n', '-ERR a  b\r\n'],
  ['line breaks in bulks', bulk('a\r\nb'), '$4\r\na\r\nb\r\n', '$4\r\na\r\nb\r\n'],
  ['bytes are counted', bulk('ä€😀'), '$9\r\nä€😀\r\n', '$9\r\nä€😀\r\n'],
  ['integer', integer(-7), ':-7\r\n', ':-7\r\n'],
  ['null', NULL, '$-1\r\n', '_\r\n'],
  ['null array', NULL_ARRAY, '*-1\r\n', '_\r\n'],
  ['map', bulkMap([['a', '1']]), '*2\r\n$1\r\na\r\n$1\r\n1\r\n', '%1\r\n$1\r\na\r\n$1\r\n1\r\n'],
  ['map in an array', array([map([[simple('k'), NULL]])]), '*1\r\n*2\r\n+k\r\n$-1\r\n', '*1\r\n%1\r\n+k\r\n_\r\n'],
  ['push', { kind: 'push', items: [bulk('message')] }, '*1\r\n$7\r\nmessage\r\n', '>1\r\n$7\r\nmessage\r\n'],
  ['set', { kind: 'set', items: [] }, '*0\r\n', '~0\r\n'],
];

const values: fc.Arbitrary<RespValue> = fc.letrec<{ value: RespValue }>((tie) => {
  const line = fc.string({ unit: 'binary' }).map((text) => text.replace(/[\r\n]/g, ''));
  const items = fc.array(tie('value'), { maxLength: 4 });
  return {
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      line.map(simple),
      line.map(error),
      fc.maxSafeInteger().map(integer),
      fc.string({ unit: 'binary' }).map(bulk),
      fc.constant(NULL),
      items.map(array),
      items.map((list): RespValue => ({ kind: 'set', items: list })),
      items.map((list): RespValue => ({ kind: 'push', items: list })),
      fc.array(fc.tuple(tie('value'), tie('value')), { maxLength: 3 }).map(map),
    ),
  };
}).value;

describe('encodeReply', () => {
  test.each(ROWS)('%s', (_name, value, resp2, resp3) => {
    expect(encodeReply(value, 2).toString()).toBe(resp2);
    expect(encodeReply(value, 3).toString()).toBe(resp3);
  });

  test('RESP3 comes back as it was, however it is cut', () => {
    fc.assert(
      fc.property(fc.array(values, { maxLength: 3 }), fc.nat(), (list, seed) => {
        const decoder = new RespReplyDecoder();
        const bytes = Buffer.concat(list.map((value) => encodeReply(value, 3)));
        expect(chunksOf(bytes, 'split at random', seed).flatMap((chunk) => decoder.push(chunk))).toEqual(list);
      }),
    );
  });

  test('refuses an integer that would lose digits', () => {
    expect(() => encodeReply(integer(2 ** 53), 3)).toThrow(/safe integer/);
  });
});

test('encodeCommand is read back by the request decoder', () => {
  expect(encodeCommand(['PING']).toString()).toBe('*1\r\n$4\r\nPING\r\n');
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 5 }), (argv) => {
      expect(new RequestDecoder().push(encodeCommand(argv))).toEqual([{ kind: 'command', argv }]);
    }),
  );
});
