/**
 * The copies that a silent move forces: no node takes two under the same configuration, however long one takes, and not more nodes copy
 * at a time than parallel-syncs allows.
 *
 * Judged only where nothing fails and all planned moves are silent ones: a copy that was cut short is asked for again, and a failover's
 * own replicas copy beside it.
 */
import type { Effect, Input } from '../../../src/sentinel/index.js';
import type { Address } from '../../../src/sentinel/wire/address.js';
import type { RedisNode } from '../redis-node.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';
import { replicaInEvent } from './checker.js';

/**
 * A copy that begins and ends between two reports of the node is seen by him alone who asked for it: in his next report of the node, a second
 * later at most, which the others ask him for every second. A peer whose own turn comes in between can't know.
 */
const WORD_MS = 2_200;

interface Asked {
  readonly epoch: number;
  readonly by: string;
  /** When the one who asked last saw the node without its link. */
  readonly awayMs: number;
}

export class CopiesInTurn implements Checker {
  readonly name = 'forced copies once and in turn';
  /** The configuration under which a node was last asked for a copy, and by whom. */
  readonly #asked = new Map<string, Asked>();
  /** By node and configuration: who had a copy made, and when. */
  readonly #made = new Map<string, { readonly by: string; readonly atMs: number }>();
  /** When a node was last told to lead. */
  readonly #leftMs = new Map<RedisNode, number>();
  /** Nodes whose history was broken, and by whom, until their link is up. */
  readonly #forced = new Map<RedisNode, string>();
  readonly #isJudged: boolean;

  constructor(readonly world: World) {
    const operations = world.options.planned?.operations ?? [];
    this.#isJudged = world.strictness === 'strict' && operations.length > 0 && operations.every((kind) => kind === 'silent' || kind === 'stray');
  }

  stepped(host: SentinelHost, _input: Input, effects: readonly Effect[]): Verdict {
    if (!this.#isJudged) return null;
    for (const effect of effects) {
      if (effect.kind !== 'event' || effect.name !== '+slave-reconf-sent') continue;
      const { group, key } = replicaInEvent(effect);
      const debt = host.state?.masters.get(group)?.debts.get(key);
      if (debt === undefined) continue;
      this.#asked.set(key, { epoch: debt.epoch, by: host.name, awayMs: debt.awayMs });
      const verdict = debt.formerMaster ? null : this.#judgeAtOnce(host, group, key);
      if (verdict !== null) return verdict;
    }
    return null;
  }

  /** Follow, leave, follow in one transaction is what breaks the node's history. */
  replicaOf(node: RedisNode, target: Address | null): Verdict {
    const { nowMs } = this.world.clock;
    if (!this.#isJudged || target === null) {
      this.#leftMs.set(node, nowMs);
      return null;
    }
    // Sent on by the next move in the middle of its copy: what it copies now is nobody's turn.
    this.#forced.delete(node);
    const key = `${node.machine.ip}:${node.machine.port}`;
    const asked = this.#asked.get(key);
    if (asked === undefined || this.#leftMs.get(node) !== nowMs) return null;
    this.#leftMs.delete(node);
    this.#forced.set(node, asked.by);
    const what = `${key} under ${asked.epoch}`;
    const before = this.#made.get(what);
    this.#made.set(what, { by: asked.by, atMs: nowMs });
    if (before === undefined || (before.by !== asked.by && asked.awayMs < before.atMs && nowMs - before.atMs < WORD_MS)) return null;
    return `${asked.by} has ${what} copy again, after ${before.by}`;
  }

  /**
   * What a node copies for another reason is another matter: its first copy, or one of a master of before. So is what another sentinel asked
   * for a moment ago: a leader sees that with its next INFO. And the former master waits for nobody. Nor does anybody for a node that is down
   * for the one who asks: it may have died in its copy, and our order has cut the connection on which it could say that it lives.
   */
  #judgeAtOnce(host: SentinelHost, group: string, key: string): Verdict {
    for (const node of this.#forced.keys()) if (node.linkUp || !node.isRunning) this.#forced.delete(node);
    const master = host.state?.masters.get(group);
    const copying = [...this.#forced].filter(([node, by]) => {
      const isOfMaster = node.master?.host === master?.address.ip && node.master?.port === master?.address.port;
      return by === host.name && node.isSyncing && isOfMaster && this.world.groupOf(node.machine.ip) === group;
    });
    const isDown = (name: string): boolean => (master?.replicas.get(name)?.sdownSinceMs ?? null) !== null;
    const others = copying.map(([{ machine }]) => machine).filter(({ ip, port }) => `${ip}:${port}` !== key && !isDown(`${ip}:${port}`));
    const parallelSyncs = master?.parallelSyncs ?? 0;
    if (others.length < parallelSyncs) return null;
    return `${host.name} asks ${key} of ${group} for a copy beside ${others.map(({ name }) => name).join(' ')}; parallel-syncs ${parallelSyncs}`;
  }
}
