/**
 * Draws trouble: one fault after another at drawn instants, each with its own end. What they do is in deeds.ts.
 */
import { assertNever } from '../../src/assert.js';
import type { Deeds } from './deeds.js';
import type { Draw } from './draw.js';
import type { FaultKind } from './options.js';
import type { Deed } from './schedule.js';
import type { World } from './world.js';

export class Faults {
  #isActive = true;

  constructor(
    readonly world: World,
    readonly draw: Draw,
    readonly deeds: Deeds,
  ) {}

  start(): void {
    this.world.onPromoted = (by) => this.#mayKillPromoter(by);
    this.#next();
  }

  #mayKillPromoter(by: string): void {
    const { clock, options, startMs } = this.world;
    const { promoterDeaths = 0 } = options;
    if (!this.#isActive || promoterDeaths === 0 || !this.draw.chance(promoterDeaths)) return;
    const atMs = clock.nowMs - startMs + 1 + this.draw.between(0, 20);
    const deed: Deed = { atMs, kind: 'crashSentinel', who: by, power: false, keepDisk: true, forMs: this.#forMs() };
    clock.at(startMs + atMs, () => this.deeds.perform(deed), 'faults');
  }

  #next(): void {
    const { clock, options } = this.world;
    if (options.faults.length === 0) return;
    const next = (): void => {
      if (!this.#isActive) return;
      const deed = this.#drawDeed(clock.nowMs - this.world.startMs, this.draw.oneOf(options.faults));
      if (deed !== null) this.deeds.perform(deed);
      this.#next();
    };
    clock.at(clock.nowMs + 1 + this.draw.waitMs(options.meanFaultGapMs), next, 'faults');
  }

  /** No new fault from here on. */
  stop(): void {
    this.#isActive = false;
  }

  #forMs(): number {
    return 1 + this.draw.waitMs(this.world.options.meanFaultLengthMs);
  }

  /** Any node, but every other time one that clients are sent to: that is where it hurts. */
  #victim(): string {
    const primaries = this.world.nodes.filter((node) => node.isRunning && node.master === null);
    return this.draw.oneOf(primaries.length > 0 && this.draw.chance(0.5) ? primaries : this.world.nodes).machine.name;
  }

  #sentinel(): string {
    return this.draw.oneOf(this.world.hosts).name;
  }

  #drawDeed(atMs: number, kind: FaultKind): Deed | null {
    const { draw } = this;
    switch (kind) {
      case 'crashSentinel':
      case 'wipeSentinel':
        return { atMs, kind: 'crashSentinel', who: this.#sentinel(), power: draw.chance(0.3), keepDisk: kind === 'crashSentinel', forMs: this.#forMs() };
      case 'crashNode':
      case 'wipeNode':
        return { atMs, kind: 'crashNode', who: this.#victim(), power: draw.chance(0.3), keepData: kind === 'crashNode', forMs: this.#forMs() };
      case 'stopSentinel':
        return { atMs, kind: 'stop', who: this.#sentinel(), forMs: this.#forMs() };
      case 'stopNode':
        return { atMs, kind: 'stop', who: this.#victim(), forMs: this.#forMs() };
      case 'busyNode':
        return { atMs, kind: 'script', who: this.#victim(), forMs: this.#forMs() };
      case 'jumpClock':
        return { atMs, kind, who: this.#sentinel(), byMs: draw.oneOf([-1, 1]) * draw.between(1, 20) * draw.oneOf([50, 500, 60_000]) };
      case 'repointNode':
        return this.#repoint(atMs);
      case 'isolate':
        return this.#isolate(atMs);
      case 'split': {
        const names = draw.shuffled(this.world.network.machines).map(({ name }) => name);
        return { atMs, kind, names: names.slice(0, draw.between(1, names.length - 1)), forMs: this.#forMs() };
      }
      case 'cutOneWay': {
        const [from, to] = draw.shuffled(this.world.network.machines);
        return from === undefined || to === undefined ? null : { atMs, kind: 'cut', who: from.name, to: to.name, forMs: this.#forMs() };
      }
      case 'dropConnections':
        return { atMs, kind: 'drop', share: draw.oneOf([0.1, 0.5, 1]), seed: draw.seed() };
      case 'slowMachine':
        return { atMs, kind: 'slow', who: draw.oneOf(this.world.network.machines).name, byMs: draw.between(20, 3_000), forMs: this.#forMs() };
      case 'slowDisk':
      case 'failDisk':
        return { atMs, kind: 'disk', who: this.#sentinel(), slowMs: kind === 'failDisk' ? null : draw.between(50, 3_000), forMs: this.#forMs() };
      default:
        return assertNever(kind);
    }
  }

  #repoint(atMs: number): Deed {
    const node = this.draw.oneOf(this.world.nodes);
    const other = this.draw.oneOf(this.world.nodesOf(node));
    return { atMs, kind: 'repoint', who: node.machine.name, to: other === node ? null : other.machine.name };
  }

  #isolate(atMs: number): Deed {
    const who = this.draw.chance(0.3) ? this.#victim() : this.draw.oneOf(this.world.network.machines).name;
    const [outward, inward] = this.draw.oneOf([[true, true], [true, true], [true, false], [false, true]] as const);
    return { atMs, kind: 'isolate', who, outward, inward, forMs: this.#forMs() };
  }
}
