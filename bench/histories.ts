/**
 * A hundred failovers drawn from a seed, and a history of what the outputs showed meanwhile: the VIPs of three hosts as their kernels
 * report them, and Consul at each of its indexes. Never two primaries, never a step back (root only: network namespaces).
 *
 * Run: npm run histories [-- --moves 100] [--seed N] [--json] [--logs FOLDER]. Exit status 1 when a history shows a fault.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CACHE, SENTINEL_PORT, VipLab } from '../test/integration/vip-lab.js';
import type { Host } from '../test/integration/netns-lab.js';
import { whyNoNetwork } from '../test/integration/netns-lab.js';
import { waitFor } from '../test/integration/lab.js';
import { Draw } from '../test/sim/draw.js';
import { addressChanges, judgeConsul, overlaps } from './histories/judge.js';
import type { ConsulChange } from './histories/judge.js';

const { values } = parseArgs({
  options: { moves: { type: 'string', default: '100' }, seed: { type: 'string', default: '1' }, json: { type: 'boolean', default: false }, logs: { type: 'string' } },
});
const WAYS = ['kill', 'kill', 'failover', 'coordinated', 'silent', 'aborted', 'agent-killed', 'frozen'] as const;
/** The winner waits so long for a loser of whom it knows nothing (docs/vip.md). */
const OVERLAP_LIMIT_MS = 300;
const HTTP_PORT = 8500;

const here = (name: string): string => new URL(name, import.meta.url).pathname;
const say = (text: string): void => void process.stderr.write(`${text}\n`);
const pause = (ms: number): Promise<void> => new Promise((done) => void setTimeout(done, ms));

class Histories {
  readonly lab: VipLab;
  readonly draw = new Draw(Number(values.seed));
  readonly counts = new Map<string, number>();

  constructor() {
    this.lab = new VipLab({ withClient: false, yaml: [`consul: { address: "http://10.77.0.200:${HTTP_PORT}" }`] });
  }

  get consulFile(): string {
    return join(this.lab.folder, 'consul.history');
  }

  addressFile(host: Host): string {
    return join(this.lab.folder, `addresses-${host.number}.log`);
  }

  async start(): Promise<void> {
    const { lab } = this;
    const { client, children, folder } = lab;
    const binary = execFileSync(process.execPath, [here('../scripts/consul-binary.mjs')], { encoding: 'utf8' }).trim();
    const conf = join(folder, 'consul.json');
    writeFileSync(conf, JSON.stringify({
      server: true, bootstrap: true, data_dir: join(folder, 'consul'), bind_addr: client.ip, client_addr: client.ip, log_level: 'ERR',
      ports: { http: HTTP_PORT, grpc: -1 }, performance: { raft_multiplier: 1 },
    }));
    children.start('consul', [...client.wrap, binary, 'agent', '-config-file', conf], folder);
    for (const host of lab.network.hosts) children.start(`addresses-${host.number}`, ['ip', '-n', host.name, '-ts', '-o', 'monitor', 'address'], folder);
    writeFileSync(this.consulFile, '');
    children.start('watch', [...client.wrap, process.execPath, here('histories/consul-watch.mjs'), `http://${client.ip}:${HTTP_PORT}`, this.consulFile], folder);
    await lab.start();
    await this.settled();
  }

  /** All agree, all replicas follow, the VIPs are where the master is. */
  async settled(): Promise<Host> {
    const endMs = Date.now() + 120_000;
    for (;;) {
      const master = await this.lab.masterOf(CACHE);
      const isHolder = master !== null && (await this.lab.holderOf(CACHE)) === master;
      // Short, since the master may be another one meanwhile.
      const ready = isHolder ? await this.lab.ready(CACHE, master, 3_000).then(() => null, (fault: Error) => fault) : new Error(`no agreement\n${this.lab.logs()}`);
      // Who still waits for a copy would make the node read-only once more.
      if (master !== null && ready === null && (await this.#areDebtsPaid())) return master;
      if (Date.now() > endMs && ready !== null) throw ready;
      await pause(200);
    }
  }

  async move(number: number): Promise<void> {
    const { lab, draw } = this;
    const way = draw.oneOf(WAYS);
    const master = await this.settled();
    const target = draw.oneOf(lab.network.hosts.filter((host) => host !== master));
    const witness = draw.oneOf(lab.network.hosts);
    const ask = (...words: readonly string[]): Promise<string> => lab.ask(witness, SENTINEL_PORT, 'sentinel', ...words).catch((fault: Error) => fault.message);
    const silent = (step: string): Promise<string> => ask('silent-failover', CACHE.name, `${target.ip}:${CACHE.port}`, step);
    const startMs = Date.now();
    say(`${number} of ${values.moves}: ${way}, ${master.ip}`);
    this.counts.set(way, (this.counts.get(way) ?? 0) + 1);
    if (way === 'kill' || way === 'agent-killed') {
      lab.redisOf(master, CACHE).kill('SIGKILL');
      if (way === 'agent-killed') await pause(draw.between(0, 1_500)).then(() => this.#killAgent(target));
      await this.moved(master);
      lab.startRedis(master, CACHE, null);
    } else if (way === 'frozen') {
      // Its VIP goes, although its agent can say nothing: the others take it after a moment.
      lab.redisOf(master, CACHE).kill('SIGSTOP');
      await this.moved(master);
      lab.redisOf(master, CACHE).kill('SIGCONT');
    } else if (way === 'silent' || way === 'aborted') {
      // An abort, and whoever was a target before, left it read-only; seen with the next INFO.
      await lab.ask(target, CACHE.port, 'config', 'set', 'replica-read-only', 'no');
      await this.accepted(`prepare towards ${target.ip} by ${witness.ip}`, () => silent('prepare'));
      await pause(draw.between(0, 1_000));
      await this.accepted(`the end of ${way}`, () => silent(way === 'silent' ? 'done' : 'abort'));
    } else {
      await this.accepted('failover', () => ask('failover', CACHE.name, ...(way === 'coordinated' ? ['coordinated'] : [])));
      await this.moved(master);
    }
    await this.settled();
    say(`  ${((Date.now() - startMs) / 1000).toFixed(1)} s`);
  }

  async accepted(what: string, ask: () => Promise<string>): Promise<void> {
    let reply = '';
    await waitFor(() => `${what}: ${reply}\n${this.lab.logs(40)}`, 60_000, async () => (reply = await ask()) === 'OK');
  }

  async #areDebtsPaid(): Promise<boolean> {
    const { lab } = this;
    const all = await Promise.all(lab.network.hosts.map((host) => lab.ask(host, SENTINEL_PORT, 'sentinel', 'silent-failover', CACHE.name, 'status').catch(() => '')));
    return all.every((text) => {
      const fields = text.split('\n');
      const at = fields.indexOf('resync-debts');
      return at >= 0 && (fields[at + 1] ?? '') === '';
    });
  }

  async moved(from: Host): Promise<void> {
    await waitFor(() => `another master than ${from.ip}\n${this.lab.logs()}`, 60_000, async () => {
      const next = await this.lab.masterOf(CACHE, this.lab.network.hosts.slice(0, 3)).catch(() => null);
      return next !== null && next !== from;
    });
  }

  async #killAgent(host: Host): Promise<void> {
    this.lab.agentOf(host).kill('SIGKILL');
    await this.lab.agentOf(host).ended;
    this.lab.startAgent(host);
  }
}

async function main(): Promise<number> {
  const reason = whyNoNetwork(['arping', 'ndptool']);
  if (reason !== null) {
    say(`no histories here: ${reason}`);
    return 69;
  }
  const histories = new Histories();
  try {
    await histories.start();
    for (let number = 1; number <= Number(values.moves); number++) await histories.move(number);
    await pause(2_000);
    const changes = histories.lab.network.hosts.flatMap((host) => addressChanges(readFileSync(histories.addressFile(host), 'utf8'), host.ip));
    const lines = existsSync(histories.consulFile) ? readFileSync(histories.consulFile, 'utf8').split('\n').filter((line) => line.endsWith('}')) : [];
    const consul = judgeConsul(lines.map((line) => JSON.parse(line) as ConsulChange));
    const vips = CACHE.vips.map((vip) => ({ vip, ...overlaps(changes, vip) }));
    const report = { seed: values.seed, moves: Object.fromEntries(histories.counts), consul, vips };
    process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : `${JSON.stringify(report, null, 2)}\n`);
    const isConsulSound = consul.twoPrimaries + consul.none + consul.stepsBack === 0 && consul.orders > 0;
    return isConsulSound && vips.every(({ longestMs, moves }) => longestMs <= OVERLAP_LIMIT_MS && moves > 0) ? 0 : 1;
  } finally {
    if (values.logs !== undefined) cpSync(histories.lab.folder, values.logs, { recursive: true, filter: (path) => !path.includes('consul') });
    await histories.lab.stop();
  }
}

process.exitCode = await main();
