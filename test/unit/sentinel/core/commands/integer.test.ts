import { describe, expect, test } from '@jest/globals';
import { strictInteger } from '../../../../../src/sentinel/core/commands/integer.js';

describe('strictInteger', () => {
  test.each([
    ['0', 0],
    ['7', 7],
    ['-7', -7],
    ['9007199254740991', 9_007_199_254_740_991],
    ['-9007199254740991', -9_007_199_254_740_991],
    ['9007199254740992', null],
    ['9223372036854775808', null],
    ['', null],
    ['-', null],
    ['-0', null],
    ['+7', null],
    ['07', null],
    [' 7', null],
    ['7\n', null],
    ['7.0', null],
    ['1e3', null],
    ['0x10', null],
    ['٣', null],
  ])('%j is %p', (text, value) => {
    expect(strictInteger(text)).toBe(value);
  });

  test('the bounds belong to the range', () => {
    expect(['0', '1', '5', '6'].map((text) => strictInteger(text, 1, 5))).toEqual([null, 1, 5, null]);
  });
});
