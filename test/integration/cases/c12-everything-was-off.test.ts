/**
 * Case C12: the master and all sentinels are off for longer than any replica may be without a master. With the waiver switched off
 * everybody says why nobody is promoted; with it (the default) the best replica is taken, and the log says on what terms.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { Lab, MASTER_NAME, ask, textOf, textsOf, waitFor, type LabSentinel, type RedisNode } from '../lab.js';

const lab = new Lab();
let master: RedisNode;
const DOWN_AFTER_MS = 1000;

const logOfAll = (): string => lab.sentinels.map(({ child }) => readFileSync(child.logPath, 'utf8')).join('\n');

beforeAll(async () => {
  master = await lab.group(2);
  const lines = [`sentinel failover-timeout ${MASTER_NAME} 3000`, `sentinel failover-age-waiver ${MASTER_NAME} no`];
  for (let index = 0; index < 3; index++) await lab.agent(master, { downAfterMs: DOWN_AFTER_MS, lines });
  await lab.settled(master, 60_000);
}, 120_000);

afterAll(() => lab.stop());

test('the old way: one reason per replica, attempt after attempt', async () => {
  for (const sentinel of lab.sentinels) sentinel.child.kill('SIGKILL');
  await Promise.all(lab.sentinels.map(({ child }) => child.ended));
  master.child.kill('SIGKILL');
  await waitFor('an absence beyond 10 x down-after', 40_000, async () => {
    const info = textOf(await ask(lab.nodes[1]!, 'INFO', 'replication'));
    return Number(/master_link_down_since_seconds:(\d+)/.exec(info)?.[1] ?? -1) > 15;
  });
  for (const sentinel of lab.sentinels) await lab.restartSentinel(sentinel);
  const reasons = lab.nodes.slice(1).map(({ address: { host, port } }) =>
    `Replica ${host}:${port} of ${MASTER_NAME} is not promoted: its replication link`);
  await waitFor(() => `refusals in a log\n${lab.logs(40)}`, 40_000, () => reasons.every((reason) => logOfAll().includes(`${reason} is down for`)));
  expect(logOfAll()).toContain('-failover-abort-no-good-slave');
  expect(logOfAll()).not.toContain('+selected-slave');
}, 120_000);

test('the waiver: the best one is promoted within 30 s, with a line that says so', async () => {
  for (const sentinel of lab.sentinels) {
    expect(textOf(await ask(sentinel, 'SENTINEL', 'SET', MASTER_NAME, 'failover-age-waiver', 'yes'))).toBe('OK');
  }
  const nameOf = async (sentinel: LabSentinel): Promise<string> =>
    textsOf(await ask(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME))[0] ?? '';
  let named: string[] = [];
  await waitFor(() => `a new master, not ${named.join(' ')}\n${lab.logs(40)}`, 30_000, async () => {
    named = await Promise.all(lab.sentinels.map(nameOf));
    return new Set(named).size === 1 && named[0] !== master.address.host;
  });
  expect(logOfAll()).toContain(`Age limits are waived for ${MASTER_NAME}: no newer data is reachable.`);
}, 60_000);
