/**
 * Outputs in whole agents: hooks around planned moves and crashes, what a pre hook can stop, and what status, watch, history and publish
 * tell of it; an output that somebody newer has fenced.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { AgentStatus } from '../../src/admin/status.js';
import { Lab, MAIN, MASTER_NAME, ask, textOf, waitFor } from './lab.js';
import type { LabSentinel, RedisNode } from './lab.js';
import { ConsulServer } from './consul-lab.js';

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One command line of ours, to its end. */
async function pointsman(...words: readonly string[]): Promise<Ran> {
  try {
    return { code: 0, ...(await promisify(execFile)(process.execPath, [MAIN, ...words], { timeout: 20_000 })) };
  } catch (fault) {
    const { code, stdout, stderr } = fault as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}

const yamlOf = ({ folder }: LabSentinel): string => join(folder, 'pointsman.yaml');

function script(path: string, body: string): string {
  writeFileSync(path, `#!/bin/bash\n${body}\n`, { mode: 0o755 });
  return path;
}

describe('hooks in three agents', () => {
  const lab = new Lab();
  let nodes: RedisNode[] = [];
  let agents: LabSentinel[] = [];
  const gate = join(lab.folder, 'closed');
  const callsOf = (agent: LabSentinel): string[] => {
    const path = join(agent.folder, 'calls');
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
  };
  const from = (node: RedisNode | undefined): string => `${node?.address.host} ${node?.address.port}`;

  beforeAll(async () => {
    const master = await lab.group(2);
    const gatekeeper = script(join(lab.folder, 'gate.sh'), `[ -e "${gate}" ] && { echo "closed for today"; exit 7; }; exit 0`);
    const mover = script(join(lab.folder, 'mover.sh'), 'echo "$POINTSMAN_PHASE ${@:2}" >> "$1/calls"');
    for (let index = 1; index <= 3; index++) {
      const folder = join(lab.folder, `agent${index}`);
      await lab.agent(master, {
        lines: [`sentinel failover-timeout ${MASTER_NAME} 5000`],
        yaml: [
          'hooks:', `  - { name: mover, command: [${mover}, ${folder}], on: [failover, prepared, aborted, steady] }`,
          `  - { name: gate, command: [${gatekeeper}], on: [pre] }`, `journal: { path: ${join(folder, 'journal.ndjson')} }`,
        ],
      });
    }
    ({ nodes, sentinels: agents } = lab);
    await lab.settled(master, 60_000);
  });
  afterAll(async () => { await lab.stop(); });

  test('a planned move that a pre hook refuses does not begin', async () => {
    writeFileSync(gate, '');
    const [agent] = agents as [LabSentinel];
    const target = nodes[1] as RedisNode;
    const refusal = 'ERR hook gate refuses the move: closed for today';
    expect(textOf(await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME))).toBe(refusal);
    expect(textOf(await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME, 'COORDINATED'))).toBe(refusal);
    const address = `${target.address.host}:${target.address.port}`;
    expect(textOf(await ask(agent, 'SENTINEL', 'SILENT-FAILOVER', MASTER_NAME, address, 'prepare'))).toBe(refusal);
    await lab.settled(nodes[0] as RedisNode, 20_000);
    expect(agents.map(callsOf)).toEqual([[], [], []]);
  });

  test('one that it allows calls each agent once for the move and once when all is settled; watch sees it', async () => {
    rmSync(gate);
    const [agent] = agents as [LabSentinel];
    const watching = execFile(process.execPath, [MAIN, 'watch', '--config', yamlOf(agent)]);
    let seen = '';
    watching.stdout?.on('data', (chunk: string) => void (seen += chunk));
    await waitFor('watch to listen', 20_000, async () => {
      await ask(agent, 'SENTINEL', 'SET', MASTER_NAME, 'parallel-syncs', '1');
      return seen.includes('+set');
    });
    expect(textOf(await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME))).toBe('OK');
    let next: RedisNode | undefined;
    await waitFor(() => `the move\n${lab.logs()}`, 30_000, async () => {
      const reply = await ask(agent, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME);
      next = nodes.find(({ address }) => reply.kind === 'array' && textOf(reply.items?.[0] ?? reply) === address.host);
      return next !== undefined && next !== nodes[0];
    });
    await lab.settled(next as RedisNode, 60_000);
    const words = `start ${from(nodes[0])} ${from(next)}`;
    await waitFor(() => `both calls on each agent: ${JSON.stringify(agents.map(callsOf))}`, 20_000, () => agents.every((each) => callsOf(each).length >= 2));
    const calls = agents.map(callsOf);
    for (const each of calls) {
      expect(each).toEqual([expect.stringMatching(`^failover ${MASTER_NAME} (leader|observer) ${words}$`), expect.stringMatching(`^steady ${MASTER_NAME} .*${words}$`)]);
    }
    expect(calls.filter(([first]) => first?.includes('leader'))).toHaveLength(1);
    await waitFor(() => `watch to show the move: ${seen}`, 10_000, () => seen.includes('hook-mover published'));
    expect(seen).toContain(`event   +switch-master ${MASTER_NAME}`);
    expect(seen).toMatch(new RegExp(`route   ${MASTER_NAME}  .*-> .*failover`));
    watching.kill('SIGTERM');
  });

  test('a crash is never asked about', async () => {
    writeFileSync(gate, '');
    const [agent] = agents as [LabSentinel];
    const before = agents.map((each) => callsOf(each).length);
    const reply = await ask(agent, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME);
    const dead = nodes.find(({ address }) => reply.kind === 'array' && textOf(reply.items?.[0] ?? reply) === address.host) as RedisNode;
    dead.child.kill('SIGKILL');
    await waitFor(() => `hooks after the crash\n${lab.logs()}`, 40_000, () => agents.every((each, at) => callsOf(each).length > (before[at] ?? 0)));
    for (const [at, each] of agents.entries()) expect(callsOf(each)[before[at] ?? 0]).toMatch(`failover ${MASTER_NAME}`);
    await lab.restartRedis(dead);
  });

  test('status shows wanted and published epoch, lag and last word of each output; history tells the story', async () => {
    const [agent] = agents as [LabSentinel];
    const { stdout } = await pointsman('status', MASTER_NAME, '--config', yamlOf(agent));
    expect(stdout).toMatch(/output +dns +published +epoch (\d+) of \1, order (\d+) of \2, lag \d+ ms.*; serial \d+/);
    expect(stdout).toMatch(/output +hook-mover +published +epoch (\d+) of \1.*lag \d+ ms/);
    const view = JSON.parse((await pointsman('status', '--json', '--config', yamlOf(agent))).stdout) as AgentStatus;
    expect(view.masters[0]?.outputs.map(({ output }) => output)).toEqual(['dns', 'client-reconfig-script', 'hook-mover']);

    const story = (await pointsman('history', MASTER_NAME, '--config', yamlOf(agent))).stdout.trim().split('\n');
    expect(story.some((line) => line.includes('  route   ') && line.includes('->') && line.includes('failover'))).toBe(true);
    expect(story.some((line) => line.includes('hook-mover published'))).toBe(true);
    const last = (await pointsman('history', '--last', '2', '--json', '--config', yamlOf(agent))).stdout.trim().split('\n');
    expect(last.map((line) => (JSON.parse(line) as { master: string }).master)).toEqual([MASTER_NAME, MASTER_NAME]);
    expect((await pointsman('history', 'nobody', '--config', yamlOf(agent))).stdout).toBe('');
    expect(await pointsman('history', '--journal', join(lab.folder, 'none'))).toMatchObject({ code: 1, stderr: expect.stringContaining('does not exist') });
  });

  test('publish looks again, and says whom it does not know', async () => {
    const [agent] = agents as [LabSentinel];
    expect((await pointsman('publish', MASTER_NAME, '--config', yamlOf(agent))).stdout).toMatch(/^looking at: dns, client-reconfig-script, hook-mover;/);
    expect(await pointsman('publish', 'nobody', '--config', yamlOf(agent))).toMatchObject({ code: 1, stderr: expect.stringContaining('no master named nobody') });
  });
});

describe('an output that holds a higher order than anybody knows', () => {
  const lab = new Lab();
  let consul: ConsulServer;
  afterAll(async () => {
    await lab.stop();
    await consul.end();
  });

  test('is fenced after 30 s, said in status, left alone, and overruled by publish --force', async () => {
    consul = await ConsulServer.start();
    const fence = { host: '10.9.9.9', port: 6379, epoch: 500, order: 1000, writer: 'a life before', since: '2020-01-01T00:00:00.000Z' };
    await consul.put(`/v1/kv/pointsman/${MASTER_NAME}`, fence);
    const master = await lab.redis();
    const agent = await lab.agent(master, { yaml: [`consul: { address: "${consul.url}" }`] });
    const stateOf = async (): Promise<string> => {
      const { stdout } = await pointsman('status', '--json', '--config', yamlOf(agent));
      const outputs = stdout === '' ? [] : ((JSON.parse(stdout) as AgentStatus).masters[0]?.outputs ?? []);
      return outputs.find(({ output }) => output === 'consul')?.state ?? 'none';
    };
    await waitFor(() => `consul to be pending\n${lab.logs()}`, 20_000, async () => (await stateOf()) === 'pending');
    await waitFor(() => `consul to be fenced\n${lab.logs()}`, 50_000, async () => (await stateOf()) === 'fenced');
    expect((await consul.key(MASTER_NAME))?.order).toBe(1000);
    expect(readFileSync(agent.child.logPath, 'utf8')).toContain(`fenced: a higher order is published; "pointsman publish ${MASTER_NAME} --force" overrules it`);
    expect((await pointsman('status', '--config', yamlOf(agent))).code).toBe(1);

    expect((await pointsman('publish', MASTER_NAME, '--force', '--config', yamlOf(agent))).stdout).toMatch(/^forced: dns, consul/);
    await waitFor(() => `consul to be published\n${lab.logs()}`, 20_000, async () => (await stateOf()) === 'published');
    expect((await consul.key(MASTER_NAME))?.order).toBe(0);
    expect(await consul.passing(MASTER_NAME)).toEqual([`${master.address.host}:${master.address.port}`]);
  });
});
