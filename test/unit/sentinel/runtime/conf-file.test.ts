/** sentinel.conf at the gate: what the disk adds to the text's own faults. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { overrideLines } from '../../../../src/cli/run.js';
import { formatConfFaults, readConfFile } from '../../../../src/sentinel/runtime/conf-file.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'conf-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function conf(text: string): string {
  const path = join(folder, 'sentinel.conf');
  writeFileSync(path, text);
  return path;
}

describe('readConfFile', () => {
  test('a good file has no faults', () => {
    const file = readConfFile(conf('port 26379\nsentinel monitor m1 10.0.0.1 6379 2\n'));
    expect(file.faults).toEqual([]);
    expect(file.conf.masters.map((master) => master.name)).toEqual(['m1']);
  });

  test('a missing file is one fault that names it', () => {
    const path = join(folder, 'none.conf');
    expect(formatConfFaults(readConfFile(path).faults)).toBe(`${path}: Fatal error, can't open config file '${path}': No such file or directory`);
  });

  test('all faults come at once, the text\'s and the disk\'s', () => {
    const path = conf('sentinel monitor m1 10.0.0.1 6379 0\nsentinel monitor m2 10.0.0.1 6380 2\nsentinel notification-script m2 /no/such/file\n');
    const lines = formatConfFaults(readConfFile(path).faults).split('\n');
    expect(lines).toEqual([
      `${path}:1 'sentinel monitor m1 10.0.0.1 6379 0': Quorum must be 1 or greater.`,
      `${path} 'sentinel notification-script m2 /no/such/file': Notification script seems non existing or non executable.`,
    ]);
  });

  test('the command line overrides the file', () => {
    const words = ['--port', '26380', '--sentinel', 'monitor', 'm1', '10.0.0.1', '6379', '2', '--sentinel down-after-milliseconds m1 500'];
    const overrides = overrideLines(words);
    expect(overrides).toEqual(['port 26380', 'sentinel monitor m1 10.0.0.1 6379 2', 'sentinel down-after-milliseconds m1 500']);
    const file = readConfFile(conf('port 26379\n'), overrides);
    expect(file.faults).toEqual([]);
    expect(file.conf.server.get('port')?.at(-1)).toEqual(['26380']);
    expect(file.conf.masters[0]).toMatchObject({ name: 'm1', downAfterMs: 500 });
  });

  test('relative paths start at dir', () => {
    writeFileSync(join(folder, 'hook.sh'), '#!/bin/sh\n', { mode: 0o755 });
    const file = readConfFile(conf(`dir ${folder}\nsentinel monitor m1 10.0.0.1 6379 2\nsentinel notification-script m1 ./hook.sh\n`));
    expect(file.directory).toBe(folder);
    expect(file.faults).toEqual([]);
  });
});
