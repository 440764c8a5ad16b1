import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { globMatch } from '../../../../src/sentinel/wire/glob.js';

/** Every verdict here was also asked of a real server. */
const ROWS: readonly (readonly [pattern: string, matches: readonly string[], others: readonly string[]])[] = [
  ['', [''], ['a']],
  ['*', ['a', 'abc'], ['']],
  ['a*', ['a', 'abc'], ['ba', '']],
  ['a**c', ['ac', 'abbc', 'acc'], ['a', 'abcd']],
  ['*b*', ['b', 'abc', 'ab'], ['ac']],
  ['a?c', ['abc', 'a?c'], ['ac', 'abbc']],
  ['a[b-d]e', ['abe', 'ade'], ['aae', 'ae', 'abbe']],
  ['[d-b]', ['b', 'c', 'd'], ['a', 'e']],
  ['[^a-c]x', ['dx', '^x'], ['ax', 'x']],
  ['[^]', ['a'], ['', 'ab']],
  ['[]', [], ['a', ']']],
  ['[a^]', ['a', '^'], ['b']],
  ['[ab', ['a', 'b'], ['c', 'ab']],
  ['[a-', ['a', '-'], ['b']],
  ['[a-]', ['a', ']'], ['b', '-']],
  [String.raw`[\]x]`, [']', 'x'], ['\\', 'a']],
  [String.raw`\*\?\[a`, ['*?[a'], ['xxxa', '\\*\\?\\[a']],
  ['a\\', ['a\\'], ['a']],
  ['*é?', ['aéb'], ['aé']],
  ['????', ['aéb', '😀'], ['aébc']],
  ['M*', ['Ma'], ['ma']],
];

describe('globMatch', () => {
  test.each(ROWS)('%j', (pattern, matches, others) => {
    for (const text of matches) expect([text, globMatch(pattern, text)]).toEqual([text, true]);
    for (const text of others) expect([text, globMatch(pattern, text)]).toEqual([text, false]);
  });

  test.each(ROWS.filter(([pattern]) => !pattern.includes('-')))('%j without case', (pattern, matches) => {
    const upper = pattern.replace(/[a-z]/g, (letter) => letter.toUpperCase());
    for (const text of matches) expect(globMatch(upper, text, { nocase: true })).toBe(true);
  });

  test('without case a range holds both cases', () => {
    expect(globMatch('[A-C]', 'b', { nocase: true })).toBe(true);
    expect(globMatch('[A-C]', 'b')).toBe(false);
  });

  test('agrees with the plain recursive definition', () => {
    const recursive = (pattern: string, text: string): boolean => {
      if (text === '') return /^\**$/.test(pattern);
      if (pattern === '') return false;
      if (pattern[0] === '*') return recursive(pattern.slice(1), text) || recursive(pattern, text.slice(1));
      return (pattern[0] === '?' || pattern[0] === text[0]) && recursive(pattern.slice(1), text.slice(1));
    };
    const word = (alphabet: string, minLength: number): fc.Arbitrary<string> =>
      fc.array(fc.constantFrom(...alphabet), { minLength, maxLength: 8 }).map((letters) => letters.join(''));
    fc.assert(fc.property(word('ab*?', 0), word('ab', 1), (pattern, text) => globMatch(pattern, text) === recursive(pattern, text)));
  });

  test('many stars do not blow up', () => {
    const started = performance.now();
    expect(globMatch(`${'a*'.repeat(50)}b`, 'a'.repeat(10_000))).toBe(false);
    expect(performance.now() - started).toBeLessThan(2000);
  });
});
