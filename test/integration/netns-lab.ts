/**
 * A network of its own: hosts and a client as network namespaces on one bridge, which lives in a namespace too.
 *
 * Names begin with a prefix of this process; everything goes with `close`. IPv4 is 10.77.0.N, IPv6 fd77::N, N = 1, 2, 3 … for hosts
 * and 200 for the client. What the machine lacks for it, `whyNoNetwork` says.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const DEADLINE_MS = 20_000;
let labs = 0;

/** Why tests with namespaces can't run here, or null. */
export function whyNoNetwork(programs: readonly string[] = ['arping', 'ndptool', 'bridge']): string | null {
  if (process.getuid?.() !== 0) return 'not root';
  if (spawnSync('ip', ['-V']).status !== 0) return 'ip is not installed (iproute2)';
  const missing = programs.find((name) => spawnSync('sh', ['-c', `command -v ${name}`], { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } }).status !== 0);
  if (missing !== undefined) return `${missing} is not installed`;
  const probe = `pmprobe${process.pid}`;
  if (spawnSync('ip', ['netns', 'add', probe]).status !== 0) return 'network namespaces cannot be made here';
  spawnSync('ip', ['netns', 'del', probe]);
  return null;
}

export interface AddressRow {
  readonly local: string;
  readonly prefixlen: number;
  readonly label?: string;
  readonly preferred_life_time?: number;
}

/** One namespace with an `eth0` on the bridge. */
export class Host {
  constructor(readonly name: string, readonly number: number, readonly switchName: string) {}

  get ip(): string {
    return `10.77.0.${this.number}`;
  }

  get ip6(): string {
    return `fd77::${this.number}`;
  }

  /** The words before a command that runs on this host. */
  get wrap(): readonly string[] {
    return ['ip', 'netns', 'exec', this.name];
  }

  async sh(...argv: readonly string[]): Promise<string> {
    const [program = '', ...args] = [...this.wrap, ...argv];
    return (await run(program, args, { timeout: DEADLINE_MS })).stdout;
  }

  async ipCommand(words: string): Promise<void> {
    await run('ip', ['-n', this.name, ...words.split(' ')], { timeout: DEADLINE_MS });
  }

  /** The addresses of `eth0`. */
  async addresses(): Promise<readonly AddressRow[]> {
    const { stdout } = await run('ip', ['-n', this.name, '-j', 'addr', 'show', 'dev', 'eth0'], { timeout: DEADLINE_MS });
    return (JSON.parse(stdout) as { addr_info: AddressRow[] }[])[0]?.addr_info ?? [];
  }

  async has(address: string): Promise<boolean> {
    return (await this.addresses()).some(({ local }) => local === address);
  }

  async hardwareAddress(): Promise<string> {
    const { stdout } = await run('ip', ['-n', this.name, '-j', 'link', 'show', 'dev', 'eth0'], { timeout: DEADLINE_MS });
    return (JSON.parse(stdout) as { address: string }[])[0]?.address ?? '';
  }

  /** Where this host would send frames for `address`; null = it has to ask. */
  async neighbour(address: string): Promise<string | null> {
    const { stdout } = await run('ip', ['-n', this.name, '-j', 'neigh', 'show', address, 'dev', 'eth0'], { timeout: DEADLINE_MS });
    return (JSON.parse(stdout || '[]') as { lladdr?: string }[])[0]?.lladdr ?? null;
  }

  /** Pulls the cable at the bridge, or puts it back. */
  async cable(state: 'up' | 'down'): Promise<void> {
    await run('ip', ['-n', this.switchName, 'link', 'set', `p${this.number}`, state], { timeout: DEADLINE_MS });
  }

  /** Nothing reaches `others` any more, and no answer comes back; everybody else is still reached. */
  async cutFrom(others: readonly Host[]): Promise<void> {
    for (const other of others) await this.ipCommand(`route add blackhole ${other.ip}/32`);
  }

  async joinAgain(others: readonly Host[]): Promise<void> {
    for (const other of others) await this.ipCommand(`route del blackhole ${other.ip}/32`);
  }
}

export class Network {
  readonly client: Host;

  private constructor(readonly hosts: readonly Host[], client: Host, readonly switchName: string) {
    this.client = client;
  }

  static open(hostCount: number, addressesOf: (host: Host) => readonly string[] = ({ ip, ip6 }) => [`${ip}/24`, `${ip6}/64`]): Network {
    const prefix = `pmo${process.pid}x${++labs}`;
    const switchName = `${prefix}sw`;
    const hosts = Array.from({ length: hostCount }, (_, index) => new Host(`${prefix}h${index + 1}`, index + 1, switchName));
    const client = new Host(`${prefix}c`, 200, switchName);
    const network = new Network(hosts, client, switchName);
    try {
      const lines = ['link add br0 type bridge forward_delay 0', 'link set br0 up', 'link set lo up'];
      execFileSync('ip', ['netns', 'add', switchName]);
      batch(switchName, lines);
      for (const host of [...hosts, client]) network.#plug(host, addressesOf(host));
    } catch (fault) {
      network.close();
      throw fault;
    }
    return network;
  }

  #plug(host: Host, addresses: readonly string[]): void {
    execFileSync('ip', ['netns', 'add', host.name]);
    batch(this.switchName, [
      `link add p${host.number} type veth peer name eth0 netns ${host.name}`, `link set p${host.number} master br0`, `link set p${host.number} up`,
    ]);
    execFileSync('ip', ['netns', 'exec', host.name, 'sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=0', 'net.ipv6.conf.eth0.accept_dad=0']);
    batch(host.name, ['link set lo up', 'link set eth0 up', ...addresses.map((address) => `addr add ${address} dev eth0${address.includes(':') ? ' nodad' : ''}`)]);
  }

  /** Who holds an address now; more than one where two do. */
  async holders(address: string): Promise<readonly Host[]> {
    const holding = await Promise.all(this.hosts.map((host) => host.has(address)));
    return this.hosts.filter((_, index) => holding[index]);
  }

  /** Takes the namespaces away. What runs in them is whoever started it's to end. */
  close(): void {
    for (const { name } of [...this.hosts, this.client]) spawnSync('ip', ['netns', 'del', name]);
    spawnSync('ip', ['netns', 'del', this.switchName]);
  }
}

function batch(namespace: string, lines: readonly string[]): void {
  execFileSync('ip', ['-n', namespace, '-batch', '-'], { input: `${lines.join('\n')}\n`, stdio: ['pipe', 'ignore', 'pipe'] });
}
