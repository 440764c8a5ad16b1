/**
 * A network of its own for every host of the lab: namespaces, one bridge, and ways to break it that need no firewall.
 *
 * The bridges live in a namespace too, so that one `ip netns del` takes each part away. The lab itself sits on the main bridge by one
 * interface of the root namespace, which ends with its peer. What is broken is said as a list of cuts; after each change
 * the state of ports and neighbours is computed from the whole list, so that cuts may overlap and end in any order.
 */
import { execFile, spawnSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { must } from '../../src/assert.js';
import { messageOf } from '../../src/errors.js';

const run = promisify(execFile);
const PREFIX = 'pmlab';
const MAIN_BRIDGE = 'main';
const ISLAND_BRIDGE = 'island';
/** Nobody has it: what is sent there is gone without an error. */
const NOBODY = '02:00:00:00:de:ad';
const LAB_NUMBER = 254;
const FIRST_NUMBER = 11;
/** 198.18.0.0/15 is set aside for benches of networks (RFC 2544). */
const NETS = Array.from({ length: 256 }, (_, third) => `198.18.${third}`);

export type Cut =
  /** The bridge port is down. */
  | { readonly kind: 'unplugged'; readonly host: string }
  /** These hosts reach each other and nobody else. */
  | { readonly kind: 'island'; readonly hosts: readonly string[] }
  /** These two can't meet, everybody else reaches both. */
  | { readonly kind: 'pair'; readonly hosts: readonly [string, string] }
  /** What `from` sends to `to` vanishes; the other way works. */
  | { readonly kind: 'oneWay'; readonly from: readonly string[]; readonly to: readonly string[] };

/** What the cuts make of each port, and the neighbours that lead nowhere (`from to`). */
interface Wiring {
  readonly ports: ReadonlyMap<string, { readonly isUp: boolean; readonly bridge: string; readonly isIsolated: boolean }>;
  readonly bogus: ReadonlySet<string>;
}

/** Null when this process may make network namespaces, else why not. */
export function whyNoNamespaces(): string | null {
  if (process.platform !== 'linux') return `network namespaces need Linux, not ${process.platform}`;
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const name = `${PREFIX}-${process.pid}-probe`;
  const made = spawnSync('ip', ['netns', 'add', name], { encoding: 'utf8' });
  if (made.error) return `ip: ${made.error.message}`;
  spawnSync('ip', ['netns', 'del', name]);
  return made.status === 0 ? null : `ip netns add: ${made.stderr.trim()}`;
}

export class Network {
  readonly #cuts = new Set<Cut>();
  #wiring: Wiring;
  #applying: Promise<void> = Promise.resolve();

  private constructor(readonly hosts: readonly string[], readonly net: string) {
    this.#wiring = this.#wiringOf([]);
  }

  /** Namespaces and bridge, ready to use. What a killed lab left behind is removed first. */
  static async create(hosts: readonly string[]): Promise<Network> {
    await sweep();
    const taken = Object.values(networkInterfaces()).flat().map((each) => each?.address.split('.').slice(0, 3).join('.'));
    const first = process.pid % NETS.length;
    const net = must([...NETS.slice(first), ...NETS.slice(0, first)].find((each) => !taken.includes(each)), 'a net is free');
    const network = new Network(hosts, net);
    try {
      await network.#build();
    } catch (error) {
      await network.remove();
      throw error;
    }
    return network;
  }

  address(host: string): string {
    return `${this.net}.${FIRST_NUMBER + this.hosts.indexOf(host)}`;
  }

  /** What to put before a command so that it runs on `host`. */
  on(host: string): string[] {
    return ['ip', 'netns', 'exec', this.#namespace(host)];
  }

  /** Resolves, when the cut is in force, with its end. */
  async cut(cut: Cut): Promise<() => Promise<void>> {
    this.#cuts.add(cut);
    await this.#apply();
    return async () => {
      this.#cuts.delete(cut);
      await this.#apply();
    };
  }

  async remove(): Promise<void> {
    // It would go with its peer, but only some time after the namespace.
    await run('ip', ['link', 'del', 'dev', `${PREFIX}${process.pid}`]).catch(complainUnlessGone);
    await removeNamespaces([...this.hosts, 'switch'].map((host) => this.#namespace(host)));
  }

  async #build(): Promise<void> {
    const hub = this.#namespace('switch');
    for (const name of [hub, ...this.hosts.map((host) => this.#namespace(host))]) await run('ip', ['netns', 'add', name]);
    const bridges = [MAIN_BRIDGE, ISLAND_BRIDGE].flatMap((bridge) => [`link add name ${bridge} type bridge forward_delay 0`, `link set dev ${bridge} up`]);
    await batch(hub, bridges);
    const lab = `${PREFIX}${process.pid}`;
    await run('ip', ['link', 'add', 'name', lab, 'type', 'veth', 'peer', 'name', 'lab', 'netns', hub]);
    await batch(null, [`addr add ${this.net}.${LAB_NUMBER}/24 dev ${lab}`, `link set dev ${lab} up`]);
    await batch(hub, [`link set dev lab master ${MAIN_BRIDGE} up`]);
    for (const host of this.hosts) {
      await run('ip', ['-n', hub, 'link', 'add', 'name', host, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', this.#namespace(host)]);
      await batch(this.#namespace(host), ['link set lo up', `addr add ${this.address(host)}/24 dev eth0`, 'link set eth0 up']);
    }
    await batch(hub, this.hosts.map((host) => `link set dev ${host} master ${MAIN_BRIDGE} up`));
  }

  /** One change at a time; the next one sees what this one has done. */
  #apply(): Promise<void> {
    const change = this.#applying.then(() => this.#rewire(this.#wiringOf([...this.#cuts])));
    this.#applying = change.catch(() => undefined);
    return change;
  }

  async #rewire(next: Wiring): Promise<void> {
    const hub = this.#namespace('switch');
    const links: string[] = [];
    for (const [host, port] of next.ports) {
      const now = must(this.#wiring.ports.get(host), 'every host has a port');
      if (port.bridge !== now.bridge) links.push(`link set dev ${host} master ${port.bridge}`);
      // A port that changes its bridge forgets that it was isolated.
      if (port.isIsolated !== now.isIsolated || port.bridge !== now.bridge) {
        links.push(`link set dev ${host} type bridge_slave isolated ${port.isIsolated ? 'on' : 'off'}`);
      }
      if (port.isUp !== now.isUp) links.push(`link set dev ${host} ${port.isUp ? 'up' : 'down'}`);
    }
    if (links.length > 0) await batch(hub, links);
    const neighbours = new Map<string, string[]>();
    for (const way of new Set([...next.bogus, ...this.#wiring.bogus])) {
      if (next.bogus.has(way) === this.#wiring.bogus.has(way)) continue;
      const [from = '', to = ''] = way.split(' ');
      const entry = `${this.address(to)} dev eth0`;
      const line = next.bogus.has(way) ? `neigh replace ${entry} lladdr ${NOBODY} nud permanent` : `neigh del ${entry}`;
      neighbours.set(from, [...(neighbours.get(from) ?? []), line]);
    }
    await Promise.all([...neighbours].map(([from, lines]) => batch(this.#namespace(from), lines)));
    this.#wiring = next;
  }

  #wiringOf(cuts: readonly Cut[]): Wiring {
    const ports = this.hosts.map((host) => {
      const isUp = !cuts.some((cut) => cut.kind === 'unplugged' && cut.host === host);
      const isAway = cuts.some((cut) => cut.kind === 'island' && cut.hosts.includes(host));
      const isIsolated = cuts.some((cut) => cut.kind === 'pair' && cut.hosts.includes(host));
      return [host, { isUp, bridge: isAway ? ISLAND_BRIDGE : MAIN_BRIDGE, isIsolated }] as const;
    });
    const bogus = cuts.flatMap((cut) => (cut.kind === 'oneWay' ? cut.from.flatMap((from) => cut.to.map((to) => `${from} ${to}`)) : []));
    return { ports: new Map(ports), bogus: new Set(bogus) };
  }

  #namespace(host: string): string {
    return `${PREFIX}-${process.pid}-${host}`;
  }
}

/** Commands of `ip` in one go, in a namespace or in the root one. */
async function batch(namespace: string | null, lines: readonly string[]): Promise<void> {
  const started = run('ip', [...(namespace === null ? [] : ['-n', namespace]), '-batch', '-']);
  started.child.stdin?.end(`${lines.join('\n')}\n`);
  await started;
}

/** Namespaces of labs whose process is gone. */
async function sweep(): Promise<void> {
  const { stdout } = await run('ip', ['netns', 'list']);
  const names = stdout.split('\n').map((line) => line.split(' ')[0] ?? '');
  await removeNamespaces(names.filter((name) => {
    const [, pid] = new RegExp(`^${PREFIX}-(\\d+)-`).exec(name) ?? [];
    return pid !== undefined && !isAlive(Number(pid));
  }));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function removeNamespaces(names: readonly string[]): Promise<void> {
  for (const name of names) {
    await run('ip', ['netns', 'del', name]).catch(complainUnlessGone);
  }
}

function complainUnlessGone(error: unknown): void {
  if (!/No such file|Cannot find device/.test(messageOf(error))) process.stderr.write(`left behind: ${messageOf(error)}\n`);
}
