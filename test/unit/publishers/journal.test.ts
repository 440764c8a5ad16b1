// The journal: one line per piece of news, rotation, and disks that don't play along.
import { appendFile, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Journal, readJournal } from '../../../src/publishers/journal.js';
import type { JournalEntry } from '../../../src/publishers/journal.js';
import type { OutputResult } from '../../../src/publishers/reconciler.js';
import { millis } from '../../../src/time.js';
import { A, B, C, captureLog, routeOf } from './routes.js';

let folder = '';
beforeEach(async () => { folder = await mkdtemp(join(tmpdir(), 'pointsman-journal-')); });
afterEach(() => rm(folder, { recursive: true, force: true }));

const journalOf = (more: Partial<ConstructorParameters<typeof Journal>[0]> = {}) => {
  const { log, lines } = captureLog();
  return { journal: new Journal({ path: join(folder, 'sub', 'j.ndjson'), log, now: () => 0, ...more }), lines };
};
const path = (): string => join(folder, 'sub', 'j.ndjson');

async function entries(): Promise<JournalEntry[]> {
  const found: JournalEntry[] = [];
  for await (const entry of readJournal(path())) found.push(entry);
  return found;
}

const resultOf = (change: Partial<OutputResult> = {}): OutputResult => ({
  output: 'dns', master: 'cache', route: routeOf({ primary: B }), outcome: 'published', recheck: false, publishedOrder: 10,
  detail: 'serial 1', error: null,
  attempts: 1, latencyMs: 3, atMs: millis(0), ...change,
});

describe('journal', () => {
  test('one line per Route change and per result', async () => {
    const { journal } = journalOf();
    journal.route(routeOf(), { reason: 'start', actor: 'state file' });
    journal.route(routeOf({ since: millis(9) }));
    journal.route(routeOf({ primary: B, configEpoch: 6, phase: 'failover', role: 'leader', previous: A }));
    journal.output(resultOf());
    journal.output(resultOf({ recheck: true }));
    journal.output(resultOf({ outcome: 'failed', recheck: true, error: { code: 'PUBLISH_TIMEOUT', message: 'm', atMs: millis(0) } }));
    await journal.close();
    const at = '1970-01-01T00:00:00.000Z';
    expect(await entries()).toEqual([
      { kind: 'route', at, master: 'cache', epoch: 5, order: 10, phase: 'steady', reason: 'start', from: null, to: '10.0.0.1:6379',
        actor: 'state file', trusted: true, confirmed: true, healthyReplicas: 0 },
      { kind: 'route', at, master: 'cache', epoch: 6, order: 12, phase: 'failover', reason: '', from: '10.0.0.1:6379',
        to: '10.0.0.2:6380', actor: 'this agent', trusted: true, confirmed: true, healthyReplicas: 0 },
      { kind: 'output', at, master: 'cache', output: 'dns', outcome: 'published', epoch: 5, order: 10, phase: 'steady',
        to: '10.0.0.2:6380', publishedOrder: 10, attempts: 1, latencyMs: 3, detail: 'serial 1', error: null },
      { kind: 'output', at, master: 'cache', output: 'dns', outcome: 'failed', epoch: 5, order: 10, phase: 'steady', to: '10.0.0.2:6380',
        publishedOrder: 10, attempts: 1, latencyMs: 3, detail: 'serial 1', error: { code: 'PUBLISH_TIMEOUT', message: 'm' } },
    ]);
  });

  test('rotates by size, keeps so many files, loses no line of those', async () => {
    const { journal } = journalOf({ maxBytes: 700, keep: 2 });
    for (let epoch = 1; epoch <= 12; epoch++) {
      journal.route(routeOf({ configEpoch: epoch, primary: epoch % 2 ? A : C }));
      if (epoch % 5 === 0) await journal.flush();
    }
    await journal.close();
    expect((await readdir(join(folder, 'sub'))).sort()).toEqual(['j.ndjson', 'j.ndjson.1', 'j.ndjson.2']);
    const sizes = await Promise.all(['', '.1', '.2'].map(async (suffix) => (await readFile(path() + suffix)).length));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(700);
    const epochs = (await entries()).map(({ epoch }) => epoch);
    expect(epochs).toEqual(Array.from({ length: epochs.length }, (_, index) => 12 - epochs.length + 1 + index));
    expect(epochs.length).toBeGreaterThanOrEqual(5);
  });

  test('keep 0 starts the file over', async () => {
    const { journal } = journalOf({ maxBytes: 300, keep: 0 });
    for (let epoch = 1; epoch <= 4; epoch++) journal.route(routeOf({ configEpoch: epoch }));
    await journal.close();
    expect(await readdir(join(folder, 'sub'))).toEqual(['j.ndjson']);
    expect((await entries()).map(({ epoch }) => epoch)).toEqual([4]);
  });

  test('goes on after a line that a crash cut off', async () => {
    const first = journalOf().journal;
    first.route(routeOf());
    await first.close();
    await appendFile(path(), '{"kind":"route","at":"19');
    const second = journalOf().journal;
    second.route(routeOf({ configEpoch: 6 }));
    await second.close();
    expect((await entries()).map(({ epoch }) => epoch)).toEqual([5, 6]);
  });

  test('a disk that refuses is told once, and told again when it works', async () => {
    await writeFile(join(folder, 'sub'), 'a file where the folder should be');
    const { journal, lines } = journalOf();
    for (let epoch = 1; epoch <= 3; epoch++) {
      journal.route(routeOf({ configEpoch: epoch }));
      await journal.flush();
    }
    expect(lines.filter((line) => line.includes('cannot be written'))).toHaveLength(1);
    expect(journal.dropped).toBe(3);
    await rm(join(folder, 'sub'));
    journal.route(routeOf({ configEpoch: 4 }));
    await journal.close();
    expect((await entries()).map(({ epoch }) => epoch)).toEqual([4]);
    expect(lines.filter((line) => line.includes('written again'))).toHaveLength(1);
  });

  test('the flood before a slow disk is bounded', async () => {
    const { journal } = journalOf();
    for (let epoch = 1; epoch <= 10_050; epoch++) journal.route(routeOf({ configEpoch: epoch }));
    await journal.close();
    expect(journal.dropped).toBe(50);
    expect(await entries()).toHaveLength(10_000);
  });

  test('a forgotten master is news again; after close nothing is', async () => {
    const { journal } = journalOf();
    journal.route(routeOf());
    journal.forget('cache');
    journal.route(routeOf());
    await journal.close();
    journal.route(routeOf({ configEpoch: 9 }));
    expect(await entries()).toHaveLength(2);
  });

  test('no file is no entries', async () => expect(await entries()).toEqual([]));
});
