/**
 * What was refused lately: failed log-ins, commands and channels, newest first, for ACL LOG.
 *
 * Mirrors addACLLogEntry in acl.c: the same refusal within a minute is counted, not listed again; 128 entries are kept.
 */

/** One refusal, however often it came. */
export interface AclLogEntry {
  readonly id: number;
  readonly reason: 'auth' | 'command' | 'channel';
  /** What was refused: a command's full name, a channel, or the command that tried to log in. */
  readonly object: string;
  readonly username: string;
  readonly createdMs: number;
  updatedMs: number;
  count: number;
  /** The line of CLIENT LIST at the last time. */
  clientInfo: string;
}

const LONGEST = 128;
const SAME_WITHIN_MS = 60_000;

export class AclLog {
  #entries: AclLogEntry[] = [];
  #nextId = 0;

  /** Newest first. */
  get entries(): readonly AclLogEntry[] {
    return this.#entries;
  }

  add(refusal: Pick<AclLogEntry, 'reason' | 'object' | 'username' | 'clientInfo'>, nowMs: number): void {
    const known = this.#entries.find(
      (entry) =>
        entry.reason === refusal.reason && entry.object === refusal.object && entry.username === refusal.username &&
        nowMs - entry.updatedMs <= SAME_WITHIN_MS,
    );
    const entry = known ?? { ...refusal, id: this.#nextId++, createdMs: nowMs, updatedMs: nowMs, count: 0 };
    entry.count++;
    entry.updatedMs = nowMs;
    entry.clientInfo = refusal.clientInfo;
    this.#entries = [entry, ...this.#entries.filter((each) => each !== entry)].slice(0, LONGEST);
  }

  clear(): void {
    this.#entries = [];
  }
}
