/**
 * The checkers can fail: breaks one rule after another in a copy of src and lets the simulator look for it. Each `*.patch` beside
 * this file says in its first line which rule, and in the second in which world to look.
 *
 * A seed counts only if the sources without the mutant are clean at it. Exit status 1 when a mutant was not found, or its patch does not apply any more.
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runMain, WrongArgument } from '../arguments.js';

const USAGE = 'usage: npm run mutants -- [NAME…] [--seeds N] [--first N] [--world NAME] [--jobs N]\n';
const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = join(HERE, '../../..');

export interface Mutant {
  readonly name: string;
  readonly about: string;
  readonly world: string;
  readonly path: string;
}

/** All mutants, by name. */
export function mutants(): Mutant[] {
  return readdirSync(HERE).filter((file) => file.endsWith('.patch')).sort().map((file) => {
    const path = join(HERE, file);
    const [about = '', world = ''] = readFileSync(path, 'utf8').split('\n');
    return { name: file.slice(0, -'.patch'.length), about, world: world.replace('world: ', ''), path };
  });
}

/** A copy of the sources with the mutant in it; null when the patch does not apply. */
function mutatedCopy({ path }: Pick<Mutant, 'path'>): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-mutant-'));
  for (const each of ['src', 'test/sim', 'package.json', 'tsconfig.json']) cpSync(join(ROOT, each), join(folder, each), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const { status } = spawnSync('git', ['apply', path], { cwd: folder, env: { ...process.env, GIT_CEILING_DIRECTORIES: tmpdir() } });
  if (status === 0) return folder;
  rmSync(folder, { recursive: true });
  return null;
}

interface Found {
  readonly mutant: Mutant;
  /** The checker and what it said; null: nothing in `seeds` seeds. */
  readonly failure: string | null;
  readonly seed: string;
  readonly seconds: number;
}

/** Lives through seeds with the sources in `folder`; what the simulator printed, and its exit status. */
async function live(folder: string, range: string, world: string): Promise<{ readonly output: string; readonly code: number | null }> {
  const argv = ['--import', 'tsx', 'test/sim/main.ts', '--seeds', range, '--world', world];
  const child = spawn(process.execPath, argv, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((done) => void child.once('close', done));
  return { output, code };
}

async function look(mutant: Mutant, first: number, seeds: number): Promise<Found> {
  const startMs = performance.now();
  const found = (failure: string | null, seed: string): Found => ({ mutant, failure, seed, seconds: Math.round((performance.now() - startMs) / 1000) });
  const folder = mutatedCopy(mutant);
  if (folder === null) return found(null, 'does not apply');
  try {
    const last = first + seeds - 1;
    for (let next = first; next <= last; next++) {
      const { output, code } = await live(folder, `${next}..${last}`, mutant.world);
      const [, seed = '', failure = ''] = /^seed (\d+) failed: (.*)$/m.exec(output) ?? [];
      if (seed === '') return found(null, code === 0 ? `not in ${seeds}` : `ended with ${code}`);
      const sound = await live(ROOT, `${seed}..${seed}`, mutant.world);
      if (sound.code === 0) return found(failure, seed);
      process.stdout.write(`seed ${seed} of world ${mutant.world} fails without ${mutant.name}, too\n`);
      next = Number(seed);
    }
    return found(null, `not in ${seeds}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seeds: { type: 'string', default: '2000' }, first: { type: 'string', default: '1' }, world: { type: 'string' },
      jobs: { type: 'string', default: '1' }, help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const all = mutants();
  const unknown = positionals.filter((name) => !all.some((mutant) => mutant.name === name));
  if (unknown.length > 0) throw new WrongArgument(`no mutant ${unknown.join(', ')}`);
  const chosen = positionals.length === 0 ? all : all.filter(({ name }) => positionals.includes(name));
  const [seeds, first, jobs] = [Number(values.seeds), Number(values.first), Number(values.jobs)];
  if (![seeds, first, jobs].every((each) => Number.isInteger(each) && each > 0)) throw new WrongArgument('--seeds, --first and --jobs are positive integers');
  let missed = 0;
  const waiting = chosen.map((mutant) => ({ ...mutant, world: values.world ?? mutant.world }));
  process.stdout.write(`${'mutant'.padEnd(36)} ${'world'.padEnd(12)} ${'seed'.padStart(14)} ${'s'.padStart(5)}  found by\n`);
  const work = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const { failure, seed, seconds } = await look(mutant, first, seeds);
      if (failure === null) missed++;
      const by = failure?.slice(0, 120) ?? `NOTHING (${mutant.about})`;
      process.stdout.write(`${mutant.name.padEnd(36)} ${mutant.world.padEnd(12)} ${seed.padStart(14)} ${String(seconds).padStart(5)}  ${by}\n`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  process.stdout.write(`${chosen.length - missed} of ${chosen.length} found\n`);
  return missed === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) runMain(USAGE, main);
