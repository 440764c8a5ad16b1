/**
 * The demo's little world: one master, two replicas, three agents, all on loopback and in one temporary folder.
 *
 * The Redis nodes share one port on 127.0.0.1, .2 and .3, so that an A record alone tells clients where the master is, as it does
 * on real machines. Every agent has a stock sentinel.conf and a pointsman.yaml.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { must } from '../assert.js';
import { AgentError } from '../errors.js';
import type { Address } from '../sentinel/wire/address.js';
import { MASTER_NAME, whyNotIn, whyNotNaming, whyNotServing, whyNotWatching } from './agreement.js';
import { askRedis } from './ask-redis.js';
import { findProgram } from './children.js';
import type { Child, Children } from './children.js';
import { DnsProbe, showReply } from './dns-probe.js';
import { freePort } from './free-port.js';
import { waitUntilNothing } from './wait.js';

export const ZONE = 'redis.test.';
const NODE_HOSTS = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const;
const AGENT_HOST = '127.0.0.1';
const AGENTS = 3;
const QUORUM = 2;
const COMPANY = { replicas: NODE_HOSTS.length - 1, peers: AGENTS - 1 };
const FAILOVER_TIMEOUT_MS = 10_000;
const START_LIMIT_MS = 60_000;
const START_ATTEMPTS = 3;
const MAIN = fileURLToPath(new URL('../main.js', import.meta.url));

/** A redis-server; `child` changes when it is started again. */
export interface Node {
  readonly name: string;
  readonly address: Address;
  child: Child;
}

export interface Agent {
  readonly name: string;
  readonly sentinel: Address;
  readonly dns: Address;
  readonly probe: DnsProbe;
  /** Of its pointsman.yaml. */
  readonly config: string;
  child: Child;
}

/** `agreed`: names and roles are right. `ready`: and another failover could begin. */
export type Depth = 'agreed' | 'ready';

export interface ClusterOptions {
  readonly downAfterMs: number;
  /** What `run --config …` is appended to; default: this very program. */
  readonly agentCommand?: readonly string[];
}

export class Cluster {
  readonly #children: Children;
  readonly #redisServer: string;
  readonly #agentCommand: readonly string[];

  private constructor(
    children: Children, redisServer: string, readonly options: ClusterOptions,
    readonly nodes: readonly Node[], readonly agents: Agent[],
  ) {
    this.#children = children;
    this.#redisServer = redisServer;
    this.#agentCommand = options.agentCommand ?? [process.execPath, MAIN];
  }

  /**
   * Starts everything and resolves when every process answers; what they make of each other is {@link whyUnsettled}.
   *
   * A port that somebody took between the check and the start is no reason to give up.
   */
  static async start(children: Children, options: ClusterOptions, signal: AbortSignal): Promise<Cluster> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await Cluster.#startOnce(children, options, signal);
      } catch (error) {
        if (!(error instanceof AgentError && error.code === 'PORT_IN_USE') || attempt === START_ATTEMPTS) throw error;
        await children.endAll();
      }
    }
  }

  static async #startOnce(children: Children, options: ClusterOptions, signal: AbortSignal): Promise<Cluster> {
    const redisServer = findProgram('redis-server', 'install Redis (Debian: apt-get install redis-server)');
    const port = await freePort(NODE_HOSTS);
    const addresses = NODE_HOSTS.map((host) => ({ host, port }));
    const first = must(addresses[0], 'there is a first node');
    const nodes = addresses.map((address, index): Node => {
      const name = `redis${index + 1}`;
      const replicaOf = index === 0 ? [] : ['--replicaof', `${first.host} ${first.port}`];
      return { name, address, child: startRedis(children, redisServer, name, address, replicaOf) };
    });
    const cluster = new Cluster(children, redisServer, options, nodes, []);
    for (const node of nodes) await answering(node.address, node.child, signal);
    for (let index = 1; index <= AGENTS; index++) cluster.agents.push(await cluster.#createAgent(`agent${index}`, first));
    for (const agent of cluster.agents) await answering(agent.sentinel, agent.child, signal);
    return cluster;
  }

  /** The node that the name leads to. */
  node(host: string): Node | null {
    return this.nodes.find(({ address }) => address.host === host) ?? null;
  }

  /** Starts a node that has ended, as an operator would: without `replicaof`, so that it believes itself a master. */
  async restartNode(node: Node, signal: AbortSignal): Promise<void> {
    node.child = startRedis(this.#children, this.#redisServer, node.name, node.address, []);
    await answering(node.address, node.child, signal);
  }

  async restartAgent(agent: Agent, signal: AbortSignal): Promise<void> {
    agent.child = this.#startAgent(agent.name, agent.config);
    await answering(agent.sentinel, agent.child, signal);
  }

  /**
   * Everything that is not as it should be while `master` is the master, in words; an empty list = all agree.
   *
   * `ready`: the agents also know their company well enough for the next failover. They read a replica's INFO every ten seconds
   * only, so this takes that much longer.
   */
  async whyUnsettled(master: Node, depth: Depth): Promise<string[]> {
    const ofNodes = this.nodes.map(async (node) => whyNotIn(node.name, () => whyNotServing(node.address, master.address)));
    const ofAgents = this.agents.flatMap((agent) => [
      whyNotIn(agent.name, () => (depth === 'ready' ? whyNotWatching(agent.sentinel, master.address, COMPANY)
        : whyNotNaming(agent.sentinel, master.address))),
      whyNotIn(agent.name, async () => {
        const reply = showReply(await agent.probe.ask());
        return reply === master.address.host ? null : `its DNS answers ${reply}, not ${master.address.host}`;
      }),
    ]);
    return (await Promise.all([...ofNodes, ...ofAgents])).filter((reason) => reason !== null);
  }

  /** Resolves when {@link whyUnsettled} finds nothing; rejects with what it still found after `limitMs`. */
  async settled(master: Node, depth: Depth, limitMs: number, signal: AbortSignal): Promise<void> {
    await waitUntilNothing(async () => {
      for (const { child } of this.agents) child.assertRunning();
      const reasons = await this.whyUnsettled(master, depth);
      return reasons.length === 0 ? null : reasons.join('; ');
    }, limitMs, signal);
  }

  /** Ends every process. */
  async stop(): Promise<void> {
    for (const { probe } of this.agents) probe.close();
    await this.#children.endAll();
  }

  async #createAgent(name: string, master: Address): Promise<Agent> {
    const [sentinel, dns, admin] = [await freePort(), await freePort(), await freePort()];
    const folder = join(this.#children.logFolder, name);
    const config = join(folder, 'pointsman.yaml');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'sentinel.conf'), [
      `port ${sentinel}`, `bind ${AGENT_HOST}`, `dir ${folder}`,
      `sentinel monitor ${MASTER_NAME} ${master.host} ${master.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${this.options.downAfterMs}`,
      `sentinel failover-timeout ${MASTER_NAME} ${FAILOVER_TIMEOUT_MS}`, '',
    ].join('\n'));
    writeFileSync(config, [
      `sentinel: { config: ${join(folder, 'sentinel.conf')} }`,
      'route: { allow-loopback: true }',
      `dns: { listen: ["${AGENT_HOST}:${dns}"], zone: ${ZONE}, ttl: 1s }`,
      `admin: { listen: "${AGENT_HOST}:${admin}" }`,
      `journal: { path: ${join(folder, 'journal.ndjson')} }`,
      'log: { format: text }', '',
    ].join('\n'));
    const address = (port: number): Address => ({ host: AGENT_HOST, port });
    const probe = new DnsProbe(address(dns), `${MASTER_NAME}.${ZONE}`);
    return { name, config, sentinel: address(sentinel), dns: address(dns), probe, child: this.#startAgent(name, config) };
  }

  #startAgent(name: string, config: string): Child {
    return this.#children.start(name, [...this.#agentCommand, 'run', '--config', config], join(config, '..'));
  }
}

function startRedis(children: Children, program: string, name: string, { host, port }: Address, more: readonly string[]): Child {
  const folder = join(children.logFolder, name);
  mkdirSync(folder, { recursive: true });
  const network = ['--port', String(port), '--bind', host, '--replica-announce-ip', host];
  const storage = ['--save', '', '--appendonly', 'no', '--repl-diskless-sync-delay', '0', '--dir', folder];
  return children.start(name, [program, ...network, ...storage, ...more], folder);
}

async function answering(address: Address, child: Child, signal: AbortSignal): Promise<void> {
  await waitUntilNothing(async () => {
    child.assertRunning();
    return whyNotIn(child.name, async () => ((await askRedis(address, ['PING'])).kind === 'simple' ? null : 'PING is refused'));
  }, START_LIMIT_MS, signal);
}
