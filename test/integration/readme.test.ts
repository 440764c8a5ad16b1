/**
 * Runs every command of README.md as a reader would, on its own files: the ports and the address that the page shows are
 * moved to free ones of this machine, its folders to a temporary one, and `pointsman` is dist/main.js.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fencesOf, type Fence } from '../tidy/readme-commands.js';
import { ROOT, read } from '../tidy/sources.js';

const fences = fencesOf(read('README.md'));
const commands = fences.filter((fence) => fence.language === 'sh');
const POLL_MS = 100;
const STOP_LIMIT_MS = 15_000;
const pause = (durationMs: number): Promise<void> => new Promise((done) => void setTimeout(done, durationMs));

async function waitFor(what: string, limitMs: number, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`not in ${limitMs} ms: ${what}`);
    await pause(POLL_MS);
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((done) => {
    const server = createServer();
    server.once('error', () => done(false));
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
  });
}

/** An offset that moves all the README's ports to free ones, all of them below the range that the kernel gives away. */
async function freeOffset(ports: readonly number[]): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const offset = 100 + Math.floor(Math.random() * 6_000);
    if ((await Promise.all(ports.map((port) => isFree(port + offset)))).every(Boolean)) return offset;
  }
  throw new Error('no free ports found');
}

/** A shell command in a process group of its own, with what it has printed so far. */
class Run {
  readonly #child: ChildProcess;
  output = '';
  exit: number | null | undefined;

  constructor(script: string, cwd: string, env: Record<string, string>) {
    const options = { cwd, detached: true, env: { ...process.env, ...env } };
    this.#child = spawn('bash', ['-c', script], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    const note = (text: string): void => void (this.output += text);
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.setEncoding('utf8').on('data', note);
    this.#child.once('close', (code) => (this.exit = code));
  }

  prints(pattern: RegExp): boolean {
    return this.output.split('\n').some((line) => pattern.test(line));
  }

  /** Asks the whole group to stop; whatever is left after the limit is killed, and that is a failure. */
  async stop(): Promise<void> {
    this.#signal('SIGTERM');
    try {
      await waitFor(`the end after TERM of what printed\n${this.output}`, STOP_LIMIT_MS, () => this.exit !== undefined);
    } finally {
      this.#signal('SIGKILL');
    }
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-(this.#child.pid ?? 0), signal);
    } catch (error) {
      // Gone already: what was wanted.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

const SHOWN_PORTS = [6379, 6380, 6381, 26379, 26380, 26381, 5301, 5302, 5303, 5353, 9126, 9127, 9128];
let offset = 0;
let folder = '';
const runs: Run[] = [];

/** The page's text with this test's ports, address and folders. */
function here(text: string): string {
  return text
    .replace(/\b(6379|26379|5353|9126)\b/g, (port) => String(Number(port) + offset))
    .replace(/\b10(\\?)\.0\1\.0\1\.1\b/g, '127$1.0$1.0$1.1')
    .replaceAll(/\/(etc|var\/lib)\/(redis|pointsman)\//g, `${folder}/`);
}

/** Starts a command of the page; those that name no file of the page run in the clone. */
function start(fence: Fence): Run {
  const env = { PATH: `${folder}/bin:${process.env['PATH'] ?? ''}`, PORT_OFFSET: String(offset), POINTSMAN_ROUTE_ALLOW_LOOPBACK: 'true' };
  const run = new Run(here(fence.text), ROOT, env);
  runs.push(run);
  return run;
}

/** Files as the page shows them: a sentinel.conf without state, and pointsman.yaml. */
function writeFiles(): void {
  for (const [language, name] of [['conf', 'sentinel.conf'], ['yaml', 'pointsman.yaml']] as const) {
    writeFileSync(join(folder, name), here(fences.find((fence) => fence.language === language)?.text ?? ''));
  }
}

beforeAll(async () => {
  offset = await freeOffset(SHOWN_PORTS);
  folder = mkdtempSync(join(tmpdir(), 'pointsman-readme-'));
  mkdirSync(join(folder, 'bin'));
  symlinkSync(join(ROOT, 'dist/main.js'), join(folder, 'bin/pointsman'));
});

beforeEach(writeFiles);

afterEach(async () => {
  await Promise.all(runs.splice(0).filter((run) => run.exit === undefined).map((run) => run.stop()));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs one marked fence and judges it by its mark. */
async function follow(fence: Fence): Promise<void> {
  const { until, prints, exit, withinSeconds = 30 } = fence.mark ?? {};
  const limitMs = withinSeconds * 1000;
  if (until !== undefined) {
    const run = start(fence);
    const pattern = new RegExp(here(until));
    await waitFor(`${fence.text} printing ${until}`, limitMs, () => run.exit !== undefined || run.prints(pattern));
    if (!run.prints(pattern)) throw new Error(`${fence.text} ended with ${run.exit} and without ${until}:\n${run.output}`);
    await run.stop();
    return;
  }
  let last = start(fence);
  await waitFor(`the end of ${fence.text}`, limitMs, () => last.exit !== undefined);
  if (exit !== undefined) return expect({ exit: last.exit, output: last.output }).toEqual({ exit, output: last.output });
  const pattern = new RegExp(here(prints ?? ''));
  await waitFor(`${fence.text} printing ${prints}`, limitMs, async () => {
    if (last.prints(pattern)) return true;
    last = start(fence);
    await waitFor(`the end of ${fence.text}`, limitMs, () => last.exit !== undefined);
    return false;
  });
}

const title = (fence: Fence): [string, Fence] => [fence.text, fence];

describe('commands that stand alone', () => {
  test.each(commands.filter((fence) => fence.mark?.with === undefined).map(title))('%s', async (_text, fence) => {
    await follow(fence);
  }, 240_000);
});

function answersPing(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.setTimeout(1_000, () => socket.destroy());
    socket.once('data', (bytes) => {
      done(bytes.toString().startsWith('+PONG'));
      socket.destroy();
    });
    // `close` comes last in every case; only the first verdict counts.
    socket.once('error', () => done(false)).once('close', () => done(false));
  });
}

describe('commands beside the running agent of the page', () => {
  beforeEach(async () => {
    const redis = new Run(`exec redis-server --port ${6379 + offset} --bind 127.0.0.1 --save '' --dir ${folder}`, ROOT, {});
    runs.push(redis);
    await waitFor('redis-server', 30_000, () => answersPing(6379 + offset));
    const agent = commands.find((fence) => fence.text.startsWith('pointsman run '));
    if (!agent) throw new Error('README.md shows no pointsman run');
    start(agent);
    await waitFor('the agent', 60_000, () => answersPing(26379 + offset));
  }, 120_000);

  test.each(commands.filter((fence) => fence.mark?.with === 'agent').map(title))('%s', async (_text, fence) => {
    await follow(fence);
  }, 180_000);
});
