import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Children, findProgram } from '../../../src/demo/children.js';
import { EXIT, FatalError } from '../../../src/errors.js';

let folder = '';
let children: Children;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pointsman-children-'));
  children = new Children(folder);
});
afterEach(async () => {
  await children.endAll();
  rmSync(folder, { recursive: true });
});

describe('findProgram', () => {
  test('finds what is in the PATH', () => {
    expect(findProgram('sh', '')).toMatch(/\/sh$/);
  });

  test('says what to install, with the exit status for it', () => {
    let thrown: unknown;
    try {
      findProgram('redis-swerver', 'install Redis');
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(FatalError);
    const message = 'redis-swerver is not in the PATH: install Redis';
    expect(thrown).toMatchObject({ message, exitCode: EXIT.missingTool, code: 'SETUP_MISSING' });
  });
});

describe('Children', () => {
  test('keeps the last words of one that ended', async () => {
    const child = children.start('speaker', ['sh', '-c', 'echo out; echo err >&2; exit 3'], folder);
    await child.ended;
    expect([child.status, child.lastWords()]).toEqual(['status 3', 'out | err']);
    expect(() => child.assertRunning()).toThrow('speaker ended (status 3): out | err');
  });

  test('one that cannot be started has ended', async () => {
    const child = children.start('nobody', [join(folder, 'no-such-program')], folder);
    await child.ended;
    expect(child.status).not.toBeNull();
    expect(() => child.assertRunning()).toThrow('nobody ended');
  });

  test('ends those that run, stopped ones too', async () => {
    const [running, stopped] = ['running', 'stopped'].map((name) => children.start(name, ['sleep', '600'], folder));
    stopped?.kill('SIGSTOP');
    running?.assertRunning();
    await children.endAll();
    expect([running?.status, stopped?.status]).toEqual(['SIGTERM', 'SIGTERM']);
    expect(() => process.kill(running?.pid ?? 0, 0)).toThrow();
  });
});
