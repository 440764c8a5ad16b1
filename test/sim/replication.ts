/**
 * The data of a modelled Redis node and its place in a replication history: ids, offsets, backlog, partial or full resync.
 *
 * An offset counts entries instead of bytes. The rules are those of replication.c since Redis 4: a promoted replica keeps the
 * old id as its second one up to the offset it had, so that its former fellows may continue.
 */

/** One entry of the replication stream. */
export type StreamEntry =
  | { readonly kind: 'write'; readonly value: number; readonly expiresMs: number | null }
  | { readonly kind: 'delete'; readonly value: number }
  | { readonly kind: 'publish'; readonly channel: string; readonly payload: string }
  | { readonly kind: 'ping' };

export interface FullResync {
  readonly kind: 'fullResync';
  readonly replid: string;
  readonly offset: number;
  readonly values: readonly number[];
  readonly expiring: readonly (readonly [number, number])[];
}

export type ReplicationMessage =
  | { readonly kind: 'psync'; readonly replid: string; readonly offset: number; readonly from: string }
  | { readonly kind: 'psyncRefused' }
  | FullResync
  | { readonly kind: 'continue'; readonly replid: string }
  | { readonly kind: 'stream'; readonly offset: number; readonly entry: StreamEntry }
  | { readonly kind: 'ack'; readonly offset: number };

/** Data and history of one node. */
export class ReplicationLog {
  replid: string;
  replid2 = '';
  /** The second id is good for continuations up to this offset. */
  secondOffset = -1;
  offset = 0;
  /** Every value written, in order. */
  values: number[] = [];
  /** Instants at which some of them expire. */
  readonly expiring = new Map<number, number>();
  /** There is none before somebody wanted to follow, and nothing to continue from. */
  hasBacklog = false;
  #backlog: { readonly offset: number; readonly entry: StreamEntry }[] = [];

  constructor(
    replid: string,
    readonly backlogSize: number,
  ) {
    this.replid = replid;
  }

  /** Takes an entry of its own (a master) or from its master (a replica). */
  append(entry: StreamEntry, offset = this.offset + 1): void {
    this.offset = offset;
    if (entry.kind === 'write') this.values.push(entry.value);
    if (entry.kind === 'write' && entry.expiresMs !== null) this.expiring.set(entry.value, entry.expiresMs);
    if (entry.kind === 'delete') this.#delete(entry.value);
    this.#backlog.push({ offset, entry });
    if (this.#backlog.length > 2 * this.backlogSize) this.#backlog = this.#backlog.slice(-this.backlogSize);
  }

  #delete(value: number): void {
    this.expiring.delete(value);
    const index = this.values.indexOf(value);
    if (index >= 0) this.values.splice(index, 1);
  }

  /** The first replica comes: what was before is in no backlog, so the history begins now. */
  begin(replid: string): void {
    this.replid = replid;
    this.replid2 = '';
    this.secondOffset = -1;
    this.hasBacklog = true;
  }

  /** A new history begins here; the old one is remembered for those who shared it. */
  branch(replid: string): void {
    this.replid2 = this.replid;
    this.secondOffset = this.offset;
    this.replid = replid;
  }

  /** The master granted a continuation; true: under a new id. */
  continueAs(replid: string): boolean {
    if (replid === this.replid) return false;
    this.branch(replid);
    return true;
  }

  /** The data is the master's now, and nothing else. */
  replace({ replid, offset, values, expiring }: FullResync): void {
    this.replid = replid;
    this.replid2 = '';
    this.secondOffset = -1;
    this.offset = offset;
    this.values = [...values];
    this.expiring.clear();
    for (const [value, atMs] of expiring) this.expiring.set(value, atMs);
    this.hasBacklog = true;
    this.#backlog = [];
  }

  /** What a replica at (id, offset) still lacks, or null when only everything will do. */
  missing(replid: string, offset: number): readonly { readonly offset: number; readonly entry: StreamEntry }[] | null {
    const shared = replid === this.replid || (replid === this.replid2 && offset <= this.secondOffset);
    if (!shared || !this.hasBacklog || offset > this.offset || this.offset - offset > this.backlogSize) return null;
    const rest = this.#backlog.filter((kept) => kept.offset > offset);
    return rest.length === this.offset - offset ? rest : null;
  }
}
