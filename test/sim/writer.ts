/**
 * A client that writes numbered values to wherever a sentinel's Route points, as a real one behind DNS would. A pinned one
 * stays where it is, over broken connections, too, until it is refused.
 */
import type { Draw } from './draw.js';
import type { Machine, Network, Socket } from './network.js';
import type { Address } from '../../src/sentinel/wire/address.js';
import { sameAddress } from '../../src/sentinel/wire/address.js';

export interface WriterOptions {
  readonly meanGapMs: number;
  readonly pinned: boolean;
  /** Where some sentinel says the master is now. */
  readonly askRoute: () => Address | null;
  /** Unique over all writers. */
  readonly nextValue: () => number;
  readonly acknowledged: (value: number) => void;
}

export class Writer {
  acknowledged = 0;
  refused = 0;
  #isActive = true;
  #target: Address | null = null;
  #socket: Socket | null = null;
  /** Of this connection, in order. */
  #unanswered: number[] = [];

  constructor(
    readonly network: Network,
    readonly machine: Machine,
    readonly draw: Draw,
    readonly options: WriterOptions,
  ) {}

  start(): void {
    this.network.clock.after(1 + this.draw.waitMs(this.options.meanGapMs), () => {
      if (!this.#isActive) return;
      this.write();
      this.start();
    });
  }

  stop(): void {
    this.#isActive = false;
    this.#socket?.close();
  }

  /** One value, now. */
  write(): void {
    const route = this.options.pinned && this.#target !== null ? this.#target : this.options.askRoute();
    if (route === null) return;
    if (this.#socket === null || this.#target === null || !sameAddress(route, this.#target)) this.#connect(route);
    const value = this.options.nextValue();
    this.#unanswered.push(value);
    this.#socket?.send({ kind: 'request', argv: ['SET', String(value)] });
  }

  #connect(target: Address): void {
    this.#socket?.close();
    this.#target = target;
    const unanswered: number[] = [];
    this.#unanswered = unanswered;
    const socket = this.network.connect(this.machine, target.host, target.port, {
      receive: (message) => {
        const value = unanswered.shift();
        if (message.kind !== 'reply' || value === undefined) return;
        if (message.value.kind !== 'simple') return this.#refuse();
        this.acknowledged++;
        this.options.acknowledged(value);
      },
      closed: (reason) => {
        if (this.#socket === socket) this.#socket = null;
        if (reason !== 'killed' && this.#target === target) this.#target = null;
      },
    });
    this.#socket = socket;
  }

  #refuse(): void {
    this.refused++;
    // A pinned client asks again where to go.
    this.#target = null;
  }
}
