/**
 * The cuts of the lab's network, tried by connections: each breaks what it says, and nothing else; afterwards all is whole.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { Network, whyNoNamespaces, type Cut } from './network.js';

const why = whyNoNamespaces();
if (why !== null) process.stderr.write(`the network of the lab is not tested: ${why}\n`);
const real = why === null ? test : test.skip;
const HOSTS = ['a', 'b', 'c'];
const PORT = 7000;
const LIMIT_SECONDS = 0.7;
let network: Network;
const servers: ChildProcess[] = [];

beforeAll(async () => {
  if (why !== null) return;
  network = await Network.create(HOSTS);
  const script = `require('net').createServer((s) => s.on('error', () => s.destroy()).end('hello')).listen(${PORT}, () => console.log('up'))`;
  for (const host of HOSTS) {
    const [command = '', ...args] = [...network.on(host), process.execPath, '-e', script];
    const server = spawn(command, args, { env: { ...process.env, NODE_OPTIONS: '' }, stdio: ['ignore', 'pipe', 'ignore'] });
    servers.push(server);
    await new Promise((resolve) => server.stdout.once('data', resolve));
  }
}, 60_000);

afterAll(async () => {
  for (const server of servers) server.kill('SIGKILL');
  if (why === null) await network.remove();
}, 60_000);

/** `a-b` for each pair that can talk; a connection needs both ways. */
async function meetings(): Promise<string[]> {
  const pairs = HOSTS.flatMap((from, index) => HOSTS.slice(index + 1).map((to) => [from, to] as const));
  const met = await Promise.all(pairs.map(([from, to]) => canConnect(from, to)));
  return pairs.filter((_, index) => met[index]).map((pair) => pair.join('-'));
}

function canConnect(from: string, to: string): Promise<boolean> {
  const [command = '', ...args] = [...network.on(from), 'timeout', String(LIMIT_SECONDS), 'bash', '-c', `exec 3<>/dev/tcp/${network.address(to)}/${PORT}`];
  return new Promise((resolve) => {
    spawn(command, args, { stdio: 'ignore' }).once('exit', (code) => resolve(code === 0));
  });
}

/** A mended link needs a moment until its neighbours are asked for again. */
async function whole(): Promise<void> {
  let found = await meetings();
  for (let tries = 0; found.length < 3 && tries < 20; tries++) found = await meetings();
  expect(found).toEqual(['a-b', 'a-c', 'b-c']);
}

const CASES: [string, Cut, string[]][] = [
  ['an unplugged host meets nobody', { kind: 'unplugged', host: 'a' }, ['b-c']],
  ['an island keeps its own', { kind: 'island', hosts: ['a', 'b'] }, ['a-b']],
  ['a pair meets all but each other', { kind: 'pair', hosts: ['a', 'b'] }, ['a-c', 'b-c']],
  ['one-way to one is no meeting with that one', { kind: 'oneWay', from: ['a'], to: ['b'] }, ['a-c', 'b-c']],
  ['one-way to all', { kind: 'oneWay', from: ['a'], to: ['b', 'c'] }, ['b-c']],
];

for (const [title, cut, left] of CASES) {
  real(title, async () => {
    await whole();
    const mend = await network.cut(cut);
    expect(await meetings()).toEqual(left);
    await mend();
    await whole();
  }, 60_000);
}

real('cuts overlap and end in any order', async () => {
  const first = await network.cut({ kind: 'island', hosts: ['a'] });
  const second = await network.cut({ kind: 'unplugged', host: 'a' });
  const third = await network.cut({ kind: 'pair', hosts: ['b', 'c'] });
  expect(await meetings()).toEqual([]);
  await first();
  await third();
  expect(await meetings()).toEqual(['b-c']);
  await second();
  await whole();
}, 60_000);

real('nothing is left of a network that was removed', async () => {
  const namespaces = (): string[] => spawnSync('ip', ['netns', 'list'], { encoding: 'utf8' }).stdout.split('\n').filter((line) => line.includes(`-${process.pid}-`));
  expect(namespaces().length).toBe(HOSTS.length + 1);
  for (const server of servers) server.kill('SIGKILL');
  await network.remove();
  expect(namespaces()).toEqual([]);
}, 60_000);
