/**
 * SIGHUP: pointsman.yaml is read again, outputs follow it, and no client's question is lost or answered with less meanwhile.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
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

const ask = (port: number, limitMs = 1_000): ReturnType<typeof query> => query(port, NAME, 'A', limitMs);

const log = (of = agent): string => readFileSync(of.child.logPath, 'utf8');

/** Replaces the file, sends SIGHUP, and waits until the log has `words` once more. */
async function reread(text: string, words: string, of = agent): Promise<void> {
  const count = (): number => log(of).split(words).length;
  const before = count();
  writeFileSync(join(of.folder, 'pointsman.yaml'), text);
  of.child.kill('SIGHUP');
  await waitFor(() => `${words}\n${log(of)}`, 20_000, () => count() > before);
}

/** The distinct answers, in order of first sight, that a client gets which asks without a pause while `act` goes on. */
async function answersDuring(act: (isSeen: (answer: string) => boolean) => Promise<void>): Promise<string[]> {
  const seen = new Set<string>();
  let isOver = false;
  const asking = (async () => {
    while (!isOver) seen.add(wordsOf(await ask(agent.dnsPort!, 5_000)));
  })();
  try {
    await act((answer) => seen.has(answer));
  } finally {
    isOver = true;
    await asking;
  }
  return [...seen];
}

function wordsOf(packet: Awaited<ReturnType<typeof query>>): string {
  if (packet === null) return 'silence';
  const [answer] = packet.answers ?? [];
  return answer !== undefined && 'ttl' in answer ? `ttl ${answer.ttl}` : `${packet.rcode} without an answer`;
}

const ttlOf = (packet: Awaited<ReturnType<typeof query>>): unknown => packet?.answers?.map((answer) => ('ttl' in answer ? answer.ttl : null))[0];

test('a new ttl: answered at once, and no answer in between is empty or late', async () => {
  await reread(yaml, 'pointsman.yaml was read again');
  const seen = await answersDuring(async (isSeen) => {
    await waitFor('ttl 1', 5_000, () => isSeen('ttl 1'));
    await reread(yaml.replace('ttl: 1s', 'ttl: 7s'), 'pointsman.yaml was read again');
    await waitFor('ttl 7', 5_000, () => isSeen('ttl 7'));
  });
  expect(seen).toEqual(['ttl 1', 'ttl 7']);
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

test('the dns block goes and comes back: silence, then the same answers', async () => {
  await reread(yaml, 'pointsman.yaml was read again');
  const withoutDns = yaml.replace(/^dns:.*\n(?:[ \t]+.*\n)*/m, '');
  expect(withoutDns).not.toMatch(/dns/);
  await reread(withoutDns, 'pointsman.yaml was read again');
  expect(await ask(agent.dnsPort!)).toBeNull();
  await reread(yaml, 'pointsman.yaml was read again');
  expect(ttlOf(await ask(agent.dnsPort!))).toBe(1);
}, 60_000);

test('a relative path of the yaml still means the same file when dir has led elsewhere', async () => {
  const [folder, elsewhere, port, dnsPort] = [join(lab.folder, 'relative'), join(lab.folder, 'elsewhere'), await freePort(), await freePort()];
  mkdirSync(elsewhere);
  const conf = lab.writeConf(folder, master, port, { lines: [`dir ${elsewhere}`] });
  const text = yaml.replace(/127\.0\.0\.1:\d+"\], zone/, `127.0.0.1:${dnsPort}"], zone`).replace(/^admin:.*\n/m, '');
  writeFileSync(join(folder, 'pointsman.yaml'), text);
  const argv = [...agent.argv.slice(0, -1), 'pointsman.yaml'];
  const other = await lab.start({ name: 'relative', kind: 'ours', port, dnsPort, folder, conf, argv });
  await reread(text.replace('ttl: 1s', 'ttl: 7s'), 'pointsman.yaml was read again', other);
  await waitFor('ttl 7', 20_000, async () => ttlOf(await ask(dnsPort)) === 7);
}, 60_000);

test('what needs a restart is said', async () => {
  await reread(yaml.replace('config: sentinel.conf', 'config: ./sentinel.conf, identity: redis-7.4.1'), 'takes effect with a restart');
  expect(log()).toContain('what changed under sentinel takes effect with a restart');
}, 60_000);
