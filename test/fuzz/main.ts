/**
 * Feeds every reader with rubbish for some minutes. Each batch runs in a process of bounded memory and must be back in time; what
 * fails is written to a file with the command that repeats it. Exit status 1 when something failed.
 */
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runMain, WrongArgument } from '../sim/arguments.js';
import { TARGETS } from './targets.js';
import type { Order, Outcome } from './worker.js';

const USAGE = 'usage: npm run fuzz -- [--minutes N] [--seed S] [--only NAME,…] [--batches N]\n';
const RUNS = 500;
/** Some 100 times what a batch takes. */
const BATCH_LIMIT_MS = 60_000;
const MEMORY_MB = 256;
const PROGRESS_MS = 5_000;

class Reader {
  #child: ChildProcess | null = null;

  /** The outcome of a batch; a process that hangs, or takes more memory than it may, has failed. */
  run(order: Order): Promise<Outcome> {
    const execArgv = ['--import', 'tsx', `--max-old-space-size=${MEMORY_MB}`];
    const child = (this.#child ??= fork(new URL('./worker.ts', import.meta.url), { execArgv }));
    return new Promise((done) => {
      const end = (outcome: Outcome, isLost: boolean): void => {
        clearTimeout(limit);
        child.removeAllListeners();
        if (isLost) this.#child = null;
        if (isLost) child.kill('SIGKILL');
        done(outcome);
      };
      const lost = (failure: string): void => end({ failure, input: '' }, true);
      const limit = setTimeout(() => lost(`no end in ${BATCH_LIMIT_MS / 1000} s`), BATCH_LIMIT_MS);
      child.once('message', (outcome) => end(outcome as Outcome, false));
      child.once('error', (error) => lost(error.message));
      child.once('exit', (code, signal) => lost(`its process ended with ${code ?? signal}, of ${MEMORY_MB} MB at most`));
      child.send(order);
    });
  }

  close(): void {
    this.#child?.kill('SIGKILL');
  }
}

function report(order: Order, { failure, input }: Outcome): void {
  const file = `fuzz-${order.name}-${order.seed}.json`;
  writeFileSync(file, `${input === '' ? 'null' : input}\n`);
  process.stdout.write([
    `${order.name} failed: ${failure}`,
    `input${input === '' ? ' unknown: the batch did not come back' : `: ${input.slice(0, 500)}`} (${file})`,
    `reproduce: npm run fuzz -- --only ${order.name} --seed ${order.seed} --batches 1`, '',
  ].join('\n'));
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '1' }, seed: { type: 'string', default: String(Date.now() % 1_000_000) }, only: { type: 'string' },
      batches: { type: 'string', default: 'Infinity' }, help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const [minutes, first, batches] = [Number(values.minutes), Number(values.seed), Number(values.batches)];
  if (!(minutes > 0) || !Number.isInteger(first) || !(batches > 0)) throw new WrongArgument('--minutes and --batches are positive numbers, --seed an integer');
  const known = TARGETS.map(({ name }) => name);
  const names = values.only?.split(',') ?? known;
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new WrongArgument(`no target ${unknown.join(', ')}; there are ${known.join(', ')}`);
  return fuzz(names, minutes * 60_000, first, batches);
}

async function fuzz(names: readonly string[], limitMs: number, first: number, batches: number): Promise<number> {
  const reader = new Reader();
  const startMs = performance.now();
  const inputs = new Map(names.map((name) => [name, 0]));
  const failed = new Set<string>();
  let toldMs = startMs;
  const tell = (): void => {
    const counts = [...inputs].map(([name, count]) => `${name} ${count}`).join(', ');
    process.stdout.write(`${Math.round((performance.now() - startMs) / 1000)} s, inputs: ${counts}; ${failed.size} failed\n`);
  };
  for (let batch = 0; batch < batches && performance.now() - startMs < limitMs; batch++) {
    for (const name of names) {
      if (failed.has(name)) continue;
      const order = { name, seed: first + batch, runs: RUNS };
      const outcome = await reader.run(order);
      inputs.set(name, (inputs.get(name) ?? 0) + RUNS);
      if (outcome.failure !== null) {
        failed.add(name);
        report(order, outcome);
      }
      if (performance.now() - toldMs > PROGRESS_MS) {
        toldMs = performance.now();
        tell();
      }
    }
  }
  tell();
  reader.close();
  return failed.size === 0 ? 0 : 1;
}

runMain(USAGE, main);
