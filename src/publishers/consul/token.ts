/**
 * The ACL token: given once, or kept in a file that somebody rotates.
 *
 * The file is read again whenever Consul does not know the token, and a changed token means that rights must be tested anew.
 */
import { readFile } from 'node:fs/promises';
import { AgentError, messageOf } from '../../errors.js';

export class Token {
  readonly #file: string | null;
  #value: string | null;
  #read: boolean;
  #generation = 0;

  constructor(value: string | null, file: string | null) {
    this.#value = value;
    this.#file = file;
    this.#read = file === null;
  }

  /** Grows with every other token: what was proved about the last one is open again. */
  get generation(): number {
    return this.#generation;
  }

  /** The token as last read; null = anonymous. Rejects with AgentError when the file cannot be read. */
  async value(): Promise<string | null> {
    if (!this.#read) await this.refresh();
    return this.#value;
  }

  /** Reads the file again; true when the token is another one now. */
  async refresh(): Promise<boolean> {
    if (this.#file === null) return false;
    const before = this.#value;
    try {
      this.#value = (await readFile(this.#file, 'utf8')).trim() || null;
    } catch (error) {
      throw new AgentError('PUBLISH_FAILED', `consul token file ${this.#file} cannot be read: ${messageOf(error)}`, { file: this.#file });
    }
    const changed = this.#read && before !== this.#value;
    this.#read = true;
    if (changed) this.#generation++;
    return changed;
  }
}
