/**
 * What the simulator's programs have in common: which seeds, which world, which schedule.
 */
import { readFileSync } from 'node:fs';
import type { WorldOptions } from './options.js';
import type { Schedule } from './schedule.js';
import { parseSchedule } from './schedule.js';
import { WORLDS, worldNamed } from './worlds.js';

export interface Chosen {
  readonly first: number;
  readonly last: number;
  readonly world: string;
  readonly options: (seed: number) => WorldOptions;
  readonly schedule: Schedule | null;
}

/** A wrong word on the command line. */
export class WrongArgument extends Error {
  override readonly name = 'WrongArgument';
}

export const SEED_OPTIONS = {
  seed: { type: 'string' },
  seeds: { type: 'string' },
  world: { type: 'string', default: 'drawn' },
  schedule: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

/** Reads them; throws {@link WrongArgument}. Without a seed one is taken from the clock. */
export function chooseSeeds(values: { readonly seed?: string; readonly seeds?: string; readonly world: string; readonly schedule?: string }): Chosen {
  const text = values.seeds ?? values.seed ?? String(Date.now() % 1_000_000_000);
  const range = /^(\d+)(?:\.\.(\d+))?$/.exec(text);
  if (range === null) throw new WrongArgument(`seeds ${text}: expected N or A..B`);
  const options = worldNamed(values.world);
  if (options === null) throw new WrongArgument(`no world ${values.world}; there are ${Object.keys(WORLDS).join(', ')}`);
  const [first, last] = [Number(range[1]), Number(range[2] ?? range[1])];
  if (values.schedule !== undefined && first !== last) throw new WrongArgument('a schedule belongs to one seed');
  return { first, last, world: values.world, options, schedule: values.schedule === undefined ? null : readSchedule(values.schedule) };
}

function readSchedule(path: string): Schedule {
  try {
    return parseSchedule(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new WrongArgument(`schedule ${path}: ${(error as Error).message}`);
  }
}

/** The words that choose this again. */
export function wordsFor(seed: number, { world }: Pick<Chosen, 'world'>, schedule: string | null): string {
  return `--seed ${seed}${world === 'drawn' ? '' : ` --world ${world}`}${schedule === null ? '' : ` --schedule ${schedule}`}`;
}

/** Runs a program's main; a wrong argument is exit status 64 with one line. */
export function runMain(usage: string, main: () => number | Promise<number>): void {
  const fail = (error: unknown): void => {
    const isWrong = error instanceof WrongArgument || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS') === true;
    if (!isWrong) throw error;
    process.stderr.write(`${(error as Error).message}\n${usage}`);
    process.exitCode = 64;
  };
  Promise.resolve().then(main).then((code) => (process.exitCode = code), fail);
}
