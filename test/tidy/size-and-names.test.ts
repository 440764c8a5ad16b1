/**
 * Sizes and names: what keeps a file readable in one sitting. Files up to 500 lines, functions up to 70 (90 in tests), lines up to 170
 * characters, a head comment that says what the file decides, and no word that says nothing.
 */
import { describe, expect, test } from '@jest/globals';
import { declaredNames, functionsOf, read, trackedFiles, typescriptBelow } from './sources.js';

const FILE_LINES = 500;
const FUNCTION_LINES = 70;
const TEST_FUNCTION_LINES = 90;
const LINE_CHARACTERS = 170;
const EMPTY_WORDS = /^(utils?|helpers?|common|managers?)$/;

/** The words of a kebab-case path or a camelCase name, lower case. */
function wordsOf(name: string): string[] {
  return name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').split(/[^A-Za-z0-9]+/).map((word) => word.toLowerCase());
}

const saysNothing = (name: string): boolean => wordsOf(name).some((word) => EMPTY_WORDS.test(word));

function sizeFaults(path: string, text: string): string[] {
  const lines = text.replace(/\n$/, '').split('\n');
  return [
    ...(lines.length > FILE_LINES ? [`${path}: ${lines.length} lines`] : []),
    ...lines.flatMap((line, index) => (line.length > LINE_CHARACTERS ? [`${path}:${index + 1}: ${line.length} characters`] : [])),
    ...functionsOf(text)
      .filter((each) => each.lines > (path.startsWith('test/') ? TEST_FUNCTION_LINES : FUNCTION_LINES))
      .map((each) => `${path}:${each.line}: ${each.name} has ${each.lines} lines`),
  ];
}

const sources = ['src', 'test'].flatMap(typescriptBelow);

describe('the rules themselves', () => {
  const body = (lines: number): string => 'step();\n'.repeat(lines);

  test('see a long file, a long line and a long function', () => {
    expect(sizeFaults('a.ts', 'x;\n'.repeat(501))).toEqual(['a.ts: 501 lines']);
    expect(sizeFaults('a.ts', `${'x'.repeat(171)};`)).toEqual(['a.ts:1: 172 characters']);
    expect(sizeFaults('a.ts', `function f() {\n${body(69)}}`)).toEqual(['a.ts:1: f has 71 lines']);
    expect(sizeFaults('a.ts', `class C {\n m() {\n${body(69)}}\n}`)).toEqual(['a.ts:2: m has 71 lines']);
  });

  test('do not count blanks, comments or the chapters of a test file', () => {
    expect(sizeFaults('a.ts', `function f() {\n${body(68)}\n// why\n/* and\n why */\n}`)).toEqual([]);
    expect(sizeFaults('a.ts', `describe('x', () => {\n${body(100)}});`)).toEqual([]);
  });

  test('see words that say nothing, and only as whole words', () => {
    expect(['net-utils.ts', 'common/a.ts', 'LinkManager', 'dnsHelper', 'helpers'].map(saysNothing)).toEqual([true, true, true, true, true]);
    expect(['uncommon', 'utilisation.ts', 'commonalityOf'].map(saysNothing)).toEqual([false, false, false]);
  });
});

test('files, functions and lines are short', () => {
  expect(sources.flatMap((path) => sizeFaults(path, read(path)))).toEqual([]);
});

test('every file of src opens by saying what it decides', () => {
  expect(typescriptBelow('src').filter((path) => !/^(#!.*\n)?(\/\*\*|\/\/)/.test(read(path)))).toEqual([]);
});

test('no path and no declared name says nothing', () => {
  expect(trackedFiles().filter((path) => saysNothing(path))).toEqual([]);
  expect(sources.flatMap((path) => declaredNames(read(path)).filter(saysNothing).map((name) => `${path}: ${name}`))).toEqual([]);
});

test('source files are kebab-case', () => {
  expect(sources.filter((path) => !/^[a-z0-9/.-]+$/.test(path))).toEqual([]);
});
