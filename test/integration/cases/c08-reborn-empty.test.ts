/**
 * Case C08: the master loses process and data and is back long before down-after, empty. What its replicas hold must not be lost
 * to a copy of nothing: a failover; and where the operator does not want that, an alarm that nobody can miss.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { readFileSync } from 'node:fs';
import type { AgentStatus } from '../../../src/admin/status.js';
import { Lab, MASTER_NAME, ask, fieldsOf, textOf, waitFor, type RedisNode } from '../lab.js';

const KEYS = 1000;
/** As Redis has it, unlike the laboratory: a diskless copy begins 5 s after the first replica asked for it. */
const REDIS = ['--repl-diskless-sync-delay', '5'];

async function labWith(lines: readonly string[]): Promise<{ lab: Lab; master: RedisNode; events: string[]; listener: Redis }> {
  const lab = new Lab();
  const master = await lab.group(2, REDIS);
  for (let index = 0; index < 3; index++) await lab.agent(master, { downAfterMs: 20_000, lines });
  await lab.settled(master, 60_000);
  const client = new Redis({ ...master.address, protocol: 2 });
  const filling = client.pipeline();
  for (let key = 0; key < KEYS; key++) filling.set(`key${key}`, key);
  await filling.exec();
  client.disconnect();
  expect(await ask(master, 'WAIT', '2', '5000')).toEqual({ kind: 'integer', value: 2 });
  const listener = new Redis({ ...lab.sentinels[0]!.address, protocol: 2 });
  const events: string[] = [];
  listener.on('pmessage', (_pattern: string, channel: string, message: string) => events.push(`${channel} ${message}`));
  await listener.psubscribe('*');
  return { lab, master, events, listener };
}

const sizeOf = async (node: RedisNode): Promise<number> => {
  const reply = await ask(node, 'DBSIZE');
  return reply.kind === 'integer' ? reply.value : -1;
};

/** Every agent has read how many keys the replicas hold: that INFO is at most 10 s old while all is well. */
async function known(lab: Lab): Promise<void> {
  for (const sentinel of lab.sentinels) {
    await waitFor(`${sentinel.name} knowing the keys of both replicas`, 20_000, async () => {
      const cached = JSON.stringify(await ask(sentinel, 'SENTINEL', 'INFO-CACHE', MASTER_NAME));
      return (cached.match(/role:slave[^}]*db0:keys=1000/g) ?? []).length === 2;
    });
  }
}

async function loseData(lab: Lab, master: RedisNode, absentSeconds: number): Promise<void> {
  master.child.kill('SIGKILL');
  await waitFor(`an absence of ${absentSeconds} s`, 20_000, async () => {
    const info = textOf(await ask(lab.nodes[1]!, 'INFO', 'replication'));
    return Number(/master_link_down_since_seconds:(\d+)/.exec(info)?.[1] ?? -1) >= absentSeconds;
  });
  // The laboratory's nodes save nothing: the same command line starts an empty one, and a master.
  await lab.restartRedis(master);
}

describe('by default', () => {
  let facts: Awaited<ReturnType<typeof labWith>>;
  beforeAll(async () => (facts = await labWith([])), 120_000);
  afterAll(async () => {
    facts.listener.disconnect();
    await facts.lab.stop();
  });

  test('a replica that has the data is promoted, and the empty one copies it', async () => {
    const { lab, master, events } = facts;
    await known(lab);
    await loseData(lab, master, 4);
    const restartedMs = performance.now();
    let named = new Set<string>();
    await waitFor(() => `a new master everywhere, not ${[...named].join(' ')}\n${lab.logs()}`, 20_000, async () => {
      const replies = await Promise.all(lab.sentinels.map((sentinel) => ask(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME)));
      named = new Set(replies.map((reply) => JSON.stringify(reply)));
      return named.size === 1 && ![...named][0]!.includes(`"${master.address.host}"`);
    });
    // Far below down-after, which the master has not been away for.
    expect(performance.now() - restartedMs).toBeLessThan(15_000);
    expect(events.filter((event) => event.startsWith('+reborn-empty'))).toHaveLength(1);
    const promoted = lab.nodes.find(({ address }) => [...named][0]!.includes(`"${address.host}"`))!;
    expect(await sizeOf(promoted)).toBe(KEYS);
    const allHold = async (): Promise<boolean> => (await Promise.all(lab.nodes.map(sizeOf))).every((size) => size === KEYS);
    await waitFor(() => `all with the data\n${lab.logs()}`, 40_000, allHold);
    await lab.settled(promoted, 30_000);
  }, 120_000);
});

describe('with master-reborn-failover no', () => {
  let facts: Awaited<ReturnType<typeof labWith>>;
  beforeAll(async () => (facts = await labWith([`sentinel master-reborn-failover ${MASTER_NAME} no`])), 120_000);
  afterAll(async () => {
    facts.listener.disconnect();
    await facts.lab.stop();
  });

  test('an event within 3 s names the loss, and every view shows it', async () => {
    const { lab, master, events } = facts;
    await known(lab);
    await loseData(lab, master, 1);
    const who = `master ${MASTER_NAME} ${master.address.host} ${master.address.port}`;
    const alarm = `+reborn-empty ${who} new run id, data set lost, 2 replicas held data`;
    await waitFor(() => `${alarm}\namong ${events.join('; ')}\n${lab.logs()}`, 3_000, () => events.includes(alarm));
    const sentinel = lab.sentinels[0]!;
    expect(fieldsOf(await ask(sentinel, 'SENTINEL', 'MASTER', MASTER_NAME)).get('flags')).toContain('reborn_empty');
    const admin = /^admin: \{ listen: "([^"]+)" \}/m.exec(readFileSync(`${sentinel.folder}/pointsman.yaml`, 'utf8'))?.[1];
    const status = (await (await fetch(`http://${admin}/status`)).json()) as Pick<AgentStatus, 'masters'>;
    expect(status.masters[0]?.alarms).toEqual([expect.stringContaining('data set is lost')]);
    expect(events.filter((event) => event.startsWith('+try-failover'))).toEqual([]);
  }, 60_000);
});
