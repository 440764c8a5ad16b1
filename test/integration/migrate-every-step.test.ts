/**
 * A node dies behind each step of `pointsman migrate`: the move ends with one sentence, the group with one master, and once the node is
 * back, a resume leaves nothing of the move behind.
 */
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { must } from '../../src/assert.js';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import { waitFor, type RedisNode } from './lab.js';
import { MigrateLab } from './migrate-lab.js';

// Each begins where the one before it ended.
jest.retryTimes(0);

const STEPS = ['save', 'wait-sync', 'auto-revert', 'chain', 'priority', 'writable', 'prepare', 'drain', 'done', 'settle', 'restore'];

const lab = new MigrateLab();
const { site } = lab;
let master: RedisNode;

beforeAll(async () => {
  master = await lab.start({ downAfterMs: 2_000 });
}, 120_000);
afterAll(() => lab.stop());

/** The node that runs as a master and that every agent names. */
async function agreedMaster(): Promise<RedisNode> {
  let agreed: RedisNode | undefined;
  await waitFor(() => `one master of all agents\n${site.lab.logs(25)}`, 60_000, async () => {
    const told = await site.told().catch(() => []);
    agreed = site.lab.nodes.find((node) => told.length > 0 && told.every(({ sentinel, dns }) => sentinel === node.address.host && dns === node.address.host));
    return agreed !== undefined && (await site.role(agreed).catch(() => '')) === 'master';
  });
  return must(agreed, 'they agree');
}

const cases = STEPS.flatMap((step) => (['target', 'original'] as const).map((who) => [who, step] as const));

test.each(cases)('the %s dies behind %s', async (who, step) => {
  await site.calm(master, 60_000);
  const before = await lab.everything();
  const target = must(site.lab.nodes.find((node) => node !== master), 'there are three nodes');
  const victim = who === 'target' ? target : master;
  lab.newJournal();
  let died: Promise<unknown> | null = null;
  const ran = await lab.run(['--to', formatAddress(target.address), '--drain-timeout', '20s'], {}, site.agent(0), (line) => {
    if (line['step'] !== step || died !== null) return;
    victim.child.kill('SIGKILL');
    died = victim.child.ended;
  });
  await died;
  expect(died).not.toBeNull();
  expect([0, 1]).toContain(ran.status);
  // One sentence: who is the master, or why nothing was done, and what is left over.
  expect(ran.text).toMatch(/^[^\n]*127\.0\.0\.\d[^\n]*$/);
  // A node that died as the master is replaced first; one that is back before that would be empty, and followed.
  await waitFor(() => `another master than ${victim.name}\n${site.lab.logs(25)}`, 60_000, async () => (await agreedMaster()) !== victim);
  master = await agreedMaster();
  await site.lab.restartRedis(victim);
  await site.calm(master, 90_000);
  await lab.run(['--resume']);
  expect((await lab.run(['--status'])).status).toBe(0);
  await site.calm(master, 60_000);
  expect(await lab.everything()).toEqual(before);
}, 300_000);
