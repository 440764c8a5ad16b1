import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { atoi, strtoll, strtoull } from '../../../../src/sentinel/wire/c-numbers.js';

const ROWS: readonly (readonly [text: string, int: number, long: number | null, unsigned: number | null])[] = [
  ['0', 0, 0, 0],
  ['6379', 6379, 6379, 6379],
  [' \t+12abc', 12, 12, 12],
  ['-5', -5, -5, null],
  ['-0', 0, 0, 0],
  ['', 0, 0, 0],
  ['abc', 0, 0, 0],
  ['+-1', 0, 0, 0],
  ['1e3', 1, 1, 1],
  ['0x10', 0, 0, 0],
  ['2147483648', -2147483648, 2147483648, 2147483648],
  ['4294967296', 0, 4294967296, 4294967296],
  ['9007199254740991', -1, 9007199254740991, 9007199254740991],
  ['9007199254740992', 0, null, null],
  ['18446744073709551615', -1, null, null],
  ['18446744073709551616', -1, null, null],
  ['-18446744073709551615', 0, null, 1],
  [`1${'0'.repeat(100_000)}`, -1, null, null],
];

test.each(ROWS)('%.30j', (text, int, long, unsigned) => {
  expect([atoi(text) + 0, strtoll(text), strtoull(text)]).toEqual([int, long, unsigned]);
});

test('digits alone are read as with a blank before them, which takes the long way', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 22 }), (digits) => {
      for (const read of [atoi, strtoll, strtoull]) expect(read(digits)).toBe(read(` ${digits}`));
    }),
  );
});
