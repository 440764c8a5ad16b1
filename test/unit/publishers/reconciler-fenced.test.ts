// A higher order than ours in an output: waited for, then `fenced` and said once, until it is reached or an operator overrules it.
import { describe, expect, test } from '@jest/globals';
import type { Published, Publisher } from '../../../src/publishers/publisher.js';
import { Reconciler } from '../../../src/publishers/reconciler.js';
import type { OutputResult } from '../../../src/publishers/reconciler.js';
import type { Route } from '../../../src/route/route.js';
import { A, B, FakeClock, captureLog, routeOf, settle } from './routes.js';

/** A store that others write to as well, with a fence as every output has one. */
class Store implements Publisher {
  readonly name = 'store';
  readonly deadlineMs = 1_000;
  readonly wantsUntrusted = false;
  order = -1;
  writes = 0;
  looks = 0;
  #forced = false;

  async apply(route: Route): Promise<Published> {
    this.looks++;
    if (route.order < this.order && !this.#forced) return { order: this.order, detail: 'left alone' };
    if (route.order !== this.order) this.writes++;
    this.order = route.order;
    this.#forced = false;
    return { order: route.order, detail: 'written' };
  }

  forceNext(): void {
    this.#forced = true;
  }

  async forget(): Promise<void> {
    this.order = -1;
  }

  async close(): Promise<void> {
    await settle();
  }
}

function setUp(): { store: Store; clock: FakeClock; reconciler: Reconciler; results: OutputResult[]; lines: string[]; state: () => string | undefined } {
  const [store, clock, results] = [new Store(), new FakeClock(), [] as OutputResult[]];
  const { log, lines } = captureLog();
  const reconciler = new Reconciler({ publishers: [store], log, clock, onResult: (result) => results.push(result), random: () => 0 });
  return { store, clock, reconciler, results, lines, state: () => reconciler.status()[0]?.state };
}

describe('a higher order in the store', () => {
  test('is waited for 30 s, then the output is fenced: said once, looked at, never written', async () => {
    const { store, clock, reconciler, results, lines, state } = setUp();
    store.order = 20;
    reconciler.submit(routeOf());
    await clock.advance(29_900);
    expect([state(), reconciler.isFenced('cache')]).toEqual(['pending', false]);
    await clock.advance(200);
    expect([state(), reconciler.isFenced('cache')]).toEqual(['fenced', true]);
    await clock.advance(120_000);
    expect([state(), store.writes, store.order]).toEqual(['fenced', 0, 20]);
    expect(store.looks).toBeGreaterThan(5);
    expect(lines.filter((line) => line.includes('pointsman publish cache --force'))).toHaveLength(1);
    expect(results.filter(({ outcome }) => outcome === 'fenced')).toHaveLength(1);
    expect(reconciler.status()[0]).toMatchObject({ publishedOrder: 20, publishedEpoch: 10, wantedOrder: 10, wantedEpoch: 5 });
  });

  test('that is reached ends it, and a Route that is still lower does not', async () => {
    const { store, clock, reconciler, state } = setUp();
    store.order = 20;
    reconciler.submit(routeOf());
    await clock.advance(31_000);
    reconciler.submit(routeOf({ configEpoch: 6 }));
    await settle();
    expect(state()).toBe('fenced');
    reconciler.submit(routeOf({ configEpoch: 10, primary: B }));
    await settle();
    expect([state(), reconciler.isFenced('cache')]).toEqual(['published', false]);
  });

  test('that goes away again is no fence', async () => {
    const { store, clock, reconciler, state } = setUp();
    store.order = 20;
    reconciler.submit(routeOf());
    await clock.advance(25_000);
    store.order = 10;
    await clock.advance(10_000);
    expect(state()).toBe('published');
    store.order = 20;
    await clock.advance(20_000);
    expect(state()).toBe('pending');
  });
});

describe('force', () => {
  test('publishes the present Route over it, once', async () => {
    const { store, clock, reconciler, state } = setUp();
    store.order = 20;
    reconciler.submit(routeOf());
    await clock.advance(31_000);
    expect(reconciler.force('cache')).toEqual(['store']);
    await settle();
    expect([state(), store.order, store.writes]).toEqual(['published', 10, 1]);
    store.order = 30;
    await clock.advance(15_000);
    expect([state(), store.order]).toEqual(['pending', 30]);
  });

  test('is nothing for an agent that is cut off or not confirmed, and for unknown masters', async () => {
    const { store, reconciler } = setUp();
    store.order = 20;
    reconciler.submit(routeOf({ trusted: false }));
    expect(reconciler.force('cache')).toEqual([]);
    reconciler.submit(routeOf({ confirmed: false }));
    expect(reconciler.force('cache')).toEqual([]);
    expect(reconciler.force('nobody')).toEqual([]);
    await settle();
    expect(store.looks).toBe(0);
  });

  test('lets a lower order through that the reconciler itself held back', async () => {
    const { store, clock, reconciler, state } = setUp();
    reconciler.submit(routeOf({ configEpoch: 9, primary: B }));
    await settle();
    reconciler.submit(routeOf({ primary: A }));
    await clock.advance(31_000);
    expect([state(), store.order]).toEqual(['fenced', 18]);
    reconciler.force('cache');
    await settle();
    expect([state(), store.order]).toEqual(['published', 10]);
  });
});
