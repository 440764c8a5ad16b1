import { describe, expect, test } from '@jest/globals';
import { encodeCommand, encodeReply } from '../../../../src/sentinel/wire/resp-encoder.js';
import { RequestDecoder, RespError, RespReplyDecoder, UNAUTHENTICATED_LIMITS } from '../../../../src/sentinel/wire/resp-decoder.js';
import type { Request, RequestLimits } from '../../../../src/sentinel/wire/resp-decoder.js';
import { NULL, NULL_ARRAY, array, bulk, error, integer, map, simple } from '../../../../src/sentinel/wire/resp-value.js';
import type { RespValue } from '../../../../src/sentinel/wire/resp-value.js';
import { FEEDINGS, chunksOf } from './feeding.js';

const REPLIES: readonly (readonly [name: string, bytes: string, values: readonly RespValue[]])[] = [
  ['simple, error, integer', '+OK\r\n-ERR no\r\n:-42\r\n', [simple('OK'), error('ERR no'), integer(-42)]],
  ['bulk with line breaks inside', '$6\r\na\r\nb\r\n\r\n', [bulk('a\r\nb\r\n')]],
  ['empty bulk and empty simple', '$0\r\n\r\n+\r\n', [bulk(''), simple('')]],
  ['bytes, not characters, are counted', '$6\r\nmä€\r\n', [bulk('mä€')]],
  ['the nulls', '$-1\r\n*-1\r\n_\r\n', [NULL, NULL_ARRAY, NULL]],
  ['nested arrays', '*3\r\n:1\r\n*2\r\n*0\r\n$1\r\nx\r\n_\r\n', [array([integer(1), array([array([]), bulk('x')]), NULL])]],
  ['map', '%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n', [map([[simple('a'), integer(1)], [simple('b'), array([integer(2)])]])]],
  ['empty map and set', '%0\r\n~0\r\n', [map([]), { kind: 'set', items: [] }]],
  ['set and push', '~1\r\n:1\r\n>2\r\n+message\r\n+x\r\n', [
    { kind: 'set', items: [integer(1)] },
    { kind: 'push', items: [simple('message'), simple('x')] },
  ]],
  ['double, boolean, big number', ',1.5\r\n,-inf\r\n,nan\r\n#t\r\n#f\r\n(12345678901234567890\r\n', [
    ...[bulk('1.5'), bulk('-inf'), bulk('nan'), integer(1), integer(0), bulk('12345678901234567890')],
  ]],
  ['an integer beyond 2^53 keeps its digits', ':9223372036854775807\r\n', [bulk('9223372036854775807')]],
  ['verbatim and blob error', '=7\r\ntxt:a\nb\r\n!7\r\nERR a\nb\r\n', [bulk('a\nb'), error('ERR a\nb')]],
  ['an attribute is dropped', '|1\r\n+ttl\r\n:3\r\n*2\r\n|1\r\n+k\r\n*1\r\n:1\r\n:5\r\n:6\r\n', [array([integer(5), integer(6)])]],
  ['an unfinished reply is not there yet', '+A\r\n*2\r\n:1\r\n$5\r\nabc', [simple('A')]],
];

const BAD_REPLIES: readonly (readonly [name: string, bytes: string, decoded: number, message: RegExp])[] = [
  ['unknown type', '+OK\r\nHTTP/1.1 400\r\n', 1, /unknown reply type "H"/],
  ['empty line', '\r\n', 0, /unknown reply type/],
  ['bare line feed', '+OK\n', 0, /CRLF/],
  ['bulk without its end', '$3\r\nabcd\r\n', 0, /bulk does not end/],
  ['negative length', '$-2\r\n', 0, /invalid bulk length/],
  ['length with garbage', '*1x\r\n', 0, /invalid array length/],
  ['streamed aggregate', '*?\r\n', 0, /invalid array length/],
  ['null map', '%-1\r\n', 0, /invalid map length/],
  ['integer with garbage', ':12a\r\n', 0, /invalid integer/],
  ['empty integer', ':\r\n', 0, /invalid integer/],
  ['third boolean', '#x\r\n', 0, /boolean/],
  ['null with content', '_x\r\n', 0, /null/],
  ['double with garbage', ',1.2.3\r\n', 0, /double/],
  ['verbatim without format', '=3\r\nabc\r\n', 0, /verbatim/],
  ['array that would not fit', '*99999999\r\n', 0, /too long/],
  ['bulk that would not fit', '$9999999999\r\n', 0, /too big/],
  ['nested without end', '*1\r\n'.repeat(40), 0, /too deep/],
];

describe('RespReplyDecoder', () => {
  describe.each(FEEDINGS)('%s', (feeding) => {
    test.each(REPLIES)('%s', (_name, text, expected) => {
      const decoder = new RespReplyDecoder();
      expect(chunksOf(Buffer.from(text), feeding).flatMap((chunk) => decoder.push(chunk))).toEqual(expected);
    });

    test.each(BAD_REPLIES)('refuses: %s', (_name, text, decoded, message) => {
      const decoder = new RespReplyDecoder();
      const values: RespValue[] = [];
      const feed = (): void => {
        for (const chunk of chunksOf(Buffer.from(text), feeding)) {
          try {
            values.push(...decoder.push(chunk));
          } catch (fault) {
            if (fault instanceof RespError) values.push(...fault.decoded);
            throw fault;
          }
        }
      };
      expect(feed).toThrow(RespError);
      expect(feed).toThrow(message);
      expect(values).toHaveLength(decoded);
      expect(() => decoder.push(Buffer.from('+OK\r\n'))).toThrow(message);
    });
  });

  test('bounds the sum of a reply, not only its parts, and starts anew with the next', () => {
    const decoder = new RespReplyDecoder({ maxReplyBytes: 39 });
    expect(decoder.push(Buffer.from('*2\r\n$6\r\naaaaaa\r\n$6\r\nbbbbbb\r\n'.repeat(3)))).toHaveLength(3);
    expect(() => decoder.push(Buffer.from('*3\r\n$6\r\naaaaaa\r\n$6\r\nbbbbbb\r\n$6\r\ncccccc\r\n'))).toThrow(/too big/);
    expect(() => new RespReplyDecoder({ maxReplyBytes: 40 }).push(Buffer.from(`+${'x'.repeat(40)}`))).toThrow(/too big/);
  });

  test('a large reply that arrives in small pieces costs linear time', () => {
    const decoder = new RespReplyDecoder();
    const bytes = encodeReply(array([bulk('x'.repeat(300_000)), bulk('y')]), 3);
    const started = performance.now();
    expect(chunksOf(bytes, 'byte by byte').flatMap((chunk) => decoder.push(chunk))).toHaveLength(1);
    // Quadratic copying of 300 kB would move 45 GB.
    expect(performance.now() - started).toBeLessThan(5000);
  });
});

const command = (...argv: string[]): Request => ({ kind: 'command', argv });
const refusal = (text: string): Request => ({ kind: 'protocolError', text: `Protocol error: ${text}` });

const REQUESTS: readonly (readonly [name: string, bytes: string, requests: readonly Request[], limits?: Partial<RequestLimits>])[] = [
  ['multibulk', '*2\r\n$4\r\nPING\r\n$2\r\nmé\r\n'.replace('$2', '$3'), [command('PING', 'mé')]],
  ['pipelined, both kinds', '*1\r\n$4\r\nPING\r\nPING x\r\n*1\r\n$4\r\nINFO\r\n', [command('PING'), command('PING', 'x'), command('INFO')]],
  ['inline with LF only', 'PING\nPING\n', [command('PING'), command('PING')]],
  ['inline quoting', 'SET "a b" \'c"d\' "\\x41\\n"\r\n', [command('SET', 'a b', 'c"d', 'A\n')]],
  ['empty lines and blanks', '\r\n\n  \r\nPING\r\n', [command('PING')]],
  ['requests for nothing', '*0\r\n*-1\r\n*-5\r\nPING\r\n', [command('PING')]],
  ['empty argument', '*2\r\n$4\r\nPING\r\n$0\r\n\r\n', [command('PING', '')]],
  ['line breaks in an argument', '*1\r\n$4\r\n\r\n\r\n\r\n', [command('\r\n\r\n')]],
  ['the two bytes behind an argument are not looked at', '*1\r\n$4\r\nPINGxxPING\r\n', [command('PING'), command('PING')]],
  ['incomplete', 'PING\r\n*2\r\n$4\r\nPING\r\n$1\r\n', [command('PING')]],
  ['count is no number', 'PING\r\n*x\r\n', [command('PING'), refusal('invalid multibulk length')]],
  ['count is empty', '*\r\n', [refusal('invalid multibulk length')]],
  ['count with a leading zero', '*01\r\n', [refusal('invalid multibulk length')]],
  ['count with a sign', '*+1\r\n', [refusal('invalid multibulk length')]],
  ['count beyond 1024 x 1024', '*1048577\r\n', [refusal('invalid multibulk length')]],
  ['no dollar', '*1\r\nx4\r\nPING\r\n', [refusal("expected '$', got 'x'")]],
  ['no dollar but a line end', '*1\r\n\r\n', [refusal("expected '$', got '\r'")]],
  ['null argument', '*1\r\n$-1\r\n', [refusal('invalid bulk length')]],
  ['length is empty', '*1\r\n$\r\n', [refusal('invalid bulk length')]],
  ['length beyond 512 MiB', '*1\r\n$536870913\r\n', [refusal('invalid bulk length')]],
  ['length beyond the limit', '*1\r\n$1048577\r\n', [refusal('invalid bulk length')]],
  ['sum beyond the limit', '*3\r\n$4\r\naaaa\r\n$4\r\nbbbb\r\n$4\r\ncccc\r\n', [refusal('invalid bulk length')], { maxRequestBytes: 30 }],
  ['unbalanced quotes', 'PING "a\r\nPING\r\n', [refusal('unbalanced quotes in request')]],
  ['text behind a closing quote', 'PING "x"y\r\n', [refusal('unbalanced quotes in request')]],
  ['long inline, no end', 'x'.repeat(70_000), [refusal('too big inline request')]],
  ['long inline, with its end', `${'x'.repeat(70_000)}\r\n`, [refusal('too big inline request')]],
  ['long count', `*${'1'.repeat(70_000)}`, [refusal('too big mbulk count string')]],
  ['long length', `*1\r\n$${'1'.repeat(70_000)}`, [refusal('too big bulk count string')]],
  ['stranger: too many', '*11\r\n', [refusal('unauthenticated multibulk length')], UNAUTHENTICATED_LIMITS],
  ['stranger: far too many', '*2147483647\r\n', [refusal('unauthenticated multibulk length')], UNAUTHENTICATED_LIMITS],
  ['stranger: beyond any limit', '*2147483648\r\n', [refusal('invalid multibulk length')], UNAUTHENTICATED_LIMITS],
  ['stranger: too long', '*10\r\n$16385\r\n', [refusal('unauthenticated bulk length')], UNAUTHENTICATED_LIMITS],
  ['stranger: AUTH fits', '*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n', [command('AUTH', 'pw')], UNAUTHENTICATED_LIMITS],
];

describe('RequestDecoder', () => {
  describe.each(FEEDINGS)('%s', (feeding) => {
    test.each(REQUESTS)('%s', (_name, text, expected, limits = {}) => {
      const decoder = new RequestDecoder(limits);
      expect(chunksOf(Buffer.from(text), feeding).flatMap((chunk) => decoder.push(chunk))).toEqual(expected);
      // Dead after a refusal, alive otherwise.
      if (expected.at(-1)?.kind === 'protocolError') expect(decoder.push(Buffer.from('PING\r\n'))).toEqual([]);
    });
  });

  test('limits that change between two pipelined requests count for the second', () => {
    const decoder = new RequestDecoder(UNAUTHENTICATED_LIMITS);
    const wide = ['SENTINEL', 'SET', 'm', ...Array.from({ length: 9 }, () => 'x')];
    decoder.append(Buffer.concat([encodeCommand(['AUTH', 'pw']), encodeCommand(wide)]));
    expect(decoder.next()).toEqual(command('AUTH', 'pw'));
    decoder.limits = { ...UNAUTHENTICATED_LIMITS, maxItems: 100 };
    expect(decoder.next()).toEqual(command(...wide));
    expect(decoder.next()).toBeNull();
  });
});
