/**
 * The scripts around the code, as far as they can be judged without installing or running anything: which archive the suite
 * is fetched from, and that wrong usage ends with the status for it.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ROOT } from '../../tidy/sources.js';

function node(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', timeout: 30_000, env: { ...process.env, NODE_OPTIONS: '' } });
}

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pointsman-scripts-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the source of source packages, made from the apt sources of a machine', () => {
  const DEB822 = [
    '# the archive', 'Types: deb', 'URIs: http://archive.example/debian', 'Suites: bookworm bookworm-updates', 'Components: main',
    'Signed-By: /usr/share/keyrings/a.gpg', '',
    'Types: deb', 'URIs: http://archive.example/security', 'Suites: bookworm-security', 'Components: main', '',
  ].join('\n');
  const KEY = ['Signed-By:', ' -----BEGIN PGP PUBLIC KEY BLOCK-----', ' .', ' abc', ' -----END PGP PUBLIC KEY BLOCK-----'].join('\n');

  function stanzaFrom(name: string, files: Readonly<Record<string, string>>): { name: string; text: string } | string {
    const apt = join(folder, name);
    mkdirSync(apt, { recursive: true });
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(apt, path)), { recursive: true });
      writeFileSync(join(apt, path), text);
    }
    const script = `const { sourceStanza } = await import('./scripts/upstream-suite.mjs');
      console.log(JSON.stringify(sourceStanza('bookworm', process.argv[1])));`;
    const { status, stdout, stderr } = node('--input-type=module', '-e', script, apt);
    return status === 0 ? (JSON.parse(stdout) as { name: string; text: string }) : stderr;
  }

  const deb822 = (types: string, suites: string, rest: string): string =>
    `Types: ${types}\nURIs: http://archive.example/debian\nSuites: ${suites}\nComponents: main\n${rest}\n`;

  test.each([
    {
      name: 'one line',
      files: { 'sources.list': '# deb http://old.example x main\ndeb http://archive.example/debian bookworm main contrib # ours\n' },
      expected: { name: 'source.list', text: 'deb-src http://archive.example/debian bookworm main contrib\n' },
    },
    {
      name: 'one line with options',
      files: { 'sources.list.d/a.list': 'deb [signed-by=/k.gpg arch=amd64] http://archive.example/debian bookworm main\n' },
      expected: { name: 'source.list', text: 'deb-src [signed-by=/k.gpg arch=amd64] http://archive.example/debian bookworm main\n' },
    },
    {
      name: 'deb822',
      files: { 'sources.list.d/debian.sources': DEB822 },
      expected: { name: 'source.sources', text: deb822('deb-src', 'bookworm', 'Signed-By: /usr/share/keyrings/a.gpg') },
    },
    {
      name: 'deb822 with its key inside',
      files: { 'sources.list.d/debian.sources': deb822('deb deb-src', 'bookworm-updates bookworm', KEY) },
      expected: { name: 'source.sources', text: deb822('deb-src', 'bookworm', KEY.replace('By:', 'By: ')) },
    },
    {
      name: 'files that apt ignores, another suite first',
      files: {
        'sources.list.d/a.sources.off': DEB822.replaceAll('archive', 'off'),
        'sources.list.d/b.list': 'deb http://other.example nodistro main\n',
        'sources.list.d/c.list': 'deb http://archive.example bookworm main\n',
      },
      expected: { name: 'source.list', text: 'deb-src http://archive.example bookworm main\n' },
    },
  ])('$name', ({ name, files, expected }) => {
    expect(stanzaFrom(name, files)).toEqual(expected);
  });

  test.each([
    ['nothing at all', {}],
    ['another release only', { 'sources.list': 'deb http://archive.example/debian trixie main\n' }],
    ['switched off', { 'sources.list.d/debian.sources': DEB822.replace('Types: deb\n', 'Types: deb\nEnabled: no\n') }],
  ])('refuses %s', (name, files) => {
    expect(stanzaFrom(name, files)).toContain('no apt source for bookworm');
  });
});

test.each([
  ['setup.mjs', ['--for', 'dinner']],
  ['setup.mjs', ['demo']],
  ['test.mjs', ['--only', 'nonsense']],
  ['test.mjs', ['--onyl', 'unit']],
  ['upstream-suite.mjs', []],
  ['upstream-suite.mjs', ['--sentinal', 'x']],
  ['upstream-suite.mjs', ['--sentinel', 'x', '--src', '/nowhere/at/all']],
])('%s %j is wrong usage: status 64 and a word why', (script, args) => {
  const { status, stderr } = node(join('scripts', script), ...args);
  expect({ status, said: stderr.trim().length > 0 }).toEqual({ status: 64, said: true });
});
