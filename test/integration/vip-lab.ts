/**
 * Three hosts on a network of their own, each with two redis-servers and an agent that has the two capabilities of the network and no
 * other right; two masters with VIPs; and a client that writes through the VIPs all the time.
 */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Children, type Child } from '../../src/demo/children.js';
import { MAIN, program, waitFor } from './lab.js';
import { Network } from './netns-lab.js';
import type { Host } from './netns-lab.js';
import { ROOT } from '../tidy/sources.js';

const NOBODY = 65534;
export const SENTINEL_PORT = 26379;
const TWO_CAPABILITIES = ['--inh-caps', '-all,+net_admin,+net_raw', '--ambient-caps', '-all,+net_admin,+net_raw', '--bounding-set', '-all,+net_admin,+net_raw'];

export interface Group {
  readonly name: string;
  readonly port: number;
  /** IPv4 first. */
  readonly vips: readonly string[];
}

export const CACHE: Group = { name: 'cache', port: 6379, vips: ['10.77.0.100', 'fd77::100'] };
export const SESSIONS: Group = { name: 'sessions', port: 6380, vips: ['10.77.0.101'] };
const GROUPS = [CACHE, SESSIONS];

export interface Attempt {
  readonly at: number;
  readonly to: string;
  /** The host that answered and took the write; absent for an attempt that failed. */
  readonly node?: string;
  readonly error?: string;
  readonly ms: number;
}

export interface VipLabOptions {
  readonly downAfterMs?: number;
  /** More lines of every agent's pointsman.yaml. */
  readonly yaml?: readonly string[];
  /** More lines of every sentinel.conf. */
  readonly conf?: readonly string[];
  readonly withVips?: boolean;
  /** The client that writes through the VIPs; default: with VIPs, yes. */
  readonly withClient?: boolean;
}

const textTo = (host: string, port: number): string => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`);

export class VipLab {
  readonly folder = mkdtempSync(join(tmpdir(), 'pointsman-vip-'));
  readonly children = new Children(this.folder);
  readonly network = Network.open(3);
  readonly #redis = new Map<string, { argv: readonly string[]; child: Child }>();
  #spelled = (yaml: string): string => yaml;
  readonly #agents = new Map<Host, { argv: readonly string[]; child: Child }>();

  constructor(readonly options: VipLabOptions = {}) {
    chmodSync(this.folder, 0o755);
  }

  host(number: 1 | 2 | 3): Host {
    const found = this.network.hosts[number - 1];
    if (found === undefined) throw new Error(`no host ${number}`);
    return found;
  }

  get client(): Host {
    return this.network.client;
  }

  get clientFile(): string {
    return join(this.folder, 'attempts');
  }

  /** cache on host 1, sessions on host 2, replicas everywhere else. */
  async start(spelled: (yaml: string) => string = (yaml) => yaml): Promise<void> {
    this.#spelled = spelled;
    for (const host of this.network.hosts) for (const group of GROUPS) this.startRedis(host, group, group === CACHE ? this.host(1) : this.host(2));
    for (const host of this.network.hosts) this.startAgent(host);
    if (this.options.withVips === false || this.options.withClient === false) return;
    writeFileSync(this.clientFile, '');
    const targets = GROUPS.flatMap(({ vips, port }) => vips.map((vip) => textTo(vip, port)));
    const script = join(ROOT, 'test/integration/vip-client.mjs');
    this.children.start('client', [...this.client.wrap, process.execPath, script, this.clientFile, ...targets], this.folder);
  }

  startRedis(host: Host, group: Group, master: Host | null): void {
    const name = `redis-${group.name}-${host.number}`;
    const folder = join(this.folder, name);
    mkdirSync(folder, { recursive: true });
    const replicaOf = master === null || master === host ? [] : ['--replicaof', `${master.ip} ${group.port}`];
    const argv = [
      ...host.wrap, program('redis-server'), '--port', String(group.port), '--bind', '* -::*', '--protected-mode', 'no', '--dir', folder, '--save', '',
      '--replica-announce-ip', host.ip, '--repl-diskless-sync-delay', '0', '--replica-read-only', 'no', '--repl-timeout', '5',
    ];
    this.#redis.set(name, { argv, child: this.children.start(name, [...argv, ...replicaOf], folder) });
  }

  redisOf(host: Host, group: Group): Child {
    const found = this.#redis.get(`redis-${group.name}-${host.number}`);
    if (found === undefined) throw new Error(`no redis of ${group.name} on host ${host.number}`);
    return found.child;
  }

  startAgent(host: Host): void {
    const folder = join(this.folder, `agent-${host.number}`);
    const known = this.#agents.get(host);
    if (known === undefined) this.#writeFiles(host, folder);
    const rights = ['--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups', ...TWO_CAPABILITIES];
    const argv = known?.argv ?? [...host.wrap, program('setpriv'), ...rights, process.execPath, MAIN, 'run', '--config', join(folder, 'pointsman.yaml')];
    this.#agents.set(host, { argv, child: this.children.start(`agent-${host.number}`, argv, folder) });
  }

  #writeFiles(host: Host, folder: string): void {
    mkdirSync(folder, { recursive: true });
    const { downAfterMs = 1000, yaml = [], conf = [], withVips = true } = this.options;
    writeFileSync(join(folder, 'sentinel.conf'), [
      `port ${SENTINEL_PORT}`, `bind ${host.ip}`, `dir ${folder}`, 'protected-mode no',
      ...GROUPS.flatMap(({ name, port }) => [
        `sentinel monitor ${name} ${(name === CACHE.name ? this.host(1) : this.host(2)).ip} ${port} 2`,
        `sentinel down-after-milliseconds ${name} ${downAfterMs}`, `sentinel failover-timeout ${name} 3000`,
      ]), ...conf, '',
    ].join('\n'));
    const vips = GROUPS.flatMap(({ name, vips: addresses }) => addresses.map((address) => `  - { master: ${name}, address: "${address}", interface: eth0 }`));
    writeFileSync(join(folder, 'pointsman.yaml'), this.#spelled([
      'sentinel: { config: sentinel.conf }', 'admin: { listen: "127.0.0.1:9126" }', 'log: { format: text }', `journal: { path: ${join(folder, 'journal')} }`,
      ...(withVips ? ['vip:', ...vips] : []), ...yaml, '',
    ].join('\n')));
    for (const path of [folder, join(folder, 'sentinel.conf'), join(folder, 'pointsman.yaml')]) chownSync(path, NOBODY, NOBODY);
  }

  agentOf(host: Host): Child {
    const found = this.#agents.get(host);
    if (found === undefined) throw new Error(`no agent on host ${host.number}`);
    return found.child;
  }

  /** A command to an agent's sentinel port (or a node's), from the client's host. */
  async ask(host: Host, port: number, ...words: readonly string[]): Promise<string> {
    return (await this.client.sh('timeout', '10', program('redis-cli'), '-h', host.ip, '-p', String(port), ...words)).trim();
  }

  /** The host that the agents name as the group's master; null while they do not agree. */
  async masterOf(group: Group, agents: readonly Host[] = this.network.hosts): Promise<Host | null> {
    const answers = await Promise.all(agents.map((host) => this.ask(host, SENTINEL_PORT, 'sentinel', 'get-master-addr-by-name', group.name).catch(() => '')));
    const [first = ''] = answers;
    if (answers.some((answer) => answer !== first)) return null;
    return this.network.hosts.find(({ ip }) => ip === first.split('\n')[0]) ?? null;
  }

  /** Who holds all the group's VIPs, alone; null while that is nobody or more than one. */
  async holderOf(group: Group): Promise<Host | null> {
    const holders = await Promise.all(group.vips.map((vip) => this.network.holders(vip)));
    const [[first] = []] = holders;
    return first !== undefined && holders.every((each) => each.length === 1 && each[0] === first) ? first : null;
  }

  /** All replicas follow, all agents know all of each other: ready for a move. */
  async ready(group: Group, master: Host, limitMs = 60_000, agents: readonly Host[] = this.network.hosts): Promise<void> {
    let why = '';
    await waitFor(() => `${group.name} ready on host ${master.number}: ${why}\n${this.logs()}`, limitMs, async () => {
      why = '';
      for (const agent of agents) {
        const text = await this.ask(agent, SENTINEL_PORT, 'sentinel', 'master', group.name).catch((fault: Error) => fault.message);
        const fields = text.split('\n');
        const field = (name: string): string => fields[fields.indexOf(name) + 1] ?? '';
        const seen = `${field('ip')} ${field('flags')} ${field('num-slaves')} ${field('num-other-sentinels')}`;
        if (seen !== `${master.ip} master 2 2`) why += `agent ${agent.number}: ${seen}; `;
      }
      const replication = await this.ask(master, group.port, 'info', 'replication').catch(() => '');
      if ((replication.match(/state=online/g) ?? []).length !== 2) why += `replicas: ${replication.replace(/\s+/g, ' ').slice(0, 200)}`;
      return why === '';
    });
  }

  attempts(): readonly Attempt[] {
    return readFileSync(this.clientFile, 'utf8').split('\n').flatMap((line) => (line.endsWith('}') ? [JSON.parse(line) as Attempt] : []));
  }

  /** The client writes to `host` through every VIP of the group, from `sinceMs` on. */
  async reached(group: Group, host: Host, sinceMs: number, limitMs: number): Promise<void> {
    const targets = group.vips.map((vip) => textTo(vip, group.port));
    let late: readonly Attempt[] = [];
    await waitFor(() => `the client reaching host ${host.number}: ${JSON.stringify(late.slice(-4))}\n${this.logs()}`, limitMs, () => {
      late = this.attempts().filter(({ at }) => at >= sinceMs);
      return targets.every((target) => late.some(({ to, node }) => to === target && node === host.ip));
    });
  }

  /** From the last success before `sinceMs` to the first one on `host` after it, milliseconds, by the client's clock. */
  gapMs(vip: string, port: number, host: Host, sinceMs: number): number {
    const mine = this.attempts().filter(({ to, node }) => to === textTo(vip, port) && node !== undefined);
    const first = mine.find(({ at, node }) => at >= sinceMs && node === host.ip);
    const before = mine.filter(({ at, node }) => first !== undefined && at < first.at && node !== host.ip).at(-1);
    return first === undefined || before === undefined ? Infinity : first.at - before.at;
  }

  logs(lines = 8): string {
    return this.children.all().filter(({ name }) => name.startsWith('agent')).map((child) =>
      `── ${child.name}\n${readFileSync(child.logPath, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')}`).join('\n');
  }

  async stop(): Promise<void> {
    await this.children.endAll();
    this.network.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
