/** The state file on a real disk: old text or new text, never half; mode kept; failure said, not hidden. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigStore } from '../../../../src/sentinel/runtime/config-store.js';

const LINES = [
  { key: 'sentinel myid', text: `sentinel myid ${'a'.repeat(40)}` },
  { key: 'sentinel current-epoch', text: 'sentinel current-epoch 7' },
];

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'store-'));
  path = join(folder, 'sentinel.conf');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('ConfigStore', () => {
  test('merges the lines into the text that is there and leaves no temporary file', async () => {
    writeFileSync(path, '# my file\nport 26379\nsentinel current-epoch 3\n');
    await new ConfigStore(path).save(LINES);
    const text = readFileSync(path, 'utf8');
    expect(text.split('\n').slice(0, 3)).toEqual(['# my file', 'port 26379', 'sentinel current-epoch 7']);
    expect(text).toContain(`sentinel myid ${'a'.repeat(40)}`);
    expect(readdirSync(folder)).toEqual(['sentinel.conf']);
  });

  test('keeps the mode: a file with passwords stays unreadable for others', async () => {
    writeFileSync(path, 'requirepass secret\n');
    chmodSync(path, 0o640);
    await new ConfigStore(path).save(LINES);
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  test('an unchanged text is not written again', async () => {
    writeFileSync(path, '');
    const store = new ConfigStore(path);
    await store.save(LINES);
    const { ino } = statSync(path);
    await store.save(LINES);
    expect(statSync(path).ino).toBe(ino);
  });

  test('makes a missing file anew', async () => {
    await new ConfigStore(path).save(LINES);
    expect(readFileSync(path, 'utf8')).toContain('sentinel current-epoch 7');
  });

  test('a folder in its place is one clear error that names the path, and nothing is left behind', async () => {
    mkdirSync(path);
    await expect(new ConfigStore(path).save(LINES)).rejects.toMatchObject({ code: 'PERSIST_FAILED', message: expect.stringContaining(path) });
    expect(readdirSync(folder)).toEqual(['sentinel.conf']);
  });

  test('a missing folder is an error, not a crash', async () => {
    const gone = join(folder, 'gone', 'sentinel.conf');
    await expect(new ConfigStore(gone).save(LINES)).rejects.toMatchObject({ code: 'PERSIST_FAILED' });
    expect(existsSync(gone)).toBe(false);
  });

  test('says whether the file may be written at all', async () => {
    expect(await new ConfigStore(path).whyNotWritable()).toContain('no such file');
    writeFileSync(path, '');
    expect(await new ConfigStore(path).whyNotWritable()).toBeNull();
  });
});
