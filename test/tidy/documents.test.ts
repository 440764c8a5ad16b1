/**
 * Documents that must say what the code says: error codes, exit statuses, divergences, dependencies, the changelog; and
 * what no file may say: a path of somebody's machine, the host of a package registry.
 */
import { describe, expect, test } from '@jest/globals';
import { read, trackedFiles, typescriptBelow } from './sources.js';

function capture(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map((match) => match[1] ?? ''))].sort();
}

/** What stands on one side only, as sentences; empty when both sets agree. */
function difference(left: string, leftSet: readonly string[], right: string, rightSet: readonly string[]): string[] {
  return [
    ...leftSet.filter((each) => !rightSet.includes(each)).map((each) => `${each} is in ${left}, not in ${right}`),
    ...rightSet.filter((each) => !leftSet.includes(each)).map((each) => `${each} is in ${right}, not in ${left}`),
  ];
}

interface PackageJson {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}
const packageJson = JSON.parse(read('package.json')) as PackageJson;
const dependencies = { ...packageJson.dependencies, ...packageJson.devDependencies };

test('a difference is seen on either side', () => {
  expect(difference('a', ['x', 'y'], 'b', ['y', 'z'])).toEqual(['x is in a, not in b', 'z is in b, not in a']);
  expect(difference('a', ['x'], 'b', ['x'])).toEqual([]);
});

describe('docs/errors.md', () => {
  const source = read('src/errors.ts');
  const page = read('docs/errors.md');

  test('has a line for each ErrorCode, and no other', () => {
    const union = /export type ErrorCode =([\s\S]*?);/.exec(source)?.[1] ?? '';
    const codes = capture(union, /'([A-Z_]+)'/g);
    expect(codes.length).toBeGreaterThan(5);
    expect(difference('src/errors.ts', codes, 'docs/errors.md', capture(page, /^\| `([A-Z_]+)` \|/gm))).toEqual([]);
  });

  test('has a line for each exit status, and no other', () => {
    const record = /export const EXIT = \{([\s\S]*?)\} as const/.exec(source)?.[1] ?? '';
    const statuses = capture(record, /: (\d+),/g);
    expect(statuses.length).toBeGreaterThan(3);
    expect(difference('src/errors.ts', statuses, 'docs/errors.md', capture(page, /^\| (\d+) \|/gm))).toEqual([]);
  });
});

test('docs/divergences.md and the marks in src name the same divergences', () => {
  const marks = capture(typescriptBelow('src').map(read).join('\n'), /Divergence (D\d+)\b/g);
  expect(difference('src', marks, 'docs/divergences.md', capture(read('docs/divergences.md'), /^\| (D\d+) \|/gm))).toEqual([]);
});

test('docs/dependencies.md says of each dependency why it is there', () => {
  const rows = capture(read('docs/dependencies.md'), /^\| `([^`]+)` \|/gm);
  expect(difference('package.json', Object.keys(dependencies).sort(), 'docs/dependencies.md', rows)).toEqual([]);
});

test('package.json pins every version exactly', () => {
  expect(Object.entries(dependencies).filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
});

test('the changelog has an entry for this version, with its sections', () => {
  const entry = read('CHANGELOG.md').split(/^## /m).find((part) => part.startsWith(packageJson.version)) ?? '';
  expect(capture(entry, /^### (\w+)/gm)).toEqual(['Features', 'Fixes', 'Internals', 'Safety']);
});

describe('what no file may say', () => {
  const machinePath = /(?<![\w.~$}/-])\/(?:root|home|Users|workspace|work|builds)\/[\w.-]/;
  const registryHost = new RegExp(
    [['registry', 'npmjs', 'org'], ['registry', 'yarnpkg', 'com'], ['deb', 'debian', 'org'], ['pypi', 'org'], ['proxy', 'golang', 'org']]
      .map((labels) => labels.join('\\.'))
      .join('|'),
  );

  test('the patterns see what they are for', () => {
    expect(['', 'root', 'x'].join('/')).toMatch(machinePath);
    expect('see https://docs.example.com/work/x and $HOME/work/y').not.toMatch(machinePath);
    expect(['https://registry', 'npmjs', 'org/x'].join('.')).toMatch(registryHost);
  });

  test.each([['a path of a machine', machinePath], ['the host of a package registry', registryHost]])('%s', (_what, pattern) => {
    const files = trackedFiles();
    expect(files.length).toBeGreaterThan(10);
    const faults = files.flatMap((path) =>
      read(path).split('\n').flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim().slice(0, 100)}`] : [])));
    expect(faults).toEqual([]);
  });
});
