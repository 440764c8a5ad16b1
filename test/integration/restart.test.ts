/**
 * An agent that was away: it keeps its identity and epochs, and answers nothing rather than something old.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { masterNamedBy } from '../../src/demo/agreement.js';
import { Lab, MASTER_NAME, NAME, answerOf, ask, fieldsOf, textOf, waitFor, type LabSentinel, type RedisNode } from './lab.js';

const lab = new Lab();
let master: RedisNode;

beforeAll(async () => {
  master = await lab.group(2);
  for (let index = 0; index < 3; index++) await lab.agent(master);
  await lab.settled(master, 40_000);
}, 180_000);

afterAll(() => lab.stop());

interface Memory {
  readonly myId: string;
  readonly configEpoch: number;
  readonly leaderEpoch: number;
  readonly currentEpoch: number;
}

async function memoryOf(agent: LabSentinel): Promise<Memory> {
  const conf = readFileSync(agent.conf, 'utf8');
  const number = (pattern: RegExp): number => Number(pattern.exec(conf)?.[1] ?? NaN);
  return {
    myId: textOf(await ask(agent, 'SENTINEL', 'MYID')),
    configEpoch: Number(fieldsOf(await ask(agent, 'SENTINEL', 'MASTER', MASTER_NAME)).get('config-epoch')),
    leaderEpoch: number(new RegExp(`leader-epoch ${MASTER_NAME} (\\d+)`)),
    currentEpoch: number(/current-epoch (\d+)/),
  };
}

/**
 * All different answers of an agent's DNS, from before it listens until it has answered `last`. A silence proves nothing: it does
 * not listen yet, or the machine was busy.
 */
async function answersUntil(agent: LabSentinel, last: string): Promise<string[]> {
  const seen: string[] = [];
  await waitFor(() => `${agent.name} answering ${last} after ${seen.join(', ')}\n${lab.logs()}`, 30_000, async () => {
    const answer = await answerOf(agent.dnsPort!, NAME, 'A', 50);
    if (answer !== 'silence' && seen.at(-1) !== answer) seen.push(answer);
    return answer === last;
  });
  return seen;
}

async function kill(agent: LabSentinel): Promise<void> {
  agent.child.kill('SIGKILL');
  await waitFor(`the end of ${agent.name}`, 5000, () => agent.child.status !== null);
}

test('away during a failover: it never answers with the old master', async () => {
  const away = lab.sentinels[0]!;
  await kill(away);
  const old = master;
  old.child.kill('SIGKILL');
  const present = lab.sentinels.slice(1);
  let named: string[] = [];
  await waitFor(() => `two agents naming a new master, not ${named.join(' ')}\n${lab.logs()}`, 30_000, async () => {
    named = await Promise.all(present.map(async ({ address }) => (await masterNamedBy(address)).host));
    return new Set(named).size === 1 && named[0] !== old.address.host;
  });
  master = lab.nodes.find(({ address }) => address.host === named[0])!;
  expect(readFileSync(away.conf, 'utf8')).toContain(`monitor ${MASTER_NAME} ${old.address.host} `);

  await lab.restartSentinel(away, { unwaited: true });
  const answers = await answersUntil(away, master.address.host);
  expect(answers.filter((answer) => answer !== 'SERVFAIL')).toEqual([master.address.host]);
  expect((await masterNamedBy(away.address)).host).toBe(master.address.host);

  await lab.restartRedis(old);
  await lab.settled(master, 60_000);
}, 240_000);

test('killed and started again: same id, same epochs, and SERVFAIL for as long as nobody confirms', async () => {
  const before = await Promise.all(lab.sentinels.map(memoryOf));
  expect(new Set(before.map(({ myId }) => myId)).size).toBe(3);
  for (const { configEpoch, currentEpoch } of before) {
    expect(configEpoch).toBeGreaterThan(0);
    expect(currentEpoch).toBeGreaterThanOrEqual(configEpoch);
  }
  // At least two have voted in the last failover; the one that was away has not.
  expect(before.filter(({ leaderEpoch }) => leaderEpoch > 0).length).toBeGreaterThanOrEqual(2);

  await Promise.all(lab.sentinels.map(kill));
  const [first, ...others] = lab.sentinels;
  await lab.restartSentinel(first!);
  const alone: string[] = [];
  const endMs = performance.now() + 4000;
  await waitFor('four seconds alone', 6000, async () => {
    alone.push(await answerOf(first!.dnsPort!, NAME, 'A'));
    return performance.now() > endMs;
  });
  // On a busy machine a datagram may be lost or late.
  expect(new Set(alone.filter((answer) => answer !== 'silence'))).toEqual(new Set(['SERVFAIL']));

  for (const agent of others) await lab.restartSentinel(agent);
  for (const agent of lab.sentinels) {
    const answers = await answersUntil(agent, master.address.host);
    expect(answers.filter((answer) => answer !== 'SERVFAIL')).toEqual([master.address.host]);
  }
  expect(await Promise.all(lab.sentinels.map(memoryOf))).toEqual(before);
  await lab.settled(master, 60_000);
}, 240_000);
