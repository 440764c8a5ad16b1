/**
 * Command line of the simulator: lives through seeds, says what failed and how to see it again, shortens what failed.
 * Exit status 1 when a seed failed.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Chosen } from './arguments.js';
import { chooseSeeds, runMain, SEED_OPTIONS, wordsFor } from './arguments.js';
import { realCore } from './core.js';
import type { Life } from './run-seed.js';
import { reportOf, runSeed } from './run-seed.js';
import { deedText, scheduleText } from './schedule.js';
import { shrink } from './shrink.js';

const USAGE = `usage: npm run sim -- [--seed N | --seeds A..B] [--world NAME] [--schedule FILE] [--trace] [--keep-going]
       npm run sim -- --seed N --shrink [--limit SECONDS] [--write FILE]
`;
const DEFAULT_SHRINK_S = 300;

function main(): number {
  const { values } = parseArgs({
    options: {
      ...SEED_OPTIONS,
      trace: { type: 'boolean', default: false },
      'keep-going': { type: 'boolean', default: false },
      shrink: { type: 'boolean', default: false },
      limit: { type: 'string', default: String(DEFAULT_SHRINK_S) },
      write: { type: 'string' },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const chosen = chooseSeeds(values);
  if (values.shrink) return shrinkOne(chosen, Number(values.limit) * 1_000, values.write ?? `seed-${chosen.first}.schedule.json`);
  return runRange(chosen, values.trace, values['keep-going'], values.schedule ?? null);
}

function runRange(chosen: Chosen, isTraced: boolean, keepsGoing: boolean, scheduleFile: string | null): number {
  const { first, last } = chosen;
  const startMs = performance.now();
  const echo = isTraced ? (line: string): void => void process.stdout.write(`${line}\n`) : null;
  const failed: number[] = [];
  const sum = { failovers: 0, prepared: 0, done: 0, simulatedMs: 0 };
  for (let seed = first; seed <= last; seed++) {
    if (first === last) process.stdout.write(`seed ${seed}, options: ${JSON.stringify(chosen.options(seed))}\n`);
    const life = runSeed(seed, realCore, echo, chosen.options(seed), chosen.schedule);
    for (const field of ['failovers', 'prepared', 'done', 'simulatedMs'] as const) sum[field] += life[field];
    if (life.failure !== null) {
      failed.push(seed);
      process.stdout.write(keepsGoing ? `seed ${seed}: ${life.failure}\n` : `${reportOf(life, wordsFor(seed, chosen, scheduleFile))}\n`);
      if (!keepsGoing) return 1;
    }
    const lives = seed - first + 1;
    if (seed === last || lives % 20 === 0) {
      const perSecond = (lives / (performance.now() - startMs)) * 1000;
      const moves = `${sum.failovers} failovers, ${sum.prepared} prepared, ${sum.done} done`;
      const facts = `${moves}, ${Math.round(sum.simulatedMs / 60_000)} simulated minutes, ${perSecond.toFixed(1)} seeds/s`;
      process.stdout.write(`seeds ${first}..${seed}: ${failed.length} failed, ${facts}, trace ${life.hash}, ${life.steps} steps\n`);
    }
  }
  return failed.length === 0 ? 0 : 1;
}

function shrinkOne(chosen: Chosen, limitMs: number, file: string): number {
  const { first: seed } = chosen;
  const options = chosen.options(seed);
  const life = runSeed(seed, realCore, null, options, chosen.schedule);
  if (life.failure === null) {
    process.stdout.write(`seed ${seed} does not fail: nothing to shorten\n`);
    return 0;
  }
  process.stdout.write(`seed ${seed} fails with ${life.schedule.length} deeds: ${firstLine(life)}\n`);
  const { life: short, runs, isMinimal } = shrink(life, realCore, options, limitMs, (line) => process.stdout.write(`  ${line}\n`));
  writeFileSync(file, scheduleText(short.schedule));
  process.stdout.write([
    `${runs} runs; ${isMinimal ? 'no deed can be left out' : 'the time is up, more may go (--limit SECONDS)'}: ${firstLine(short)}`,
    ...short.schedule.map(deedText),
    `reproduce: npm run sim -- ${wordsFor(seed, chosen, file)} --trace`,
    `look:      npm run replay -- ${wordsFor(seed, chosen, file)}`, '',
  ].join('\n'));
  return 1;
}

function firstLine({ failure }: Life): string {
  return (failure ?? '').split('\n')[0] ?? '';
}

runMain(USAGE, main);
