/**
 * A wake-up leads on: a sentinel that wakes again and again without anything to do is stuck at a deadline.
 */
import type { Effect, Input } from '../../../src/sentinel/index.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { Checker, Verdict } from './checker.js';

const WINDOW_MS = 1_000;
const MAX_IDLE_WAKES = 150;

export class NoBusyLoop implements Checker {
  readonly name = 'no busy loop';
  readonly #windows = new Map<string, { sinceMs: number; wakes: number }>();

  stepped(host: SentinelHost, input: Input, effects: readonly Effect[]): Verdict {
    if (input.kind !== 'wake' || effects.length > 0) return null;
    const nowMs = host.network.clock.nowMs;
    const window = this.#windows.get(host.name) ?? { sinceMs: nowMs, wakes: 0 };
    this.#windows.set(host.name, window);
    if (nowMs - window.sinceMs > WINDOW_MS) Object.assign(window, { sinceMs: nowMs, wakes: 0 });
    return ++window.wakes > MAX_IDLE_WAKES ? `${host.name} woke ${window.wakes} times in a second with nothing to do` : null;
  }
}
