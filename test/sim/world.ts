/**
 * One simulated world: machines, network, sentinels, nodes and clients, built from options, watched by the checkers.
 */
import { must } from '../../src/assert.js';
import type { Route } from '../../src/route/route.js';
import type { Address } from '../../src/sentinel/wire/address.js';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import type { Effect, Input } from '../../src/sentinel/index.js';
import type { LoadedConf } from '../../src/sentinel/wire/sentinel-conf.js';
import { CopiesInTurn } from './checkers/copies-in-turn.js';
import { EpochsNeverFall } from './checkers/epochs-never-fall.js';
import type { Checker, Verdict } from './checkers/checker.js';
import { masterInEvent, replicaInEvent } from './checkers/checker.js';
import { NoBusyLoop } from './checkers/no-busy-loop.js';
import { OdownNeedsQuorum } from './checkers/odown-needs-quorum.js';
import { OneConfiguration } from './checkers/one-configuration.js';
import { OneLeader } from './checkers/one-leader.js';
import { OneVote } from './checkers/one-vote.js';
import { NoLostWrite } from './checkers/no-lost-write.js';
import { OwnNodes } from './checkers/own-nodes.js';
import { PromotionFinished } from './checkers/promotion-finished.js';
import { SavedBeforeSpoken } from './checkers/saved-before-spoken.js';
import { SilentVotes } from './checkers/silent-votes.js';
import { SilentEnds } from './checkers/silent-ends.js';
import { TargetPromoted } from './checkers/target-promoted.js';
import { WritesHeld } from './checkers/writes-held.js';
import { EventQueue } from './clock.js';
import type { Core } from './core.js';
import { Disk } from './disk.js';
import { Draw } from './draw.js';
import type { Machine } from './network.js';
import { Network } from './network.js';
import type { WorldOptions } from './options.js';
import type { NodeWatcher } from './redis-node.js';
import { RedisNode } from './redis-node.js';
import type { HostWatcher } from './sentinel-host.js';
import { SentinelHost } from './sentinel-host.js';
import { firstConf } from './first-conf.js';
import { stockPeer } from './stock-peer.js';
import { Trace } from './trace.js';
import { Writer } from './writer.js';

/** An invariant is broken; the message says which and how. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** 2001-09-09: a round number far from zero, since stock's code treats 0 as "never". */
const START_MS = 1_000_000_000_000;

function forgetsDebts(effect: Effect): boolean {
  return effect.kind === 'log' && effect.text.includes('still owe a full copy');
}

export class World implements HostWatcher, NodeWatcher {
  readonly clock = new EventQueue(START_MS);
  readonly trace: Trace;
  readonly draw: Draw;
  readonly network: Network;
  readonly hosts: SentinelHost[] = [];
  readonly nodes: RedisNode[] = [];
  readonly writers: Writer[] = [];
  /** Nobody writes any more, nothing is broken any more. */
  isQuiet = false;
  readonly checkers: readonly Checker[];
  /** Those of the checkers that watch what happens most often. */
  readonly #watchSteps: readonly Checker[];
  readonly #watchEffects: readonly Checker[];
  steps = 0;
  /** Hears which sentinel has promoted a node. */
  onPromoted: (by: string) => void = () => undefined;
  /** How much may be asked of this world: `strict`: no faults at all, `fair`: sentinels may fail, `loose`: anything may. */
  readonly strictness: 'strict' | 'fair' | 'loose';
  readonly startMs = START_MS;
  readonly #groups = new Map<string, string>();
  /** The highest configEpoch there was when an operator made a replica writable. */
  readonly #writableSince = new Map<RedisNode, number>();
  /** REMOVEs whose `-monitor` waits in a sentinel's queue, by sentinel and group. */
  readonly #removals = new Map<string, number>();
  #lastValue = 0;
  #hasForgottenDebts = false;
  #hasWrittenToEmpty = false;

  constructor(
    readonly core: Core,
    readonly options: WorldOptions,
    seed: number,
    echo: ((line: string) => void) | null = null,
  ) {
    const draw = new Draw(seed + 1);
    this.draw = new Draw(seed + 4);
    this.strictness = ({ none: 'strict', sentinels: 'fair', all: 'loose' } as const)[options.planned?.faults ?? 'all'];
    this.trace = new Trace(() => this.clock.nowMs - START_MS, echo);
    this.network = new Network(this.clock, draw.fork(), options.network);
    this.#addNodes(draw.fork());
    this.#addSentinels(draw.fork());
    this.#addWriters(draw.fork());
    const groupOf = (ip: string): string | null => this.groupOf(ip);
    const isPast = (host: SentinelHost, group: string): boolean => (this.#removals.get(`${host.name}/${group}`) ?? 0) > 0;
    this.checkers = [
      new OneConfiguration(this), new EpochsNeverFall(groupOf, isPast), new OneLeader(this), new OneVote(groupOf, isPast), new OwnNodes(groupOf),
      new SavedBeforeSpoken(groupOf, isPast), new NoBusyLoop(),
      new SilentEnds(this), new TargetPromoted(this), new NoLostWrite(this), new WritesHeld(this),
      new OdownNeedsQuorum(this), new PromotionFinished(this), new SilentVotes(this), new CopiesInTurn(this),
    ];
    this.#watchSteps = this.checkers.filter((checker) => checker.stepped !== undefined);
    this.#watchEffects = this.checkers.filter((checker) => checker.carriedOut !== undefined);
  }

  #addNodes(draw: Draw): void {
    this.options.groups.forEach((group, groupIndex) => {
      const master = { host: `10.1.${groupIndex}.1`, port: 6379 };
      for (let index = 1; index <= group.replicas + 1; index++) {
        const machine = this.network.addMachine(`${group.name.charAt(0)}${index}`, `10.1.${groupIndex}.${index}`, 6379);
        this.#groups.set(machine.ip, group.name);
        const node = new RedisNode(this.network, machine, draw.fork(), this.options.redis, this, index === 1 ? null : master);
        node.takesLocalWrites = () => this.#isTargetOfSomebody(node);
        if (this.options.planned !== null) node.priority = this.draw.oneOf([100, 100, 100, 10]);
        this.nodes.push(node);
      }
    });
  }

  /**
   * Clients are sent to a writable replica, or are on their way: what others write there by mistake is no business of ours. Nor is what they
   * write because the operator has made it writable for the next window, and a sentinel that is cut off has not heard of the last one's end.
   */
  #isTargetOfSomebody(node: RedisNode): boolean {
    const group = this.groupOf(node.machine.ip) ?? '';
    const sinceEpoch = this.#writableSince.get(node) ?? 0;
    return this.hosts.some((host) => {
      const silent = host.machine.isPaused ? null : (host.state?.masters.get(group)?.silent ?? null);
      return silent !== null && silent.doneEpoch > sinceEpoch && this.nodeAt(silent.targetAddress) === node;
    });
  }

  /** By an operator, before a prepare. */
  makeWritable(node: RedisNode): void {
    node.isReadOnly = node.master === null;
    const group = this.groupOf(node.machine.ip) ?? '';
    this.#writableSince.set(node, Math.max(0, ...this.hosts.map((host) => host.state?.masters.get(group)?.configEpoch ?? 0)));
  }

  #addSentinels(draw: Draw): void {
    const ids = Array.from({ length: this.options.sentinels }, () => draw.hex(40));
    ids.forEach((_, index) => {
      const machine = this.network.addMachine(`s${index + 1}`, `10.0.0.${index + 1}`, 26379);
      const disk = new Disk(this.clock, draw.fork(), { maxWriteMs: this.options.maxDiskWriteMs }, firstConf(this.options, ids, index));
      const isStock = index >= this.options.sentinels - (this.options.planned?.stockPeers ?? 0);
      const core = isStock ? stockPeer(this.core) : this.core;
      this.hosts.push(new SentinelHost(core, this.network, machine, disk, draw.fork(), { tunables: this.options.tunables }, this));
    });
  }

  #addWriters(draw: Draw): void {
    this.options.groups.forEach((group, index) => {
      const choice = draw.fork();
      for (const pinned of this.options.planned?.pinnedWriters === true ? [false, true] : [false]) {
        const number = 2 * index + (pinned ? 2 : 1);
        const machine = this.network.addMachine(`c${number}`, `10.2.0.${number}`, 1);
        this.writers.push(new Writer(this.network, machine, draw.fork(), {
          meanGapMs: this.options.planned?.meanWriteGapMs ?? this.options.meanWriteGapMs,
          pinned,
          askRoute: () => this.#routeFor(group.name, choice),
          nextValue: () => ++this.#lastValue,
          acknowledged: (value) => this.#judge((checker) => checker.acknowledged?.(value)),
        }));
      }
    });
  }

  #routeFor(group: string, choice: Draw): Address | null {
    return this.advertisedBy(choice.oneOf(this.awareHosts), group);
  }

  /** Where a sentinel sends clients; null while it can't be asked, or has reason to be silent. */
  advertisedBy({ isRunning, published, machine }: SentinelHost, group: string): Address | null {
    const route = !isRunning || machine.isPaused ? undefined : published.get(group);
    return route !== undefined && route.trusted && route.confirmed ? route.primary : null;
  }

  /** Sentinels that know silent failovers. */
  get awareHosts(): readonly SentinelHost[] {
    return this.hosts.slice(0, this.hosts.length - (this.options.planned?.stockPeers ?? 0));
  }

  /** Whether SENTINEL FAILOVER without an election is given here: it collides with anything, in stock, too. */
  get hasForced(): boolean {
    return this.options.planned?.operations.includes('plain') === true || this.options.meddling?.kinds.includes('failover') === true;
  }

  /** Sentinels lose what they know here: peers, or all. Lists of peers may then differ, and have two majorities. */
  get isForgetful(): boolean {
    const { faults, meddling } = this.options;
    return faults.includes('wipeSentinel') || meddling?.kinds.some((kind) => kind === 'reset' || kind === 'remonitor') === true;
  }

  /**
   * An operator had a sentinel forget who owes a full copy, or a stock peer, which never knew, promoted a debtor, or somebody has the master
   * itself follow another node while copies are owed: what a node has beyond its master stays there then.
   */
  get hasForgottenDebts(): boolean {
    return this.#hasForgottenDebts;
  }

  /** Somebody has a node follow another one. */
  overwrites(node: RedisNode): void {
    const group = this.groupOf(node.machine.ip) ?? '';
    const isOwed = this.hosts.some(({ state }) => {
      const master = state?.masters.get(group);
      return master !== undefined && master.debts.size > 0 && master.address.ip === node.machine.ip;
    });
    if (isOwed) this.#hasForgottenDebts = true;
  }

  /** Nobody knows the last configuration of some group any more, because those who did were made to forget it. */
  get isConfigurationLost(): boolean {
    const configurations = this.checkers.find((checker) => checker instanceof OneConfiguration);
    return this.isForgetful && this.options.groups.some(({ name }) => {
      const highest = configurations?.highestOf(name) ?? 0;
      return this.hosts.every((host) => (host.state?.masters.get(name)?.configEpoch ?? 0) < highest);
    });
  }

  /**
   * What was forgotten can't be found again: the group has fallen apart. Who knows the same node meets there by hellos, and a master names
   * its replicas; nothing else leads on.
   */
  get isTornApart(): boolean {
    return this.isForgetful && this.options.groups.some(({ name }) => !this.#hangsTogether(name));
  }

  /**
   * A sentinel holds a master for down because it is empty while a replica has data (D74), and too few know of that replica to agree. That
   * lasts until somebody writes to the master, which clients do; a world that has gone quiet does it here, once. Whether it did.
   */
  writeToEmpty(): boolean {
    const isEmpty = this.options.groups.map(({ name }) => this.hosts.some(({ state }) => state?.masters.get(name)?.caution.reborn?.kind === 'empty'));
    if (this.#hasWrittenToEmpty || !this.isQuiet || !isEmpty.includes(true)) return false;
    this.#hasWrittenToEmpty = true;
    const each = this.writers.length / this.options.groups.length;
    // All of the group's, since some are pinned to another node.
    isEmpty.forEach((written, index) => {
      if (written) for (const writer of this.writers.slice(each * index, each * (index + 1))) writer.write();
    });
    return true;
  }

  /** A node below another replica that no sentinel has ever heard of: its master was replaced before the first INFO that listed it. */
  get hasUnlisted(): boolean {
    return this.options.groups.some(({ name }) => this.nodesIn(name).some((node) => {
      const above = node.master === null ? undefined : this.nodeAt(node.master);
      const isKnown = this.hosts.some(({ state }) => state?.masters.get(name)?.replicas.has(`${node.machine.ip}:${node.machine.port}`) === true);
      return !isKnown && above !== undefined && above.master !== null;
    }));
  }

  #hangsTogether(group: string): boolean {
    const nodes = this.nodesIn(group);
    const known = this.hosts.flatMap(({ machine, state }) => {
      const master = state?.masters.get(group);
      const instances = master === undefined ? [] : [master, ...master.replicas.values(), ...master.peers.values()];
      return instances.map(({ address }) => [machine.ip, address.ip] as const);
    });
    const heads = new Set(this.hosts.map(({ state }) => state?.masters.get(group)?.address.ip));
    const listed = nodes.flatMap(({ machine, master }) => (master === null || !heads.has(master.host) ? [] : [[machine.ip, master.host] as const]));
    const pairs = [...known, ...listed];
    const reached = new Set([nodes[0]?.machine.ip ?? '']);
    for (let before = 0; before < reached.size; ) {
      before = reached.size;
      for (const [left, right] of pairs) if (reached.has(left) || reached.has(right)) reached.add(left).add(right);
    }
    return [...nodes, ...this.hosts].every(({ machine }) => reached.has(machine.ip));
  }

  start(): void {
    for (const node of this.nodes) node.start(true);
    for (const host of this.hosts) host.start();
    for (const writer of this.writers) writer.start();
  }

  /** Faults end, machines come back, and everybody runs. */
  healAll(): void {
    this.isQuiet = true;
    this.trace.add('!!', 'everything is healed');
    this.network.mendAll();
    for (const machine of this.network.machines) machine.resume();
    for (const host of this.hosts) {
      host.disk.slowMs = 0;
      host.disk.isFailing = false;
      this.restartSentinel(host);
    }
    for (const node of this.nodes) this.restartNode(node, true);
    for (const writer of this.writers) writer.stop();
  }

  restartSentinel(host: SentinelHost): void {
    if (host.isRunning) return;
    this.trace.add('!!', `${host.name} starts`);
    host.start();
  }

  restartNode(node: RedisNode, keepData: boolean): void {
    if (node.isRunning) return;
    this.trace.add('!!', `${node.machine.name} starts${keepData ? '' : ' empty'}`);
    node.start(keepData);
  }

  resume(machine: Machine): void {
    if (!machine.isPaused) return;
    this.trace.add('!!', `${machine.name} goes on`);
    machine.resume();
  }

  mend(text: string, pairs: readonly (readonly [Machine, Machine])[]): void {
    this.trace.add('!!', text);
    for (const [left, right] of pairs) {
      this.network.mend(left, right);
      this.network.mend(right, left);
    }
  }

  /** The name of the master that a node belongs to; null for other machines. */
  groupOf(ip: string): string | null {
    return this.#groups.get(ip) ?? null;
  }

  nodesIn(group: string): RedisNode[] {
    return this.nodes.filter((node) => this.groupOf(node.machine.ip) === group);
  }

  nodeAt(address: Address): RedisNode | undefined {
    return this.nodes.find(({ machine }) => machine.ip === address.host && machine.port === address.port);
  }

  nodesOf(node: RedisNode): RedisNode[] {
    return this.nodes.filter((other) => this.groupOf(other.machine.ip) === this.groupOf(node.machine.ip));
  }

  #judge(ask: (checker: Checker) => Verdict | undefined): void {
    for (const checker of this.checkers) heed(checker, ask(checker));
  }

  stepped(host: SentinelHost, input: Input, effects: readonly Effect[]): void {
    this.steps++;
    for (const effect of effects) {
      if (effect.kind === 'event' && effect.name === '-monitor') this.#removed(host, masterInEvent(effect));
      if (forgetsDebts(effect) || this.#isDebtorOfStockPeer(host, effect)) this.#hasForgottenDebts = true;
    }
    for (const checker of this.#watchSteps) heed(checker, checker.stepped?.(host, input, effects));
  }

  #isDebtorOfStockPeer(host: SentinelHost, effect: Effect): boolean {
    if (effect.kind !== 'event' || effect.name !== '+selected-slave' || this.awareHosts.includes(host)) return false;
    const { group, key } = replicaInEvent(effect);
    return this.awareHosts.some(({ state }) => state?.masters.get(group)?.debts.has(key) === true);
  }

  #removed(host: SentinelHost, group: string): void {
    this.#countRemoval(host, group, 1);
    this.forgot(host, group);
  }

  #countRemoval(host: SentinelHost, group: string, by: 1 | -1): void {
    const key = `${host.name}/${group}`;
    this.#removals.set(key, (this.#removals.get(key) ?? 0) + by);
  }

  routed(host: SentinelHost, master: string, route: Route | null): void {
    this.#judge((checker) => checker.routed?.(host, master, route));
  }

  carriedOut(host: SentinelHost, effect: Effect): void {
    if (effect.kind === 'event' && effect.name === '-monitor') this.#countRemoval(host, masterInEvent(effect), -1);
    if (effect.kind === 'event' && effect.level !== 'debug') this.trace.add(host.name, `${effect.name} ${effect.payload}`);
    else if (effect.kind === 'log' && effect.level !== 'debug') this.trace.add(host.name, `# ${effect.text}`);
    else if (effect.kind === 'send' && effect.argv[0] === 'SENTINEL') this.trace.add(host.name, effect.argv.join(' '));
    for (const checker of this.#watchEffects) heed(checker, checker.carriedOut?.(host, effect));
  }

  replied(host: SentinelHost, argv: readonly string[], value: RespValue): void {
    const isQuestion = argv[1]?.toLowerCase() === 'is-master-down-by-addr';
    if (isQuestion) this.trace.add(host.name, `answers ${argv.slice(2).join(' ')}: ${brief(value)}`);
    this.#judge((checker) => checker.replied?.(host, argv, value));
  }

  saved(host: SentinelHost, conf: LoadedConf): void {
    this.trace.add(host.name, `saved epoch ${conf.globals.currentEpoch}`);
    if (conf.faults.length > 0) this.broken(host, `wrote a file that it cannot read: ${JSON.stringify(conf.faults[0])}`);
    this.#judge((checker) => checker.saved?.(host, conf));
  }

  started(host: SentinelHost, conf: LoadedConf): void {
    this.trace.add(host.name, 'process starts');
    for (const { name } of this.options.groups) this.#removals.delete(`${host.name}/${name}`);
    this.#judge((checker) => checker.started?.(host, conf));
  }

  broken(host: SentinelHost, reason: string): void {
    throw new Violation(`${host.name} ${reason}`);
  }

  replicaOf(node: RedisNode, target: Address | null, by: Machine | null): void {
    this.trace.add(node.machine.name, `is told by ${by?.name ?? '?'}: SLAVEOF ${target === null ? 'NO ONE' : formatAddress(target)}`);
    this.#judge((checker) => checker.replicaOf?.(node, target));
  }

  wrote(node: RedisNode, value: number, local: boolean): void {
    if (local) this.trace.add(node.machine.name, `takes ${value} as a replica`);
    this.#judge((checker) => checker.wrote?.(node, value, local));
  }

  promoted(node: RedisNode, by: Machine | null): void {
    // Whoever made it writable before takes that back: as a replica it shall refuse again.
    node.isReadOnly = true;
    const promoter = this.hosts.find(({ machine }) => machine === by);
    if (promoter !== undefined) this.onPromoted(promoter.name);
    this.#judge((checker) => checker.promoted?.(node, by));
  }

  replaced(node: RedisNode): void {
    this.#judge((checker) => checker.replaced?.(node));
  }

  converged(): void {
    this.#judge((checker) => checker.converged?.());
  }

  note(node: RedisNode, text: string): void {
    this.trace.add(node.machine.name, text);
  }

  /** A sentinel remembers nothing of a master any more (of all of them: its disk is lost); epochs and votes begin anew. */
  forgot(host: SentinelHost, group: string | null): void {
    for (const checker of this.checkers) checker.forgot?.(host, group);
  }

  nodeNamed(name: string): RedisNode {
    return must(this.nodes.find(({ machine }) => machine.name === name), `no node ${name}`);
  }

  machineNamed(name: string): Machine {
    return must(this.network.machines.find((machine) => machine.name === name), `no machine ${name}`);
  }

  hostNamed(name: string): SentinelHost {
    return must(this.hosts.find((host) => host.name === name), `no sentinel ${name}`);
  }
}

function heed(checker: Checker, verdict: Verdict | undefined): void {
  if (verdict !== null && verdict !== undefined) throw new Violation(`${checker.name}: ${verdict}`);
}

function brief(value: RespValue): string {
  if (value.kind === 'array') return value.items.map(brief).join(' ');
  if (value.kind === 'integer') return String(value.value);
  return value.kind === 'bulk' || value.kind === 'simple' || value.kind === 'error' ? value.text : value.kind;
}
