/**
 * `pointsman migrate` killed (SIGKILL) behind each of its steps and in the middle of the long ones: `--resume` finishes the move,
 * `--abort` takes it back; nothing acknowledged is lost but what an abort in the window says it loses, everything is as it was.
 */
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { waitFor, type RedisNode } from './lab.js';
import type { MigrateClients } from './migrate-clients.js';
import { MigrateLab, type Ran } from './migrate-lab.js';

// Each begins where the one before it ended: a second try would begin in the middle of the first.
jest.retryTimes(0);

const CRASH = 'POINTSMAN_MIGRATE_CRASH';
const BEFORE_WINDOW = ['save', 'wait-sync', 'auto-revert', 'begin:chain', 'chain', 'priority', 'writable', 'begin:prepare'];
const IN_WINDOW = ['during:prepare', 'prepare', 'during:drain', 'drain', 'begin:done'];
const BEHIND = ['done', 'during:settle', 'settle', 'restore', 'report'];

async function killedAt(lab: MigrateLab, target: RedisNode, point: string, more: readonly string[] = []): Promise<void> {
  const ran = await lab.move(target, more, { [CRASH]: point });
  expect([point, ran.signal]).toEqual([point, 'SIGKILL']);
}

/** Whoever is the master now, calm and as before. */
async function asBefore(lab: MigrateLab, master: RedisNode, before: Record<string, unknown>): Promise<void> {
  await lab.site.allTell(master);
  await lab.site.calm(master);
  expect(await lab.everything()).toEqual(before);
  expect(await lab.isHeld(master)).toBe(false);
}

describe('--resume', () => {
  const lab = new MigrateLab();
  let [master, other]: RedisNode[] = [];
  let clients: MigrateClients;
  beforeAll(async () => {
    master = await lab.start();
    other = lab.site.node(1);
    clients = await lab.withClients(null);
  }, 120_000);
  afterAll(() => lab.stop());

  test.each([...BEFORE_WINDOW, ...IN_WINDOW, ...BEHIND])('killed at %s: the move is finished', async (point) => {
    await lab.site.calm(master!);
    const before = await lab.everything();
    await killedAt(lab, other!, point);
    // From another sentinel than the one it began with.
    const ran = await lab.run(['--resume'], {}, lab.site.agent(1));
    expect([ran.status, ran.text]).toEqual([0, expect.stringContaining('is the master')]);
    [master, other] = [other, master];
    await asBefore(lab, master!, before);
    await waitFor('nobody at the old master', 5_000, async () => (await lab.guests(other!)) <= 0);
  }, 120_000);

  test('with a barrier, killed while writes are held: they flow again by themselves, and a resume finishes it', async () => {
    await lab.site.calm(master!);
    const before = await lab.everything();
    await killedAt(lab, other!, 'prepare', ['--barrier']);
    await waitFor('writes at the old master', 5_000, async () => !(await lab.isHeld(master!)));
    expect((await lab.run(['--resume'])).status).toBe(0);
    [master, other] = [other, master];
    await asBefore(lab, master!, before);
  }, 120_000);

  test('coordinated, killed at its failover', async () => {
    await lab.site.calm(master!);
    const before = await lab.everything();
    await killedAt(lab, other!, 'during:failover', ['--mode', 'coordinated']);
    expect((await lab.run(['--resume'])).status).toBe(0);
    [master, other] = [other, master];
    await asBefore(lab, master!, before);
  }, 120_000);

  test('an ended move has nothing to resume, and no other may begin while one is open', async () => {
    expect((await lab.run(['--resume'])).text).toMatch(/^the move has ended/);
    expect((await lab.run(['--status'])).status).toBe(0);
    await lab.site.calm(master!);
    await killedAt(lab, other!, 'save');
    expect((await lab.run(['--status'])).text).toMatch(/^open: save finished; --resume or --abort$/);
    const second = await lab.run(['--to', `${other!.address.host}:${other!.address.port}`]);
    expect([second.status, second.errors]).toEqual([1, expect.stringMatching(/is unfinished .*--resume or --abort it first/)]);
    expect((await lab.run(['--abort'])).status).toBe(0);
  }, 120_000);

  test('every write that was acknowledged in all of it is on every node', async () => {
    for (const writer of clients.writers) await writer.stop();
    expect(await lab.lost()).toBe(0);
  }, 60_000);
});

describe('--abort', () => {
  const lab = new MigrateLab();
  let [master, other]: RedisNode[] = [];
  let clients: MigrateClients;
  beforeAll(async () => {
    master = await lab.start();
    other = lab.site.node(1);
    clients = await lab.withClients(null);
  }, 120_000);
  afterAll(() => lab.stop());

  async function aborted(point: string, more: readonly string[] = []): Promise<Ran> {
    await lab.site.calm(master!);
    await killedAt(lab, other!, point, more);
    return lab.run(['--abort'], {}, lab.site.agent(2));
  }

  test.each(BEFORE_WINDOW)('killed at %s: taken back', async (point) => {
    await lab.site.calm(master!);
    const before = await lab.everything();
    const ran = await aborted(point);
    expect([ran.status, ran.text]).toEqual([0, expect.stringContaining('is still the master: aborted by the operator')]);
    await asBefore(lab, master!, before);
  }, 120_000);

  test.each(['done', 'settle', 'restore'])('killed at %s: too late, the move is finished, and it says so', async (point) => {
    await lab.site.calm(master!);
    const before = await lab.everything();
    const ran = await aborted(point);
    expect([ran.status, ran.text]).toEqual([1, expect.stringContaining('it was too late to go back')]);
    [master, other] = [other, master];
    await asBefore(lab, master!, before);
  }, 120_000);

  test('nothing that was acknowledged so far is missing anywhere', async () => {
    for (const writer of clients.writers) await writer.stop();
    expect(await lab.lost()).toBe(0);
    for (const waiter of clients.waiters) await waiter.stop();
  }, 60_000);

  test.each(IN_WINDOW)('killed at %s: clients are sent back, what the old master took is kept, the window is not', async (point) => {
    await lab.site.calm(master!);
    const before = await lab.everything();
    await killedAt(lab, other!, point);
    // As a client would that follows, and one that does not.
    await lab.write(other!, 'regretted', point);
    await lab.write(master!, 'kept', point);
    const ran = await lab.run(['--abort'], {}, lab.site.agent(1));
    expect([ran.status, ran.text]).toEqual([0, expect.stringContaining('is still the master')]);
    await asBefore(lab, master!, before);
    expect(await lab.site.onAll('kept')).toEqual([point, point, point]);
    expect(await lab.site.onAll('regretted')).toEqual([null, null, null]);
  }, 120_000);

  test('without a journal: what the sentinels know is taken back, the rest is named', async () => {
    await lab.site.calm(master!);
    await killedAt(lab, other!, 'prepare');
    lab.newJournal();
    const ran = await lab.run(['--abort'], {}, lab.site.agent(1));
    expect([ran.status, ran.text]).toEqual([0, 'taken back']);
    await lab.site.allTell(master!);
    await lab.site.calm(master!);
    for (const agent of lab.site.agents) expect((await lab.site.status(agent)).get('auto-revert')).toBe('yes');
    expect((await lab.run(['--abort'])).text).toBe('nothing was under way');
  }, 120_000);
});
