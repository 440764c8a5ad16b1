// Routes and a clock for the tests of the publishers.
import { millis } from '../../../src/time.js';
import type { Millis } from '../../../src/time.js';
import type { Route } from '../../../src/route/route.js';
import type { ReconcilerClock } from '../../../src/publishers/reconciler.js';
import { createLog } from '../../../src/log.js';
import type { Log } from '../../../src/log.js';

export const A = { host: '10.0.0.1', port: 6379 };
export const B = { host: '10.0.0.2', port: 6380 };
export const C = { host: '2001:db8::3', port: 6381 };

/** A trusted, confirmed Route of epoch 5 to A; `order` follows the epoch. */
export function routeOf(change: Partial<Route> = {}): Route {
  const configEpoch = change.configEpoch ?? 5;
  return {
    master: 'cache', primary: A, replicas: [], configEpoch, order: 2 * configEpoch, phase: 'steady', trusted: true, confirmed: true,
    role: 'observer',
    previous: null, since: millis(0), ...change,
  };
}

/** A log whose records are kept. */
export function captureLog(): { log: Log; lines: string[] } {
  const lines: string[] = [];
  return { log: createLog({ level: 'debug', format: 'text', destination: { write: (line) => lines.push(line) } }), lines };
}

/** A clock that stands still until it is told to move; timers due run in order, promises settle in between. */
export class FakeClock implements ReconcilerClock {
  #now = 1_000_000;
  #timers: { at: number; run: () => void }[] = [];

  now(): Millis {
    return millis(this.#now);
  }

  setTimer(run: () => void, delayMs: number): () => void {
    const timer = { at: this.#now + delayMs, run };
    this.#timers.push(timer);
    return () => { this.#timers = this.#timers.filter((other) => other !== timer); };
  }

  get timers(): number {
    return this.#timers.length;
  }

  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await settle();
    for (;;) {
      const next = this.#timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
      await settle();
    }
    this.#now = until;
  }
}

/** Lets every promise that can settle do so. */
export const settle = (): Promise<void> => new Promise((resolve) => { setImmediate(resolve); });

/** Polls until `condition` holds; fails after `deadlineMs`. */
export async function waitFor(condition: () => boolean | Promise<boolean>, what: string, deadlineMs = 10_000): Promise<void> {
  const until = Date.now() + deadlineMs;
  while (!(await condition())) {
    if (Date.now() > until) throw new Error(`waited ${deadlineMs} ms in vain for: ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 10); });
  }
}
