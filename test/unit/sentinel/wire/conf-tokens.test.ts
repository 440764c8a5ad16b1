import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { quoteAlways, quoteArg, splitArgs, trimLine } from '../../../../src/sentinel/wire/conf-tokens.js';

const LINES: readonly (readonly [line: string, args: readonly string[] | null])[] = [
  ['', []],
  [' \t\v\f\r\n ', []],
  ['a  b\tc', ['a', 'b', 'c']],
  ['"a b" \'c d\'', ['a b', 'c d']],
  ['"" \'\'', ['', '']],
  ['\v\fa\vb\f "c"\vd', ['a\vb\f', 'c', 'd']],
  ['pre"fix ed"', ['prefix ed']],
  [String.raw`"\n\r\t\a\b\\\"\q"`, ['\n\r\t\x07\b\\"q']],
  [String.raw`"\x41\x4a\xzz"`, ['AJxzz']],
  [String.raw`"gr\xc3\xbcn \xe2\x82\xac"`, ['grün €']],
  [String.raw`"\xff"`, ['\ufffd']],
  [String.raw`'it\'s \n'`, [String.raw`it's \n`]],
  [String.raw`back\slash C:\x41`, ['back\\slash', 'C:\\x41']],
  ['pass#word #x', ['pass#word', '#x']],
  ['a\u00a0b\u2028c', ['a\u00a0b\u2028c']],
  ['"a', null],
  ["'a", null],
  ['a"b', null],
  ['"a"b', null],
  ["'a'b", null],
  ['"a""b"', null],
  [String.raw`"a\"`, null],
  ['"\\', null],
];

const QUOTED: readonly (readonly [text: string, quoted: string])[] = [
  ['plain', 'plain'],
  ['s3cr#t$%&/()=?', 's3cr#t$%&/()=?'],
  ['back\\slash', 'back\\slash'],
  ['grün', 'grün'],
  ['', '""'],
  ['a b', '"a b"'],
  ['it\'s', '"it\'s"'],
  ['say "x\\y"', String.raw`"say \"x\\y\""`],
  ['\n\r\t\x07\b\x00\x7f', String.raw`"\n\r\t\a\b\x00\x7f"`],
];

describe('splitArgs', () => {
  test.each(LINES)('%j', (line, args) => {
    expect(splitArgs(line)).toEqual(args);
  });

  test('a line without quotes is split like one with them', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'ab\\# \t\n\r\v\f\u00a0') }), (line) => {
        expect([...(splitArgs(line) ?? []), '']).toEqual(splitArgs(`${line} ''`));
      }),
    );
  });
});

describe('quoteArg', () => {
  test.each(QUOTED)('%j', (text, quoted) => {
    expect(quoteArg(text)).toBe(quoted);
  });

  test('whatever the arguments, the line gives them back and is one line', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), (args) => {
        const line = args.map(quoteArg).join(' ');
        expect(line).not.toMatch(/[\r\n]/);
        expect(splitArgs(trimLine(line))).toEqual(args);
        expect(splitArgs(args.map(quoteAlways).join('\t'))).toEqual(args);
      }),
    );
  });
});
