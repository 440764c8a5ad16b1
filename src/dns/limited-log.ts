/**
 * A log that strangers cannot flood: one line per topic and interval, the next one says how many were left out.
 */

/** The part of a pino logger that the DNS needs. */
export interface DnsLog {
  debug(context: object, message: string): void;
  info(context: object, message: string): void;
  warn(context: object, message: string): void;
  error(context: object, message: string): void;
}

const INTERVAL_MS = 10_000;

export class LimitedLog {
  readonly #log: DnsLog;
  readonly #clockMs: () => number;
  readonly #topics = new Map<string, { quietUntilMs: number; suppressed: number }>();

  /** `clockMs` is a steady clock in milliseconds. */
  constructor(log: DnsLog, clockMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#clockMs = clockMs;
  }

  /** Writes `topic` as the message, unless it was written less than ten seconds ago. `context` is made only when needed. */
  write(level: 'warn' | 'error', topic: string, context: () => object): void {
    const now = this.#clockMs();
    const entry = this.#topics.get(topic) ?? { quietUntilMs: -Infinity, suppressed: 0 };
    if (now < entry.quietUntilMs) {
      entry.suppressed += 1;
      return;
    }
    this.#topics.set(topic, { quietUntilMs: now + INTERVAL_MS, suppressed: 0 });
    this.#log[level](entry.suppressed === 0 ? context() : { ...context(), suppressed: entry.suppressed }, topic);
  }
}
