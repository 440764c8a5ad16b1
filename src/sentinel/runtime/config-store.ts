/**
 * The state file: sentinel.conf, rewritten in place so that a crash at any moment leaves the old text or the new one.
 *
 * New text to a temporary file beside it, fsync, mode and owner of the old one, rename, fsync of the folder. Where a rename
 * is impossible (a single bind-mounted file: EBUSY) the text is written in place, by one write that also covers what is left of a
 * longer old text, so that a kill before the file is cut leaves empty lines and not halves. Mirrors rewriteConfigOverwriteFile; unlike
 * stock, mode and owner stay (Divergence D49) and a text that is on disk already is not written again.
 *
 * Only fsync waits for the device, so only it leaves the loop. The rest is a tenth of a millisecond in the kernel's memory; as fifteen
 * errands to libuv's threads and back it took ten on a busy machine, while a switch waits for it.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fchmodSync, fchownSync, fstatSync, fsync, ftruncateSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { AgentError, messageOf } from '../../errors.js';
import type { ConfLine } from '../wire/sentinel-conf.js';
import { rewriteConf, SENTINEL_KEYS } from '../wire/sentinel-conf.js';

/** Rename is refused though writing is not: a mount point, another file system behind a link, a folder without our write bit. */
const RENAME_IMPOSSIBLE = new Set(['EBUSY', 'EXDEV', 'EACCES', 'EPERM', 'EROFS']);

const sync = promisify(fsync);

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export class ConfigStore {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  get path(): string {
    return this.#path;
  }

  /** Null when the file can be written, else why not (stock's start-up check: access W_OK). */
  async whyNotWritable(): Promise<string | null> {
    try {
      await access(this.#path, constants.W_OK);
      return null;
    } catch (fault) {
      return messageOf(fault);
    }
  }

  /**
   * Merges `lines` into the file and brings it to the disk. `handled` are further keys that the caller answers for.
   * @throws AgentError PERSIST_FAILED; the old text is then still whole.
   */
  async save(lines: readonly ConfLine[], handled: Iterable<string> = []): Promise<void> {
    try {
      const old = readOrEmpty(this.#path);
      const text = rewriteConf(old.text, lines, new Set([...SENTINEL_KEYS, ...handled]));
      if (old.exists && text === old.text) return;
      await this.#replace(text, old.mode, old.owner);
    } catch (fault) {
      const text = `state file ${this.#path} cannot be saved: ${messageOf(fault)}`;
      throw new AgentError('PERSIST_FAILED', text, { path: this.#path }, { cause: fault });
    }
  }

  async #replace(text: string, mode: number, owner: Owner | null): Promise<void> {
    const temporary = `${this.#path}.${randomBytes(6).toString('hex')}`;
    try {
      await writeThrough(temporary, text, mode, owner);
      renameSync(temporary, this.#path);
      await syncFolder(dirname(this.#path));
    } catch (fault) {
      discard(temporary);
      if (!RENAME_IMPOSSIBLE.has((fault as NodeJS.ErrnoException).code ?? '')) throw fault;
      await overwrite(this.#path, text);
    }
  }
}

interface OldFile {
  readonly text: string;
  readonly exists: boolean;
  readonly mode: number;
  readonly owner: Owner | null;
}

function readOrEmpty(path: string): OldFile {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code !== 'ENOENT') throw fault;
    return { text: '', exists: false, mode: 0o644, owner: null };
  }
  try {
    const { mode, uid, gid } = fstatSync(file);
    return { text: readFileSync(file, 'utf8'), exists: true, mode: mode & 0o7777, owner: { uid, gid } };
  } finally {
    closeSync(file);
  }
}

async function writeThrough(path: string, text: string, mode: number, owner: Owner | null): Promise<void> {
  // Restrictive first: a password in the file must not be readable by others for a moment.
  const file = openSync(path, 'wx', 0o600);
  try {
    writeWhole(file, text);
    if (owner !== null) adopt(file, owner);
    fchmodSync(file, mode);
    await sync(file);
  } finally {
    closeSync(file);
  }
}

async function overwrite(path: string, text: string): Promise<void> {
  const file = openSync(path, 'r+');
  try {
    const length = Buffer.byteLength(text);
    const { size } = fstatSync(file);
    writeWhole(file, text + '\n'.repeat(Math.max(0, size - length)));
    ftruncateSync(file, length);
    await sync(file);
  } finally {
    closeSync(file);
  }
}

function writeWhole(file: number, text: string): void {
  const bytes = Buffer.from(text);
  const written = writeSync(file, bytes, 0, bytes.length, 0);
  if (written !== bytes.length) throw new Error(`only ${written} bytes were written`);
}

function adopt(file: number, owner: Owner): void {
  const own = fstatSync(file);
  if (own.uid === owner.uid && own.gid === owner.gid) return;
  try {
    fchownSync(file, owner.uid, owner.gid);
  } catch {
    // Only root may give a file away; for everybody else the new owner is the one who writes.
  }
}

function discard(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was renamed, or never made.
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = openSync(path, 'r');
  try {
    await sync(folder);
  } finally {
    closeSync(folder);
  }
}
