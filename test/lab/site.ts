/**
 * The installation under test: real redis-servers, real agents and clients, each on its host of the lab's network.
 *
 * One port everywhere (6379, 26379, 5353), as on real machines, so that an A record alone leads to the master. Redis keeps its
 * `replicaof` in its own file, which the agents have it rewrite; a restart believes that file.
 */
import { closeSync, fstatSync, mkdirSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../src/assert.js';
import { MASTER_NAME } from '../../src/demo/agreement.js';
import { askRedis } from '../../src/demo/ask-redis.js';
import { Children, findProgram, type Child } from '../../src/demo/children.js';
import { waitUntilNothing } from '../../src/demo/wait.js';
import { messageOf } from '../../src/errors.js';
import type { Address } from '../../src/sentinel/wire/address.js';
import { ROOT } from '../tidy/sources.js';
import type { Network } from './network.js';
import type { ChaosSettings, Layout } from './settings.js';

export const NAME = `${MASTER_NAME}.redis.test`;
export const DNS_PORT = 5353;
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
const COUNT = 3;
const NUMBERS = Array.from({ length: COUNT }, (_, index) => index + 1);
export const COMPANY = { replicas: COUNT - 1, peers: COUNT - 1 };
const QUORUM = 2;
const START_LIMIT_MS = 60_000;

/** A process of the site. `isWanted`: nobody has killed it; when it ends all the same, that is a finding. */
interface Program {
  readonly name: string;
  readonly host: string;
  readonly folder: string;
  child: Child;
  isWanted: boolean;
  isStopped: boolean;
}

export interface Node extends Program {
  readonly kind: 'redis';
  readonly address: Address;
  /** Reaches it whatever the network is like. */
  readonly socket: string;
}

export interface Agent extends Program {
  readonly kind: 'agent';
  readonly sentinel: Address;
}

export interface Client extends Program {
  readonly kind: 'client';
  /** Its key in Redis. */
  readonly key: string;
}

/** Names of the hosts, in order of the addresses they get. */
export function hostsOf(layout: Layout): { redis: string[]; agents: string[]; clients: string[]; all: string[] } {
  const named = (letter: string): string[] => NUMBERS.map((number) => `${letter}${number}`);
  const [redis, clients] = [named(layout === 'together' ? 'h' : 'r'), named('c')];
  const agents = layout === 'together' ? redis : named('a');
  return { redis, agents, clients, all: [...new Set([...redis, ...agents, ...clients])] };
}

export class Site {
  readonly children: Children;
  readonly nodes: Node[] = [];
  readonly agents: Agent[] = [];
  readonly clients: Client[] = [];

  constructor(readonly settings: ChaosSettings, readonly network: Network, readonly folder: string, readonly main: string) {
    this.children = new Children(folder);
  }

  /** Starts servers and agents; resolves when each answers. */
  async start(): Promise<void> {
    const { redis, agents } = hostsOf(this.settings.layout);
    redis.forEach((host, index) => this.nodes.push(this.#createNode(`redis${index + 1}`, host)));
    for (const node of this.nodes) await this.answering(node);
    agents.forEach((host, index) => this.agents.push(this.#createAgent(`agent${index + 1}`, host, index + 1)));
    for (const agent of this.agents) await this.answering(agent);
  }

  /** One client per host, each with another agent as its first name server. */
  startClients(): void {
    hostsOf(this.settings.layout).clients.forEach((host, index) => {
      const name = `client${index + 1}`;
      const servers = [...this.agents.slice(index), ...this.agents.slice(0, index)].map(({ sentinel }) => sentinel.host);
      const script = join(ROOT, 'test', 'lab', 'ledger-client.ts');
      const words = [name, String(this.settings.writesPerSecond), `${NAME}.`, String(DNS_PORT), ...servers];
      const argv = [...this.network.on(host), process.execPath, '--import', 'tsx', script, ...words];
      const child = this.children.start(name, argv, ROOT, { ...process.env, NODE_OPTIONS: '' });
      this.clients.push({ kind: 'client', name, key: name, host, folder: this.folder, child, isWanted: true, isStopped: false });
    });
  }

  async stopClients(): Promise<void> {
    for (const client of this.clients) {
      client.isWanted = false;
      client.child.kill('SIGTERM');
    }
    await Promise.all(this.clients.map(({ child }) => child.ended));
  }

  programs(): (Node | Agent | Client)[] {
    return [...this.nodes, ...this.agents, ...this.clients];
  }

  /** Ended though nobody killed it: with its last words. */
  deaths(): string[] {
    return this.programs().flatMap((each) => (each.isWanted && each.child.status !== null
      ? [`${each.name} ended by itself (${each.child.status}): ${each.child.lastWords()}`] : []));
  }

  async kill(program: Node | Agent): Promise<void> {
    program.isWanted = false;
    program.isStopped = false;
    program.child.kill('SIGKILL');
    await program.child.ended;
  }

  /** `keepsData` false: a new disk, with the configuration of the first day. */
  restart(program: Node | Agent, keepsData: boolean): void {
    if (program.kind === 'redis') {
      if (!keepsData) rmSync(join(program.folder, 'appendonlydir'), { recursive: true, force: true });
      program.child = this.#startRedis(program.name, program.host, program.folder);
    } else {
      if (!keepsData) this.#writeAgentFiles(program.folder, program.host, null);
      program.child = this.#startAgent(program.name, program.host, program.folder);
    }
    program.isWanted = true;
  }

  /** Resolves when it answers, by a way that no cut closes; an agent is waited for only as long as the network leads there. */
  async answering(program: Node | Agent, limitMs = START_LIMIT_MS): Promise<void> {
    const door = program.kind === 'redis' ? { path: program.socket } : program.sentinel;
    await waitUntilNothing(async () => {
      program.child.assertRunning();
      return askRedis(door, ['PING']).then((reply) => (reply.kind === 'simple' ? null : 'PING is refused'), messageOf);
    }, limitMs);
  }

  byAddress(host: string): Node | null {
    return this.nodes.find(({ address }) => address.host === host) ?? null;
  }

  #createNode(name: string, host: string): Node {
    const folder = join(this.folder, name);
    mkdirSync(folder);
    const address = { host: this.network.address(host), port: REDIS_PORT };
    const first = this.nodes[0]?.address;
    const socket = join(folder, 'redis.sock');
    writeFileSync(join(folder, 'redis.conf'), [
      `port ${REDIS_PORT}`, `bind ${address.host}`, 'protected-mode no', `unixsocket ${socket}`, `dir ${folder}`, 'save ""',
      `appendonly ${this.settings.appendOnly ? 'yes' : 'no'}`, 'repl-timeout 10', 'repl-ping-replica-period 2',
      ...(first === undefined ? [] : [`replicaof ${first.host} ${first.port}`]), '',
    ].join('\n'));
    const child = this.#startRedis(name, host, folder);
    return { kind: 'redis', name, host, folder, address, socket, child, isWanted: true, isStopped: false };
  }

  #startRedis(name: string, host: string, folder: string): Child {
    const program = findProgram('redis-server', 'install Redis (Debian: apt-get install redis-server)');
    return this.children.start(name, [...this.network.on(host), program, join(folder, 'redis.conf')], folder);
  }

  #createAgent(name: string, host: string, number: number): Agent {
    const folder = join(this.folder, name);
    this.#writeAgentFiles(folder, host, String(number).repeat(40));
    const sentinel = { host: this.network.address(host), port: SENTINEL_PORT };
    return { kind: 'agent', name, host, folder, sentinel, child: this.#startAgent(name, host, folder), isWanted: true, isStopped: false };
  }

  /** Without `myid` it is a sentinel that lost its disk, and draws a new one. */
  #writeAgentFiles(folder: string, host: string, myId: string | null): void {
    const first = must(this.nodes[0], 'servers come first').address;
    const own = this.network.address(host);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    writeFileSync(join(folder, 'sentinel.conf'), [
      `port ${SENTINEL_PORT}`, `bind ${own}`, 'protected-mode no', `dir ${folder}`,
      ...(myId === null ? [] : [`sentinel myid ${myId}`]),
      `sentinel monitor ${MASTER_NAME} ${first.host} ${first.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${this.settings.downAfterMs}`,
      `sentinel failover-timeout ${MASTER_NAME} ${this.settings.failoverTimeoutMs}`,
      ...(this.settings.isLossy ? [`sentinel coordinated-failover ${MASTER_NAME} no`] : []), '',
    ].join('\n'));
    writeFileSync(join(folder, 'pointsman.yaml'), [
      'sentinel: { config: sentinel.conf }',
      `dns: { listen: ["${own}:${DNS_PORT}"], zone: redis.test., ttl: 1s }`,
      `admin: { listen: "${own}:9126" }`,
      `journal: { path: ${join(folder, 'journal.ndjson')} }`,
      'log: { format: text }', '',
    ].join('\n'));
  }

  #startAgent(name: string, host: string, folder: string): Child {
    const argv = [process.execPath, this.main, 'run', '--config', join(folder, 'pointsman.yaml')];
    return this.children.start(name, [...this.network.on(host), ...argv], folder, { ...process.env, NODE_OPTIONS: '' });
  }
}

/** The lines that a program has written so far, from `offset` on (bytes); whole lines only. */
export function linesFrom(path: string, offset: number): { readonly lines: string[]; readonly offset: number } {
  const file = openSync(path, 'r');
  const room = Buffer.alloc(Math.max(0, fstatSync(file).size - offset));
  const bytes = room.subarray(0, readSync(file, room, 0, room.length, offset));
  closeSync(file);
  const end = bytes.lastIndexOf(0x0a) + 1;
  const text = bytes.subarray(0, end).toString('utf8');
  return { lines: text === '' ? [] : text.trimEnd().split('\n'), offset: offset + end };
}
