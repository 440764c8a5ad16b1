/**
 * What a hook remembers per master: where its last good call pointed, and whether a later one was left half done.
 *
 * `from` of the next call comes from here, and so does the answer to "is there anything to do". Kept in a file, so that a
 * switch that happened while the agent was down is made up for; without a file the memory is that of the process.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { codeOf } from '../../errors.js';
import type { Log } from '../../log.js';
import { formatAddress, parseAddress, sameAddress } from '../../sentinel/wire/address.js';
import type { Address } from '../../sentinel/wire/address.js';

/** Per master. Invariant 1: `handled` null means the hook knows nothing of this master yet. */
export interface HookMemory {
  /** Target of the last call that ended well, or the primary found at the start. */
  good: Address | null;
  /** The primary that needs no further call: `good`, or one whose script gave up. */
  handled: Address | null;
  /** Target of a call that began and did not end well: its work may be half done. */
  unfinished: Address | null;
  /** Where the last move came from, while it is not yet told that the group has settled on its target. */
  movedFrom: Address | null;
  /** Highest order that was served, or -1; a lower one is not called for (publishing.md, rule 2). */
  order: number;
}

export const NOTHING_YET: Readonly<HookMemory> = { good: null, handled: null, unfinished: null, movedFrom: null, order: -1 };

/** Where a call moves clients from, or null when the hook has nothing to do for `to`. */
export function callFrom(memory: Readonly<HookMemory>, to: Address): Address | null {
  const { good, handled, unfinished } = memory;
  if (handled === null) return null;
  const settled = unfinished === null || sameAddress(unfinished, to);
  if (sameAddress(handled, to) && settled) return null;
  // Back where the last good call pointed: what moved meanwhile is the call that was left half done, or that gave up.
  if (good === null || sameAddress(good, to)) return unfinished !== null && !sameAddress(unfinished, to) ? unfinished : handled;
  return good;
}

export class HookMemories {
  readonly #file: string | null;
  readonly #log: Log;
  readonly #byMaster = new Map<string, HookMemory>();
  #loaded: Promise<void> | null = null;
  #saving: Promise<void> = Promise.resolve();

  constructor(file: string | null, log: Log) {
    this.#file = file;
    this.#log = log;
  }

  /** The memory of one master; the file is read at the first call. */
  async of(master: string): Promise<HookMemory> {
    await (this.#loaded ??= this.#load());
    const known = this.#byMaster.get(master) ?? { ...NOTHING_YET };
    this.#byMaster.set(master, known);
    return known;
  }

  async forget(master: string): Promise<void> {
    await (this.#loaded ??= this.#load());
    this.#byMaster.delete(master);
    await this.save();
  }

  /** Writes the file anew, one writer at a time. A failure is logged: the hook still works from memory. */
  save(): Promise<void> {
    this.#saving = this.#saving.then(() => this.#write());
    return this.#saving;
  }

  async #write(): Promise<void> {
    if (this.#file === null) return;
    const plain = (at: Address | null): string | null => at && formatAddress(at);
    const entries = [...this.#byMaster].map(([master, { good, handled, unfinished, movedFrom, order }]) =>
      [master, { good: plain(good), handled: plain(handled), unfinished: plain(unfinished), movedFrom: plain(movedFrom), order }] as const);
    const text = JSON.stringify(Object.fromEntries(entries), null, 2);
    try {
      // The folder is the state file's: one that is gone (not mounted yet) must not be made anew, empty.
      await writeFile(`${this.#file}.new`, `${text}\n`, { mode: 0o640, flush: true });
      await rename(`${this.#file}.new`, this.#file);
    } catch (error) {
      this.#log.warn({ file: this.#file, err: error }, 'hook state cannot be written');
    }
  }

  async #load(): Promise<void> {
    if (this.#file === null) return;
    try {
      const saved: unknown = JSON.parse(await readFile(this.#file, 'utf8'));
      if (typeof saved !== 'object' || saved === null) throw new Error('expected a map of masters');
      for (const [master, memory] of Object.entries(saved)) this.#byMaster.set(master, memoryOf(memory));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return;
      this.#log.warn({ file: this.#file, err: error }, 'hook state is unreadable, starting without it');
    }
  }
}

function memoryOf(saved: unknown): HookMemory {
  const fields: Record<string, unknown> = typeof saved === 'object' && saved !== null ? { ...saved } : {};
  const address = (key: string): Address | null => (typeof fields[key] === 'string' ? parseAddress(fields[key]) : null);
  const order = typeof fields['order'] === 'number' && Number.isSafeInteger(fields['order']) ? fields['order'] : -1;
  return { good: address('good'), handled: address('handled'), unfinished: address('unfinished'), movedFrom: address('movedFrom'), order };
}
