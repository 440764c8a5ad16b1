/**
 * Carries out what a schedule says: trouble with its end, and the words of operators. Every end may also come twice, or after
 * everything was healed.
 */
import { assertNever } from '../../src/assert.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import { Draw } from './draw.js';
import { firstConf } from './first-conf.js';
import type { Machine } from './network.js';
import type { Deed } from './schedule.js';
import type { SentinelHost } from './sentinel-host.js';
import type { World } from './world.js';

type Of<K extends Deed['kind']> = Extract<Deed, { kind: K }>;

export class Deeds {
  /** All that was done, in order. */
  readonly done: Deed[] = [];
  readonly #lostDisk = new Map<SentinelHost, { runsSinceMs: number | null }>();

  constructor(readonly world: World) {}

  /** Does all of `schedule`, each deed at its instant. */
  follow(schedule: readonly Deed[]): void {
    const { clock, startMs } = this.world;
    for (const deed of schedule) clock.at(startMs + deed.atMs, () => this.perform(deed), deed.kind === 'say' ? 'words' : 'faults');
  }

  perform(deed: Deed, onReply: (reply: RespValue) => void = () => undefined): void {
    this.done.push(deed);
    switch (deed.kind) {
      case 'crashSentinel':
        return this.#crashSentinel(deed);
      case 'crashNode':
        return this.#crashNode(deed);
      case 'stop':
        return this.#stop(deed);
      case 'script':
        return this.#script(deed);
      case 'jumpClock':
        this.#note(`the clock of ${deed.who} jumps by ${deed.byMs} ms`);
        this.world.hostNamed(deed.who).clockOffsetMs += deed.byMs;
        return;
      case 'repoint':
        return this.#repoint(deed);
      case 'isolate':
        return this.#isolate(deed);
      case 'split':
        return this.#split(deed);
      case 'cut':
        return this.#cut(deed);
      case 'drop':
        return this.#drop(deed);
      case 'slow':
        return this.#slow(deed);
      case 'disk':
        return this.#disk(deed);
      case 'say':
        return this.#say(deed, onReply);
      default:
        return assertNever(deed);
    }
  }

  #note(text: string): void {
    this.world.trace.add('!!', text);
  }

  #later(forMs: number, undo: () => void): void {
    this.world.clock.at(this.world.clock.nowMs + forMs, undo, 'ends');
  }

  #crashSentinel({ who, power, keepDisk, forMs }: Of<'crashSentinel'>): void {
    const host = this.world.hostNamed(who);
    // What a failing disk did not take is lost in a crash, as in stock: a lost vote is no bug then.
    if (!host.isRunning || host.disk.isFailing || host.disk.lastWriteFailed) return;
    const losesDisk = !keepDisk && this.#mayForget(host);
    this.#note(`${who} ${power ? 'loses power' : 'is killed'}${losesDisk ? ' and its disk' : ''}`);
    host.kill(power);
    if (losesDisk) {
      host.disk.text = firstConf({ ...this.world.options, introduced: false }, [], 0);
      this.world.forgot(host, null);
    }
    this.#later(forMs, () => {
      this.world.restartSentinel(host);
      const lost = this.#lostDisk.get(host);
      if (lost !== undefined) lost.runsSinceMs ??= this.world.clock.nowMs;
    });
  }

  /** Disks are lost one by one: with a majority of them gone within failover-timeout, what the group had promised is gone, too. */
  #mayForget(host: SentinelHost): boolean {
    const { nowMs } = this.world.clock;
    const horizonMs = Math.max(...this.world.options.groups.map((group) => group.failoverTimeoutMs));
    const isForgetful = (other: SentinelHost): boolean => {
      const lost = this.#lostDisk.get(other);
      if (lost === undefined) return false;
      if (other.isRunning) lost.runsSinceMs ??= nowMs;
      return lost.runsSinceMs === null || nowMs - lost.runsSinceMs < horizonMs;
    };
    const remembering = this.world.hosts.filter((other) => other !== host && !isForgetful(other));
    if (2 * remembering.length <= this.world.hosts.length) return false;
    this.#lostDisk.set(host, { runsSinceMs: null });
    return true;
  }

  #crashNode({ who, power, keepData, forMs }: Of<'crashNode'>): void {
    const node = this.world.nodeNamed(who);
    if (!node.isRunning) return;
    this.#note(`${who} ${power ? 'loses power' : 'is killed'}${keepData ? '' : ' and its data'}`);
    node.kill(power);
    this.#later(forMs, () => this.world.restartNode(node, keepData));
  }

  #stop({ who, forMs }: Of<'stop'>): void {
    const machine = this.world.machineNamed(who);
    if (machine.isPaused) return;
    this.#note(`${who} is stopped`);
    machine.pause();
    this.#later(forMs, () => this.world.resume(machine));
  }

  /** SCRIPT KILL ends it before its time. */
  #script({ who, forMs }: Of<'script'>): void {
    const node = this.world.nodeNamed(who);
    if (!node.isRunning || node.isBusy) return;
    this.#note(`${who} runs a long script`);
    const { runId } = node;
    node.isBusy = true;
    this.#later(forMs, () => {
      if (node.runId === runId) node.isBusy = false;
    });
  }

  /** An operator's mistake: a node is made a master, or follows another node of its group. */
  #repoint({ who, to }: Of<'repoint'>): void {
    const node = this.world.nodeNamed(who);
    if (!node.isRunning) return;
    this.#note(`somebody makes ${who} ${to === null ? 'a master' : `follow ${to}`}`);
    const target = to === null ? null : this.world.machineNamed(to);
    if (target !== null) this.world.overwrites(node);
    node.follow(target === null ? null : { host: target.ip, port: target.port });
  }

  #isolate({ who, outward, inward, forMs }: Of<'isolate'>): void {
    const { network } = this.world;
    const machine = this.world.machineNamed(who);
    this.#note(`${who} is isolated${outward && inward ? '' : outward ? ' outward' : ' inward'}`);
    const others = network.machines.filter((other) => other !== machine);
    for (const other of others) {
      if (outward) network.cut(machine, other);
      if (inward) network.cut(other, machine);
    }
    this.#later(forMs, () => this.world.mend(`${who} is back`, others.map((other) => [machine, other])));
  }

  #split({ names, forMs }: Of<'split'>): void {
    const { network } = this.world;
    const here = network.machines.filter(({ name }) => names.includes(name));
    const there = network.machines.filter(({ name }) => !names.includes(name));
    const pairs = here.flatMap((left) => there.map((right): readonly [Machine, Machine] => [left, right]));
    this.#note(`split: ${names.join(' ')} | ${there.map(({ name }) => name).join(' ')}`);
    for (const [left, right] of pairs) {
      network.cut(left, right);
      network.cut(right, left);
    }
    this.#later(forMs, () => this.world.mend('the split is over', pairs));
  }

  #cut({ who, to, forMs }: Of<'cut'>): void {
    const [from, target] = [this.world.machineNamed(who), this.world.machineNamed(to)];
    this.#note(`nothing gets from ${who} to ${to}`);
    this.world.network.cut(from, target);
    this.#later(forMs, () => this.world.mend(`${who} reaches ${to} again`, [[from, target]]));
  }

  #drop({ share, seed }: Of<'drop'>): void {
    const draw = new Draw(seed);
    this.#note(`connections break (${share})`);
    const sockets = this.world.network.machines.flatMap((machine) => [...machine.sockets]);
    for (const socket of sockets) if (draw.chance(share)) this.world.network.dropConnection(socket);
  }

  #slow({ who, byMs, forMs }: Of<'slow'>): void {
    const machine = this.world.machineNamed(who);
    this.#note(`${who} gets slow: ${byMs} ms`);
    this.world.network.slowMs.set(machine, byMs);
    this.#later(forMs, () => this.world.network.slowMs.delete(machine));
  }

  #disk({ who, slowMs, forMs }: Of<'disk'>): void {
    const { disk } = this.world.hostNamed(who);
    this.#note(`the disk of ${who} ${slowMs === null ? 'fails' : 'gets slow'}`);
    if (slowMs === null) disk.isFailing = true;
    else disk.slowMs = slowMs;
    this.#later(forMs, () => {
      disk.slowMs = 0;
      disk.isFailing = false;
    });
  }

  #say({ who, words, prepares }: Of<'say'>, onReply: (reply: RespValue) => void): void {
    const host = this.world.hostNamed(who);
    if (prepares !== null) this.world.makeWritable(this.world.nodeNamed(prepares));
    host.machine.deliver(() => {
      if (!host.isRunning) return;
      this.world.trace.add('op', `${who} ${words.join(' ')}`);
      host.command(['SENTINEL', ...words], (reply) => {
        this.world.trace.add('op', `${who} ${words.join(' ')}: ${'text' in reply ? reply.text : reply.kind}`);
        onReply(reply);
      });
    });
  }
}
