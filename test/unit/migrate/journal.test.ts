/**
 * The journal on disk: a line per fact, a cut-off last line never happened, anything else unreadable is named, one process at a time.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claimJournal, defaultJournalPath, MoveJournal, parseJournal, readJournal } from '../../../src/migrate/journal.js';
import type { Entry, Saved } from '../../../src/migrate/move-state.js';
import type { Plan } from '../../../src/migrate/plan.js';

let folder = '';
let path = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pointsman-journal-'));
  path = join(folder, 'deep', 'journal.ndjson');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const plan: Plan = {
  id: 'f00d', master: 'cache', mode: 'silent', barrier: false, original: { host: 'a', port: 1 }, target: { host: 'b', port: 1 }, others: [], sentinels: [],
  drainTimeoutMs: 1, onDrainTimeout: 'proceed', publishTimeoutMs: 1, resyncTimeoutMs: 1, waitSyncMs: 0, backlogBytes: 1,
};
const first: Entry = { kind: 'plan', version: 1, at: 1, plan };
const savedAs = (value: string): Saved => ({ nodes: [{ address: plan.target, settings: { 'replica-priority': value }, follows: plan.original }], sentinels: [] });

describe('a journal', () => {
  test('is read back as it was written', () => {
    const journal = MoveJournal.begin(path, first);
    journal.note({ kind: 'saved', at: 2, saved: savedAs('100') });
    journal.note({ kind: 'end', at: 3, step: 'save', ms: 7, facts: { nodes: 3 } });
    journal.close();
    expect(readJournal(path)).toEqual(journal.move);
    expect(journal.move.finished.get('save')).toEqual({ ms: 7, facts: { nodes: 3 } });
  });

  test('M1: the first saved values stay, whatever a second look saw', () => {
    const journal = MoveJournal.begin(path, first);
    journal.note({ kind: 'saved', at: 2, saved: savedAs('100') });
    journal.note({ kind: 'saved', at: 3, saved: savedAs('1') });
    journal.close();
    expect(readJournal(path)?.saved).toEqual(savedAs('100'));
  });

  test('a last line that was cut off never happened, and what follows starts on a line of its own', () => {
    MoveJournal.begin(path, first).close();
    appendFileSync(path, '{"kind":"end","at":3,"step":"sa');
    expect(readJournal(path)?.finished.size).toBe(0);
    const journal = MoveJournal.open(path);
    journal.note({ kind: 'end', at: 4, step: 'preflight', ms: 1, facts: {} });
    journal.close();
    expect([...(readJournal(path)?.finished.keys() ?? [])]).toEqual(['preflight']);
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(3);
  });

  test('every cut of its text is readable', () => {
    const lines = [first, { kind: 'saved', at: 2, saved: savedAs('é') }, { kind: 'end', at: 3, step: 'save', ms: 1, facts: {} }];
    const text = lines.map((each) => `${JSON.stringify(each)}\n`).join('');
    for (let length = 0; length <= text.length; length++) {
      const { entries, wholeBytes } = parseJournal(text.slice(0, length), path);
      expect(entries).toHaveLength(text.slice(0, length).split('\n').length - 1);
      expect(wholeBytes).toBeLessThanOrEqual(Buffer.byteLength(text.slice(0, length)));
    }
  });

  test('a broken line in the middle is named, a foreign file is none', () => {
    expect(() => parseJournal('{"kind":"plan"\n{}\n', 'j')).toThrow(/^j:1: not a journal line/);
    MoveJournal.begin(path, first).close();
    writeFileSync(path, '{"kind":"end"}\n');
    expect(() => readJournal(path)).toThrow(/does not begin with a plan/);
  });

  test('none is none', () => {
    expect(readJournal(path)).toBeNull();
  });
});

describe('a claim', () => {
  test('a living process keeps others out, a dead one does not', () => {
    const release = claimJournal(path);
    release();
    writeFileSync(`${path}.lock`, '1');
    expect(() => claimJournal(path)).toThrow(/process 1 works on/);
    const gone = spawnSync(process.execPath, ['-e', '']).pid;
    writeFileSync(`${path}.lock`, String(gone));
    claimJournal(path)();
  });
});

test('there is one journal per master, wherever its name leads', () => {
  expect(defaultJournalPath('cache', { XDG_STATE_HOME: '/s' })).toBe('/s/pointsman/migrate-cache.ndjson');
  expect(defaultJournalPath('a/../b c', { HOME: '/h' })).toBe('/h/.local/state/pointsman/migrate-a%2f..%2fb%20c.ndjson');
});
