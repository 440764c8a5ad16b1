/**
 * `pointsman history [master]`: the journal, rotated files included, oldest first. Reads the files; the agent need not run.
 */
import { existsSync, readFileSync } from 'node:fs';
import { loadConfig } from '../config/load.js';
import { formatFaults } from '../config/fault.js';
import { EXIT, FatalError } from '../errors.js';
import { readJournal } from '../publishers/journal.js';
import type { JournalEntry } from '../publishers/journal.js';
import { entryText, isAbout } from './entry-text.js';

export interface HistoryOptions {
  readonly config: string | null;
  /** The journal's path; null: what the configuration says. */
  readonly journal: string | null;
  readonly master: string | null;
  /** As given on the command line. */
  readonly last: string | null;
  readonly json: boolean;
}

/** Resolves to the exit status; rejects with FatalError for a bad option, configuration, or where there is no journal. */
export async function history({ config, journal, master, last, json }: HistoryOptions): Promise<number> {
  if (last !== null && !/^[1-9]\d{0,8}$/.test(last)) throw new FatalError('CONFIG_INVALID', `--last ${last}: expected a number from 1`, EXIT.usage);
  const path = journal ?? journalPath(config);
  if (!existsSync(path)) throw new FatalError('CONFIG_UNREADABLE', `journal ${path} does not exist`, EXIT.failed);
  const limit = last === null ? Infinity : Number(last);
  const kept: JournalEntry[] = [];
  for await (const entry of readJournal(path)) {
    if (!isAbout(entry, master)) continue;
    if (limit === Infinity) show(entry, json);
    else if (kept.push(entry) > limit) kept.shift();
  }
  for (const entry of kept) show(entry, json);
  return EXIT.ok;
}

const show = (entry: JournalEntry, json: boolean): void => void process.stdout.write(`${json ? JSON.stringify(entry) : entryText(entry)}\n`);

function journalPath(config: string | null): string {
  if (config === null) throw new FatalError('CONFIG_INVALID', 'history: name the journal by --config or --journal', EXIT.usage);
  const loaded = loadConfig({ path: config, env: process.env, read: (path) => readFileSync(path, 'utf8') });
  if (loaded.kind === 'faults') throw new FatalError('CONFIG_INVALID', formatFaults(loaded.faults), EXIT.badConfig);
  if (loaded.config.journal === null) throw new FatalError('CONFIG_INVALID', `history: ${config} has no journal`, EXIT.badConfig);
  return loaded.config.journal.path;
}
