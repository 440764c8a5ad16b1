/**
 * The journal of a move: one JSON line per fact, on disk before what it announces happens.
 *
 * A last line that was cut off by a crash is what never happened; any other line that can't be read is an error, since a resume
 * that guesses would restore the wrong things.
 */
import { closeSync, existsSync, fsyncSync, ftruncateSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { AgentError, EXIT, FatalError, codeOf, messageOf } from '../errors.js';
import type { Entry, MoveState } from './move-state.js';
import { applyEntry, foldEntries } from './move-state.js';

/** Where journals are unless `--journal` says otherwise: one per master. */
export function defaultJournalPath(master: string, env: NodeJS.ProcessEnv = process.env): string {
  const state = env['XDG_STATE_HOME'] || join(env['HOME'] || homedir(), '.local', 'state');
  return join(state, 'pointsman', `migrate-${master.replace(/[^\w.-]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`)}.ndjson`);
}

/** The entries of a journal's text, and how many bytes of it are whole lines. Throws AgentError MOVE_FAILED, naming the line. */
export function parseJournal(text: string, path: string): { readonly entries: readonly Entry[]; readonly wholeBytes: number } {
  const end = text.lastIndexOf('\n') + 1;
  const entries = text.slice(0, end).split('\n').slice(0, -1).map((line, index) => {
    try {
      return JSON.parse(line) as Entry;
    } catch (fault) {
      throw new AgentError('MOVE_FAILED', `${path}:${index + 1}: not a journal line: ${messageOf(fault)}`);
    }
  });
  return { entries, wholeBytes: Buffer.byteLength(text.slice(0, end)) };
}

/** The move of a journal; null when there is no such file, or nothing in it. */
export function readJournal(path: string): MoveState | null {
  if (!existsSync(path)) return null;
  const { entries } = parseJournal(readFileSync(path, 'utf8'), path);
  return entries.length === 0 ? null : foldEntries(entries);
}

export class MoveJournal {
  readonly #descriptor: number;
  #move: MoveState;

  private constructor(descriptor: number, move: MoveState) {
    this.#descriptor = descriptor;
    this.#move = move;
  }

  /** A new journal in place of a finished one. Throws FatalError STATE_UNWRITABLE. */
  static begin(path: string, entry: Entry): MoveJournal {
    const descriptor = openForWriting(path, 'w');
    append(descriptor, entry);
    syncFolder(path);
    return new MoveJournal(descriptor, foldEntries([entry]));
  }

  /** Goes on with one. */
  static open(path: string): MoveJournal {
    const { entries, wholeBytes } = parseJournal(readFileSync(path, 'utf8'), path);
    const move = foldEntries(entries);
    const descriptor = openForWriting(path, 'a');
    ftruncateSync(descriptor, wholeBytes);
    return new MoveJournal(descriptor, move);
  }

  get move(): MoveState {
    return this.#move;
  }

  /** What happened is remembered in memory only (a move that is looked at again). */
  replace(move: MoveState): void {
    this.#move = move;
  }

  /** Returns when the line is on disk. */
  note(entry: Entry): void {
    append(this.#descriptor, entry);
    this.#move = applyEntry(this.#move, entry);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

function openForWriting(path: string, flags: 'w' | 'a'): number {
  try {
    mkdirSync(dirname(path), { recursive: true });
    return openSync(path, flags, 0o600);
  } catch (fault) {
    throw new FatalError('STATE_UNWRITABLE', `journal ${path} cannot be written: ${messageOf(fault)}`, EXIT.stateUnwritable);
  }
}

function append(descriptor: number, entry: Entry): void {
  writeSync(descriptor, `${JSON.stringify(entry)}\n`);
  fsyncSync(descriptor);
}

/** The name of a new file is on disk only when its folder is. */
function syncFolder(path: string): void {
  const folder = openSync(dirname(path), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

/**
 * Makes this process the only one that works on a journal; the result lets go of it. Throws AgentError MOVE_FAILED when another
 * living one does. The lock of a process that is gone does not count.
 */
export function claimJournal(path: string): () => void {
  const lock = `${path}.lock`;
  mkdirSync(dirname(path), { recursive: true });
  const owner = existsSync(lock) ? Number(readFileSync(lock, 'utf8')) : 0;
  if (owner > 0 && owner !== process.pid && isRunning(owner)) throw new AgentError('MOVE_FAILED', `process ${owner} works on ${path}`);
  writeFileSync(lock, String(process.pid));
  return () => rmSync(lock, { force: true });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (fault) {
    return codeOf(fault) === 'EPERM';
  }
}
