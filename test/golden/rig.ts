/**
 * The rig of golden conversations: real cores on the simulator's clock, network and nodes, without any chance: every packet
 * takes one millisecond, every write none, all seeds are fixed. It prints what the cores do, a line per effect.
 *
 * Not printed, since it happens all the time: PING, INFO, ROLE, hellos, connecting, saving (`show …` brings them back). A
 * question or an answer that only repeats the last one between the same two is left out, too.
 */
import { must } from '../../src/assert.js';
import type { Effect } from '../../src/sentinel/index.js';
import type { LoadedConf } from '../../src/sentinel/wire/sentinel-conf.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import { EventQueue } from '../sim/clock.js';
import { realCore } from '../sim/core.js';
import { Disk } from '../sim/disk.js';
import { Draw } from '../sim/draw.js';
import type { Machine } from '../sim/network.js';
import { Network } from '../sim/network.js';
import type { NodeWatcher } from '../sim/redis-node.js';
import { RedisNode } from '../sim/redis-node.js';
import type { HostWatcher } from '../sim/sentinel-host.js';
import { SentinelHost } from '../sim/sentinel-host.js';
import { stockPeer } from '../sim/stock-peer.js';
import { addressOf, withNames } from './names.js';

export type Topic = 'hello' | 'saved' | 'log' | 'ping' | 'info' | 'sync' | 'connect' | 'debug';
export const TOPICS: readonly Topic[] = ['hello', 'saved', 'log', 'ping', 'info', 'sync', 'connect', 'debug'];

/** Commands that are part of another one's line or of the daily round. */
const QUIET_COMMANDS = ['AUTH', 'CLIENT', 'SUBSCRIBE', 'MULTI', 'CONFIG', 'EXEC'];
const START_MS = 1_000_000_000_000;
const NO_DELAY = { minDelayMs: 1, maxDelayMs: 1, connectTimeoutMs: 5_000, maxRetransmitMs: 0 };
const REDIS = { backlogSize: 1_000, maxHandshakeMs: 1, maxSnapshotMs: 1, maxLoadingMs: 0, replTimeoutMs: 60_000 };

export class Rig implements HostWatcher, NodeWatcher {
  readonly clock = new EventQueue(START_MS);
  readonly network = new Network(this.clock, new Draw(1), NO_DELAY);
  readonly hosts = new Map<string, SentinelHost>();
  readonly nodes = new Map<string, RedisNode>();
  readonly shown = new Set<Topic>();
  readonly output: string[] = [];
  readonly #lastBetween = new Map<string, string>();
  readonly #destinations = new Map<string, string>();
  /** What the next write writes. */
  nextValue = 1;
  #startMs = START_MS;

  addNode(name: string, master: string | null): void {
    const { host, port } = addressOf(name);
    const machine = this.network.addMachine(name, host, port);
    const followed = master === null ? null : addressOf(master);
    const node = new RedisNode(this.network, machine, new Draw(100 + machine.index), REDIS, this, followed);
    this.nodes.set(name, node);
    node.start(true);
  }

  /** `isStock`: it knows nothing of silent failovers. */
  addSentinel(name: string, conf: string, isStock = false): void {
    const { host, port } = addressOf(name);
    const machine = this.network.addMachine(name, host, port);
    const disk = new Disk(this.clock, new Draw(2), { maxWriteMs: 0 }, conf);
    const core = isStock ? stockPeer(realCore) : realCore;
    const sentinel = new SentinelHost(core, this.network, machine, disk, new Draw(200 + machine.index), { tunables: {} }, this);
    this.hosts.set(name, sentinel);
  }

  host(name: string): SentinelHost {
    return must(this.hosts.get(name), `no sentinel ${name}`);
  }

  node(name: string): RedisNode {
    return must(this.nodes.get(name), `no node ${name}`);
  }

  machine(name: string): Machine {
    return must(this.network.machines.find((machine) => machine.name === name), `no machine ${name}`);
  }

  /** Lets the time pass. */
  run(ms: number): void {
    this.clock.runUntil(this.clock.nowMs + ms);
  }

  /** The conversation's clock starts here. */
  startClock(): void {
    this.#startMs = this.clock.nowMs;
  }

  print(who: string, text: string): void {
    const seconds = ((this.clock.nowMs - this.#startMs) / 1000).toFixed(1).padStart(6);
    this.output.push(`${seconds} ${who} ${withNames(text)}`.trimEnd());
  }

  stepped(): void {}

  routed(): void {}

  carriedOut(host: SentinelHost, effect: Effect): void {
    switch (effect.kind) {
      case 'event':
        if (effect.level !== 'debug' || this.shown.has('debug')) this.print(host.name, `event ${effect.name} ${effect.payload}`);
        return;
      case 'connect':
        this.#destinations.set(`${host.name} ${effect.connection}`, `${effect.host}:${effect.port}`);
        if (this.shown.has('connect')) this.print(host.name, `connect ${effect.channel} ${effect.host}:${effect.port}`);
        return;
      case 'send':
        return this.#printCommand(host, withNames(this.#destinations.get(`${host.name} ${effect.connection}`) ?? '?'), effect.argv);
      case 'notify':
        return this.print(host.name, `script ${effect.path} ${effect.event} ${effect.payload}`);
      case 'log':
        if (this.shown.has('log') && effect.level !== 'debug') this.print(host.name, `log ${effect.text}`);
        return;
      case 'exit':
        return this.print(host.name, `exit ${effect.code}`);
      default:
        return;
    }
  }

  #printCommand(host: SentinelHost, to: string, argv: readonly string[]): void {
    const [word = ''] = argv;
    const topic = word === 'PUBLISH' ? 'hello' : word === 'PING' ? 'ping' : word === 'INFO' || word === 'ROLE' ? 'info' : null;
    if ((QUIET_COMMANDS.includes(word) && !/PAUSE$|^SET$/.test(argv[1] ?? '')) || (topic !== null && !this.shown.has(topic))) return;
    if (argv[1] === 'is-master-down-by-addr') {
      const [, , ip, port, epoch, runId] = argv;
      return this.#printChange(host.name, `-> ${to} is-master-down-by-addr ${ip}:${port} epoch=${epoch} runid=${runId}`);
    }
    this.print(host.name, `-> ${to} ${word === 'PUBLISH' ? `hello ${argv[2]}` : argv.join(' ')}`);
  }

  #printChange(who: string, text: string): void {
    const pair = `${who} ${text.split(' ', 2).join(' ')}`;
    if (this.#lastBetween.get(pair) === text) return;
    this.#lastBetween.set(pair, text);
    this.print(who, text);
  }

  replied(host: SentinelHost, argv: readonly string[], value: RespValue): void {
    if (argv[1] !== 'is-master-down-by-addr') return;
    this.#printChange(host.name, `answers ${argv[2]}:${argv[3]} epoch=${argv[4]} runid=${argv[5]}: ${votesText(value)}`);
  }

  saved(host: SentinelHost, conf: LoadedConf): void {
    if (!this.shown.has('saved')) return;
    const masters = conf.masters.map((master) => {
      return ` ${master.host}:${master.port} config-epoch=${master.configEpoch} leader-epoch=${master.leaderEpoch}`;
    });
    this.print(host.name, `saved current-epoch=${conf.globals.currentEpoch}${masters.join('')}`);
  }

  started(): void {}

  broken(host: SentinelHost, reason: string): void {
    throw new Error(`${host.name} ${reason}`);
  }

  replicaOf(): void {}

  note(node: RedisNode, text: string): void {
    if (!text.startsWith('synced') || this.shown.has('sync')) this.print(node.machine.name, text);
  }
}

function votesText(value: RespValue): string {
  const [down, leader, epoch] = value.kind === 'array' ? value.items : [];
  return `down=${replyText(down)} leader=${replyText(leader)} epoch=${replyText(epoch)}`;
}

/** A reply on one line. */
export function replyText(value: RespValue | undefined): string {
  switch (value?.kind) {
    case undefined:
      return '?';
    case 'array':
    case 'set':
    case 'push':
      return `[${value.items.map(replyText).join(' ')}]`;
    case 'map':
      return `{${value.entries.map(([key, entry]) => `${replyText(key)}=${replyText(entry)}`).join(' ')}}`;
    case 'error':
      return `-${value.text}`;
    case 'integer':
      return String(value.value);
    case 'bulk':
    case 'simple':
      return value.text;
    case 'null':
    case 'nullArray':
      return 'nil';
  }
}

