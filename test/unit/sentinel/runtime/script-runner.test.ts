/** notification-script with real processes: order, retries, limits, failures. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ScriptRunner } from '../../../../src/sentinel/runtime/script-runner.js';

let folder: string;
const runners: ScriptRunner[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'scripts-'));
});
afterEach(() => {
  for (const each of runners.splice(0)) each.close();
  rmSync(folder, { recursive: true, force: true });
});

function script(body: string): string {
  const path = join(folder, 'hook.sh');
  writeFileSync(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  return path;
}

async function waitFor(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('condition not met in 10 s');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function runner(limits = { maxRuntimeMs: 5_000, retryDelayMs: 10 }): { runner: ScriptRunner; faults: string[] } {
  const faults: string[] = [];
  const listener = {
    failed: (_path: string, signal: number, exitCode: number) => void faults.push(`failed ${signal} ${exitCode}`),
    timedOut: () => void faults.push('timed out'),
  };
  const made = new ScriptRunner(listener, () => limits);
  runners.push(made);
  return { runner: made, faults };
}

describe('ScriptRunner', () => {
  test('hands over event and payload as two arguments, without a shell', async () => {
    const log = join(folder, 'log');
    const { runner: scripts, faults } = runner();
    scripts.schedule([script(`printf '%s|%s\\n' "$1" "$2" >> ${log}`), '+sdown', 'master m1 10.0.0.1 6379 $(id)']);
    await waitFor(() => scripts.jobs.length === 0);
    expect(readFileSync(log, 'utf8')).toBe('+sdown|master m1 10.0.0.1 6379 $(id)\n');
    expect(faults).toEqual([]);
  });

  test('exit 1 is tried again, exit 0 then ends it', async () => {
    const log = join(folder, 'log');
    const { runner: scripts, faults } = runner();
    scripts.schedule([script(`echo x >> ${log}; [ "$(wc -l < ${log})" -ge 3 ]`)]);
    await waitFor(() => scripts.jobs.length === 0);
    expect(readFileSync(log, 'utf8')).toBe('x\nx\nx\n');
    expect(faults).toEqual([]);
  });

  test('ten failures are reported once', async () => {
    const { runner: scripts, faults } = runner({ maxRuntimeMs: 5_000, retryDelayMs: 0 });
    scripts.schedule([script('exit 1')]);
    await waitFor(() => scripts.jobs.length === 0);
    expect(faults).toEqual(['failed 0 1']);
  });

  test('exit 2 or more is given up at once', async () => {
    const { runner: scripts, faults } = runner();
    scripts.schedule([script('exit 7')]);
    await waitFor(() => scripts.jobs.length === 0);
    expect(faults).toEqual(['failed 0 7']);
  });

  test('a file that cannot be executed counts as exit 2, as in stock', async () => {
    const { runner: scripts, faults } = runner();
    scripts.schedule([join(folder, 'missing')]);
    await waitFor(() => scripts.jobs.length === 0);
    expect(faults).toEqual(['failed 0 2']);
  });

  test('one that runs too long is killed and tried again', async () => {
    const log = join(folder, 'log');
    const { runner: scripts, faults } = runner({ maxRuntimeMs: 2_000, retryDelayMs: 1 });
    scripts.schedule([script(`echo x >> ${log}; [ "$(wc -l < ${log})" -ge 2 ] || exec sleep 60`)]);
    await waitFor(() => scripts.jobs.length === 0);
    expect(faults).toEqual(['timed out']);
  });

  test('at most sixteen run at once; the rest waits in order', async () => {
    const gate = join(folder, 'gate');
    const { runner: scripts } = runner();
    const path = script(`while [ ! -e ${gate} ]; do sleep 0.02; done`);
    for (let job = 0; job < 20; job++) scripts.schedule([path]);
    await waitFor(() => scripts.running >= 16);
    expect(scripts.running).toBe(16);
    expect(scripts.jobs).toHaveLength(20);
    writeFileSync(gate, '');
    await waitFor(() => scripts.jobs.length === 0);
  });
});
