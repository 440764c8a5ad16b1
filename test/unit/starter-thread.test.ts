// Programs started by another thread: what is told of them, in which order, and that this thread goes on meanwhile.
import { expect, test } from '@jest/globals';
import { StarterThread, type Program } from '../../src/starter-thread.js';

const starter = new StarterThread();

/** Everything that is told, until the last of it. */
function run(program: Program, onStart: (kill: (signal: NodeJS.Signals) => void) => void = () => undefined): Promise<string[]> {
  return new Promise((resolve) => {
    const told: string[] = [];
    const process = starter.start(program, {
      started: (pid) => {
        told.push(pid > 0 ? 'started' : `started as ${pid}`);
        onStart((signal) => process.kill(signal));
      },
      failed: ({ code }) => resolve([...told, `failed ${code}`]),
      output: (chunk) => void told.push(`output ${Buffer.from(chunk).toString().trim()}`),
      exited: (exitCode, signal) => void told.push(`exited ${exitCode} ${signal}`),
      closed: () => resolve([...told, 'closed']),
    });
  });
}

const sh = (script: string, more: Partial<Program> = {}): Program => ({ path: '/bin/sh', args: ['-c', script], ...more });

test.each<[string, Program, string[]]>([
  ['both streams', sh('echo out; sleep 0.2; echo err >&2; exit 3', { output: 'both' }), ['started', 'output out', 'output err', 'exited 3 null', 'closed']],
  ['errors alone', sh('echo out; echo err >&2', { output: 'errors' }), ['started', 'output err', 'exited 0 null', 'closed']],
  ['neither', sh('echo out; echo err >&2'), ['started', 'exited 0 null', 'closed']],
  ['input, environment and own name', sh('read word; echo "$0 $word $EXTRA"', { argv0: 'named', input: 'said\n', env: { EXTRA: 'more' }, output: 'both' }),
    ['started', 'output named said more', 'exited 0 null', 'closed']],
  ['a missing program', { path: '/no/such/program', args: [] }, ['failed ENOENT']],
  ['an argument that no program can get', { path: '/bin/true', args: ['a\0b'] }, ['failed ERR_INVALID_ARG_VALUE']],
])('%s', async (_, program, expected) => expect((await run(program)).sort()).toEqual([...expected].sort()));

test('killed', async () => {
  expect(await run(sh('exec sleep 1000'), (kill) => kill('SIGKILL'))).toEqual(['started', 'exited null SIGKILL', 'closed']);
});

test('what is started first is started first, and none is lost', async () => {
  const order: number[] = [];
  await Promise.all(Array.from({ length: 30 }, (_, index) => run(sh('exit 0'), () => void order.push(index))));
  expect(order).toEqual(Array.from({ length: 30 }, (_, index) => index));
});

test('this thread does not wait for a start', async () => {
  const startMs = performance.now();
  const all = Array.from({ length: 20 }, () => run(sh('exit 0')));
  const heldUpMs = performance.now() - startMs;
  await Promise.all(all);
  // Twenty starts here would be most of the time that all of it takes.
  expect(heldUpMs).toBeLessThan((performance.now() - startMs) / 5);
});
