/**
 * Makes every output agree with the Route of every master, whatever fails on the way (publishing.md, rules 1, 2, 3, 4 and 7).
 *
 * Level-triggered: the newest Route is the wish, an event only wakes. Per (output, master) one attempt is in flight and the
 * latest wish wins; a failure is repeated with back-off, a success is looked at again every few seconds. Pairs share
 * nothing: an output that throws, hangs or ignores its signal costs only its own pair a deadline.
 */
import { AgentError, codeOf, messageOf } from '../errors.js';
import type { Log } from '../log.js';
import { sameRoute } from '../route/route.js';
import type { Route } from '../route/route.js';
import { millis } from '../time.js';
import type { Millis } from '../time.js';
import type { OutputError, OutputResult, OutputState, OutputStatus } from './output-status.js';
import type { Published, Publisher } from './publisher.js';
export type { OutputError, OutputResult, OutputState, OutputStatus } from './output-status.js';

/** Time and timers as the reconciler needs them; tests give a fake one. `setTimer` returns what cancels it. */
export interface ReconcilerClock {
  now(): Millis;
  setTimer(run: () => void, delayMs: number): () => void;
}

export interface ReconcilerOptions {
  readonly publishers: readonly Publisher[];
  readonly log: Log;
  readonly clock?: ReconcilerClock;
  readonly onResult?: (result: OutputResult) => void;
  /** How often a published Route is applied again, before jitter of a fifth either way. */
  readonly recheckMs?: number;
  /** In `[0, 1)`; for jitter only. */
  readonly random?: () => number;
}

const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 30_000;
const RECHECK_MS = 10_000;
/** So long a higher order may be one that we are about to hear of. */
export const FENCED_AFTER_MS = 30_000;
/** How long an aborted attempt may take to wind up before the next one starts all the same: a script gets TERM, 2 s, KILL. */
const ABORT_GRACE_MS = 3_000;
const CLOSE_DEADLINE_MS = 5_000;

/** Delay before the next attempt after `failures` in a row, before jitter: 100 ms doubling to 30 s. */
export function backoffMs(failures: number): number {
  return Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 20));
}

const systemClock: ReconcilerClock = {
  now: () => millis(Date.now()),
  setTimer: (run, delayMs) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** One output's work for one master. Invariant 1: `attempt` is null or the only one that may change the pair. */
interface Pair {
  readonly publisher: Publisher;
  readonly master: string;
  /** null: forgotten, to be withdrawn. */
  wanted: Route | null;
  changedAtMs: Millis;
  attempt: Attempt | null;
  /** Its output was taken away: nothing begins any more. */
  isRetired: boolean;
  cancelTimer: (() => void) | null;
  state: OutputState;
  sinceMs: Millis;
  published: { readonly order: number; readonly epoch: number } | null;
  /** The Route that was read back last; the same one again is only a re-check. */
  settled: Route | null;
  /** Highest order of a confirmed Route of ours that was read back here; lower ones are not applied (rule 2). */
  floorOrder: number;
  /** Since when a higher order than the wish stands in its way. */
  outrankedSinceMs: Millis | null;
  failures: number;
  attempts: number;
  lastError: OutputError | null;
  lagMs: number | null;
  detail: string;
}

interface Attempt {
  readonly route: Route | null;
  readonly recheck: boolean;
  readonly controller: AbortController;
  superseded: boolean;
  cancelTimers: (() => void)[];
}

type Outcome = { readonly kind: 'done'; readonly published: Published | null } | { readonly kind: 'failed'; readonly error: unknown };

export class Reconciler {
  #publishers: readonly Publisher[];
  readonly #log: Log;
  readonly #clock: ReconcilerClock;
  readonly #onResult: (result: OutputResult) => void;
  readonly #recheckMs: number;
  readonly #random: () => number;
  readonly #pairs = new Map<string, Pair>();
  /** The newest Route of each master, for outputs that come later. */
  readonly #newest = new Map<string, Route>();
  #closing: Promise<void> | null = null;
  readonly #attemptEnded: (() => void)[] = [];

  constructor(options: ReconcilerOptions) {
    this.#publishers = options.publishers;
    this.#log = options.log;
    this.#clock = options.clock ?? systemClock;
    this.#onResult = options.onResult ?? (() => undefined);
    this.#recheckMs = options.recheckMs ?? RECHECK_MS;
    this.#random = options.random ?? Math.random;
  }

  /** The newest Route of a master; attempts start before this returns. Never throws for what an output does. */
  submit(route: Route): void {
    if (this.#closing !== null) return;
    this.#newest.set(route.master, route);
    for (const publisher of this.#publishers) this.#want(this.#pairOf(publisher, route.master), route);
  }

  /** An output saw that what it published was changed, or that it can be reached again: looks now instead of at the next timer. */
  recheck(output: string, master: string): void {
    const pair = this.#pairs.get(`${output}\n${master}`);
    if (pair !== undefined && pair.wanted !== null && pair.attempt === null) this.#wake(pair);
  }

  /** Whether a higher order than ours has been in the way of one of the master's outputs for long: this agent's Route is an old one. */
  isFenced(master: string): boolean {
    return [...this.#pairs.values()].some((pair) => pair.master === master && pair.state === 'fenced');
  }

  /**
   * An operator's word: the master's present Route is published whatever order stands there. Returns the outputs that were told; a
   * frozen one is not, since an agent that is cut off must not overrule anybody.
   */
  force(master: string): string[] {
    const pairs = [...this.#pairs.values()].filter(({ master: name, publisher, wanted }) =>
      name === master && wanted !== null && wanted.confirmed && wanted.trusted && mayReach(publisher, wanted));
    for (const pair of pairs) {
      this.#log.warn({ output: pair.publisher.name, master, order: pair.wanted?.order }, 'forced by an operator');
      Object.assign(pair, { floorOrder: -1, outrankedSinceMs: null, settled: null, failures: 0, published: null });
      if (pair.attempt !== null) this.#supersede(pair, pair.attempt);
      this.#setState(pair, 'pending');
      pair.publisher.forceNext?.(master);
      this.#wake(pair);
    }
    return pairs.map((pair) => pair.publisher.name);
  }

  /** The master is no longer monitored: every output withdraws it, except those that are frozen (rule 4: deletions included). */
  forget(master: string): void {
    if (this.#closing !== null) return;
    this.#newest.delete(master);
    for (const pair of [...this.#pairs.values()].filter((candidate) => candidate.master === master && candidate.wanted !== null)) {
      pair.wanted = null;
      pair.changedAtMs = this.#clock.now();
      pair.failures = pair.attempts = 0;
      if (pair.state === 'frozen') this.#log.warn({ output: pair.publisher.name, master }, 'forgotten while frozen, left as it is');
      this.#wake(pair);
    }
  }

  /**
   * Other outputs from now on. Those that are not in `publishers` are closed and what they published stays; new ones get the newest Route
   * of every master. Resolves when the old ones are closed and the new ones have begun.
   */
  async replace(publishers: readonly Publisher[]): Promise<void> {
    const gone = this.#publishers.filter((publisher) => !publishers.includes(publisher));
    const fresh = publishers.filter((publisher) => !this.#publishers.includes(publisher));
    const retired = [...this.#pairs.values()].filter((pair) => gone.includes(pair.publisher));
    this.#publishers = publishers.filter((publisher) => !fresh.includes(publisher));
    for (const pair of retired) this.#retire(pair);
    while (retired.some((pair) => pair.attempt !== null)) await new Promise<void>((resolve) => { this.#attemptEnded.push(resolve); });
    // The names are free only now: a new output of an old one's name is another pair.
    for (const pair of retired) this.#drop(pair);
    await Promise.all(gone.map((publisher) => this.#closeOne(publisher)));
    if (this.#closing !== null) return;
    this.#publishers = publishers;
    for (const publisher of fresh) for (const route of this.#newest.values()) this.#want(this.#pairOf(publisher, route.master), route);
  }

  #retire(pair: Pair): void {
    pair.isRetired = true;
    this.#clearTimer(pair);
    if (pair.attempt !== null) this.#supersede(pair, pair.attempt);
  }

  /** All pairs, by output in the order given, then by master. */
  status(): OutputStatus[] {
    const rank = new Map(this.#publishers.map((publisher, index) => [publisher.name, index]));
    return [...this.#pairs.values()]
      .flatMap((pair) => (pair.wanted === null ? [] : [statusOf(pair, pair.wanted)]))
      .sort((a, b) => (rank.get(a.output) ?? 0) - (rank.get(b.output) ?? 0) || a.master.localeCompare(b.master));
  }

  /** Aborts what runs, waits a moment for it, closes every output. What is published stays. */
  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  async #shutDown(): Promise<void> {
    for (const pair of this.#pairs.values()) {
      this.#clearTimer(pair);
      if (pair.attempt !== null) this.#supersede(pair, pair.attempt);
    }
    const idle = (): boolean => [...this.#pairs.values()].every((pair) => pair.attempt === null);
    while (!idle()) await new Promise<void>((resolve) => { this.#attemptEnded.push(resolve); });
    await Promise.all(this.#publishers.map((publisher) => this.#closeOne(publisher)));
    this.#pairs.clear();
  }

  async #closeOne(publisher: Publisher): Promise<void> {
    let cancel = (): void => undefined;
    const late = new Promise<never>((_, reject) => {
      const expire = (): void => reject(new AgentError('PUBLISH_TIMEOUT', `${publisher.name} did not close in time`));
      cancel = this.#clock.setTimer(expire, CLOSE_DEADLINE_MS);
    });
    try {
      await Promise.race([publisher.close(), late]);
    } catch (error) {
      this.#log.warn({ output: publisher.name, err: error }, 'output did not close cleanly');
    } finally {
      cancel();
    }
  }

  #pairOf(publisher: Publisher, master: string): Pair {
    const key = `${publisher.name}\n${master}`;
    const known = this.#pairs.get(key);
    if (known !== undefined) return known;
    const now = this.#clock.now();
    const pair: Pair = {
      publisher, master, wanted: null, changedAtMs: now, attempt: null, isRetired: false, cancelTimer: null, state: 'pending', sinceMs: now, published: null,
      settled: null, floorOrder: -1, outrankedSinceMs: null, failures: 0, attempts: 0, lastError: null, lagMs: null, detail: '',
    };
    this.#pairs.set(key, pair);
    return pair;
  }

  #drop(pair: Pair): void {
    this.#clearTimer(pair);
    this.#pairs.delete(`${pair.publisher.name}\n${pair.master}`);
  }

  #want(pair: Pair, route: Route): void {
    const before = pair.wanted;
    pair.wanted = route;
    if (before !== null && sameRoute(before, route)) return;
    // A new life of a forgotten master: its epochs may start over.
    if (before === null) Object.assign(pair, { published: null, settled: null, floorOrder: -1, outrankedSinceMs: null });
    if (before === null || differs(pair.publisher, before, route)) {
      pair.changedAtMs = this.#clock.now();
      pair.failures = pair.attempts = 0;
      pair.lastError = pair.lagMs = null;
    }
    // A wish that this output can't tell from the last one waits for its back-off: flapping replicas must not hammer it.
    const waits = pair.failures > 0 && pair.attempt === null && pair.state === 'failing' && mayReach(pair.publisher, route);
    if (!waits) this.#wake(pair);
  }

  /** Decides what a pair does now: nothing while an attempt winds up, freeze, hold back, or start. */
  #wake(pair: Pair): void {
    const { wanted, attempt } = pair;
    if (attempt !== null) {
      if (isPointless(pair.publisher, attempt, wanted)) this.#supersede(pair, attempt);
      if (wanted === null) return;
      if (!mayReach(pair.publisher, wanted)) this.#setState(pair, 'frozen');
      else if (wanted !== attempt.route && pair.state !== 'failing') this.#setState(pair, 'pending');
      return;
    }
    this.#clearTimer(pair);
    if (this.#closing !== null || pair.isRetired) return;
    if (wanted === null && pair.state === 'frozen') return this.#drop(pair);
    if (wanted !== null && !mayReach(pair.publisher, wanted)) return this.#setState(pair, 'frozen');
    if (wanted !== null && isStale(pair, wanted)) {
      const { publisher, master, floorOrder } = pair;
      const fields = { output: publisher.name, master, order: wanted.order, publishedOrder: floorOrder };
      if (pair.outrankedSinceMs === null) this.#log.warn(fields, 'lower order held back');
      return this.#outranked(pair, wanted, null);
    }
    this.#start(pair);
  }

  /** A higher order than ours is there. Either it will be ours in a moment, or an operator has to look (rule 2). */
  #outranked(pair: Pair, wanted: Route, attempt: Attempt | null): void {
    const now = this.#clock.now();
    pair.outrankedSinceMs ??= now;
    const leftMs = pair.outrankedSinceMs + FENCED_AFTER_MS - now;
    if (leftMs > 0) {
      this.#setState(pair, 'pending');
      return this.#wakeLater(pair, Math.min(this.#recheckMs, leftMs));
    }
    if (pair.state !== 'fenced') {
      const order = pair.published?.order ?? pair.floorOrder;
      const fields = { output: pair.publisher.name, master: pair.master, order: wanted.order, publishedOrder: order };
      this.#log.error(fields, `fenced: a higher order is published; "pointsman publish ${pair.master} --force" overrules it`);
      this.#setState(pair, 'fenced');
      this.#report(pair, attempt, wanted, 'fenced', null);
    }
    this.#wakeLater(pair, this.#recheckMs * (0.8 + 0.4 * this.#random()));
  }

  #start(pair: Pair): void {
    const { publisher, wanted: route } = pair;
    const recheck = route !== null && pair.settled !== null && sameRoute(pair.settled, route);
    const attempt: Attempt = { route, recheck, controller: new AbortController(), superseded: false, cancelTimers: [] };
    pair.attempt = attempt;
    if (!recheck || pair.failures > 0) pair.attempts++;
    if (!recheck && pair.failures === 0 && pair.state !== 'fenced') this.#setState(pair, 'pending');
    const { deadlineMs } = publisher;
    const expire = (): void => {
      const message = `${publisher.name} took longer than ${deadlineMs} ms for ${pair.master}`;
      const error = new AgentError('PUBLISH_TIMEOUT', message, { master: pair.master });
      attempt.controller.abort(error);
      this.#end(pair, attempt, { kind: 'failed', error });
    };
    attempt.cancelTimers.push(this.#clock.setTimer(expire, deadlineMs));
    // An async function: what an output throws at once becomes a rejection like any other.
    const run = async (): Promise<Published | null> => {
      if (route !== null) return await publisher.apply(route, attempt.controller.signal);
      await publisher.forget(pair.master);
      return null;
    };
    run().then(
      (published) => this.#end(pair, attempt, { kind: 'done', published }),
      (error: unknown) => this.#end(pair, attempt, { kind: 'failed', error }),
    );
  }

  /** The wish has changed under a running attempt: cancel it, and stop waiting for it after a grace. */
  #supersede(pair: Pair, attempt: Attempt): void {
    if (attempt.superseded) return;
    attempt.superseded = true;
    const error = new AgentError('PUBLISH_FAILED', 'superseded by a newer route', { master: pair.master });
    attempt.cancelTimers.push(this.#clock.setTimer(() => this.#end(pair, attempt, { kind: 'failed', error }), ABORT_GRACE_MS));
    attempt.controller.abort(error);
  }

  #end(pair: Pair, attempt: Attempt, outcome: Outcome): void {
    // Given up before: a late result no longer counts, whatever it says.
    if (pair.attempt !== attempt) return;
    pair.attempt = null;
    for (const cancel of attempt.cancelTimers) cancel();
    if (outcome.kind === 'failed') this.#fail(pair, attempt, outcome.error);
    else if (outcome.published === null || attempt.route === null) this.#withdrawn(pair);
    else this.#succeed(pair, attempt, attempt.route, outcome.published);
    for (const resolve of this.#attemptEnded.splice(0)) resolve();
  }

  #withdrawn(pair: Pair): void {
    if (pair.wanted === null) this.#drop(pair);
    else this.#wake(pair);
  }

  #succeed(pair: Pair, attempt: Attempt, route: Route, published: Published): void {
    const foreign = published.order > route.order;
    pair.published = { order: published.order, epoch: foreign ? Math.ceil(published.order / 2) : route.configEpoch };
    pair.settled = route;
    if (route.confirmed && !foreign) pair.floorOrder = Math.max(pair.floorOrder, route.order);
    pair.detail = published.detail;
    const wished = pair.wanted !== null && !differs(pair.publisher, pair.wanted, route);
    if (wished) {
      pair.lagMs ??= this.#clock.now() - pair.changedAtMs;
      pair.failures = 0;
      pair.lastError = null;
    }
    this.#report(pair, attempt, route, 'published', null);
    if (pair.wanted === null || !sameRoute(pair.wanted, route)) return this.#wake(pair);
    if (foreign) return this.#outranked(pair, route, attempt);
    pair.outrankedSinceMs = null;
    this.#setState(pair, 'published');
    this.#wakeLater(pair, this.#recheckMs * (0.8 + 0.4 * this.#random()));
  }

  #fail(pair: Pair, attempt: Attempt, thrown: unknown): void {
    const error: OutputError = { code: codeOf(thrown) ?? 'PUBLISH_FAILED', message: messageOf(thrown), atMs: this.#clock.now() };
    if (attempt.superseded) {
      if (attempt.route !== null) this.#report(pair, attempt, attempt.route, 'superseded', null);
      return this.#wake(pair);
    }
    pair.failures++;
    pair.lastError = error;
    // What a failed write left behind is unknown, so the next attempt is a full one and no re-check.
    pair.settled = null;
    if (pair.failures === 1 || pair.failures % 10 === 0) {
      const fields = { output: pair.publisher.name, master: pair.master, attempts: pair.failures, code: error.code };
      this.#log.warn(fields, `publishing failed: ${error.message}`);
    }
    if (attempt.route !== null) this.#report(pair, attempt, attempt.route, 'failed', error);
    if (pair.wanted !== null && !mayReach(pair.publisher, pair.wanted)) return this.#setState(pair, 'frozen');
    this.#setState(pair, 'failing');
    this.#wakeLater(pair, backoffMs(pair.failures) * (1 - this.#random() / 4));
  }

  #report(pair: Pair, attempt: Attempt | null, route: Route, outcome: OutputResult['outcome'], error: OutputError | null): void {
    const now = this.#clock.now();
    const result: OutputResult = {
      output: pair.publisher.name, master: pair.master, route, outcome, recheck: attempt?.recheck ?? false,
      publishedOrder: pair.published?.order ?? null, detail: outcome === 'published' ? pair.detail : '',
      error, attempts: pair.attempts, latencyMs: now - pair.changedAtMs, atMs: now,
    };
    try {
      this.#onResult(result);
    } catch (thrown) {
      // A listener's fault must not end up as this output's failure.
      this.#log.error({ err: thrown }, 'a listener of output results failed');
    }
  }

  #setState(pair: Pair, state: OutputState): void {
    if (pair.state === state) return;
    pair.state = state;
    pair.sinceMs = this.#clock.now();
  }

  #wakeLater(pair: Pair, delayMs: number): void {
    this.#clearTimer(pair);
    if (this.#closing === null && !pair.isRetired) pair.cancelTimer = this.#clock.setTimer(() => this.#wake(pair), delayMs);
  }

  #clearTimer(pair: Pair): void {
    pair.cancelTimer?.();
    pair.cancelTimer = null;
  }
}

function mayReach(publisher: Publisher, route: Route): boolean {
  return publisher.wantsUntrusted || (route.trusted && route.confirmed);
}

/** Whether the output would do something else for `b` than for `a`. */
function differs(publisher: Publisher, a: Route, b: Route): boolean {
  return publisher.differs?.(a, b) ?? !sameRoute(a, b);
}

function isPointless(publisher: Publisher, attempt: Attempt, wanted: Route | null): boolean {
  if (wanted === null || attempt.route === null) return wanted !== attempt.route;
  return differs(publisher, attempt.route, wanted);
}

/** Rule 2. An unconfirmed Route carries no claim and only ever reaches outputs that ask for it, to say "unknown". */
function isStale(pair: Pair, route: Route): boolean {
  return route.confirmed && route.order < pair.floorOrder;
}

function statusOf(pair: Pair, wanted: Route): OutputStatus {
  return {
    output: pair.publisher.name, master: pair.master, state: pair.state, wantedOrder: wanted.order, wantedEpoch: wanted.configEpoch,
    publishedOrder: pair.published?.order ?? null, publishedEpoch: pair.published?.epoch ?? null, sinceMs: pair.sinceMs,
    attempts: pair.attempts, lastError: pair.lastError, lagMs: pair.lagMs, detail: pair.detail,
  };
}
