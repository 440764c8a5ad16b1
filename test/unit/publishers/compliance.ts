// The suite that every publisher passes: idempotent, fenced by order, cancelled by its signal, within its deadline, latest wins,
// sound after a restart, and able to forget. Call `publisherCompliance` at the top level of a test file.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Publisher } from '../../../src/publishers/publisher.js';
import { Reconciler } from '../../../src/publishers/reconciler.js';
import type { Address } from '../../../src/sentinel/wire/address.js';
import { A, B, C, captureLog, routeOf, waitFor } from './routes.js';

/** One publisher over a fresh outside system. */
export interface ComplianceFixture {
  readonly publisher: Publisher;
  /** Where clients of this output are sent for `master`, read from the outside; null = nowhere yet (or: unknown). */
  seen(master: string): Promise<Address | null>;
  /** Changes made outside so far (script calls, transactions, zone swaps), where they can be counted. */
  writes?(): Promise<number>;
  /** Makes writes hang until the returned function is called, where the outside system can hang. */
  stall?(): Promise<() => Promise<void>>;
  /** A second publisher over the same outside system and state, as after a restart of the agent; the first one is closed before. */
  restart(): Promise<Publisher>;
  /** What it does when its agent is cut off, where that is more than standing still: lets go (VIP), or answers by its setting (DNS). */
  readonly whenIsolated?: 'lets-go' | 'answers';
  /** Takes the outside system away. Publishers are closed by the suite. */
  dispose(): Promise<void>;
}

/** First Route of a life, whose predecessor is known: an output that acts on changes acts on it. */
const first = routeOf({ primary: A, previous: C, configEpoch: 5 });
const second = routeOf({ primary: B, previous: A, configEpoch: 6, phase: 'failover' });
const never = (): AbortSignal => new AbortController().signal;

/** What a test works on: both are new for each test, `publisher` also after a restart. */
interface Subject {
  fixture: ComplianceFixture;
  publisher: Publisher;
}

export function publisherCompliance(name: string, makeFixture: () => Promise<ComplianceFixture>): void {
  describe(`${name} as a publisher`, () => {
    const subject = {} as Subject;
    beforeEach(async () => {
      subject.fixture = await makeFixture();
      subject.publisher = subject.fixture.publisher;
    });
    afterEach(async () => {
      await subject.publisher.close();
      await subject.fixture.dispose();
    });
    testState(subject);
    testOrder(subject);
    testTrouble(subject);
  });
}

function testState(subject: Subject): void {
  test('has a stable name and a finite deadline', () => {
    const { publisher } = subject;
    expect(publisher.name).toMatch(/^[a-z][a-z0-9-]*$/);
    expect(publisher.deadlineMs).toBeGreaterThan(0);
    expect(publisher.deadlineMs).toBeLessThanOrEqual(600_000);
  });

  test('makes clients see the primary, and says so only then', async () => {
    const { fixture, publisher } = subject;
    expect(await publisher.apply(first, never())).toMatchObject({ order: first.order, detail: expect.any(String) });
    expect(await fixture.seen('cache')).toEqual(A);
  });

  test('is idempotent: the same Route again changes nothing', async () => {
    const { fixture, publisher } = subject;
    await publisher.apply(first, never());
    const writes = await fixture.writes?.();
    expect(await publisher.apply(first, never())).toMatchObject({ order: first.order });
    expect(await publisher.apply(routeOf({ ...first }), never())).toMatchObject({ order: first.order });
    expect(await fixture.seen('cache')).toEqual(A);
    expect(await fixture.writes?.()).toBe(writes);
  });

  test('keeps masters apart', async () => {
    const { fixture, publisher } = subject;
    await publisher.apply(first, never());
    await publisher.apply(routeOf({ ...second, master: 'other' }), never());
    expect([await fixture.seen('cache'), await fixture.seen('other')]).toEqual([A, B]);
  });

  test('is sound after a restart: the same Route stays, a newer one is followed', async () => {
    const { fixture, publisher } = subject;
    await publisher.apply(first, never());
    const writes = await fixture.writes?.();
    await publisher.close();
    subject.publisher = await fixture.restart();
    await subject.publisher.apply(routeOf({ ...first, previous: null }), never());
    expect(await fixture.seen('cache')).toEqual(A);
    // What lets go at the stop has to take again.
    if (fixture.whenIsolated !== 'lets-go') expect(await fixture.writes?.()).toBe(writes);
    await subject.publisher.apply(second, never());
    expect(await fixture.seen('cache')).toEqual(B);
  });

  test('makes up for a switch that happened while the agent was away', async () => {
    const { fixture, publisher } = subject;
    await publisher.apply(first, never());
    await publisher.close();
    subject.publisher = await fixture.restart();
    await subject.publisher.apply(routeOf({ ...second, phase: 'steady', previous: null }), never());
    expect(await fixture.seen('cache')).toEqual(B);
    const writes = await fixture.writes?.();
    await subject.publisher.apply(routeOf({ ...second, phase: 'steady', previous: null }), never());
    expect(await fixture.writes?.()).toBe(writes);
  });

  test('forgets: unknown masters too, more than once, and a new life may start at a lower order', async () => {
    const { fixture, publisher } = subject;
    await publisher.forget('nobody');
    await publisher.apply(second, never());
    await publisher.forget('cache');
    await publisher.forget('cache');
    expect(await publisher.apply(routeOf({ primary: A, previous: C, configEpoch: 1 }), never())).toMatchObject({ order: 2 });
    expect(await fixture.seen('cache')).toEqual(A);
  });

  test('closes more than once', async () => {
    const { publisher } = subject;
    await publisher.apply(first, never());
    await publisher.close();
    await publisher.close();
  });
}

function testOrder(subject: Subject): void {
  test('is fenced by order: a lower one changes nothing and is told the higher', async () => {
    const { fixture, publisher } = subject;
    await publisher.apply(second, never());
    const told = await publisher.apply(first, never());
    expect(told.order).toBe(second.order);
    expect(await fixture.seen('cache')).toEqual(B);
  });

  test('is overruled by an operator alone: forced, a lower order is published once', async () => {
    const { fixture, publisher } = subject;
    await publisher.apply(second, never());
    publisher.forceNext?.('cache');
    expect(await publisher.apply(routeOf({ ...first, previous: B }), never())).toMatchObject({ order: first.order });
    expect(await fixture.seen('cache')).toEqual(A);
  });

  test('moves nobody while isolated or unconfirmed, and follows after the heal', async () => {
    const { fixture, publisher } = subject;
    const { log } = captureLog();
    const reconciler = new Reconciler({ publishers: [publisher], log });
    reconciler.submit(first);
    await waitFor(() => reconciler.status()[0]?.state === 'published', 'the first Route', 30_000);
    const writes = await fixture.writes?.();
    for (const doubt of [{ trusted: false }, { confirmed: false }]) {
      reconciler.submit(routeOf({ ...second, ...doubt }));
      await waitFor(() => ['frozen', 'published'].includes(reconciler.status()[0]?.state ?? '') && reconciler.status()[0]?.wantedOrder === 12, 'the doubtful Route');
      expect([A, fixture.whenIsolated === undefined ? A : null]).toContainEqual(await fixture.seen('cache'));
      if (fixture.whenIsolated === undefined) expect(await fixture.writes?.()).toBe(writes);
    }
    reconciler.submit(second);
    await waitFor(async () => (await fixture.seen('cache'))?.host === B.host, 'the heal', 30_000);
    await reconciler.close();
  });

  test('does nothing for a signal that is aborted already', async () => {
    const { fixture, publisher } = subject;
    await publisher.apply(first, never());
    await expect(publisher.apply(second, AbortSignal.abort(new Error('superseded')))).rejects.toThrow();
    expect(await fixture.seen('cache')).toEqual(A);
  });

  test('ends in the latest of many Routes, applied one over the other', async () => {
    const { fixture, publisher } = subject;
    const { log } = captureLog();
    const reconciler = new Reconciler({ publishers: [publisher], log });
    const targets = [A, B, C, B, A, C, B];
    targets.forEach((primary, index) => reconciler.submit(routeOf({ primary, previous: A, configEpoch: 5 + index, phase: 'failover' })));
    await waitFor(() => reconciler.status()[0]?.state === 'published', 'the last Route to be published', 30_000);
    expect(reconciler.status()[0]).toMatchObject({ publishedOrder: 22, wantedOrder: 22 });
    expect(await fixture.seen('cache')).toEqual(B);
    await reconciler.close();
  });
}

function testTrouble(subject: Subject): void {
  test('a stalled apply ends soon after its signal, and the next one works', async () => {
    const { fixture, publisher } = subject;
    await publisher.apply(first, never());
    const release = await fixture.stall?.();
    if (release === undefined) return expect(fixture.stall).toBeUndefined();
    const controller = new AbortController();
    const stalled = expect(publisher.apply(second, controller.signal)).rejects.toThrow();
    const abortedAt = performance.now();
    controller.abort(new Error('superseded'));
    await stalled;
    expect(performance.now() - abortedAt).toBeLessThan(4_000);
    await release();
    await publisher.apply(routeOf({ ...second, primary: C, configEpoch: 7 }), never());
    expect(await fixture.seen('cache')).toEqual(C);
  });

  test('a stalled output runs into its deadline and recovers through the reconciler', async () => {
    const { fixture, publisher } = subject;
    const release = await fixture.stall?.();
    if (release === undefined) return expect(fixture.stall).toBeUndefined();
    const { log } = captureLog();
    const impatient: Publisher = {
      name: publisher.name, deadlineMs: 300, wantsUntrusted: publisher.wantsUntrusted,
      apply: (route, signal) => publisher.apply(route, signal),
      forget: (master) => publisher.forget(master), close: () => publisher.close(),
    };
    const reconciler = new Reconciler({ publishers: [impatient], log });
    reconciler.submit(second);
    await waitFor(() => reconciler.status()[0]?.lastError?.code === 'PUBLISH_TIMEOUT', 'the deadline');
    await release();
    await waitFor(() => reconciler.status()[0]?.state === 'published', 'the recovery', 30_000);
    expect(await fixture.seen('cache')).toEqual(B);
    await reconciler.close();
  });
}
