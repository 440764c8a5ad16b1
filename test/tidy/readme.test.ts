/**
 * The README can be trusted: each command it shows is marked, and so run by test/integration/readme.test.ts; its settings
 * load without a fault or a warning, as do those of the examples; its links lead somewhere.
 */
import { describe, expect, test } from '@jest/globals';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load.js';
import { fencesOf } from './readme-commands.js';
import { ROOT, read } from './sources.js';

const readme = read('README.md');
const fences = fencesOf(readme);
const load = (text: string): unknown => loadConfig({ path: 'pointsman.yaml', env: {}, read: () => text });
const SOUND = { kind: 'ok', warnings: [] };

test('marks are read, and a mark that says nothing is none', () => {
  const fence = (mark: string): string => `${mark}\n\`\`\`sh\nls\n\`\`\`\n`;
  expect(fencesOf(fence('<!-- runs: {"exit": 0} -->'))).toEqual([{ language: 'sh', text: 'ls', line: 2, mark: { exit: 0 } }]);
  expect(fencesOf(fence('<!-- runs: {} -->'))[0]?.mark).toBeNull();
  expect(fencesOf(fence('text'))[0]?.mark).toBeNull();
});

test('every shell command is run by a test', () => {
  const commands = fences.filter((fence) => /^(sh|bash|shell|console)$/.test(fence.language));
  expect(commands.length).toBeGreaterThanOrEqual(2);
  expect(commands.filter((fence) => fence.mark === null).map((fence) => `line ${fence.line}: ${fence.text}`)).toEqual([]);
  expect(fences.filter((fence) => !/^(sh|yaml|conf|text)$/.test(fence.language)).map((fence) => fence.line)).toEqual([]);
});

test('every npm script it names exists', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = [...readme.matchAll(/npm (?:run )?(test|build|demo|lint|types|[a-z]+)`/g)].map((match) => match[1] ?? '');
  expect(named.length).toBeGreaterThan(2);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});

test('its links lead to files that are there', () => {
  const targets = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map((match) => match[1] ?? '');
  expect(targets.length).toBeGreaterThan(3);
  expect(targets.filter((target) => !existsSync(join(ROOT, target)))).toEqual([]);
});

describe('settings load without a fault or a warning', () => {
  test('a fault would be seen', () => {
    expect(load('dns: { zome: x. }')).toMatchObject({ kind: 'faults' });
  });

  test('README.md', () => {
    const blocks = fences.filter((fence) => fence.language === 'yaml');
    expect(blocks.length).toBeGreaterThan(0);
    for (const { text } of blocks) expect(load(text)).toMatchObject(SOUND);
  });

  const examples = readdirSync(join(ROOT, 'examples'), { recursive: true }).map(String);
  test.each(examples.filter((path) => /pointsman[^/]*\.yaml$/.test(path)))('examples/%s', (path) => {
    expect(load(read(join('examples', path)))).toMatchObject(SOUND);
  });
});
