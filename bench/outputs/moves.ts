/**
 * Coordinated moves in the lab, one after the other, and how long after each promotion every view showed the new master. The new master's own
 * ROLE is the zero.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../../test/integration/lab.js';
import type { Host } from '../../test/integration/netns-lab.js';
import { CACHE, SENTINEL_PORT, VipLab } from '../../test/integration/vip-lab.js';
import { SINCE_ROUTE } from './figures.js';
import { ConsulServers, DNS_PORT } from '../../test/integration/netns-consul.js';

export type Round = 'hosts' | 'consul' | 'cluster';

/** Milliseconds by the title of the table's line. */
export type Delays = Map<string, number[]>;

interface Note {
  readonly at: number;
  readonly what: string;
  readonly says: string;
}

/** What to wait for after a move: the notes called `what` that say the new master, or lines of the hooks' file. */
interface Expected {
  readonly title: string;
  readonly what: string;
  /** Whose Route it follows; absent: whoever's came first. */
  readonly of?: Host;
}

/** More lines than a move makes. */
const JOURNAL_TAIL = 100;
const here = (name: string): string => new URL(name, import.meta.url).pathname;
const linesOf = (path: string): string[] => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter((line) => line !== '') : []);
const AGENT_DNS = 5353;
/** An agent that had no CPU for two seconds is in TILT for half a minute and refuses. */
const MOVE_LIMIT_MS = 90_000;
const DNS_YAML = 'dns: { listen: ["0.0.0.0:5353"], zone: redis.internal., ns: { ns.redis.internal.: 10.77.0.1 } }';

/** One round: its own hosts, servers and agents, `moves` moves. */
export async function measure(round: Round, moves: number): Promise<Delays> {
  const lab = new VipLab({
    withClient: false, withVips: round === 'hosts', downAfterMs: 5_000,
    yaml: [DNS_YAML, round === 'hosts' ? 'hooks: [{ name: bench, command: [/bin/bash, HOOK] }]' : 'consul: { address: "CONSUL" }'],
  });
  try {
    return await new Bench(lab, round).run(moves);
  } finally {
    await lab.stop();
  }
}

class Bench {
  readonly #delays: Delays = new Map();
  readonly #notesFile: string;
  readonly #hookFile: string;
  #consul: ConsulServers | null = null;

  constructor(readonly lab: VipLab, readonly round: Round) {
    this.#notesFile = join(lab.folder, 'notes');
    this.#hookFile = join(lab.folder, 'hook-starts');
  }

  async run(moves: number): Promise<Delays> {
    const { lab, round } = this;
    const script = join(lab.folder, 'hook.sh');
    writeFileSync(this.#hookFile, '');
    spawnSync('chmod', ['666', this.#hookFile]);
    writeFileSync(script, `echo $EPOCHREALTIME >> ${this.#hookFile}\n`, { mode: 0o755 });
    if (round !== 'hosts') this.#consul = round === 'consul' ? await ConsulServers.one(lab) : await ConsulServers.three(lab);
    await lab.start((text) => text.replace('HOOK', script).replace('CONSUL', this.#consul?.address ?? ''));
    await lab.ready(CACHE, lab.host(1));
    this.#startProbe();
    let home = lab.host(1);
    for (let move = 0; move < moves; move++) home = await this.#move(home, move);
    if (this.#consul !== null) await this.#consulAlone(this.#consul, Math.max(20, moves * 5));
    return this.#delays;
  }

  #startProbe(): void {
    const { lab } = this;
    writeFileSync(this.#notesFile, '');
    const vips = this.round === 'hosts' ? CACHE.vips.map((vip) => [`vip ${vip}`, vip, CACHE.port]) : [];
    const names = [
      ...lab.network.hosts.map(({ ip }) => [`dns ${ip}`, ip, AGENT_DNS, `${CACHE.name}.redis.internal`]),
      ...(this.#consul?.hosts ?? []).map(({ ip }) => [`consul ${ip}`, ip, DNS_PORT, `${CACHE.name}.service.consul`]),
    ];
    const asked = JSON.stringify({ nodes: lab.network.hosts.map(({ ip }) => `${ip}:${CACHE.port}`), vips, names });
    lab.children.start('probe', [...lab.client.wrap, process.execPath, here('probe.mjs'), this.#notesFile, asked], lab.folder);
  }

  async #move(home: Host, move: number): Promise<Host> {
    const { lab } = this;
    await lab.ready(CACHE, home);
    const next = lab.network.hosts[home.number % 3] as Host;
    const views = await this.#consul?.views() ?? [];
    const expected: Expected[] = [
      ...lab.network.hosts.map((host) => ({ title: 'dns, each agent', what: `dns ${host.ip}`, of: host })),
      ...(this.round === 'hosts' ? CACHE.vips.map((vip) => ({ title: vip.includes(':') ? 'vip, IPv6' : 'vip, IPv4', what: `vip ${vip}` })) : []),
      ...views.map(({ title, host }) => ({ title, what: `consul ${host.ip}` })),
    ];
    writeFileSync(this.#hookFile, '');
    const sinceMs = Date.now();
    const target = `${next.ip}:${CACHE.port}`;
    await waitFor(() => `move ${move}\n${lab.logs()}`, MOVE_LIMIT_MS, async () =>
      (await lab.ask(home, SENTINEL_PORT, 'sentinel', 'failover', 'cache', 'coordinated', target)) === 'OK');
    let found: readonly [string, number][] | string = '';
    await waitFor(() => `move ${move} seen everywhere: ${String(found)}\n${lab.logs()}`, MOVE_LIMIT_MS, () => {
      found = this.#found(expected, next, sinceMs);
      return typeof found !== 'string';
    });
    for (const [title, ms] of found as unknown as [string, number][]) this.#delays.set(title, [...(this.#delays.get(title) ?? []), ms]);
    return next;
  }

  /** A delay for each expected view; or what is still missing. */
  #found(expected: readonly Expected[], next: Host, sinceMs: number): [string, number][] | string {
    const { lab } = this;
    const later = linesOf(this.#notesFile).map((line) => JSON.parse(line) as Note).filter(({ at }) => at >= sinceMs);
    const promotedMs = later.find(({ what, says }) => what === `role ${next.ip}` && says === 'master')?.at;
    if (promotedMs === undefined) return 'no promotion seen';
    const routes = lab.network.hosts.map((host) => this.#routeMs(host, next, sinceMs));
    if (routes.includes(Infinity)) return 'an agent without the new Route';
    const found: [string, number][] = [];
    for (const { title, what, of } of expected) {
      const note = later.find((each) => each.what === what && each.says === next.ip);
      if (note === undefined) return `${what} does not say ${next.ip}`;
      // Whoever had the Route first writes to Consul and takes the VIP; DNS follows the agent that is asked.
      const routeMs = of === undefined ? Math.min(...routes) : routes[of.number - 1] as number;
      found.push([title, note.at - promotedMs], [`${title}${SINCE_ROUTE}`, note.at - routeMs]);
    }
    found.push(...routes.map((ms): [string, number] => ['Route, each agent', ms - promotedMs]));
    if (this.round !== 'hosts') return found;
    const hooks = linesOf(this.#hookFile).map((line) => Number(line) * 1000 - promotedMs);
    return hooks.length < 3 ? `${hooks.length} hooks` : [...found, ...hooks.map((ms): [string, number] => ['hook started', ms])];
  }

  /** When the agent on `host` made the new master its Route (by its journal), milliseconds since 1970; Infinity while it has not. */
  #routeMs(host: Host, next: Host, sinceMs: number): number {
    const lines = linesOf(join(this.lab.folder, `agent-${host.number}`, 'journal')).slice(-JOURNAL_TAIL);
    const changes = lines.map((line) => JSON.parse(line) as { kind: string; at: string; master: string; to: string | null });
    const to = `${next.ip}:${CACHE.port}`;
    const found = changes.find((change) => change.kind === 'route' && change.master === CACHE.name && change.to === to && Date.parse(change.at) >= sinceMs);
    return found === undefined ? Infinity : Date.parse(found.at);
  }

  /** The same servers under the same load, written to without us. */
  async #consulAlone(consul: ConsulServers, count: number): Promise<void> {
    const views = await consul.views();
    const asked = JSON.stringify({ writers: consul.urls, servers: views.map(({ title, host }) => [title, host.ip, DNS_PORT]) });
    const words = [process.execPath, here('consul-alone.mjs'), String(count), asked];
    const child = this.lab.children.start('consul-alone', [...this.lab.client.wrap, ...words], this.lab.folder);
    await child.ended;
    const results = linesOf(child.logPath).map((line) => JSON.parse(line) as { ackMs: number; ms: Record<string, number> });
    for (const { title } of views) this.#delays.set(`  ${title}: without us`, results.map(({ ms }) => ms[title] ?? Infinity));
    this.#delays.set('  its transaction alone, acknowledged', results.map(({ ackMs }) => ackMs));
  }
}
