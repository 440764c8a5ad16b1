// The reconciler on a fake clock: back-off, deadlines, cancelling, fencing, freezing, and that pairs don't disturb each other.
import { describe, expect, test } from '@jest/globals';
import { AgentError } from '../../../src/errors.js';
import type { Published, Publisher } from '../../../src/publishers/publisher.js';
import { Reconciler, backoffMs } from '../../../src/publishers/reconciler.js';
import type { OutputResult, OutputStatus } from '../../../src/publishers/reconciler.js';
import type { Route } from '../../../src/route/route.js';
import { A, B, C, FakeClock, captureLog, routeOf, settle } from './routes.js';

interface Call {
  readonly route: Route;
  readonly signal: AbortSignal;
  readonly succeed: (order?: number) => Promise<void>;
  readonly fail: (error?: unknown) => Promise<void>;
}

/** An output whose every attempt the test ends by hand. */
class ManualOutput implements Publisher {
  readonly deadlineMs = 1000;
  readonly calls: Call[] = [];
  readonly forgotten: string[] = [];
  closes = 0;
  forgetResult: () => Promise<void> = () => Promise.resolve();
  differs?: (a: Route, b: Route) => boolean;

  constructor(readonly name = 'out', readonly wantsUntrusted = false) {}

  apply(route: Route, signal: AbortSignal): Promise<Published> {
    return new Promise((resolve, reject) => {
      const succeed = async (order = route.order): Promise<void> => { resolve({ order, detail: `at ${order}` }); await settle(); };
      const refused = new AgentError('PUBLISH_FAILED', 'refused');
      const fail = async (error: unknown = refused): Promise<void> => { reject(error as Error); await settle(); };
      this.calls.push({ route, signal, succeed, fail });
    });
  }

  forget(master: string): Promise<void> {
    this.forgotten.push(master);
    return this.forgetResult();
  }

  close(): Promise<void> {
    this.closes++;
    return Promise.resolve();
  }

  get last(): Call {
    const call = this.calls.at(-1);
    if (call === undefined) throw new Error('no attempt yet');
    return call;
  }
}

function setUp(...publishers: Publisher[]) {
  const clock = new FakeClock();
  const results: OutputResult[] = [];
  const { log, lines } = captureLog();
  const reconciler = new Reconciler({ publishers, log, clock, onResult: (result) => results.push(result), random: () => 0 });
  const status = (index = 0): OutputStatus => {
    const found = reconciler.status()[index];
    if (found === undefined) throw new Error('no such pair');
    return found;
  };
  return { clock, reconciler, results, lines, status };
}

describe('a success', () => {
  test('is published, with lag, and looked at again', async () => {
    const out = new ManualOutput();
    const { clock, reconciler, results, status } = setUp(out);
    reconciler.submit(routeOf());
    expect(status()).toMatchObject({ output: 'out', master: 'cache', state: 'pending', wantedOrder: 10, wantedEpoch: 5,
      publishedOrder: null, attempts: 1 });
    await clock.advance(40);
    await out.last.succeed();
    expect(status()).toMatchObject({ state: 'published', publishedOrder: 10, publishedEpoch: 5, lagMs: 40, lastError: null,
      detail: 'at 10' });
    expect(status().sinceMs).toBe(clock.now());

    await clock.advance(7_900);
    expect(out.calls).toHaveLength(1);
    await clock.advance(200);
    expect(out.calls).toHaveLength(2);
    await out.last.succeed();
    expect(status()).toMatchObject({ state: 'published', lagMs: 40, attempts: 1 });
    expect(results.map(({ outcome, recheck }) => [outcome, recheck])).toEqual([['published', false], ['published', true]]);
  });

  test('the same Route again wakes nobody', async () => {
    const out = new ManualOutput();
    const { reconciler } = setUp(out);
    reconciler.submit(routeOf());
    await out.last.succeed();
    reconciler.submit(routeOf());
    await settle();
    expect(out.calls).toHaveLength(1);
  });

  test('of somebody newer is shown, but is not ours', async () => {
    const out = new ManualOutput();
    const { clock, reconciler, status } = setUp(out);
    reconciler.submit(routeOf());
    await out.last.succeed(14);
    expect(status()).toMatchObject({ state: 'pending', publishedOrder: 14, publishedEpoch: 7 });
    await clock.advance(20_000);
    expect(out.calls.length).toBeGreaterThan(1);
  });
});

describe('a failure', () => {
  test('is repeated with a back-off that doubles to 30 s', async () => {
    const out = new ManualOutput();
    const { clock, reconciler, status } = setUp(out);
    reconciler.submit(routeOf());
    const gaps: number[] = [];
    for (let run = 1; run <= 11; run++) {
      await out.last.fail();
      expect(status()).toMatchObject({ state: 'failing', attempts: run,
        lastError: { code: 'PUBLISH_FAILED', message: 'refused', atMs: clock.now() } });
      const failedAt = clock.now();
      while (out.calls.length === run) await clock.advance(50);
      gaps.push(clock.now() - failedAt);
    }
    expect(gaps).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
    await out.last.succeed();
    expect(status()).toMatchObject({ state: 'published', lastError: null });
  });

  test('back-off never overflows', () => expect([1, 2, 9, 10, 1e9].map(backoffMs)).toEqual([100, 200, 25_600, 30_000, 30_000]));

  test('a newer Route does not wait for the back-off of the old one', async () => {
    const out = new ManualOutput();
    const { clock, reconciler, status } = setUp(out);
    reconciler.submit(routeOf());
    for (let run = 0; run < 6; run++) { await out.last.fail(); await clock.advance(3200); }
    await out.last.fail();
    const before = out.calls.length;
    reconciler.submit(routeOf({ configEpoch: 6, primary: B }));
    expect(out.calls).toHaveLength(before + 1);
    expect(status()).toMatchObject({ state: 'pending', attempts: 1, lastError: null });
    await out.last.fail();
    await clock.advance(100);
    expect(out.calls).toHaveLength(before + 2);
  });

  test.each([
    ['throws at once', () => { throw new Error('boom'); }],
    ['rejects with no error', () => Promise.reject('boom' as unknown as Error)],
  ])('an output that %s is only a failing one', async (_, apply) => {
    const broken: Publisher = { name: 'broken', deadlineMs: 1000, wantsUntrusted: false, apply, forget: () => Promise.resolve(),
      close: () => Promise.resolve() };
    const out = new ManualOutput();
    const { reconciler, status } = setUp(broken, out);
    expect(() => reconciler.submit(routeOf())).not.toThrow();
    await settle();
    expect(status(0)).toMatchObject({ output: 'broken', state: 'failing', lastError: { code: 'PUBLISH_FAILED', message: 'boom' } });
    await out.last.succeed();
    expect(status(1)).toMatchObject({ output: 'out', state: 'published' });
  });

  test('a re-check that fails is a failure', async () => {
    const out = new ManualOutput();
    const { clock, reconciler, results, status } = setUp(out);
    reconciler.submit(routeOf());
    await out.last.succeed();
    await clock.advance(8000);
    await out.last.fail();
    expect(status()).toMatchObject({ state: 'failing', publishedOrder: 10 });
    await clock.advance(100);
    await out.last.succeed();
    expect(results.map(({ outcome, recheck }) => [outcome, recheck])).toEqual([['published', false], ['failed', true],
      ['published', false]]);
  });

  test("a listener's fault is not the output's", async () => {
    const clock = new FakeClock();
    const out = new ManualOutput();
    const { log, lines } = captureLog();
    const reconciler = new Reconciler({ publishers: [out], log, clock, onResult: () => { throw new Error('listener'); } });
    reconciler.submit(routeOf());
    await out.last.succeed();
    expect(reconciler.status()[0]).toMatchObject({ state: 'published' });
    expect(lines.join('')).toContain('listener');
  });
});

describe('a hanging output', () => {
  test('is aborted at its deadline, the pair goes on, and a late result is ignored', async () => {
    const out = new ManualOutput();
    const { clock, reconciler, results, status } = setUp(out);
    reconciler.submit(routeOf());
    const hung = out.last;
    await clock.advance(999);
    expect(hung.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(hung.signal.aborted).toBe(true);
    expect(status()).toMatchObject({ state: 'failing', lastError: { code: 'PUBLISH_TIMEOUT' } });
    await clock.advance(100);
    expect(out.calls).toHaveLength(2);
    await hung.succeed();
    expect(status().state).toBe('failing');
    await out.last.succeed();
    expect(status().state).toBe('published');
    expect(results.map(({ outcome }) => outcome)).toEqual(['failed', 'published']);
  });

  test('delays neither another output nor another master', async () => {
    const hanging = new ManualOutput('hanging');
    const out = new ManualOutput('out');
    const { reconciler } = setUp(hanging, out);
    reconciler.submit(routeOf());
    reconciler.submit(routeOf({ master: 'other' }));
    for (const call of out.calls) await call.succeed();
    expect(reconciler.status().map(({ output, master, state }) => [output, master, state])).toEqual([
      ['hanging', 'cache', 'pending'], ['hanging', 'other', 'pending'], ['out', 'cache', 'published'], ['out', 'other', 'published'],
    ]);
  });

  test('that ignores its signal holds a newer Route up for the grace only', async () => {
    const out = new ManualOutput();
    out.deadlineMs satisfies number;
    const { clock, reconciler } = setUp(Object.assign(out, { deadlineMs: 60_000 }));
    reconciler.submit(routeOf());
    reconciler.submit(routeOf({ configEpoch: 6, primary: B }));
    await clock.advance(2_900);
    expect(out.calls).toHaveLength(1);
    await clock.advance(200);
    expect(out.calls.map(({ route }) => route.primary)).toEqual([A, B]);
  });
});

describe('a newer Route', () => {
  test('aborts the running attempt; one in flight, latest wins', async () => {
    const out = new ManualOutput();
    const { reconciler, results, status } = setUp(out);
    reconciler.submit(routeOf());
    const first = out.last;
    reconciler.submit(routeOf({ configEpoch: 6, primary: B }));
    reconciler.submit(routeOf({ configEpoch: 7, primary: C }));
    expect(first.signal.aborted).toBe(true);
    expect(out.calls).toHaveLength(1);
    await first.fail(first.signal.reason);
    expect(out.calls.map(({ route }) => route.primary)).toEqual([A, C]);
    expect(status()).toMatchObject({ state: 'pending', wantedOrder: 14, attempts: 1, lastError: null });
    await out.last.succeed();
    expect(results.map(({ outcome }) => outcome)).toEqual(['superseded', 'published']);
  });

  test('that this output cannot tell from the last one lets it finish', async () => {
    const out = new ManualOutput();
    out.differs = (a, b) => a.primary?.host !== b.primary?.host;
    const { reconciler, status } = setUp(out);
    reconciler.submit(routeOf());
    reconciler.submit(routeOf({ replicas: [{ address: B, healthy: true }], configEpoch: 6 }));
    expect(out.last.signal.aborted).toBe(false);
    await out.last.succeed();
    expect(out.calls.map(({ route }) => route.order)).toEqual([10, 12]);
    await out.last.succeed();
    expect(status()).toMatchObject({ state: 'published', publishedOrder: 12 });
  });

  test('that it cannot tell apart waits for the back-off', async () => {
    const out = new ManualOutput();
    out.differs = (a, b) => a.primary?.host !== b.primary?.host;
    const { clock, reconciler } = setUp(out);
    reconciler.submit(routeOf());
    await out.last.fail();
    for (const healthy of [true, false, true, false]) reconciler.submit(routeOf({ replicas: [{ address: B, healthy }] }));
    expect(out.calls).toHaveLength(1);
    await clock.advance(100);
    expect(out.calls).toHaveLength(2);
    expect(out.last.route.replicas).toEqual([{ address: B, healthy: false }]);
  });

  test('with a lower order than published is held back, an equal or higher one is not', async () => {
    const out = new ManualOutput();
    const { clock, reconciler, lines, status } = setUp(out);
    reconciler.submit(routeOf({ configEpoch: 6, primary: B }));
    await out.last.succeed();
    reconciler.submit(routeOf({ configEpoch: 5 }));
    await clock.advance(29_000);
    expect(status()).toMatchObject({ state: 'pending', wantedOrder: 10, publishedOrder: 12 });
    await clock.advance(31_000);
    expect(out.calls).toHaveLength(1);
    expect(status()).toMatchObject({ state: 'fenced', wantedOrder: 10, publishedOrder: 12 });
    expect(lines.filter((line) => line.includes('lower order held back'))).toHaveLength(1);
    reconciler.submit(routeOf({ configEpoch: 6, primary: B, role: 'leader' }));
    expect(out.calls).toHaveLength(2);
  });

  test('an unconfirmed one of a lower order reaches an output that wants it', async () => {
    const out = new ManualOutput('dns', true);
    const { reconciler } = setUp(out);
    reconciler.submit(routeOf());
    await out.last.succeed();
    reconciler.submit(routeOf({ configEpoch: 0, primary: null, confirmed: false }));
    expect(out.last.route.primary).toBeNull();
  });
});

describe('an untrusted or unconfirmed Route', () => {
  test.each([{ trusted: false }, { confirmed: false }])('%j freezes an output that must not move', async (change) => {
    const dns = new ManualOutput('dns', true);
    const consul = new ManualOutput('consul');
    const { clock, reconciler, status } = setUp(dns, consul);
    reconciler.submit(routeOf());
    await dns.last.succeed();
    await consul.last.succeed();
    reconciler.submit(routeOf({ primary: B, configEpoch: 6, ...change }));
    await clock.advance(60_000);
    expect(dns.calls.some(({ route }) => route.primary === B)).toBe(true);
    expect(consul.calls).toHaveLength(1);
    expect(status(1)).toMatchObject({ state: 'frozen', publishedOrder: 10, wantedOrder: 12 });
    reconciler.submit(routeOf({ primary: B, configEpoch: 6 }));
    expect(consul.last.route.primary).toBe(B);
    await consul.last.succeed();
    expect(status(1).state).toBe('published');
  });

  test('stops retries and aborts what runs', async () => {
    const out = new ManualOutput();
    const { clock, reconciler, status } = setUp(out);
    reconciler.submit(routeOf());
    reconciler.submit(routeOf({ trusted: false }));
    expect(out.last.signal.aborted).toBe(true);
    await out.last.fail();
    await clock.advance(60_000);
    expect(out.calls).toHaveLength(1);
    expect(status().state).toBe('frozen');
  });
});

describe('forget', () => {
  test('ends the running attempt, withdraws, and starts the orders over', async () => {
    const out = new ManualOutput();
    const { reconciler } = setUp(out);
    reconciler.submit(routeOf());
    await out.last.succeed();
    reconciler.submit(routeOf({ configEpoch: 6, primary: B }));
    reconciler.forget('cache');
    expect(out.last.signal.aborted).toBe(true);
    expect(out.forgotten).toEqual([]);
    await out.last.fail();
    expect(out.forgotten).toEqual(['cache']);
    expect(reconciler.status()).toEqual([]);
    reconciler.submit(routeOf({ configEpoch: 0, primary: C }));
    expect(out.last.route.primary).toBe(C);
  });

  test('is repeated until it works', async () => {
    const out = new ManualOutput();
    const { clock, reconciler } = setUp(out);
    reconciler.submit(routeOf());
    await out.last.succeed();
    out.forgetResult = () => Promise.reject(new Error('away'));
    reconciler.forget('cache');
    await clock.advance(99);
    expect(out.forgotten).toHaveLength(1);
    out.forgetResult = () => Promise.resolve();
    await clock.advance(1);
    expect(out.forgotten).toHaveLength(2);
    await clock.advance(60_000);
    expect(out.forgotten).toHaveLength(2);
  });

  test('of a master that comes back meanwhile ends in its Route', async () => {
    const out = new ManualOutput();
    const { clock, reconciler } = setUp(out);
    reconciler.submit(routeOf());
    await out.last.succeed();
    out.forgetResult = () => new Promise(() => undefined);
    reconciler.forget('cache');
    reconciler.submit(routeOf({ configEpoch: 1, primary: B }));
    expect(out.calls).toHaveLength(1);
    await clock.advance(3_000);
    expect(out.last.route.primary).toBe(B);
  });

  test('while frozen deletes nothing', async () => {
    const out = new ManualOutput();
    const { reconciler } = setUp(out);
    reconciler.submit(routeOf({ trusted: false }));
    reconciler.forget('cache');
    await settle();
    expect(out.forgotten).toEqual([]);
    expect(reconciler.status()).toEqual([]);
  });

  test('of an unknown master is nothing', () => {
    const out = new ManualOutput();
    const { reconciler } = setUp(out);
    reconciler.forget('nobody');
    expect(out.forgotten).toEqual([]);
  });
});

describe('close', () => {
  test('aborts, waits for the attempt, closes every output once, leaves no timer', async () => {
    const out = new ManualOutput();
    const { clock, reconciler } = setUp(out);
    reconciler.submit(routeOf());
    const closed = Promise.all([reconciler.close(), reconciler.close()]);
    await settle();
    expect(out.last.signal.aborted).toBe(true);
    expect(out.closes).toBe(0);
    await out.last.fail();
    await closed;
    expect(out.closes).toBe(1);
    expect(clock.timers).toBe(0);
    reconciler.submit(routeOf({ configEpoch: 9 }));
    expect(out.calls).toHaveLength(1);
  });

  test('does not wait for ever, neither for an attempt nor for close', async () => {
    const out = Object.assign(new ManualOutput(), { close: () => new Promise<void>(() => undefined) });
    const { clock, reconciler, lines } = setUp(out);
    reconciler.submit(routeOf());
    let done = false;
    const closed = reconciler.close().then(() => { done = true; });
    await clock.advance(3_000);
    expect(done).toBe(false);
    await clock.advance(5_000);
    await closed;
    expect(lines.join('')).toContain('did not close');
  });
});
