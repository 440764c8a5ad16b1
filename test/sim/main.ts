/**
 * Command line of the simulator: `--seed N`, `--seeds A..B`, `--trace`. Exit status 1 when a seed failed.
 */
import { parseArgs } from 'node:util';
import { realCore } from './core.js';
import { drawOptions } from './options.js';
import { reportOf, runSeed } from './run-seed.js';

const USAGE = 'usage: npm run sim -- [--seed N | --seeds A..B] [--trace] [--keep-going]\n';

function main(): number {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string' },
      trace: { type: 'boolean' },
      'keep-going': { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  const range = /^(\d+)(?:\.\.(\d+))?$/.exec(values.seeds ?? values.seed ?? String(Date.now() % 1_000_000_000));
  if (values.help === true || range === null) {
    process.stdout.write(USAGE);
    return values.help === true ? 0 : 64;
  }
  const first = Number(range[1]);
  const last = Number(range[2] ?? range[1]);
  return runRange(first, last, values.trace === true, values['keep-going'] === true);
}

function runRange(first: number, last: number, isTraced: boolean, keepsGoing: boolean): number {
  const startMs = performance.now();
  const echo = isTraced ? (line: string): void => void process.stdout.write(`${line}\n`) : null;
  const failed: number[] = [];
  let failovers = 0;
  let prepared = 0;
  let done = 0;
  let simulatedMs = 0;
  for (let seed = first; seed <= last; seed++) {
    if (first === last) process.stdout.write(`seed ${seed}, options: ${JSON.stringify(drawOptions(seed))}\n`);
    const life = runSeed(seed, realCore, echo);
    failovers += life.failovers;
    prepared += life.prepared;
    done += life.done;
    simulatedMs += life.simulatedMs;
    if (life.failure !== null) {
      failed.push(seed);
      process.stdout.write(keepsGoing ? `seed ${seed}: ${life.failure}\n` : `${reportOf(life)}\n`);
      if (!keepsGoing) return 1;
    }
    const lives = seed - first + 1;
    const perSecond = (lives / (performance.now() - startMs)) * 1000;
    if (seed === last || lives % 20 === 0) {
      const moves = `${failovers} failovers, ${prepared} prepared, ${done} done`;
      const facts = `${moves}, ${Math.round(simulatedMs / 60_000)} simulated minutes, ${perSecond.toFixed(1)} seeds/s`;
      process.stdout.write(`seeds ${first}..${seed}: ${failed.length} failed, ${facts}, trace ${life.hash}, ${life.steps} steps\n`);
    }
  }
  return failed.length === 0 ? 0 : 1;
}

process.exitCode = main();
