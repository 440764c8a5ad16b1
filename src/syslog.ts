/**
 * A copy of the log for syslog, by way of logger(1), which knows the machine's socket; Node has no datagram sockets on paths.
 *
 * Priorities as redis-sentinel gives them (serverLogRaw in server.c): debug, info (verbose), notice, warning. A logger that ends is
 * started again with the next line, every 5 s at most; what is logged meanwhile is missing in syslog, not in the log itself.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { formatTextLine } from './log.js';

export interface SyslogOptions {
  /** The word before each line (syslog-ident). */
  readonly ident: string;
  /** `user`, `local0` … `local7` (syslog-facility); another word counts as local0, stock's default. */
  readonly facility: string;
  /** Told at most once: logger is missing, or ended with an error. */
  readonly onFault: (reason: string) => void;
}

const RESTART_PAUSE_MS = 5_000;
const USER = 1;
const LOCAL0 = 16;
const NOTICE = 5;
const SEVERITIES: Readonly<Record<string, number>> = { trace: 7, debug: 6, info: NOTICE, warn: 4, error: 4, fatal: 4 };

export class Syslog {
  readonly #options: SyslogOptions;
  readonly #facility: number;
  #logger: ChildProcess | null = null;
  #startedMs = -RESTART_PAUSE_MS;
  #hasComplained = false;

  constructor(options: SyslogOptions) {
    this.#options = options;
    const local = /^local([0-7])$/i.exec(options.facility)?.[1];
    this.#facility = options.facility.toLowerCase() === 'user' ? USER : LOCAL0 + Number(local ?? 0);
  }

  /** One NDJSON record of the log. */
  write(record: string): void {
    const logger = this.#running();
    if (logger === null) return;
    // Without its time, which syslog adds itself.
    const [, level = 'info', text = ''] = /^\S+ (\S+) +(.*)/.exec(formatTextLine(record)) ?? [];
    logger.stdin?.write(`<${this.#facility * 8 + (SEVERITIES[level] ?? NOTICE)}>${text}\n`);
  }

  /** What was written still gets there: logger ends with its input. */
  close(): void {
    this.#logger?.stdin?.end();
    this.#logger = null;
  }

  #running(): ChildProcess | null {
    if (this.#logger !== null) return this.#logger;
    if (performance.now() - this.#startedMs < RESTART_PAUSE_MS) return null;
    this.#startedMs = performance.now();
    const args = ['--prio-prefix', '--tag', this.#options.ident, `--id=${process.pid}`];
    const logger = spawn('logger', args, { stdio: ['pipe', 'ignore', 'pipe'] });
    let words = '';
    logger.stderr.on('data', (chunk: Buffer) => (words += chunk.toString()));
    // A pipe that broke is told by the exit.
    logger.stdin.on('error', () => undefined);
    logger.on('error', (fault) => this.#ended(logger, fault.message));
    logger.on('exit', (code) => this.#ended(logger, code === 0 ? null : words.trim() || `logger ended with status ${code ?? 'unknown'}`));
    // None of it must keep the process alive.
    for (const handle of [logger, logger.stdin, logger.stderr]) (handle as { unref?: () => void }).unref?.();
    this.#logger = logger;
    return logger;
  }

  #ended(logger: ChildProcess, reason: string | null): void {
    if (this.#logger === logger) this.#logger = null;
    if (reason === null || this.#hasComplained) return;
    this.#hasComplained = true;
    this.#options.onFault(reason);
  }
}
