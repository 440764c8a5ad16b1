/**
 * A done that was cut off after REPLICAOF NO ONE is finished by whoever is left (observed promotion): the state does not stay open
 * beside a promoted target while a majority of sentinels is at work.
 *
 * Judged only where nodes and network are sound: elsewhere the target may be out of everybody's sight. A tainted state waits for
 * its abort.
 */
import type { SentinelHost } from '../sentinel-host.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';
import { mastersOf } from './checker.js';

/** Beside two failover-timeouts: votes that bind, elections that are held again, INFO periods. */
const PATIENCE_MS = 20_000;
/** Who does nothing for so long is dead or asleep. */
const ASLEEP_MS = 3_000;

export class PromotionFinished implements Checker {
  readonly name = 'I10 an observed promotion is finished';
  readonly #openSinceMs = new Map<string, number>();
  #majoritySinceMs = 0;
  readonly #lastStepMs = new Map<string, number>();

  constructor(readonly world: World) {}

  stepped(host: SentinelHost): Verdict {
    if (this.world.strictness === 'loose') return null;
    const { nowMs } = this.world.clock;
    let working = 0;
    for (const { isRunning, machine } of this.world.hosts) if (isRunning && !machine.isPaused) working++;
    if (2 * working <= this.world.hosts.length) this.#majoritySinceMs = nowMs;
    // Who was dead or asleep learns the end from the others' next hellos.
    const isBack = nowMs - (this.#lastStepMs.get(host.name) ?? 0) > ASLEEP_MS;
    this.#lastStepMs.set(host.name, nowMs);
    if (isBack) for (const key of this.#openSinceMs.keys()) if (key.startsWith(`${host.name}/`)) this.#openSinceMs.delete(key);
    for (const { name, silent, failoverTimeoutMs } of mastersOf(host)) {
      if (silent === null && this.#openSinceMs.size === 0) continue;
      const key = `${host.name}/${name}`;
      const target = silent === null ? undefined : this.world.nodeAt(silent.targetAddress);
      const isOpen = silent?.effective === true && silent.taint === null && target?.master === null && target.runId === silent.targetRunId;
      if (!isOpen) {
        this.#openSinceMs.delete(key);
        continue;
      }
      const sinceMs = Math.max(this.#openSinceMs.get(key) ?? nowMs, this.#majoritySinceMs);
      this.#openSinceMs.set(key, sinceMs);
      if (nowMs - sinceMs <= 2 * failoverTimeoutMs + PATIENCE_MS) continue;
      return `${target.machine.name} is promoted for ${nowMs - sinceMs} ms, and ${host.name} still waits for the end of ${name}`;
    }
    return null;
  }
}
