/**
 * C30: an agent that slept through a switch comes back with its old state file; and a switch that somebody made by hand while no
 * agent ran. Nobody is ever sent to where the old file points.
 */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Lab, MASTER_NAME, NAME, answerOf, ask, waitFor } from '../lab.js';
import type { LabSentinel, RedisNode } from '../lab.js';

let lab: Lab;
let nodes: RedisNode[];
let agents: LabSentinel[];

beforeEach(async () => {
  lab = new Lab();
  const master = await lab.group(2);
  const hook = join(lab.folder, 'hook.sh');
  writeFileSync(hook, '#!/bin/bash\necho "${@:2}" >> "$1/calls"\n', { mode: 0o755 });
  for (let index = 1; index <= 3; index++) {
    const folder = join(lab.folder, `agent${index}`);
    await lab.agent(master, { yaml: ['hooks:', `  - { name: mover, command: [${hook}, ${folder}] }`] });
  }
  ({ nodes, sentinels: agents } = lab);
  await lab.settled(master, 60_000);
});
afterEach(() => lab.stop());

const callsOf = ({ folder }: LabSentinel): string[] => {
  const path = join(folder, 'calls');
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
};

async function stopAgent({ child }: LabSentinel): Promise<void> {
  child.kill('SIGTERM');
  await child.ended;
}

test('it answers SERVFAIL or nothing until it has heard a majority, then the new primary, and calls its hook once', async () => {
  const [old] = nodes as [RedisNode];
  const [sleeper, ...others] = agents as [LabSentinel, LabSentinel, LabSentinel];
  await stopAgent(sleeper);
  old.child.kill('SIGKILL');
  let next: RedisNode | undefined;
  await waitFor(() => `a failover\n${lab.logs()}`, 40_000, async () => {
    const answers = await Promise.all(others.map(({ dnsPort }) => answerOf(dnsPort ?? 0, NAME, 'A')));
    next = nodes.find(({ address }) => answers.every((answer) => answer === address.host));
    return next !== undefined && next !== old;
  });
  const answers: string[] = [];
  const started = lab.restartSentinel(sleeper, { unwaited: true });
  await waitFor(() => `the new primary from the sleeper: ${answers.slice(-3).join()}\n${lab.logs()}`, 30_000, async () => {
    answers.push(await answerOf(sleeper.dnsPort ?? 0, NAME, 'A', 300));
    return answers.at(-1) === next?.address.host;
  });
  await started;
  expect(new Set(answers.slice(0, -1))).not.toContain(old.address.host);
  expect([...new Set(answers.slice(0, -1))].every((answer) => answer === 'SERVFAIL' || answer === 'silence')).toBe(true);
  await waitFor(() => `the sleeper's hook\n${lab.logs()}`, 20_000, () => callsOf(sleeper).length > 0);
  expect(callsOf(sleeper)).toEqual([`${MASTER_NAME} observer start ${old.address.host} ${old.address.port} ${next?.address.host} ${next?.address.port}`]);
  for (const agent of others) expect(callsOf(agent)).toHaveLength(1);
  // Once more: what was served is remembered.
  await stopAgent(sleeper);
  await lab.restartSentinel(sleeper);
  await waitFor('the same answer again', 20_000, async () => (await answerOf(sleeper.dnsPort ?? 0, NAME, 'A')) === next?.address.host);
  expect(callsOf(sleeper)).toHaveLength(1);
}, 150_000);

test('a switch made by hand while no agent ran ends in one primary that all agree on', async () => {
  await Promise.all(agents.map(stopAgent));
  const [first, second, third] = nodes as [RedisNode, RedisNode, RedisNode];
  await ask(third, 'REPLICAOF', 'NO', 'ONE');
  for (const node of [first, second]) await ask(node, 'REPLICAOF', third.address.host, String(third.address.port));
  for (const agent of agents) await lab.restartSentinel(agent);
  let seen: string[] = [];
  await waitFor(() => `one primary: ${seen.join()}\n${lab.logs()}`, 60_000, async () => {
    seen = await Promise.all(agents.map(({ dnsPort }) => answerOf(dnsPort ?? 0, NAME, 'A')));
    const primary = nodes.find(({ address }) => seen.every((answer) => answer === address.host));
    const role = primary === undefined ? null : await ask(primary, 'ROLE');
    return role?.kind === 'array' && JSON.stringify(role).includes('"master"');
  });
  const primary = nodes.find(({ address }) => address.host === seen[0]) as RedisNode;
  await lab.settled(primary, 60_000);
}, 150_000);
