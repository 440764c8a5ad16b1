// Other outputs at run time: the old ones are closed and never called again, kept ones notice nothing, new ones get every Route at once.
import { expect, test } from '@jest/globals';
import type { Published, Publisher } from '../../../src/publishers/publisher.js';
import { Reconciler } from '../../../src/publishers/reconciler.js';
import type { Route } from '../../../src/route/route.js';
import { FakeClock, captureLog, routeOf, settle } from './routes.js';

class Recorder implements Publisher {
  readonly deadlineMs = 1_000;
  readonly wantsUntrusted = false;
  readonly applied: string[] = [];
  hangs = false;
  isClosed = false;

  constructor(readonly name: string) {}

  async apply(route: Route, signal: AbortSignal): Promise<Published> {
    this.applied.push(`${route.master}@${route.order}`);
    if (this.hangs) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    return { order: route.order, detail: '' };
  }

  async forget(): Promise<void> {
    throw new Error('nothing is withdrawn by a change of the outputs');
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

test('one goes, one stays, one of the same name comes', async () => {
  const clock = new FakeClock();
  const [kept, old, young] = [new Recorder('kept'), new Recorder('hook'), new Recorder('hook')];
  const reconciler = new Reconciler({ publishers: [kept, old], log: captureLog().log, clock, random: () => 0 });
  for (const master of ['a', 'b']) reconciler.submit(routeOf({ master }));
  await settle();
  old.hangs = true;
  reconciler.submit(routeOf({ master: 'a', order: 40, configEpoch: 20 }));
  await settle();
  const replaced = reconciler.replace([kept, young]);
  await clock.advance(0);
  await replaced;
  await settle();
  expect([old.isClosed, kept.isClosed, young.isClosed]).toEqual([true, false, false]);
  expect(young.applied.map((text) => text.split('@')[0]).sort()).toEqual(['a', 'b']);
  const [before, keptBefore] = [old.applied.length, kept.applied.length];
  reconciler.submit(routeOf({ master: 'a', order: 42, configEpoch: 21 }));
  await clock.advance(60_000);
  expect([old.applied.length, kept.applied.length > keptBefore, young.applied.includes('a@42')]).toEqual([before, true, true]);
  expect(reconciler.status().map(({ output, master, state }) => `${output} ${master} ${state}`)).toEqual([
    'kept a published', 'kept b published', 'hook a published', 'hook b published',
  ]);
  await reconciler.close();
  expect([kept.isClosed, young.isClosed]).toEqual([true, true]);
});
