/**
 * I10: every effective state ends by a configuration; each sentinel sees exactly one done or abort of it, and sentinels that end
 * at the same configuration say the same. One D belongs to one target. No move is concluded after another end of the same state,
 * unless both say the same (two may finish one promotion).
 *
 * Exempt from the last: worlds with trouble on nodes or network, an end that nobody heard of for failover-timeout (votes may be
 * given again then), and after a plain SENTINEL FAILOVER, which collides with anything. A sentinel that slept over the end may hear a later configuration.
 */
import type { Effect, Input, Master } from '../../../src/sentinel/index.js';
import type { LoadedConf } from '../../../src/sentinel/wire/sentinel-conf.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';
import { masterInEvent, mastersOf } from './checker.js';

interface Seen {
  readonly target: string;
  readonly doneEpoch: number;
  readonly original: string;
}

export class SilentEnds implements Checker {
  readonly name = 'I10 every silent state ends once, by a configuration';
  /** Effective states that a process began with. */
  readonly #restored = new Map<string, number>();
  readonly #before = new Map<string, Seen>();
  readonly #targets = new Map<string, string>();
  readonly #verdicts = new Map<string, string>();
  /** Master → configEpoch → address, and since when. */
  readonly #configurations = new Map<string, Map<number, { readonly address: string; readonly sinceMs: number }>>();

  constructor(readonly world: World) {}

  stepped(host: SentinelHost, input: Input, effects: readonly Effect[]): Verdict {
    if (host.state === null) return null;
    if (input.kind === 'start') this.#begin(host);
    return this.#judgeEnds(host, effects) ?? this.#judgeCounters(host) ?? this.#note(host);
  }

  #begin(host: SentinelHost): void {
    this.#restored.set(host.name, effectiveOf(host));
    for (const master of mastersOf(host)) this.#before.delete(`${host.name}/${master.name}`);
  }

  #judgeCounters(host: SentinelHost): Verdict {
    const { prepare, done, abort } = host.state?.silentCounters ?? { prepare: 0, done: 0, abort: 0 };
    const begun = prepare + (this.#restored.get(host.name) ?? 0);
    const ended = done + abort;
    const open = effectiveOf(host);
    return begun === ended + open ? null : `${host.name}: ${begun} effective states began, ${ended} ended, ${open} are open`;
  }

  #judgeEnds(host: SentinelHost, effects: readonly Effect[]): Verdict {
    for (const effect of effects) {
      if (effect.kind !== 'event' || !/^.silent-failover-(?:done|abort)$/.test(effect.name)) continue;
      const master = host.state?.masters.get(masterInEvent(effect));
      const before = master === undefined ? undefined : this.#before.get(`${host.name}/${master.name}`);
      if (master === undefined || before === undefined) continue;
      const verdict = this.#judgeEnd(host, master, before, effect.name.slice(17));
      if (verdict !== null) return verdict;
    }
    return null;
  }

  #judgeEnd(host: SentinelHost, master: Master, before: Seen, end: string): Verdict {
    const address = `${master.address.ip}:${master.address.port}`;
    if (master.configEpoch < before.doneEpoch && address === before.original) {
      return `${host.name} ended ${master.name} at ${master.configEpoch} below D ${before.doneEpoch}, with the same master`;
    }
    if ((address === before.target) !== (end === 'done')) return `${host.name} says ${end} of ${master.name}, now at ${address}`;
    const key = `${master.name}/${master.configEpoch}/${before.target}`;
    const known = this.#verdicts.get(key) ?? end;
    this.#verdicts.set(key, known);
    if (known !== end) return `${key}: ${known} for one, ${end} for ${host.name}`;
    const isMaker = master.published.role === 'leader' && master.published.leaderId === host.state?.myId;
    if (!isMaker || this.world.strictness === 'loose') return null;
    const freshMs = this.world.clock.nowMs - master.failoverTimeoutMs;
    const passed = [...(this.#configurations.get(master.name) ?? [])].find(([epoch, other]) => {
      return epoch >= before.doneEpoch && epoch < master.configEpoch && other.address !== address && other.sinceMs > freshMs;
    });
    if (passed === undefined) return null;
    const [epoch, other] = passed;
    return `${host.name} says ${end} at ${master.configEpoch}, but the state of D ${before.doneEpoch} ended at ${epoch} as ${other.address}`;
  }

  #note(host: SentinelHost): Verdict {
    for (const master of mastersOf(host)) {
      const { silent } = master;
      if (silent === null) {
        if (this.#before.size > 0) this.#before.delete(`${host.name}/${master.name}`);
        continue;
      }
      const { doneEpoch, target } = silent;
      this.#before.set(`${host.name}/${master.name}`, { target, doneEpoch, original: `${master.address.ip}:${master.address.port}` });
    }
    return null;
  }

  /** What a sentinel has only in its memory is heard by nobody, and dies with it. */
  saved(by: SentinelHost, conf: LoadedConf): Verdict {
    for (const { name, configEpoch, host, port, extra } of conf.masters) {
      const [target, doneEpoch] = extra.get('silent-failover-state')?.split(' ') ?? [];
      const key = `${name}/${doneEpoch}`;
      const known = this.#targets.get(key) ?? target;
      if (target !== undefined && known !== undefined) this.#targets.set(key, known);
      if (known !== target && target !== undefined) return `D ${key} belongs to ${known} and, for ${by.name}, to ${target}`;
      let configurations = this.#configurations.get(name);
      if (configurations === undefined) this.#configurations.set(name, (configurations = new Map()));
      const address = `${host}:${port}`;
      if (configurations.get(configEpoch)?.address !== address) configurations.set(configEpoch, { address, sinceMs: this.world.clock.nowMs });
    }
    return null;
  }
}

function effectiveOf(host: SentinelHost): number {
  let count = 0;
  for (const { silent } of mastersOf(host)) if (silent?.effective === true) count++;
  return count;
}
