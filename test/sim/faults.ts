/**
 * Trouble: one fault after another at drawn instants, each with its own end. Every end may also come twice, or after
 * everything was healed.
 */
import { assertNever } from '../../src/assert.js';
import type { Draw } from './draw.js';
import type { Machine } from './network.js';
import type { FaultKind } from './options.js';
import type { RedisNode } from './redis-node.js';
import type { World } from './world.js';

export class Faults {
  #isActive = true;

  constructor(
    readonly world: World,
    readonly draw: Draw,
  ) {}

  start(): void {
    if (this.world.options.faults.length === 0) return;
    this.world.clock.after(1 + this.draw.waitMs(this.world.options.meanFaultGapMs), () => {
      if (!this.#isActive) return;
      this.#strike(this.draw.oneOf(this.world.options.faults));
      this.start();
    });
  }

  /** No new fault from here on. */
  stop(): void {
    this.#isActive = false;
  }

  #later(undo: () => void): void {
    this.world.clock.after(1 + this.draw.waitMs(this.world.options.meanFaultLengthMs), undo);
  }

  #strike(kind: FaultKind): void {
    switch (kind) {
      case 'crashSentinel':
        return this.#crashSentinel();
      case 'crashNode':
        return this.#crashNode(true);
      case 'wipeNode':
        return this.#crashNode(false);
      case 'stopSentinel':
        return this.#stop(this.draw.oneOf(this.world.hosts).machine);
      case 'stopNode':
        return this.#stop(this.#victim().machine);
      case 'jumpClock':
        return this.#jumpClock();
      case 'repointNode':
        return this.#repointNode();
      case 'isolate':
        return this.#isolate();
      case 'split':
        return this.#split();
      case 'cutOneWay':
        return this.#cutOneWay();
      case 'dropConnections':
        return this.#dropConnections();
      case 'slowMachine':
        return this.#slowMachine();
      case 'slowDisk':
      case 'failDisk':
        return this.#disk(kind);
      default:
        return assertNever(kind);
    }
  }

  /** Any node, but every other time one that clients are sent to: that is where it hurts. */
  #victim(): RedisNode {
    const primaries = this.world.nodes.filter((node) => node.isRunning && node.master === null);
    return this.draw.oneOf(primaries.length > 0 && this.draw.chance(0.5) ? primaries : this.world.nodes);
  }

  #note(text: string): void {
    this.world.trace.add('!!', text);
  }

  #crashSentinel(): void {
    const host = this.draw.oneOf(this.world.hosts);
    const withMachine = this.draw.chance(0.3);
    // What a failing disk did not take is lost in a crash, as in stock: a lost vote is no bug then.
    if (!host.isRunning || host.disk.isFailing || host.disk.lastWriteFailed) return;
    this.#note(`${host.name} ${withMachine ? 'loses power' : 'is killed'}`);
    host.kill(withMachine);
    this.#later(() => this.world.restartSentinel(host));
  }

  #crashNode(keepData: boolean): void {
    const node = this.#victim();
    const withMachine = this.draw.chance(0.3);
    if (!node.isRunning) return;
    this.#note(`${node.machine.name} ${withMachine ? 'loses power' : 'is killed'}${keepData ? '' : ' and its data'}`);
    node.kill(withMachine);
    this.#later(() => this.world.restartNode(node, keepData));
  }

  #stop(machine: Machine): void {
    if (machine.isPaused) return;
    this.#note(`${machine.name} is stopped`);
    machine.pause();
    this.#later(() => this.world.resume(machine));
  }

  #jumpClock(): void {
    const host = this.draw.oneOf(this.world.hosts);
    const jumpMs = this.draw.oneOf([-1, 1]) * this.draw.between(1, 20) * this.draw.oneOf([50, 500, 60_000]);
    this.#note(`the clock of ${host.name} jumps by ${jumpMs} ms`);
    host.clockOffsetMs += jumpMs;
  }

  /** An operator's mistake: a node is made a master, or follows another node of its group. */
  #repointNode(): void {
    const node = this.draw.oneOf(this.world.nodes);
    const other = this.draw.oneOf(this.world.nodesOf(node));
    if (!node.isRunning) return;
    const target = other === node ? null : { host: other.machine.ip, port: other.machine.port };
    this.#note(`somebody makes ${node.machine.name} ${target === null ? 'a master' : `follow ${other.machine.name}`}`);
    node.follow(target);
  }

  #isolate(): void {
    const machine = this.draw.chance(0.3) ? this.#victim().machine : this.draw.oneOf(this.world.network.machines);
    const [outward, inward] = this.draw.oneOf([[true, true], [true, true], [true, false], [false, true]] as const);
    this.#note(`${machine.name} is isolated${outward && inward ? '' : outward ? ' outward' : ' inward'}`);
    const others = this.world.network.machines.filter((other) => other !== machine);
    for (const other of others) {
      if (outward) this.world.network.cut(machine, other);
      if (inward) this.world.network.cut(other, machine);
    }
    this.#later(() => this.world.mend(`${machine.name} is back`, others.map((other) => [machine, other])));
  }

  #split(): void {
    const machines = this.draw.shuffled(this.world.network.machines);
    const at = this.draw.between(1, machines.length - 1);
    const pairs = machines.slice(0, at).flatMap((left) => machines.slice(at).map((right) => [left, right] as const));
    const names = machines.map((machine) => machine.name);
    this.#note(`split: ${names.slice(0, at).join(' ')} | ${names.slice(at).join(' ')}`);
    for (const [left, right] of pairs) {
      this.world.network.cut(left, right);
      this.world.network.cut(right, left);
    }
    this.#later(() => this.world.mend('the split is over', pairs));
  }

  #cutOneWay(): void {
    const [from, to] = this.draw.shuffled(this.world.network.machines);
    if (from === undefined || to === undefined) return;
    this.#note(`nothing gets from ${from.name} to ${to.name}`);
    this.world.network.cut(from, to);
    this.#later(() => this.world.mend(`${from.name} reaches ${to.name} again`, [[from, to]]));
  }

  #dropConnections(): void {
    const share = this.draw.oneOf([0.1, 0.5, 1]);
    this.#note(`connections break (${share})`);
    const sockets = this.world.network.machines.flatMap((machine) => [...machine.sockets]);
    for (const socket of sockets) if (this.draw.chance(share)) this.world.network.dropConnection(socket);
  }

  #slowMachine(): void {
    const machine = this.draw.oneOf(this.world.network.machines);
    const slowMs = this.draw.between(20, 3_000);
    this.#note(`${machine.name} gets slow: ${slowMs} ms`);
    this.world.network.slowMs.set(machine, slowMs);
    this.#later(() => this.world.network.slowMs.delete(machine));
  }

  #disk(kind: 'slowDisk' | 'failDisk'): void {
    const { disk, name } = this.draw.oneOf(this.world.hosts);
    this.#note(`the disk of ${name} ${kind === 'slowDisk' ? 'gets slow' : 'fails'}`);
    if (kind === 'slowDisk') disk.slowMs = this.draw.between(50, 3_000);
    else disk.isFailing = true;
    this.#later(() => {
      disk.slowMs = 0;
      disk.isFailing = false;
    });
  }
}
