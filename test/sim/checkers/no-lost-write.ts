/**
 * I6: what was acknowledged is there in the end: window writes of a target that became the master, and the original's writes.
 * That all nodes are equal is I9's business (convergence.ts).
 *
 * Exempt: window writes after an abort (they vanish by design); worlds with trouble on nodes or network, where replication is
 * asynchronous as ever; groups in which an ordinary failover was held; and, where sentinels crash, what a deposed master took.
 */
import type { Effect, Input } from '../../../src/sentinel/index.js';
import type { Machine } from '../network.js';
import type { RedisNode } from '../redis-node.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';
import { masterInEvent, mastersOf, replicaInEvent } from './checker.js';

interface Write {
  readonly group: string;
  readonly node: RedisNode;
  readonly local: boolean;
  readonly atMs: number;
  acknowledged: boolean;
  excuse: string | null;
}

export class NoLostWrite implements Checker {
  readonly name = 'I6 no acknowledged write is lost';
  readonly #writes = new Map<number, Write>();
  /** Local writes whose window has not ended, by target. */
  readonly #pending = new Map<RedisNode, Write[]>();
  /** Those of a target that was told to lead, until its promotion is proved. */
  readonly #unproved = new Map<RedisNode, Write[]>();
  readonly #tainted = new Set<string>();
  readonly #openTargets = new Set<RedisNode>();
  readonly #targetOf = new Map<string, RedisNode>();
  readonly #stormy = new Set<string>();
  readonly #promotedLast = new Map<string, RedisNode>();
  readonly #promotedAtMs = new Map<RedisNode, number>();

  constructor(readonly world: World) {}

  wrote(node: RedisNode, value: number, local: boolean): Verdict {
    const group = this.world.groupOf(node.machine.ip) ?? '';
    const write: Write = { group, node, local, atMs: node.nowMs(), acknowledged: false, excuse: null };
    this.#writes.set(value, write);
    const last = this.#promotedLast.get(group);
    if (!local && last !== undefined && last !== node && this.world.strictness !== 'strict') write.excuse = 'taken by a deposed master';
    if (!local) return null;
    if (!this.#openTargets.has(node)) write.excuse = 'the window was over';
    else this.#pending.set(node, [...(this.#pending.get(node) ?? []), write]);
    return null;
  }

  acknowledged(value: number): Verdict {
    const write = this.#writes.get(value);
    if (write === undefined) return `${value} was acknowledged and never executed`;
    write.acknowledged = true;
    return null;
  }

  promoted(node: RedisNode, _by: Machine | null): Verdict {
    this.#unproved.set(node, this.#pending.get(node) ?? []);
    this.#pending.delete(node);
    this.#promotedAtMs.set(node, node.nowMs());
    this.#promotedLast.set(this.world.groupOf(node.machine.ip) ?? '', node);
    return null;
  }

  stepped(host: SentinelHost, _input: Input, effects: readonly Effect[]): Verdict {
    for (const effect of effects) {
      if (effect.kind !== 'event') continue;
      const group = masterInEvent(effect);
      if (effect.name === '+odown') this.#stormy.add(group);
      if (effect.name === '+silent-failover-tainted') this.#tainted.add(`${host.name}/${group}`);
      if (effect.name === '+silent-failover-done') this.#tainted.delete(`${host.name}/${group}`);
      if (effect.name === '-silent-failover-abort') this.#abort(`${host.name}/${group}`);
      if (effect.name === '+convert-to-slave' && !this.world.awareHosts.includes(host)) this.#demotedByStock(replicaInEvent(effect).key);
    }
    for (const { name, silent } of mastersOf(host)) {
      const target = silent === null ? undefined : this.world.nodeAt(silent.targetAddress);
      if (target === undefined) continue;
      this.#targetOf.set(`${host.name}/${name}`, target);
      if (silent?.effective === true) this.#openTargets.add(target);
    }
    return null;
  }

  #abort(hostAndGroup: string): void {
    const target = this.#targetOf.get(hostAndGroup);
    if (target === undefined) return;
    for (const write of this.#pending.get(target) ?? []) write.excuse = 'aborted';
    this.#pending.delete(target);
    this.#openTargets.delete(target);
    if (this.#tainted.delete(hostAndGroup)) this.#takenBack(target);
  }

  /** A taint that is seen between NO ONE and the proof ends a done as an abort (step 3, section 5): what clients wrote there vanishes with it. */
  #takenBack(target: RedisNode): void {
    for (const write of this.#unproved.get(target) ?? []) write.excuse ??= 'aborted';
    const sinceMs = this.#promotedAtMs.get(target) ?? Infinity;
    for (const write of this.#writes.values()) if (write.node === target && write.atMs >= sinceMs) write.excuse ??= 'aborted';
  }

  /**
   * A peer that knows nothing of windows makes the promoted target a replica again, 4 hello periods behind the promotion. Its leader had died
   * before it could name the configuration, and what is left of aware sentinels is no majority: the price of allow-mixed.
   */
  #demotedByStock(key: string): void {
    for (const write of this.#writes.values()) {
      const { ip, port } = write.node.machine;
      if (`${ip}:${port}` !== key || !this.#openTargets.has(write.node)) continue;
      if (write.local || write.atMs >= (this.#promotedAtMs.get(write.node) ?? Infinity)) write.excuse ??= 'demoted by a stock peer';
    }
  }

  converged(): Verdict {
    if (this.world.strictness === 'loose') return null;
    for (const [value, write] of this.#writes) {
      if (!write.acknowledged || write.excuse !== null || this.#stormy.has(write.group)) continue;
      const holder = this.world.nodesIn(write.group).find((node) => !node.log.values.includes(value));
      if (holder === undefined) continue;
      const seconds = (write.atMs - this.world.startMs) / 1000;
      const taker = `${write.node.machine.name}${write.local ? ' as the target' : ''}`;
      return `${value}, acknowledged by ${taker} at ${seconds}, is not on ${holder.machine.name}`;
    }
    return null;
  }
}
