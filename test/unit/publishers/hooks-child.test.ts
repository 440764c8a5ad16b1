// Real scripts as real processes: how a call ends, and that nothing of it is left.
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { openSync, closeSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { OUTPUT_CAP, isGroupAlive, runScript, whyNotRunnable } from '../../../src/publishers/hooks/child.js';
import type { ScriptCall, ScriptEnd } from '../../../src/publishers/hooks/child.js';
import { waitFor } from './routes.js';

let folder = '';
beforeEach(async () => { folder = await mkdtemp(join(tmpdir(), 'pointsman-child-')); });
afterEach(() => rm(folder, { recursive: true, force: true }));

async function script(body: string, head = '#!/bin/bash\n', mode = 0o755): Promise<string> {
  const path = join(folder, `s${Math.random().toString(36).slice(2)}`);
  await writeFile(path, head + body);
  await chmod(path, mode);
  return path;
}

async function run(body: string, more: Partial<ScriptCall> = {}): Promise<ScriptEnd & { pid: number }> {
  let pid = 0;
  const end = await runScript({ path: await script(body), args: [], limitMs: 10_000, onStart: (started) => { pid = started; }, ...more });
  return { ...end, pid };
}

const exists = (path: string): Promise<boolean> => readFile(path).then(() => true, () => false);

describe('the end of a script', () => {
  test.each([
    ['exit 0', { kind: 'exited', exitCode: 0 }], ['exit 1', { kind: 'exited', exitCode: 1 }], ['exit 77', { kind: 'exited', exitCode: 77 }],
    ['kill -SEGV $$', { kind: 'signalled', signal: 11 }], ['kill -KILL $$', { kind: 'signalled', signal: 9 }],
  ])('%s', async (body, expected) => expect(await run(body)).toMatchObject(expected));

  test('arguments and environment arrive as they are, no shell in between', async () => {
    const end = await run('printf "[%s]" "$@" "$EXTRA"; cat', { args: ['a b', '$HOME', '', '; exit 9', '*'], env: { EXTRA: 'x"y' } });
    expect(end).toMatchObject({ kind: 'exited', exitCode: 0, output: '[a b][$HOME][][; exit 9][*][x"y]' });
  });

  test('stdin is empty, stdout and stderr are kept up to the cap, a flood does not block', async () => {
    const end = await run('read line; echo "read=$? out"; echo err >&2; head -c 1000000 /dev/zero | tr "\\0" x; exit 3');
    expect(end).toMatchObject({ kind: 'exited', exitCode: 3 });
    expect(end.output).toContain('read=1 out');
    expect(end.output).toContain('err');
    expect(end.output.length).toBe(OUTPUT_CAP);
  });

  test('no descriptor of this process is inherited', async () => {
    const open = openSync(folder, 'r');
    const server = createServer().listen(0, '127.0.0.1');
    const end = await run('ls -l /proc/$$/fd/');
    closeSync(open);
    server.close();
    const targets = end.output.split('\n').flatMap((line) => line.split(' -> ').slice(1));
    expect(targets[0]).toBe('/dev/null');
    // Standard output and error; the listener would be a third.
    expect(targets.filter((target) => target.startsWith('socket:') || target.includes('eventpoll'))).toHaveLength(2);
    expect(targets).not.toContain(folder);
  });

  test('it leads a session of its own', async () => {
    const end = await run('cut -d" " -f5,6 /proc/$$/stat');
    expect(end.output).toBe(`${end.pid} ${end.pid}`);
  });
});

describe('the process group', () => {
  test('goes when the script ends, although a child holds the pipes', async () => {
    const startedAt = performance.now();
    const end = await run('sleep 1000 & echo $!; exit 0');
    expect(end).toMatchObject({ kind: 'exited', exitCode: 0 });
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    expect(isGroupAlive(end.pid)).toBe(false);
  });

  test('goes at the limit, whatever it ignores', async () => {
    const end = await run('trap "" TERM INT HUP; sleep 1000 & wait; sleep 1000', { limitMs: 200 });
    expect(end.kind).toBe('timedOut');
    expect(end.runtimeMs).toBeLessThan(1_500);
    expect(isGroupAlive(end.pid)).toBe(false);
  });

  test('gets TERM at an abort, and may clean up', async () => {
    const abort = new AbortController();
    const mark = join(folder, 'cleaned');
    const ready = join(folder, 'ready');
    const running = run(`trap 'echo x > ${mark}; exit 0' TERM; echo > ${ready}; while :; do sleep 0.02; done`, { signal: abort.signal });
    await waitFor(() => exists(ready), 'the script to run');
    abort.abort();
    const end = await running;
    expect(end.kind).toBe('aborted');
    expect(await exists(mark)).toBe(true);
    expect(isGroupAlive(end.pid)).toBe(false);
  });

  test('gets KILL 2 s later when it ignores TERM', async () => {
    const abort = new AbortController();
    const ready = join(folder, 'ready');
    const running = run(`trap "" TERM; echo > ${ready}; while :; do sleep 0.02; done`, { signal: abort.signal });
    await waitFor(() => exists(ready), 'the script to run');
    const abortedAt = performance.now();
    abort.abort();
    const end = await running;
    expect(end.kind).toBe('aborted');
    expect(performance.now() - abortedAt).toBeGreaterThan(1_900);
    expect(performance.now() - abortedAt).toBeLessThan(3_500);
    expect(isGroupAlive(end.pid)).toBe(false);
  });

  test('of zombies only is gone', async () => {
    // A child in a group of its own, whose parent turns into a program that never waits for it.
    const out = join(folder, 'pid');
    const running = run(`setsid true & echo $! > ${out}; exec sleep 1.5`);
    await waitFor(async () => /\d\n/.test(await readFile(out, 'utf8').catch(() => '')), 'the pid');
    const pid = Number(await readFile(out, 'utf8'));
    await waitFor(async () => / Z /.test(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ' Z ')), 'the zombie');
    expect(() => process.kill(-pid, 0)).not.toThrow();
    expect(isGroupAlive(pid)).toBe(false);
    await running;
  });
});

describe('a file that cannot run', () => {
  test.each([
    ['no magic', '', 'echo hi', 0o755, /neither #! nor an ELF/], ['empty', '', '', 0o755, /neither #! nor an ELF/],
    ['missing interpreter', '#!/no/such/interpreter\n', '', 0o755, /ENOENT/], ['not executable', '#!/bin/bash\n', '', 0o644, /EACCES/],
  ])('%s is refused', async (_, head, body, mode, reason) => {
    const end = await runScript({ path: await script(body, head, mode), args: [], limitMs: 1_000 });
    expect(end).toMatchObject({ kind: 'refused', reason: expect.stringMatching(reason) });
  });

  test('missing files and folders are refused', async () => {
    expect(await runScript({ path: join(folder, 'none'), args: [], limitMs: 1_000 })).toMatchObject({ kind: 'refused' });
    expect(await runScript({ path: folder, args: [], limitMs: 1_000 })).toMatchObject({ kind: 'refused' });
  });

  test('an ELF program is fine, and is not looked for in PATH', async () => {
    expect(whyNotRunnable('/bin/true')).toBeNull();
    expect(await runScript({ path: '/bin/true', args: [], limitMs: 5_000 })).toMatchObject({ kind: 'exited', exitCode: 0 });
    expect(await runScript({ path: 'true', args: [], limitMs: 5_000 })).toMatchObject({ kind: 'refused' });
  });

  test('an aborted signal starts nothing', async () => {
    const mark = join(folder, 'ran');
    expect(await run(`echo > ${mark}`, { signal: AbortSignal.abort() })).toMatchObject({ kind: 'aborted', pid: 0 });
    expect(await exists(mark)).toBe(false);
  });
});
