/**
 * Planned moves under load, there and back, by five ways, each on servers of its own: ours (silent, coordinated, plain), Redis'
 * own FAILOVER TO, and a stock redis-sentinel's SENTINEL FAILOVER.
 *
 * Per move: the longest time for which a client that reconnects at once got no write acknowledged. At the end: every
 * acknowledged write against every node.
 */
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { must } from '../../src/assert.js';
import { masterNamedBy } from '../../src/demo/agreement.js';
import { DnsProbe } from '../../src/demo/dns-probe.js';
import { formatAddress, sameAddress } from '../../src/sentinel/wire/address.js';
import type { Address } from '../../src/sentinel/wire/address.js';
import { Lab, MASTER_NAME, NAME, ask, textOf, waitFor, type LabSentinel, type RedisNode } from '../../test/integration/lab.js';
import { SilentLab } from '../../test/integration/silent-lab.js';
import { audit, type Audit } from './audit.js';
import { Writer, type Finder } from './writer.js';

export type Way = 'silent' | 'coordinated' | 'plain' | 'failover-to' | 'stock';
export const WAYS: readonly Way[] = ['silent', 'coordinated', 'plain', 'failover-to', 'stock'];

export interface Measured extends Audit {
  readonly way: Way;
  /** The longest gap around each move, ms. */
  readonly gapsMs: readonly number[];
  /** The longest gap in a time as long as a move without one: what the machine alone makes of it. */
  readonly calmGapsMs: readonly number[];
  readonly fullResyncs: number;
  readonly unanswered: number;
  readonly refused: number;
}

const PROBE_EVERY_MS = 1;
const WRITE_EVERY_MS = 10;
const PINNED_PAUSE_MS = 20;
const WINDOW_MS = 500;
/** The echo of a move in the clients: cut connections, READONLY, the copy of the former master. */
const ECHO_MS = 1_500;
const SETTLE_LIMIT_MS = 90_000;

interface Site {
  readonly nodes: readonly RedisNode[];
  readonly finders: readonly Finder[];
  master(): Promise<RedisNode>;
  move(from: RedisNode, to: RedisNode, turn: number): Promise<void>;
  settled(): Promise<void>;
  stop(): Promise<void>;
}

async function ours(way: 'silent' | 'coordinated' | 'plain'): Promise<Site> {
  const site = new SilentLab();
  await site.start({ downAfterMs: 5_000, isQuiet: true, redisArgs: ['--replica-read-only', 'yes'], tunables: ['info-period', '1000'] });
  const probes = site.agents.map(({ dnsPort }) => new DnsProbe({ host: '127.0.0.1', port: must(dnsPort, 'an agent serves DNS') }, NAME));
  const followers = [site.agent(1), site.agent(2)].map((agent) => new Redis({ ...agent.address, protocol: 2 }));
  const { port } = site.node(0).address;
  const dns = probes.map((probe): Finder => ({
    async find() {
      const host = await probe.askHost();
      return host === null ? null : { host, port };
    },
  }));
  const events = followers.map((redis, index): Finder => ({
    find: () => masterNamedBy(site.agent(index + 1).address).catch(() => null),
    onMove(moved) {
      redis.on('message', (_channel: string, message: string) => {
        const [, , , host = '', portText] = message.split(' ');
        moved({ host, port: Number(portText) });
      });
      void redis.subscribe('+switch-master');
    },
  }));
  const master = async (): Promise<RedisNode> => nodeAt(site.lab.nodes, await masterNamedBy(site.agent(0).address));
  return {
    nodes: site.lab.nodes,
    finders: [...dns, ...events],
    master,
    move: (_from, to, turn) => (way === 'silent' ? moveSilently(site, to, turn) : moveCoordinated(site, way, to, turn)),
    settled: async () => site.calm(await master(), SETTLE_LIMIT_MS),
    async stop() {
      for (const probe of probes) probe.close();
      for (const follower of followers) follower.disconnect();
      await site.stop();
    },
  };
}

/** The target alone is writable, so that clients pinned to the old master are told READONLY afterwards instead of losing writes. */
async function moveSilently(site: SilentLab, to: RedisNode, turn: number): Promise<void> {
  for (const node of site.lab.nodes) await ask(node, 'CONFIG', 'SET', 'replica-read-only', node === to ? 'no' : 'yes');
  let reply = '';
  await waitFor(() => `prepare: ${reply}\n${site.lab.logs(25)}`, SETTLE_LIMIT_MS, async () => {
    reply = await site.silent(site.agent(turn % 3), to, 'prepare');
    return reply === 'OK';
  });
  await sleep(WINDOW_MS);
  reply = await site.silent(site.agent((turn + 1) % 3), to, 'done');
  if (reply !== 'OK') throw new Error(`done: ${reply}\n${site.lab.logs(25)}`);
}

async function moveCoordinated(site: SilentLab, way: 'coordinated' | 'plain', to: RedisNode, turn: number): Promise<void> {
  const argv = ['SENTINEL', 'FAILOVER', MASTER_NAME, ...(way === 'plain' ? [] : ['COORDINATED', formatAddress(to.address)])];
  const reply = await site.patiently(site.agent(turn % 3), argv);
  if (reply !== 'OK') throw new Error(`${argv.join(' ')}: ${reply}\n${site.lab.logs(25)}`);
}

const nodeAt = (nodes: readonly RedisNode[], address: Address): RedisNode =>
  must(nodes.find((node) => sameAddress(node.address, address)), 'the master is one of the nodes');

async function bare(): Promise<Site> {
  const lab = new Lab();
  let current = await lab.group(2);
  await lab.settled(current, SETTLE_LIMIT_MS);
  const finder: Finder = { find: () => Promise.resolve(current.address) };
  return {
    nodes: lab.nodes,
    finders: [finder, finder, finder, finder, finder],
    master: () => Promise.resolve(current),
    async move(from, to) {
      const reply = textOf(await ask(from, 'FAILOVER', 'TO', to.address.host, String(to.address.port), 'TIMEOUT', '5000'));
      if (reply !== 'OK') throw new Error(`FAILOVER TO: ${reply}`);
      current = to;
      await waitFor('the target as master', SETTLE_LIMIT_MS, async () => /role:master/.test(textOf(await ask(to, 'INFO', 'replication'))));
      for (const node of lab.nodes) if (node !== to && node !== from) await ask(node, 'REPLICAOF', to.address.host, String(to.address.port));
    },
    settled: () => lab.settled(current, SETTLE_LIMIT_MS),
    stop: () => lab.stop(),
  };
}

async function stock(): Promise<Site> {
  const lab = new Lab();
  const first = await lab.group(2);
  const sentinels: LabSentinel[] = [];
  for (let index = 0; index < 3; index++) sentinels.push(await lab.stock(first, { downAfterMs: 5_000 }));
  await lab.settled(first, SETTLE_LIMIT_MS);
  const finders = [0, 1, 2, 1, 2].map((index): Finder => ({ find: () => masterNamedBy(sentinels[index]!.address).catch(() => null) }));
  const master = async (): Promise<RedisNode> => nodeAt(lab.nodes, await masterNamedBy(sentinels[1]!.address));
  return {
    nodes: lab.nodes,
    finders,
    master,
    async move(from) {
      const reply = textOf(await ask(sentinels[0]!, 'SENTINEL', 'FAILOVER', MASTER_NAME));
      if (reply !== 'OK') throw new Error(`SENTINEL FAILOVER: ${reply}`);
      await waitFor('the new master', SETTLE_LIMIT_MS, async () => (await master()) !== from);
    },
    settled: async () => lab.settled(await master(), SETTLE_LIMIT_MS),
    stop: () => lab.stop(),
  };
}

const siteFor = (way: Way): Promise<Site> => (way === 'failover-to' ? bare() : way === 'stock' ? stock() : ours(way));

function writersOf({ finders, nodes }: Site): { probes: Writer[]; all: Writer[] } {
  const [dns1, dns2, dns3, event1, event2] = finders.map((finder) => must(finder, 'five finders'));
  const probe = (name: string, finder: Finder): Writer => new Writer({ name, finder, everyMs: PROBE_EVERY_MS });
  const writer = (name: string, finder: Finder): Writer => new Writer({ name, finder, everyMs: WRITE_EVERY_MS });
  const pinned = nodes.slice(0, 2).map(({ name, address }) => {
    const finder: Finder = { find: () => Promise.resolve(address) };
    return new Writer({ name: `pinned-${name}`, finder, everyMs: WRITE_EVERY_MS, refusedPauseMs: PINNED_PAUSE_MS });
  });
  const probes = [probe('probe-name', dns1!), probe('probe-event', event1!)];
  return { probes, all: [...probes, writer('name-2', dns2!), writer('name-3', dns3!), writer('event-2', event2!), ...pinned] };
}

async function fullResyncs(nodes: readonly RedisNode[]): Promise<number> {
  const counts = await Promise.all(nodes.map(async (node) => Number(/sync_full:(\d+)/.exec(textOf(await ask(node, 'INFO', 'stats')))?.[1])));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Everything that was acknowledged has reached every node. */
async function replicated(nodes: readonly RedisNode[]): Promise<void> {
  await waitFor('equal offsets', SETTLE_LIMIT_MS, async () => {
    const reports = await Promise.all(nodes.map(async (node) => textOf(await ask(node, 'INFO', 'replication'))));
    return new Set(reports.map((text) => /master_repl_offset:(\d+)/.exec(text)?.[1])).size === 1;
  });
}

/** `moves` moves by one way. `onMove` hears each gap. */
export async function measure(way: Way, moves: number, onMove: (gapMs: number) => void = () => undefined): Promise<Measured> {
  const site = await siteFor(way);
  try {
    const { probes, all } = writersOf(site);
    for (const each of all) each.start();
    await waitFor('the first writes', SETTLE_LIMIT_MS, () => probes.every(({ acknowledged }) => acknowledged.length > 100));
    const longest = (): number => Math.max(...probes.map((probe) => probe.longestGapMs));
    const copiesBefore = await fullResyncs(site.nodes);
    const gapsMs: number[] = [];
    const calmGapsMs: number[] = [];
    for (let turn = 0; turn < moves; turn++) {
      for (const probe of probes) probe.mark();
      await sleep(WINDOW_MS + ECHO_MS);
      calmGapsMs.push(longest());
      const from = await site.master();
      const to = from === site.nodes[0] ? site.nodes[1] : site.nodes[0];
      for (const probe of probes) probe.mark();
      await site.move(from, must(to, 'there are two nodes'), turn);
      await sleep(ECHO_MS);
      gapsMs.push(longest());
      onMove(longest());
      await site.settled();
    }
    const copies = await fullResyncs(site.nodes);
    for (const each of all) await each.stop();
    await site.settled();
    await replicated(site.nodes);
    const found = await audit(all, site.nodes.map(({ address }) => address));
    const sum = (count: (writer: Writer) => number): number => all.reduce((total, each) => total + count(each), 0);
    const counts = { unanswered: sum(({ unanswered }) => unanswered), refused: sum(({ refused }) => refused) };
    return { way, gapsMs, calmGapsMs, fullResyncs: copies - copiesBefore, ...counts, ...found };
  } finally {
    await site.stop();
  }
}
