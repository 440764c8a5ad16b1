/**
 * The demo's ledger must be able to find a loss: real servers, on which something is really gone.
 */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LEDGER_KEY, Ledger } from '../../src/demo/ledger.js';
import type { Address } from '../../src/sentinel/wire/address.js';
import { Lab, ask, waitFor } from './lab.js';

let lab: Lab;
let master: Address | null;
let ledger: Ledger;

beforeEach(async () => {
  lab = new Lab();
  master = (await lab.redis()).address;
  ledger = new Ledger(() => Promise.resolve(master), 2000);
  ledger.start();
  await written(200);
}, 30_000);

afterEach(async () => {
  await ledger.stop();
  await lab.stop();
});

/** Waits until so many more writes have been acknowledged. */
async function written(more: number): Promise<void> {
  const goal = ledger.acknowledged + more;
  await waitFor(() => `${goal} acknowledged writes, not ${ledger.acknowledged}`, 10_000, () => ledger.acknowledged >= goal);
}

test('what is there is not lost, and each loss is counted once', async () => {
  const [node] = lab.nodes;
  await ledger.stop();
  const none = { lostBefore: 0, oldestLossMs: null, lostNow: 0 };
  expect(await ledger.audit(node!.address)).toEqual(none);
  for (const number of ['0', '7', '100']) expect(await ask(node!, 'SETBIT', LEDGER_KEY, number, '0')).toEqual({ kind: 'integer', value: 1 });
  expect(await ledger.audit(node!.address)).toEqual({ ...none, lostNow: 3 });
  expect(await ledger.audit(node!.address)).toEqual(none);
  const beyond = await ask(node!, 'GETBIT', LEDGER_KEY, String(ledger.acknowledged));
  expect([beyond, ledger.refusedWrites]).toEqual([{ kind: 'integer', value: 0 }, 0]);
}, 30_000);

test('what a dead master took along belongs to its reign, and the client goes on at the next one', async () => {
  const [first] = lab.nodes;
  const second = await lab.redis();
  const beforeMs = performance.now();
  first!.child.kill('SIGKILL');
  await waitFor('refused connections', 10_000, () => ledger.failedConnects > 2);
  const atCrash = ledger.acknowledged;
  master = second.address;
  await written(200);
  const audit = await ledger.audit(second.address);
  expect(audit).toMatchObject({ lostBefore: atCrash, lostNow: 0 });
  expect(audit.oldestLossMs).toBeLessThan(beforeMs);
  expect(ledger.reigns.map(({ address }) => address)).toEqual([first!.address, second.address]);
}, 30_000);

test('a master that has become a replica is left', async () => {
  const [first] = lab.nodes;
  const second = await lab.redis();
  master = second.address;
  await ask(first!, 'REPLICAOF', second.address.host, String(second.address.port));
  await written(100);
  expect(ledger.reigns.at(-1)?.address).toEqual(second.address);
  expect(ledger.refusedWrites).toBeGreaterThan(0);
}, 30_000);
