/**
 * `pointsman migrate` on real servers under six clients: silent and coordinated, there and back. Nothing acknowledged is missing on
 * any node, nobody stays at the old master who can follow, and everything that was changed is as it was.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { waitFor, type RedisNode } from './lab.js';
import type { MigrateClients } from './migrate-clients.js';
import { MigrateLab, showClients } from './migrate-lab.js';

const lab = new MigrateLab();
let [first, second]: RedisNode[] = [];
let clients: MigrateClients;

beforeAll(async () => {
  first = await lab.start();
  second = lab.site.node(1);
  clients = await lab.withClients(first);
}, 120_000);
afterAll(() => lab.stop());

async function moved(target: RedisNode, old: RedisNode, args: readonly string[]): Promise<void> {
  await lab.site.calm(old);
  const before = await lab.everything();
  clients.mark();
  const ran = await lab.move(target, args);
  console.log(`${args.join(' ') || 'silent'}: ${showClients(clients)}`);
  expect([ran.status, ran.text, ran.errors]).toEqual([0, expect.stringContaining('is the master'), '']);
  await lab.site.allTell(target);
  // The pinned client knows one address only.
  const pinned = old === first ? 1 : 0;
  await waitFor('nobody at the old master', 5_000, async () => (await lab.guests(old)) <= pinned);
  await waitFor('subscriber and consumer at the new one', 5_000, () => clients.waiters.every(({ at }) => at?.host === target.address.host));
  await lab.site.calm(target);
  expect(await lab.everything()).toEqual(before);
  expect(await lab.keys('pointsman:*')).toEqual([]);
  expect(await lab.isHeld(target)).toBe(false);
}

test('a dry run shows plan and findings and changes nothing', async () => {
  const before = await lab.everything();
  const ran = await lab.move(second!, ['--dry-run']);
  expect([ran.status, ran.text]).toEqual([0, 'a dry run: nothing was changed']);
  expect(await lab.everything()).toEqual(before);
}, 30_000);

describe('there and back', () => {
  test('silent, there', () => moved(second!, first!, []), 90_000);
  test('coordinated, back', () => moved(first!, second!, ['--mode', 'coordinated']), 90_000);
});

test('every write that was acknowledged is on every node', async () => {
  for (const writer of clients.writers) await writer.stop();
  expect(await lab.lost()).toBe(0);
  expect(clients.writers.every(({ acknowledged }) => acknowledged.length > 100)).toBe(true);
}, 60_000);
