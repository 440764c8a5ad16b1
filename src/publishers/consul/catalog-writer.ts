/**
 * Catalog mode: external nodes of our own, one transaction per change with the key's check-and-set, read back from the leader.
 *
 * Look, plan, write, look again, until there is nothing left to do. A write whose end is not known is not repeated but looked
 * at; a conflict means that somebody was faster, so the plan is made anew from what is there now.
 */
import type { AgentError } from '../../errors.js';
import type { Log } from '../../log.js';
import type { Published } from '../publisher.js';
import type { ConsulClient } from './client.js';
import type { Snapshot } from './entry.js';
import { ConsulError, deniedError, refusalOf } from './fault.js';
import type { OperationError } from './fault.js';
import type { MasterNames } from './naming.js';
import { OWNER_META } from './naming.js';
import { deleteKey, deleteNode, guardKey } from './operation.js';
import type { Operation } from './operation.js';
import { pause } from './pause.js';
import { MAX_OPERATIONS, foreignClaims, planWrite } from './plan.js';
import type { Write } from './plan.js';
import { judgeSelfTest, selfTestOperations } from './self-test.js';
import type { Token } from './token.js';
import type { Wish } from './wish.js';
import { MAX_ROUNDS, contradiction, lookFirstMs, outrun } from './writer.js';
import type { ApplyOptions, Writer } from './writer.js';

export interface CatalogWriterOptions {
  readonly client: ConsulClient;
  readonly token: Token;
  readonly kvPrefix: string;
  readonly log: Log;
  readonly random: () => number;
}

/** null: all of it was applied. Otherwise what to do before the next look. */
type WriteOutcome = { readonly kind: 'applied' } | { readonly kind: 'stale' } | { readonly kind: 'retry'; readonly error: AgentError };

export class CatalogWriter implements Writer {
  readonly #options: CatalogWriterOptions;
  /** Master → generation of the token that passed its self-test. */
  readonly #passed = new Map<string, number>();
  /** Master → what the last look saw. */
  readonly #seen = new Map<string, Snapshot>();

  constructor(options: CatalogWriterOptions) {
    this.#options = options;
  }

  async apply(wish: Wish, options: ApplyOptions): Promise<Published> {
    const { log, random } = this.#options;
    const { names } = wish;
    const { signal } = options;
    await this.#selfTest(names, signal);
    let hasWaited = false;
    let lastError: AgentError | null = null;
    const remembered = options.isLeader ? this.#remembered(wish, options) : null;
    if (remembered !== null) await this.#write(wish, remembered, signal);
    for (let round = 0; round < MAX_ROUNDS;) {
      const snapshot = await this.#look(names, signal);
      const plan = planWrite(wish, snapshot, options);
      if (plan.kind === 'settled') return settled(wish, snapshot);
      if (plan.kind === 'newer') {
        const { order, writer } = plan.fence;
        return { order, detail: `${names.key} holds order ${order} by ${writer}, left alone` };
      }
      if (plan.kind === 'contradicted') {
        throw contradiction(wish, plan.fence);
      }
      if (!hasWaited && !(options.isLeader && plan.reason === 'change')) {
        hasWaited = true;
        await pause(lookFirstMs(random), signal);
        continue;
      }
      round++;
      const { master } = names;
      if (plan.reason === 'repair') log.info({ master, nodes: plan.nodes }, 'consul entries differ at the same order, writing them');
      const outcome = await this.#write(wish, plan, signal);
      if (outcome.kind !== 'retry') continue;
      lastError = outcome.error;
      await pause(lookFirstMs(random), signal);
    }
    throw lastError ?? outrun(names, MAX_ROUNDS);
  }

  needsLook(wish: Wish, snapshot: Snapshot, isKeeper: boolean): boolean {
    const { kind } = planWrite(wish, snapshot, { isKeeper });
    return kind === 'write' || kind === 'contradicted';
  }

  async forget(names: MasterNames, lastOrder: number, signal: AbortSignal): Promise<void> {
    const { client, log, kvPrefix } = this.#options;
    this.#seen.delete(names.master);
    await this.#selfTest(names, signal);
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const { value: key } = await client.readKey(names.key, { signal });
      if ((key.fence?.order ?? -1) > lastOrder) {
        const { master, key: name } = names;
        log.warn({ master, key: name, order: key.fence?.order }, 'forgotten, but consul holds a higher order: left as it is');
        return;
      }
      const { value: nodes } = await client.readNodes(`${OWNER_META}:${names.label}`, { signal });
      const transactions = removals(names, key.index, nodes);
      if (transactions.length === 0) return;
      for (const operations of transactions) {
        const answer = await client.transact(operations, signal);
        if (answer.kind === 'applied') continue;
        const refusal = refusalOf(operations, answer.errors, kvPrefix);
        if (refusal.kind === 'stale') break;
        throw this.#refused(names, operations, answer.errors);
      }
    }
  }

  /**
   * A new leader need not look first: the key's check-and-set refuses the whole transaction when somebody has written since our last look, and
   * what was changed by hand since is seen in the look that follows. Two round trips less before clients are told.
   */
  #remembered(wish: Wish, options: ApplyOptions): Write | null {
    const snapshot = this.#seen.get(wish.names.master);
    const plan = snapshot === undefined ? null : planWrite(wish, snapshot, options);
    return plan !== null && plan.kind === 'write' && plan.reason === 'change' ? plan : null;
  }

  async #look(names: MasterNames, signal: AbortSignal): Promise<Snapshot> {
    const { client } = this.#options;
    // The key first: a write between the reads then shows as a stale index, never as an old order with new entries.
    const key = await client.readKey(names.key, { signal });
    const [entries, replicaEntries] = await Promise.all([
      client.readEntries(names.service, { signal }), client.readEntries(names.replicaService, { signal }),
    ]);
    const snapshot = { key: key.value, entries: entries.value, replicaEntries: replicaEntries.value };
    this.#seen.set(names.master, snapshot);
    return snapshot;
  }

  async #write(wish: Wish, plan: Write, signal: AbortSignal): Promise<WriteOutcome> {
    const { names } = wish;
    let guard = 0;
    for (const operations of [plan.first, ...plan.rest]) {
      const guarded: readonly Operation[] = guard === 0 ? operations : [guardKey(names.key, guard), ...operations];
      try {
        const answer = await this.#options.client.transact(guarded, signal);
        if (answer.kind === 'rejected') return this.#judgeRefusal(names, guarded, answer.errors);
        guard = guard === 0 ? answer.keyIndex : guard;
      } catch (error) {
        if (error instanceof ConsulError && error.isUncertain) return { kind: 'retry', error };
        throw error;
      }
    }
    return { kind: 'applied' };
  }

  #judgeRefusal(names: MasterNames, operations: readonly Operation[], errors: readonly OperationError[]): WriteOutcome {
    if (refusalOf(operations, errors, this.#options.kvPrefix).kind === 'stale') return { kind: 'stale' };
    const error = this.#refused(names, operations, errors);
    // What is there may have moved between look and write without the key (a hand at work): one more look tells.
    if (error.kind === 'denied') throw error;
    return { kind: 'retry', error };
  }

  #refused(names: MasterNames, operations: readonly Operation[], errors: readonly OperationError[]): ConsulError {
    const { client, kvPrefix, log } = this.#options;
    const refusal = refusalOf(operations, errors, kvPrefix);
    if (refusal.kind === 'denied') {
      this.#passed.delete(names.master);
      return deniedError(client.at, refusal.rules);
    }
    const text = refusal.kind === 'mistaken' ? refusal.text : 'index is stale';
    log.error({ master: names.master, errors }, 'consul refused a transaction for a reason that should not happen');
    return new ConsulError('refused', `consul at ${client.at} refused a transaction: ${text}`, { errors });
  }

  /** Proves once per master and token that every right is there: reads are filtered without a word, so they prove nothing. */
  async #selfTest(names: MasterNames, signal: AbortSignal): Promise<void> {
    const { client, token, kvPrefix, log } = this.#options;
    if (!this.#passed.has(names.master)) await token.refresh();
    await token.value();
    const { generation } = token;
    if (this.#passed.get(names.master) === generation) return;
    const operations = selfTestOperations(names, kvPrefix);
    const answer = await client.transact(operations, signal);
    const verdict = judgeSelfTest(operations, answer.kind === 'rejected' ? answer.errors : [], kvPrefix);
    if (typeof verdict === 'string') throw new ConsulError('refused', `consul at ${client.at}: ${verdict}`);
    if (verdict.length > 0) throw deniedError(client.at, verdict);
    this.#passed.set(names.master, generation);
    log.debug({ master: names.master }, 'consul token has every right it needs');
  }
}

function settled(wish: Wish, snapshot: Snapshot): Published {
  const notes = [...wish.leftOut, ...foreignClaims(wish, snapshot)];
  return { order: wish.fence.order, detail: [`key index ${snapshot.key.index}, ${wish.nodes.length} nodes`, ...notes].join('; ') };
}

/** Node deletions guarded by the key, and the key with the last of them. */
function removals(names: MasterNames, index: number, nodes: readonly string[]): Operation[][] {
  const room = MAX_OPERATIONS - 1;
  const parts: Operation[][] = [];
  for (let at = 0; at < nodes.length; at += room) parts.push(nodes.slice(at, at + room).map(deleteNode));
  if (index === 0) return parts;
  if (parts.length === 0) parts.push([]);
  return parts.map((operations, at) => [at === parts.length - 1 ? deleteKey(names.key, index) : guardKey(names.key, index), ...operations]);
}
