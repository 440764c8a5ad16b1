/**
 * I7: a state is effective, and somebody is promoted: it is the target and no other, if the target lives and is not tainted.
 *
 * Exempt: a target that the promoter can't use by the rules of every promotion (down, no connection, old INFO …), sentinels with
 * different lists of each other, and worlds in which a plain SENTINEL FAILOVER was given. A target whose window writes are gone
 * is no better than others, whether the sentinels know that yet or not; but nobody may finish a done with it any more, once he had
 * time to see it. And a state is effective only when a majority of the group has it, or has seen its end.
 */
import type { Effect, Input } from '../../../src/sentinel/index.js';
import { whyNotEligible } from '../../../src/sentinel/index.js';
import { millis } from '../../../src/time.js';
import type { LoadedConf } from '../../../src/sentinel/wire/sentinel-conf.js';
import type { RedisNode } from '../redis-node.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';
import { masterInEvent, mastersOf, replicaInEvent } from './checker.js';

/** By then every INFO has told of a full resync. */
const TAINT_SEEN_MS = 5_000;

interface Window {
  readonly target: string;
  /** The target's process at its beginning; another one has lost the window. */
  readonly runId: string;
  wipedMs: number | null;
}

export class TargetPromoted implements Checker {
  readonly name = 'I7 the target is promoted';
  readonly #windows = new Map<string, Window>();
  /** What was ever saved of states, by sentinel and group: target and D; and the highest configEpoch. */
  readonly #saved = new Map<string, { readonly states: Set<string>; configEpoch: number }>();
  /**
   * The same of what was forgotten since: with the disk, or by a REMOVE after the state's end. The others may hear what those sentinels said
   * of it later still (who was stopped meanwhile hears all of it, from the beginning), and can't know that they forgot it.
   */
  readonly #lost = new Set<string>();
  /** By sentinel and group: the highest configuration that it has forgotten. */
  readonly #lostEpoch = new Map<string, number>();

  constructor(readonly world: World) {}

  saved(host: SentinelHost, conf: LoadedConf): Verdict {
    for (const { name, extra, configEpoch } of conf.masters) {
      const key = `${host.name}/${name}`;
      let saved = this.#saved.get(key);
      if (saved === undefined) this.#saved.set(key, (saved = { states: new Set(), configEpoch: 0 }));
      saved.configEpoch = Math.max(saved.configEpoch, configEpoch);
      const [target, doneEpoch] = extra.get('silent-failover-state')?.split(' ') ?? [];
      if (target !== undefined && doneEpoch !== undefined) saved.states.add(`${target} ${doneEpoch}`);
    }
    return null;
  }

  forgot(host: SentinelHost, group: string | null): void {
    for (const { name } of this.world.options.groups) {
      const key = `${host.name}/${name}`;
      const saved = this.#saved.get(key);
      if (saved === undefined || (group !== null && group !== name)) continue;
      for (const state of saved.states) this.#lost.add(`${key} ${state}`);
      this.#lostEpoch.set(key, Math.max(this.#lostEpoch.get(key) ?? 0, saved.configEpoch));
      this.#saved.delete(key);
    }
  }

  replaced(node: RedisNode): Verdict {
    const window = this.#windows.get(this.world.groupOf(node.machine.ip) ?? '');
    if (window?.target === `${node.machine.ip}:${node.machine.port}`) window.wipedMs ??= node.nowMs();
    return null;
  }

  stepped(host: SentinelHost, _input: Input, effects: readonly Effect[]): Verdict {
    for (const effect of effects) {
      if (effect.kind !== 'event') continue;
      const group = masterInEvent(effect);
      if (effect.name === '+silent-failover-prepare') {
        const lonely = this.#judgeEffective(host, group);
        if (lonely !== null) return lonely;
        this.#open(host, group);
      }
      if (effect.name === '+silent-failover-done' || effect.name === '-silent-failover-abort') this.#windows.delete(group);
      const verdict = effect.name === '+failover-state-wait-promotion' ? this.#judge(host, effect) : null;
      if (verdict !== null) return verdict;
    }
    return null;
  }

  #judgeEffective(host: SentinelHost, group: string): Verdict {
    const silent = host.state?.masters.get(group)?.silent;
    if (silent == null) return null;
    const knowing = this.world.hosts.filter((each) => {
      const key = `${each.name}/${group}`;
      if (this.#lost.has(`${key} ${silent.target} ${silent.doneEpoch}`) || (this.#lostEpoch.get(key) ?? 0) >= silent.doneEpoch) return true;
      const master = each.state?.masters.get(group);
      // A dead one: its file names the target as such, or as the master that it has become.
      if (master === undefined) return [silent.target, silent.target.replace(/:(\d+)$/, ' $1')].some((words) => each.disk.text.includes(words));
      return master.silent?.target === silent.target || master.configEpoch >= silent.doneEpoch;
    });
    if (2 * knowing.length > this.world.hosts.length || this.#differ(group)) return null;
    return `${host.name} sends clients to ${silent.target}, which only ${knowing.map(({ name }) => name).join(' ')} know of`;
  }

  #open(host: SentinelHost, group: string): void {
    const target = host.state?.masters.get(group)?.silent?.target ?? '';
    const node = this.world.nodesIn(group).find(({ machine }) => `${machine.ip}:${machine.port}` === target);
    if (this.#windows.get(group)?.target === target || node === undefined || this.#isPassed(host, group)) return;
    this.#windows.set(group, { target, runId: node.runId, wipedMs: null });
  }

  /** A sentinel that heard everything late: the group has a later configuration, or another target under a higher D, already. */
  #isPassed(host: SentinelHost, group: string): boolean {
    const silent = host.state?.masters.get(group)?.silent;
    return this.world.hosts.some((each) => {
      const master = each.state?.masters.get(group);
      if (master === undefined || silent == null) return false;
      return master.configEpoch >= silent.doneEpoch || (master.silent !== null && master.silent.doneEpoch > silent.doneEpoch && master.silent.target !== silent.target);
    });
  }

  #judge(host: SentinelHost, effect: Extract<Effect, { kind: 'event' }>): Verdict {
    const { group, key } = replicaInEvent(effect);
    const window = this.#windows.get(group);
    const master = host.state?.masters.get(group);
    if (window === undefined || host.state === null || master === undefined) return null;
    const node = this.world.nodesIn(group).find(({ machine }) => `${machine.ip}:${machine.port}` === window.target);
    if (master.failover?.state === 'silent_promote' && key === window.target && window.wipedMs !== null) {
      const sinceMs = this.world.clock.nowMs - window.wipedMs;
      if (sinceMs > TAINT_SEEN_MS) return `${host.name} finishes a done, but ${key} lost the window ${sinceMs} ms ago`;
    }
    const isLost = window.wipedMs !== null || node?.isRunning !== true || node.runId !== window.runId;
    const isTainted = this.world.hosts.some((each) => each.state?.masters.get(group)?.silent?.taint != null);
    if (key === window.target || isLost || isTainted || this.world.hasForced || this.#differ(group)) return null;
    const target = master.replicas.get(window.target);
    if (target === undefined || whyNotEligible(host.state, master, target, millis(host.nowMs())) !== null) return null;
    const knows = master.silent === null ? 'which knows nothing of it' : `D ${master.silent.doneEpoch}`;
    return `${host.name}, ${knows}, promotes ${key} of ${group} and not the target ${window.target}`;
  }

  #differ(group: string): boolean {
    return this.world.hosts.some((host) => {
      return [...mastersOf(host)].some((master) => master.name === group && master.peers.size !== this.world.hosts.length - 1);
    });
  }
}
