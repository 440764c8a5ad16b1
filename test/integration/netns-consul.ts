/**
 * Real Consul servers in the namespaces of the lab: one on the client's host, or three, one on each Redis host, where each agent asks its own.
 *
 * Of the three the first one makes the cluster, so it's the leader; the second one answers DNS by asking the leader (`allow_stale` false), the
 * third one as Consul does by default.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from './lab.js';
import type { Host } from './netns-lab.js';
import type { VipLab } from './vip-lab.js';

export const HTTP_PORT = 8500;
export const DNS_PORT = 8600;
const SERVER_PORT = 8300;
const RECORDER_PORT = 8501;

const finder = new URL('../../scripts/consul-binary.mjs', import.meta.url).pathname;

/** One line of a recorder: a write, or the ModifyIndexes after a change. */
export interface Recorded {
  readonly at: number;
  readonly path?: string;
  /** The writer's address. */
  readonly from?: string;
  readonly body?: string;
  readonly indexes?: string;
}

export function recordedIn(file: string): Recorded[] {
  return readFileSync(file, 'utf8').split('\n').flatMap((line) => (line.endsWith('}') ? [JSON.parse(line) as Recorded] : []));
}

export interface View {
  /** As in the table. */
  readonly title: string;
  readonly host: Host;
}

export class ConsulServers {
  private constructor(readonly lab: VipLab, readonly hosts: readonly Host[]) {}

  /** One server on the client's host. */
  static async one(lab: VipLab): Promise<ConsulServers> {
    const servers = new ConsulServers(lab, [lab.client]);
    servers.#run(lab.client, { bootstrap: true });
    await servers.#ready(1);
    return servers;
  }

  /** Three servers, one on each Redis host; returns when all three vote. */
  static async three(lab: VipLab): Promise<ConsulServers> {
    const { hosts } = lab.network;
    const servers = new ConsulServers(lab, hosts);
    const [first] = hosts as [Host];
    for (const host of hosts) {
      const join = host === first ? { bootstrap: true } : { retry_join: [first.ip], retry_interval: '1s' };
      servers.#run(host, { ...join, ...(host.number === 2 ? { dns_config: { allow_stale: false } } : {}) });
    }
    await servers.#ready(3);
    return servers;
  }

  /** A recorder before the first server, on its host: whoever writes is to be told this address, and what is written is in `file`. */
  record(file: string, masters: readonly string[]): string {
    const [host] = this.hosts as [Host];
    writeFileSync(file, '');
    const script = new URL('consul-recorder.mjs', import.meta.url).pathname;
    const words = [process.execPath, script, file, host.ip, String(RECORDER_PORT), this.urls[0] ?? '', ...masters];
    this.lab.children.start('recorder', [...host.wrap, ...words], this.lab.folder);
    return `http://${host.ip}:${RECORDER_PORT}`;
  }

  /** What an agent on a Redis host is to be told (the same words on each). */
  get address(): string {
    return this.hosts.length === 1 ? `http://${this.hosts[0]?.ip}:${HTTP_PORT}` : `http://127.0.0.1:${HTTP_PORT}`;
  }

  get urls(): string[] {
    return this.hosts.map(({ ip }) => `http://${ip}:${HTTP_PORT}`);
  }

  /** Who is asked what, now: the leader may have changed. */
  async views(): Promise<View[]> {
    if (this.hosts.length === 1) return [{ title: 'consul, one server', host: this.hosts[0] as Host }];
    const leader = JSON.parse(await this.get('/v1/status/leader')) as string;
    return this.hosts.map((host) => {
      if (leader === `${host.ip}:${SERVER_PORT}`) return { title: 'consul, leader of three', host };
      return { title: host.number === 2 ? 'consul, follower, allow_stale=false' : 'consul, follower, defaults', host };
    });
  }

  async get(path: string, host = this.hosts[0] as Host): Promise<string> {
    return this.lab.client.sh('curl', '-sS', '--max-time', '5', `http://${host.ip}:${HTTP_PORT}${path}`);
  }

  #run(host: Host, more: Readonly<Record<string, unknown>>): void {
    const { children, folder } = this.lab;
    const name = `consul-${host.number}`;
    const data = join(folder, name);
    mkdirSync(data, { recursive: true });
    const conf = join(folder, `${name}.json`);
    writeFileSync(conf, JSON.stringify({
      server: true, node_name: name, data_dir: data, bind_addr: host.ip, client_addr: `127.0.0.1 ${host.ip}`, log_level: 'ERR', disable_update_check: true,
      ports: { http: HTTP_PORT, dns: DNS_PORT, server: SERVER_PORT, grpc: -1 }, performance: { raft_multiplier: 1 }, retry_join_wan: [], ...more,
    }));
    const binary = execFileSync(process.execPath, [finder], { encoding: 'utf8' }).trim();
    children.start(name, [...host.wrap, binary, 'agent', '-config-file', conf], folder);
  }

  /** A newcomer votes when it has been sound for some 10 s. */
  async #ready(voters: number): Promise<void> {
    let seen = '';
    await waitFor(() => `${voters} voting servers: ${seen}`, 60_000, async () => {
      seen = await this.get('/v1/operator/raft/configuration').catch((fault: Error) => fault.message);
      return (seen.match(/"Voter":true/g) ?? []).length === voters && seen.includes('"Leader":true');
    });
  }
}
