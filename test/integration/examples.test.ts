/**
 * The resolver configurations of examples/ as they are, save addresses and ports: dnsmasq, Unbound and BIND in front of an agent, through
 * a failover; dnsmasq in front of a real Consul.
 */
import { afterAll, beforeAll, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../../src/demo/children.js';
import { ROOT } from '../tidy/sources.js';
import { ConsulServer } from './consul-lab.js';
import { Lab, MASTER_NAME, ask, freePort, waitFor } from './lab.js';
import type { RedisNode } from './lab.js';

const ZONE = 'redis.internal';
const example = (name: string): string => readFileSync(join(ROOT, 'examples/dns-forwarding', name), 'utf8');
const needs = (name: string): string => findProgram(name, 'npm test installs it');

/** As a stub resolver asks: recursion desired. */
const dig = async (port: number, name: string): Promise<string> => {
  const args = ['@127.0.0.1', '-p', String(port), '+short', '+tries=1', '+time=2', name, 'A'];
  const { stdout } = await promisify(execFile)('dig', args).catch(() => ({ stdout: 'silence' }));
  return stdout.trim().split('\n').join(' ') || 'nothing';
};

const lab = new Lab();
let consul: ConsulServer;
let master: RedisNode;
let agentPorts: number[] = [];
const resolvers: { name: string; port: number; question: string }[] = [];

/** The example's three agents become ours. */
function ours(text: string, spelled: (port: number) => string): string {
  return [11, 12, 13].reduce((done, last, index) => done.replaceAll(spelled(5353).replace('127.0.0.1', `10.0.0.${last}`), spelled(agentPorts[index] ?? 0)), text);
}

async function start(name: string, argv: (folder: string, port: number) => readonly string[], question = `${MASTER_NAME}.${ZONE}`): Promise<void> {
  const folder = join(lab.folder, name);
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  lab.children.start(name, argv(folder, port), folder);
  resolvers.push({ name, port, question });
}

const write = (folder: string, text: string): string => {
  const path = join(folder, 'example.conf');
  writeFileSync(path, text);
  return path;
};

/** No root server is to be asked from a test. */
function hints(folder: string): string {
  const path = join(folder, 'root.hints');
  writeFileSync(path, '. 3600 IN NS a.root.test.\na.root.test. 3600 IN A 127.0.0.1\n');
  return path;
}

const dnsmasq = (folder: string, port: number, text: string): string[] => [
  needs('dnsmasq'), '--keep-in-foreground', `--conf-file=${write(folder, text)}`, '--no-resolv', '--no-hosts', `--port=${port}`, '--listen-address=127.0.0.1',
  '--bind-interfaces', '--stop-dns-rebind', '--user=root', '--pid-file=', '--log-facility=-',
];

beforeAll(async () => {
  consul = await ConsulServer.start();
  master = await lab.group(2);
  for (let index = 0; index < 3; index++) await lab.agent(master, { env: { POINTSMAN_DNS_ZONE: ZONE }, yaml: [`consul: { address: "${consul.url}" }`] });
  agentPorts = lab.sentinels.map(({ dnsPort }) => dnsPort ?? 0);
  await start('dnsmasq', (folder, port) => dnsmasq(folder, port, ours(example('dnsmasq.conf'), (to) => `127.0.0.1#${to}`)));
  const consulName = `${MASTER_NAME}.service.consul`;
  await start('dnsmasq-consul', (folder, port) => dnsmasq(folder, port, example('dnsmasq-consul.conf').replace('#8600', `#${consul.ports.dns}`)), consulName);
  await start('unbound', (folder, port) => {
    const settings = [`directory: "${folder}"`, 'chroot: ""', 'username: ""', 'pidfile: ""', `port: ${port}`, 'interface: 127.0.0.1', 'use-syslog: no'];
    const own = settings.map((line) => `    ${line}\n`).join('');
    return [needs('unbound'), '-d', '-c', write(folder, ours(example('unbound.conf'), (to) => `127.0.0.1@${to}`).replace('server:\n', `server:\n${own}`))];
  });
  await start('named', (folder, port) => {
    const own = [
      '', `directory "${folder}"`, `listen-on port ${port} { 127.0.0.1; }`, 'listen-on-v6 { none; }', 'pid-file none', 'session-keyfile none',
      `managed-keys-directory "${folder}";`,
    ].join(';\n    ').replace(/^;/, '');
    const text = ours(example('named.conf'), (to) => `127.0.0.1 port ${to}`).replace('options {', `options {${own}`);
    return [needs('named'), '-f', '-4', '-c', write(folder, `controls { };\n${text}zone "." { type hint; file "${hints(folder)}"; };\n`)];
  });
});
afterAll(async () => {
  await lab.stop();
  await consul.end();
});

test('each resolver answers with the master, and with the new one after a failover', async () => {
  const agree = async (host: string): Promise<void> => {
    let seen: string[] = [];
    await waitFor(() => `${host} from all: ${seen.join(', ')}\n${lab.logs(5)}`, 40_000, async () => {
      seen = await Promise.all(resolvers.map(async ({ name, port, question }) => `${name} ${await dig(port, question)}`));
      return seen.every((text) => text.endsWith(` ${host}`));
    });
  };
  await agree(master.address.host);
  const [agent] = lab.sentinels;
  if (agent === undefined) throw new Error('no agent');
  const target = lab.nodes[1] as RedisNode;
  await waitFor(() => `a failover\n${lab.logs(5)}`, 30_000, async () => JSON.stringify(
    await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME, 'COORDINATED', `${target.address.host}:${target.address.port}`)).includes('OK'));
  await agree(target.address.host);
}, 150_000);
