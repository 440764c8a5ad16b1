/**
 * Steps through the trace of one seed: Enter for the next line, a number for so many, q to leave. Filters by time and by who
 * speaks or is spoken of. Without a terminal everything is printed.
 */
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { chooseSeeds, runMain, SEED_OPTIONS, WrongArgument } from './arguments.js';
import { realCore } from './core.js';
import { runSeed } from './run-seed.js';

const USAGE = 'usage: npm run replay -- --seed N [--world NAME] [--schedule FILE] [--from MS] [--to MS] [--who s2,a1]\n';

interface Filter {
  readonly fromMs: number;
  readonly toMs: number;
  /** Empty: everybody. */
  readonly who: readonly string[];
}

/** Whether a line of the trace passes. */
export function isWanted(line: string, { fromMs, toMs, who }: Filter): boolean {
  const atMs = Math.round(Number(line.slice(0, 9)) * 1000);
  if (atMs < fromMs || atMs > toMs) return false;
  return who.length === 0 || line.slice(9).split(/[^A-Za-z0-9]+/).some((word) => who.includes(word));
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { ...SEED_OPTIONS, from: { type: 'string', default: '0' }, to: { type: 'string', default: 'Infinity' }, who: { type: 'string', default: '' } },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const chosen = chooseSeeds(values);
  if (chosen.first !== chosen.last) throw new WrongArgument('one seed at a time');
  const filter: Filter = { fromMs: Number(values.from), toMs: Number(values.to), who: values.who.split(',').filter(Boolean) };
  if (Number.isNaN(filter.fromMs) || Number.isNaN(filter.toMs)) throw new WrongArgument('--from and --to are milliseconds');
  const lines: string[] = [];
  const keep = (line: string): void => void (isWanted(line, filter) ? lines.push(line) : undefined);
  const life = runSeed(chosen.first, realCore, keep, chosen.options(chosen.first), chosen.schedule);
  await show([`seed ${life.seed}, ${life.schedule.length} deeds, options: ${JSON.stringify(life.options)}`, ...lines]);
  process.stdout.write(life.failure === null ? 'all is well\n' : `failed: ${life.failure}\n`);
  return life.failure === null ? 0 : 1;
}

async function show(lines: readonly string[]): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    process.stdout.write(lines.map((line) => `${line}\n`).join(''));
    return;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  for (let at = 0; at < lines.length; ) {
    const answer = await terminal.question(`${lines[at++]}\n`);
    if (answer.trim() === 'q') break;
    for (let more = Number(answer) - 1; more > 0 && at < lines.length; more--) process.stdout.write(`${lines[at++]}\n`);
  }
  terminal.close();
}

runMain(USAGE, main);
