/**
 * Three minutes of the chaos lab, as a user starts it: status 0, a report for programs, nothing left behind.
 */
import { expect, test } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from '../tidy/sources.js';
import { whyNoNamespaces } from './network.js';
import type { ChaosReport } from './report.js';

const MINUTES = 3;
const LIMIT_MS = (MINUTES + 7) * 60_000;
/** What it says while everything still starts, and in the midst of it. */
const MOMENTS = [/^seed 1,/, /round 1/, /status:/];
const why = whyNoNamespaces();
if (why !== null) process.stderr.write(`the chaos lab is skipped: ${why}\n`);
const real = why === null ? test : test.skip;

interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function chaos(args: readonly string[], interruptAt?: RegExp): Promise<Outcome> {
  const script = join(ROOT, 'test', 'lab', 'main.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', script, ...args], { cwd: ROOT, env: { ...process.env, NODE_OPTIONS: '' } });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => {
    stdout += bytes.toString();
    if (interruptAt?.test(stdout) === true) child.kill('SIGINT');
  });
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
  return new Promise((resolve) => {
    child.once('close', (status) => {
      expect(leftOf(child.pid ?? 0)).toEqual([]);
      resolve({ status, stdout, stderr });
    });
  });
}

/** Namespaces and links that carry the pid of a lab. */
function leftOf(pid: number): string[] {
  const lines = (...args: string[]): string[] => spawnSync('ip', args, { encoding: 'utf8' }).stdout.split('\n');
  return [...lines('netns', 'list'), ...lines('-o', 'link')].filter((line) => new RegExp(`pmlab-?${pid}\\b`).test(line));
}

real('a run of three minutes loses no write that asynchronous replication does not explain, and ends in agreement', async () => {
  const seed = Number(process.env['CHAOS_SEED'] ?? Math.floor(Math.random() * 1_000_000));
  const { status, stdout, stderr } = await chaos(['--seed', String(seed), '--minutes', String(MINUTES), '--json']);
  if (status !== 0) process.stderr.write(`${stderr}\n${stdout}\n`);
  const report = JSON.parse(stdout) as ChaosReport;
  expect({ seed, failures: report.failures, status }).toEqual({ seed, failures: [], status: 0 });
  expect(report.lost.unexplained).toBe(0);
  expect(report.acknowledged).toBeGreaterThan(1_000);
  expect(report.rounds.length).toBeGreaterThan(0);
}, LIMIT_MS);

real('a planned move that loses writes is found: FAILOVER as stock does it', async () => {
  const { status, stdout, stderr } = await chaos(['--seed', '1', '--minutes', '0.7', '--only', 'failover', '--lossy', '--down-after', '5s', '--json']);
  const report = JSON.parse(stdout) as ChaosReport;
  if (report.lost.unexplained === 0) process.stderr.write(stderr);
  expect(report.lost).toMatchObject({ crash: 0, partition: 0, aborted: 0 });
  expect(report.lost.unexplained).toBeGreaterThan(0);
  expect(report.failures.join('\n')).toMatch(/acknowledged writes of client\d are gone/);
  expect(status).toBe(1);
}, LIMIT_MS);

for (const moment of MOMENTS) {
  real(`an interrupt at ${String(moment)} leaves nothing behind`, async () => {
    const { status, stderr } = await chaos(['--seed', '1'], moment);
    expect(stderr).toMatch(/^interrupted$/m);
    expect(status).toBe(1);
  }, 120_000);
}

test('bad options get one clear error', async () => {
  for (const [args, message] of [
    [['--seed', 'x'], /--seed: bad number "x"/], [['--minutes', '0'], /--minutes: bad number "0"/], [['--layout', 'round'], /--layout: bad value "round"/],
    [['--down-after', 'soon'], /--down-after: /], [['--only', 'flood'], /--only: bad value "flood"/], [['--sead', '1'], /Unknown option '--sead'/],
  ] as const) {
    const { status, stderr } = await chaos(args);
    expect(stderr).toMatch(message);
    expect(status).toBe(64);
  }
}, 60_000);
