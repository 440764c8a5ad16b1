/**
 * SIGHUP: pointsman.yaml is read again, outputs follow it, and no client's question is lost or answered with less meanwhile.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ask as command, freePort, Lab, MASTER_NAME, NAME, query, waitFor, type LabSentinel, type RedisNode } from './lab.js';

const lab = new Lab();
let master: RedisNode;
let agent: LabSentinel;
let yaml = '';

beforeAll(async () => {
  master = await lab.group(1);
  agent = await lab.agent(master);
  yaml = readFileSync(join(agent.folder, 'pointsman.yaml'), 'utf8');
  await waitFor(() => `the master by DNS\n${lab.logs()}`, 40_000, async () => (await ask(agent.dnsPort!))?.answers?.length === 1);
}, 90_000);

afterAll(() => lab.stop());

const ask = (port: number): ReturnType<typeof query> => query(port, NAME, 'A');

const log = (): string => readFileSync(agent.child.logPath, 'utf8');

/** Replaces the file, sends SIGHUP, and waits until the log has `words` once more. */
async function reread(text: string, words: string): Promise<void> {
  const count = (): number => log().split(words).length;
  const before = count();
  writeFileSync(join(agent.folder, 'pointsman.yaml'), text);
  agent.child.kill('SIGHUP');
  await waitFor(() => `${words}\n${log()}`, 20_000, () => count() > before);
}

const ttlOf = (packet: Awaited<ReturnType<typeof query>>): unknown => packet?.answers?.map((answer) => ('ttl' in answer ? answer.ttl : null))[0];

test('a new ttl: answered at once, and no answer in between is empty or late', async () => {
  const seen: unknown[] = [];
  let isOver = false;
  const asking = (async () => {
    while (!isOver) seen.push(ttlOf(await ask(agent.dnsPort!)));
  })();
  await reread(yaml.replace('ttl: 1s', 'ttl: 7s'), 'pointsman.yaml was read again');
  await waitFor(() => `ttl 7 in ${seen.join(' ')}`, 5_000, () => seen.at(-1) === 7);
  isOver = true;
  await asking;
  expect([...new Set(seen)]).toEqual([1, 7]);
}, 60_000);

test('a bad file: every fault is said, and all stays', async () => {
  await reread(`${yaml.replace('ttl: 1s', 'ttl: soon')}\nnonsense: 1\n`, 'pointsman.yaml is not taken over');
  expect(log()).toMatch(/dns\.ttl/);
  expect(log()).toMatch(/nonsense/);
  expect(ttlOf(await ask(agent.dnsPort!))).toBe(7);
}, 60_000);

test('a port that is taken: said, and the old one goes on answering', async () => {
  const other = createSocket('udp4').bind(0, '127.0.0.1');
  await once(other, 'listening');
  await reread(yaml.replace(/listen: \["127\.0\.0\.1:\d+"\]/, `listen: ["127.0.0.1:${other.address().port}"]`), 'is not taken over');
  other.close();
  expect(ttlOf(await ask(agent.dnsPort!))).toBe(7);
}, 60_000);

test('another port and a new hook: both are served, the old port is free', async () => {
  const [port, mark] = [await freePort(), join(agent.folder, 'hook-ran')];
  const script = join(agent.folder, 'hook.sh');
  writeFileSync(script, `#!/bin/sh\necho "$@" >> ${mark}\n`, { mode: 0o755 });
  const moved = yaml.replace(/listen: \["127\.0\.0\.1:\d+"\]/, `listen: ["127.0.0.1:${port}"]`);
  await reread(`${moved}hooks: [{ name: marker, command: [${script}], on: [failover] }]\n`, 'pointsman.yaml was read again');
  expect(ttlOf(await ask(port))).toBe(1);
  expect(await ask(agent.dnsPort!)).toBeNull();
  await command(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME);
  await waitFor(() => `the hook ran\n${log()}`, 20_000, () => existsSync(mark));
}, 60_000);

test('what needs a restart is said', async () => {
  await reread(yaml.replace('config: sentinel.conf', 'config: ./sentinel.conf, identity: redis-7.4.1'), 'takes effect with a restart');
  expect(log()).toContain('what changed under sentinel takes effect with a restart');
}, 60_000);
