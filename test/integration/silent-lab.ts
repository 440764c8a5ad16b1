/**
 * A lab for planned moves: writable Redis nodes, sentinels that have an identity from the start, and what each of them tells.
 *
 * A sentinel without `myid` in its file counts as freshly born and stays out of the elections of a prepared master, so every
 * file gets one; the publish period is short, so that the rules that count hello periods do not make a test last.
 */
import { Redis } from 'ioredis';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { masterNamedBy } from '../../src/demo/agreement.js';
import { askRedis } from '../../src/demo/ask-redis.js';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import { Lab, MASTER_NAME, NAME, answerOf, ask, fieldsOf, textOf, textsOf, waitFor, type LabSentinel, type RedisNode } from './lab.js';

const TUNABLES = ['publish-period', '500'];
/** Answers that a busy moment explains; the question is put again. */
const PASSING = /list is changing|its INFO was never read|no connection to it|its replication link is down|its INFO is \d+ ms old/;

export interface SilentLabSpec {
  readonly agents?: number;
  readonly stock?: number;
  readonly downAfterMs?: number;
  readonly lines?: readonly string[];
  /** More lines of every pointsman.yaml. */
  readonly yaml?: readonly string[];
  readonly redisArgs?: readonly string[];
  /** Names and values for SENTINEL DEBUG. */
  readonly tunables?: readonly string[];
  /** No client-reconfig-script: starting programs takes time from what is measured. */
  readonly isQuiet?: boolean;
}

export interface Told {
  readonly agent: string;
  readonly sentinel: string;
  readonly dns: string;
}

export class SilentLab {
  readonly lab = new Lab();
  readonly #events = new Map<LabSentinel, string[]>();
  readonly #listeners = new Map<LabSentinel, Redis>();
  #script = '';
  #tunables: readonly string[] = TUNABLES;

  /** One master, two replicas, the sentinels; resolves when a move could begin. Returns the master. */
  async start(spec: SilentLabSpec = {}): Promise<RedisNode> {
    const { agents = 3, stock = 0, downAfterMs = 3_000, lines = [], yaml = [], redisArgs = [], tunables = TUNABLES, isQuiet = false } = spec;
    const { lab } = this;
    this.#tunables = tunables;
    const master = await lab.group(2, ['--replica-read-only', 'no', ...redisArgs]);
    this.#script = join(lab.folder, 'reconfig.sh');
    writeFileSync(this.#script, '#!/bin/sh\necho "$@" >> reconfig.txt\n');
    chmodSync(this.#script, 0o755);
    for (let index = 0; index < agents; index++) {
      const script = isQuiet ? [] : [`sentinel client-reconfig-script ${MASTER_NAME} ${this.#script}`];
      const own = [`sentinel myid ${String(index + 1).repeat(40)}`, ...script, ...lines];
      await lab.agent(master, { downAfterMs, lines: own, yaml });
    }
    for (let index = 0; index < stock; index++) await lab.stock(master, { downAfterMs });
    for (const agent of this.agents) await this.#attend(agent);
    await lab.settled(master, 60_000);
    return master;
  }

  get agents(): LabSentinel[] {
    return this.lab.sentinels.filter(({ kind }) => kind === 'ours');
  }

  agent(index: number): LabSentinel {
    const agent = this.agents[index];
    if (agent === undefined) throw new Error(`there is no agent ${index}`);
    return agent;
  }

  node(index: number): RedisNode {
    const node = this.lab.nodes[index];
    if (node === undefined) throw new Error(`there is no node ${index}`);
    return node;
  }

  async #attend(agent: LabSentinel): Promise<void> {
    await ask(agent, 'SENTINEL', 'DEBUG', ...this.#tunables);
    this.#listeners.get(agent)?.disconnect();
    const listener = new Redis({ ...agent.address, protocol: 2, retryStrategy: () => null });
    listener.on('error', () => undefined);
    const events = this.#events.get(agent) ?? [];
    this.#events.set(agent, events);
    this.#listeners.set(agent, listener);
    listener.on('pmessage', (_pattern: string, channel: string, message: string) => void events.push(`${channel} ${message}`));
    await listener.psubscribe('*');
  }

  /** What an agent published so far: `+switch-master mymaster …`. */
  events(agent: LabSentinel): readonly string[] {
    return this.#events.get(agent) ?? [];
  }

  switches(agent: LabSentinel): string[] {
    return this.events(agent).filter((event) => event.startsWith('+switch-master'));
  }

  /** The calls of an agent's client-reconfig-script, a line each. */
  calls(agent: LabSentinel): string[] {
    const path = join(agent.folder, 'reconfig.txt');
    return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
  }

  /** Forgets events and script calls. */
  forget(): void {
    for (const agent of this.agents) {
      this.#events.get(agent)?.splice(0);
      if (existsSync(join(agent.folder, 'reconfig.txt'))) writeFileSync(join(agent.folder, 'reconfig.txt'), '');
    }
  }

  async restart(agent: LabSentinel): Promise<void> {
    agent.child.kill('SIGKILL');
    await agent.child.ended;
    await this.lab.restartSentinel(agent);
    await this.#attend(agent);
  }

  /** The reply to SENTINEL SILENT-FAILOVER as text; a busy machine's passing refusals are waited out. */
  async silent(agent: LabSentinel, target: RedisNode | string, phase: string): Promise<string> {
    const words = typeof target === 'string' ? target : formatAddress(target.address);
    return this.patiently(agent, ['SENTINEL', 'SILENT-FAILOVER', MASTER_NAME, words, phase]);
  }

  async patiently(agent: LabSentinel, argv: readonly string[], limitMs = 30_000): Promise<string> {
    let reply = '';
    await waitFor(() => `${argv.join(' ')}: ${reply}\n${this.lab.logs(25)}`, limitMs, async () => {
      reply = textOf(await askSlowly(agent, argv));
      return !PASSING.test(reply);
    });
    return reply;
  }

  async status(agent: LabSentinel): Promise<ReadonlyMap<string, string>> {
    return fieldsOf(await ask(agent, 'SENTINEL', 'SILENT-FAILOVER', MASTER_NAME, 'status'));
  }

  async info(agent: LabSentinel, field: string): Promise<number> {
    return Number(new RegExp(`${field}:(\\d+)`).exec(textOf(await ask(agent, 'INFO', 'sentinel')))?.[1] ?? NaN);
  }

  /** What every agent says by SENTINEL and by DNS. */
  told(agents = this.agents): Promise<Told[]> {
    return Promise.all(agents.map(async ({ name, address, dnsPort }) => ({
      agent: name,
      sentinel: (await masterNamedBy(address)).host,
      dns: await answerOf(dnsPort ?? 0, NAME, 'A'),
    })));
  }

  /** Resolves when all agents (that run) send clients to `node`. */
  async allTell(node: RedisNode, limitMs = 10_000, agents = this.agents): Promise<void> {
    let told: Told[] = [];
    await waitFor(() => `everybody telling ${node.address.host}, not ${JSON.stringify(told)}\n${this.lab.logs(25)}`, limitMs, async () => {
      told = await this.told(agents).catch(() => []);
      return told.length > 0 && told.every(({ sentinel, dns }) => sentinel === node.address.host && dns === node.address.host);
    });
  }

  /** Resolves when each agent has published an event that begins so. */
  async allSay(beginning: string, limitMs = 10_000, agents = this.agents): Promise<void> {
    const missing = (): LabSentinel[] => agents.filter((agent) => !this.events(agent).some((event) => event.startsWith(beginning)));
    const seen = (): string => agents.map((agent) => `${agent.name}: ${this.events(agent).join('; ')}`).join('\n');
    await waitFor(() => `${beginning} from ${missing().map(({ name }) => name).join()}\n${seen()}`, limitMs, () => missing().length === 0);
  }

  /** Resolves when nodes and agents agree on `master` and no agent owes or prepares anything. */
  async calm(master: RedisNode, limitMs = 40_000): Promise<void> {
    await this.lab.settled(master, limitMs);
    await waitFor(() => `debts paid\n${this.lab.logs(25)}`, limitMs, async () => {
      const all = await Promise.all(this.agents.map((agent) => this.status(agent)));
      return all.every((status) => status.get('state') === 'none' && status.get('resync-debts') === '');
    });
  }

  /** One key on every node, `null` where it is missing. */
  onAll(key: string): Promise<(string | null)[]> {
    return Promise.all(this.lab.nodes.map(async (node) => {
      const reply = await ask(node, 'GET', key);
      return reply.kind === 'null' ? null : textOf(reply);
    }));
  }

  async role(node: RedisNode): Promise<string> {
    return textsOf(await ask(node, 'ROLE'))[0] ?? '';
  }

  async waitForRole(node: RedisNode, role: 'master' | 'slave', limitMs = 15_000): Promise<void> {
    await waitFor(() => `${node.name} as ${role}\n${this.lab.logs(25)}`, limitMs, async () => (await this.role(node).catch(() => '')) === role);
  }

  async stop(): Promise<void> {
    for (const listener of this.#listeners.values()) listener.disconnect();
    await this.lab.stop();
  }
}

/** Replies of planned moves come when their election is decided. */
export async function askSlowly({ address }: { readonly address: { host: string; port: number } }, argv: readonly string[]) {
  return askRedis(address, argv, 20_000);
}
