/**
 * `pointsman demo`, as a visitor runs it: the result, the exit status, and nothing left behind.
 */
import { describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DemoReport } from '../../src/demo/report.js';
import { MAIN, waitFor } from './lab.js';

class Demo {
  readonly folder = mkdtempSync(join(tmpdir(), 'pointsman-demo-test-'));
  readonly #child;
  stdout = '';
  stderr = '';
  status: number | null | undefined;

  constructor(...args: string[]) {
    const env = { ...process.env, TMPDIR: this.folder };
    this.#child = spawn(process.execPath, [MAIN, 'demo', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.#child.once('close', (status) => (this.status = status));
  }

  async ended(limitMs: number): Promise<void> {
    await waitFor(() => `the end of the demo\n${this.stdout}\n${this.stderr}`, limitMs, () => this.status !== undefined);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it when it still runs. */
  async close(): Promise<void> {
    if (this.status === undefined) this.signal('SIGTERM');
    await this.ended(30_000);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('demo --once --json', () => {
  test('one object that says that all went well, exit 0, no folder left', async () => {
    const demo = new Demo('--once', '--json');
    try {
      await demo.ended(150_000);
      expect({ status: demo.status, stderr: demo.stderr }).toEqual({ status: 0, stderr: demo.stderr });
      const report = JSON.parse(demo.stdout) as DemoReport;
      expect(report).toMatchObject({ ok: true, downAfterMs: 1000, lostAfterSwitch: 0, disagreements: [] });
      expect(report.acknowledged).toBeGreaterThan(1000);
      const [round] = report.rounds;
      expect(report.rounds).toHaveLength(1);
      expect(round?.promoted).not.toBe(round?.killed);
      expect(round?.dnsMs).toHaveLength(3);
      for (const ms of [...(round?.dnsMs ?? []), round?.firstWriteMs ?? 0]) {
        // down-after counts from the last answered PING, so a little of it may be over at the kill; a busy machine may take its time.
        expect(ms).toBeGreaterThan(500);
        expect(ms).toBeLessThan(10_000);
      }
      expect(readdirSync(demo.folder)).toEqual([]);
    } finally {
      await demo.close();
    }
  }, 200_000);
});

describe('demo', () => {
  test('shows the master, survives its death, and ends everything at INT', async () => {
    const demo = new Demo();
    try {
      await waitFor(() => `an invitation\n${demo.stdout}\n${demo.stderr}`, 60_000, () => /kill -9 \d+/.test(demo.stdout));
      const pid = Number(/kill -9 (\d+)/.exec(demo.stdout)?.[1]);
      expect(demo.stdout).toMatch(/dig @127\.0\.0\.1 -p \d+ \+short mymaster\.redis\.test\. A/);
      process.kill(pid, 'SIGKILL');
      const switched = /master redis[23] at .* · dns 127\.0\.0\.([23]) 127\.0\.0\.\1 127\.0\.0\.\1 · /;
      await waitFor(() => `another master\n${demo.stdout}`, 30_000, () => switched.test(demo.stdout));
      const counted = /lost with the old master: \d+ acknowledged/;
      await waitFor(() => `a count of what was lost\n${demo.stdout}`, 10_000, () => counted.test(demo.stdout));
      const heir = Number(/pid (\d+)/.exec(demo.stdout.split('\n').findLast((line) => /master redis[23] at/.test(line)) ?? '')?.[1]);
      expect(isAlive(heir)).toBe(true);

      demo.signal('SIGINT');
      await demo.ended(20_000);
      expect(demo.status).toBe(0);
      expect(isAlive(heir)).toBe(false);
      expect(readdirSync(demo.folder)).toEqual([]);
    } finally {
      await demo.close();
    }
  }, 150_000);

  test.each([
    [['--rounds', 'many'], '--rounds'],
    [['--down-after', '1 second'], '--down-after'],
    [['--down-after', '0'], '--down-after'],
  ])('%j is refused in one line, exit 64', async (args, option) => {
    const demo = new Demo(...args);
    try {
      await demo.ended(60_000);
      const lines = demo.stderr.split('\n').filter((line) => line !== '');
      expect([demo.status, demo.stdout, lines.length]).toEqual([64, '', 1]);
      expect(lines[0]).toContain(option);
    } finally {
      await demo.close();
    }
  }, 90_000);
});
