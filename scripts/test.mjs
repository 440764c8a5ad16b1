#!/usr/bin/env node
// test: every check of the project in one run; one failing step does not stop the others.
//
//   node scripts/test.mjs [--only lint,types,unit,…]
//
// Steps: lint, types, one per jest project, and the suite that Redis ships (upstream-suite.mjs) against dist/main.js.
// Each step has a time limit, the whole run has one of 80 minutes. Closing line: `N passed, N failed` over everything
// (lint and types count as one test each, a test file that does not load as one failed). Exit 1 when anything failed.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs, stripVTControlCharacters } from 'node:util';

const MINUTE_MS = 60_000;
const WHOLE_LIMIT_MS = 80 * MINUTE_MS;
const NONE = { passed: 0, failed: 0, skipped: 0 };
/** Failed tests named again at the end, a step. */
const MAX_NAMED = 20;
const MAX_LINES_SAID = 25;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const scratch = mkdtempSync(join(tmpdir(), 'pointsman-test-'));
const startedMs = performance.now();
let running = null;

const bin = (path) => join(root, 'node_modules', path);
const quiet = process.allowedNodeEnvironmentFlags.has('--disable-warning') ? ' --disable-warning=ExperimentalWarning' : '';

/** A step whose tool only says yes or no. */
function verdict(name, limitMs, ...args) {
  return { name, limitMs, args, count: (exitCode) => (exitCode === 0 ? { ...NONE, passed: 1 } : { ...NONE, failed: 1 }) };
}

/** A jest project. The counts come from its JSON result; a run that dies without one has failed. */
function jest(name, limitMs, workers, project = name, ...choice) {
  const outcome = join(scratch, `${name}.json`);
  // A failed test may leave a socket or a child open: that must not cost the rest of the step's time.
  const basics = ['--selectProjects', project, '--maxWorkers', String(workers), '--forceExit', '--json', '--outputFile', outcome];
  const args = [bin('jest/bin/jest.js'), ...basics, ...choice];
  const count = (exitCode) => {
    if (!existsSync(outcome)) return { ...NONE, failed: 1 };
    const result = JSON.parse(readFileSync(outcome, 'utf8'));
    const failed = result.numFailedTests + result.numRuntimeErrorTestSuites;
    const skipped = result.numPendingTests + result.numTodoTests;
    return { passed: result.numPassedTests, failed: failed || (exitCode === 0 ? 0 : 1), skipped, names: failedNames(result) };
  };
  // --json prints the whole result to stdout too: the reader's output is what goes to stderr.
  const env = { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --experimental-vm-modules${quiet}`.trim() };
  return { name, limitMs, args, count, mute: true, empty: !hasTests(project), env };
}

/** `file › group › test: the message without its stack`, so that the end of a long log says what failed and how. */
function failedNames({ testResults }) {
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(root, name);
    const failed = assertionResults.filter((each) => each.status === 'failed');
    if (failed.length === 0) return status === 'failed' ? [`${file}: ${saidIn(message)}`] : [];
    return failed.map((each) => `${file} › ${each.fullName}: ${saidIn(each.failureMessages[0])}`);
  });
}

/** What a message says before its stack, some lines of it; those after the first stand below it. */
function saidIn(text = '') {
  const lines = stripVTControlCharacters(text).split('\n').filter((line) => line.trim() !== '');
  const stackAt = lines.findIndex((line) => /^\s+at /.test(line));
  return lines.slice(0, stackAt < 0 ? undefined : stackAt).slice(0, MAX_LINES_SAID).map((line) => line.slice(0, 300)).join('\n          ');
}

function hasTests(project) {
  const folder = join(root, 'test', project);
  return existsSync(folder) && readdirSync(folder, { recursive: true }).some((name) => name.endsWith('.test.ts'));
}

function upstream() {
  const command = `'${process.execPath}' '${join(root, 'dist/main.js')}' sentinel`;
  const count = (exitCode, lines) => {
    const closing = lines.map((line) => /^(\d+) passed, (\d+) failed$/.exec(line)).findLast(Boolean);
    if (!closing) return { ...NONE, failed: 1 };
    return { passed: Number(closing[1]), failed: Number(closing[2]) || (exitCode === 0 ? 0 : 1), skipped: 0 };
  };
  const args = [join(root, 'scripts/upstream-suite.mjs'), '--sentinel', command, '--retries', '2'];
  return { name: 'upstream', limitMs: 45 * MINUTE_MS, args, count };
}

/** Every planted bug must be found (test/sim/mutants). */
function planted(seeds) {
  const count = (exitCode, lines) => {
    const closing = lines.map((line) => /^(\d+) of (\d+) found$/.exec(line)).findLast(Boolean);
    if (!closing) return { ...NONE, failed: 1 };
    return { passed: Number(closing[1]), failed: Number(closing[2]) - Number(closing[1]) || (exitCode === 0 ? 0 : 1), skipped: 0 };
  };
  return { name: 'planted', limitMs: 60 * MINUTE_MS, args: ['--import', 'tsx', join(root, 'test/sim/mutants/run.ts'), '--seeds', seeds], count };
}

/** Cases from bug reports and faults in planned moves: some 45 minutes more, before a release (`npm test -- --only longer,planted`). */
const LONGER = 'integration/(cases/|silent|coordinated|planned-moves|kill-nine|migrate-)';

// Integration and conformance tests start real processes and measure seconds: one file at a time keeps them honest.
const STEPS = [
  verdict('lint', 5 * MINUTE_MS, bin('eslint/bin/eslint.js'), '--max-warnings', '0', '.'),
  verdict('types', 5 * MINUTE_MS, bin('typescript/bin/tsc'), '--noEmit', '-p', 'tsconfig.json'),
  jest('tidy', 5 * MINUTE_MS, 2),
  jest('unit', 15 * MINUTE_MS, 2),
  jest('golden', 10 * MINUTE_MS, 2),
  jest('sim', 25 * MINUTE_MS, 2),
  jest('conformance', 20 * MINUTE_MS, 1),
  jest('integration', 45 * MINUTE_MS, 1, 'integration', '--testPathIgnorePatterns', LONGER),
  // Says itself what it leaves out where there are no network namespaces.
  jest('lab', 15 * MINUTE_MS, 1),
  upstream(),
];

/** Run when named with --only. */
const ON_REQUEST = [
  planted('2000'),
  jest('longer', 80 * MINUTE_MS, 1, 'integration', '--testPathPatterns', LONGER),
];

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** Runs one tool in a process group of its own, passes its lines on indented, and ends the group when its time is up. */
function runTool(step, limitMs) {
  return new Promise((done) => {
    const lines = [];
    const stdio = ['ignore', step.mute ? 'ignore' : 'pipe', 'pipe'];
    const child = spawn(process.execPath, step.args, { cwd: root, detached: true, env: { ...process.env, ...step.env }, stdio });
    running = child;
    const read = (line) => {
      lines.push(line);
      console.log(`  ${step.name} | ${line}`);
    };
    for (const stream of [child.stdout, child.stderr]) if (stream) createInterface({ input: stream }).on('line', read);
    const limit = setTimeout(() => {
      read(`out of time after ${Math.round(limitMs / 1000)} s: ended`);
      signalGroup(child, 'SIGTERM');
      setTimeout(() => signalGroup(child, 'SIGKILL'), 5_000).unref();
    }, limitMs);
    const end = (exitCode) => {
      clearTimeout(limit);
      running = null;
      done({ exitCode, lines });
    };
    child.once('error', (error) => {
      read(error.message);
      end(null);
    });
    child.once('exit', (exitCode) => {
      // Whatever the step left running holds ports that the next one may want, and perhaps the pipe.
      signalGroup(child, 'SIGKILL');
      const latest = setTimeout(end, 500, exitCode);
      child.once('close', () => {
        clearTimeout(latest);
        end(exitCode);
      });
    });
  });
}

async function runStep(step) {
  const stepStartedMs = performance.now();
  const leftMs = WHOLE_LIMIT_MS - (stepStartedMs - startedMs);
  if (step.empty) return report(step, NONE, 'no test file yet');
  if (leftMs < 1_000) return report(step, { ...NONE, failed: 1 }, `not run: the ${WHOLE_LIMIT_MS / MINUTE_MS} minutes are over`);
  console.log(`── ${step.name} …`);
  const { exitCode, lines } = await runTool(step, Math.min(step.limitMs, leftMs));
  return report(step, step.count(exitCode, lines), `${((performance.now() - stepStartedMs) / 1000).toFixed(1)} s`);
}

function report(step, count, note) {
  console.log(`── ${step.name.padEnd(12)} ${count.failed === 0 ? 'ok' : 'FAILED'}: ${summary(count)} (${note})`);
  return { name: step.name, note, ...count };
}

function summary({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

function stepsFrom(argv) {
  const { values } = parseArgs({ args: argv, options: { only: { type: 'string' } } });
  if (!values.only) return STEPS;
  const names = values.only.split(',').filter(Boolean);
  const all = [...STEPS, ...ON_REQUEST];
  const unknown = names.filter((name) => !all.some((step) => step.name === name));
  if (unknown.length > 0) throw new Error(`no step ${unknown.join(', ')}; there are ${all.map((step) => step.name).join(', ')}`);
  return all.filter((step) => names.includes(step.name));
}

async function main() {
  const results = [];
  for (const step of stepsFrom(process.argv.slice(2))) results.push(await runStep(step));
  console.log('');
  for (const each of results) {
    console.log(`${each.failed === 0 ? 'ok    ' : 'FAILED'}  ${each.name.padEnd(12)} ${summary(each).padEnd(36)} ${each.note}`);
  }
  for (const { names = [] } of results) for (const name of names.slice(0, MAX_NAMED)) console.log(`failed: ${name}`);
  const add = (field) => results.reduce((sum, each) => sum + each[field], 0);
  const sum = { passed: add('passed'), failed: add('failed'), skipped: add('skipped') };
  console.log(`whole run: ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  console.log(summary(sum));
  // A run that executed nothing has proved nothing.
  process.exitCode = sum.failed > 0 || sum.passed === 0 ? 1 : 0;
}

process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    if (running) signalGroup(running, 'SIGKILL');
    process.exit(1);
  });
}
try {
  await main();
} catch (error) {
  console.error(`test: ${error.message}`);
  process.exitCode = 64;
}
