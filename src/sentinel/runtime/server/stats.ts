/**
 * Counters of the server for INFO, and the rates that are made from them once a second.
 */

export interface ServerStats {
  connections: number;
  rejected: number;
  commands: number;
  inputBytes: number;
  outputBytes: number;
  reads: number;
  writes: number;
  errors: number;
  deniedAuth: number;
  deniedCommand: number;
  deniedChannel: number;
  slowSubscribers: number;
}

export function newStats(): ServerStats {
  return {
    connections: 0, rejected: 0, commands: 0, inputBytes: 0, outputBytes: 0, reads: 0, writes: 0, errors: 0,
    deniedAuth: 0, deniedCommand: 0, deniedChannel: 0, slowSubscribers: 0,
  };
}

/** Per second, over the last sample. */
export interface Rates {
  readonly commands: number;
  readonly inputBytes: number;
  readonly outputBytes: number;
}

/** Turns counters into rates; `sample` is called about once a second. */
export class RateMeter {
  rates: Rates = { commands: 0, inputBytes: 0, outputBytes: 0 };
  #last: Rates = this.rates;
  #lastMs: number;

  constructor(nowMs: number) {
    this.#lastMs = nowMs;
  }

  sample(stats: ServerStats, nowMs: number): void {
    const seconds = Math.max(nowMs - this.#lastMs, 1) / 1000;
    const { commands, inputBytes, outputBytes } = stats;
    this.rates = {
      commands: (commands - this.#last.commands) / seconds,
      inputBytes: (inputBytes - this.#last.inputBytes) / seconds,
      outputBytes: (outputBytes - this.#last.outputBytes) / seconds,
    };
    this.#last = { commands, inputBytes, outputBytes };
    this.#lastMs = nowMs;
  }
}
