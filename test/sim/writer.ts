/**
 * A client that writes numbered values to wherever a sentinel's Route points, as a real one behind DNS would.
 */
import type { Draw } from './draw.js';
import type { Machine, Network, Socket } from './network.js';
import type { Address } from '../../src/sentinel/wire/address.js';
import { sameAddress } from '../../src/sentinel/wire/address.js';

export class Writer {
  acknowledged = 0;
  refused = 0;
  #isActive = true;
  #next = 1;
  #target: Address | null = null;
  #socket: Socket | null = null;

  constructor(
    readonly network: Network,
    readonly machine: Machine,
    readonly draw: Draw,
    readonly meanGapMs: number,
    /** Where some sentinel says the master is now. */
    readonly askRoute: () => Address | null,
  ) {}

  start(): void {
    this.network.clock.after(1 + this.draw.waitMs(this.meanGapMs), () => {
      if (!this.#isActive) return;
      this.#write();
      this.start();
    });
  }

  stop(): void {
    this.#isActive = false;
    this.#socket?.close();
  }

  #write(): void {
    const route = this.askRoute();
    if (route === null) return;
    if (this.#socket === null || this.#target === null || !sameAddress(route, this.#target)) this.#connect(route);
    this.#socket?.send({ kind: 'request', argv: ['SET', String(this.#next++)] });
  }

  #connect(target: Address): void {
    this.#socket?.close();
    this.#target = target;
    const socket = this.network.connect(this.machine, target.host, target.port, {
      receive: (message) => {
        if (message.kind === 'reply' && message.value.kind === 'simple') this.acknowledged++;
        else this.refused++;
      },
      closed: () => {
        if (this.#socket === socket) this.#socket = null;
      },
    });
    this.#socket = socket;
  }
}
