/**
 * notification-script: a queue, a few at a time, retries with growing delays (section 9).
 *
 * Exit 0 is done, 1 or a signal is tried again up to 10 times, anything else is given up. Mirrors sentinelScheduleScriptExecution
 * and its kin in sentinel.c. Jobs live in memory only. client-reconfig-script is an output of its own (publishers/hooks).
 */
import { constants } from 'node:os';
import { starterThread } from '../../starter-thread.js';

export interface ScriptJob {
  readonly argv: readonly string[];
  /** Executions so far. */
  runs: number;
  /** Null while it waits; pid 0 until it has one. */
  child: { pid: number } | null;
  startedAtMs: number;
  /** Not before this. */
  dueAtMs: number;
}

export interface ScriptListener {
  failed(path: string, signal: number, exitCode: number): void;
  timedOut(path: string, pid: number): void;
}

const MAX_QUEUED = 256;
const MAX_RUNNING = 16;
const MAX_RUNS = 10;

export class ScriptRunner {
  readonly #jobs: ScriptJob[] = [];
  readonly #listener: ScriptListener;
  readonly #limits: () => { maxRuntimeMs: number; retryDelayMs: number };
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(listener: ScriptListener, limits: () => { maxRuntimeMs: number; retryDelayMs: number }) {
    this.#listener = listener;
    this.#limits = limits;
  }

  get jobs(): readonly ScriptJob[] {
    return this.#jobs;
  }

  get running(): number {
    return this.#jobs.filter((job) => job.child !== null).length;
  }

  /** Queues a script; when the queue is full the oldest job that isn't running is dropped, as in stock. */
  schedule(argv: readonly string[]): void {
    this.#jobs.push({ argv, runs: 0, child: null, startedAtMs: 0, dueAtMs: 0 });
    if (this.#jobs.length > MAX_QUEUED) {
      const oldest = this.#jobs.findIndex((job) => job.child === null);
      if (oldest >= 0) this.#jobs.splice(oldest, 1);
    }
    this.#work();
  }

  /** Nothing new starts; running scripts live on, as in stock. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#jobs.length = 0;
    this.#isClosed = true;
  }

  #work(): void {
    const now = Date.now();
    for (const job of this.#jobs) {
      if (this.running >= MAX_RUNNING) break;
      if (job.child === null && job.dueAtMs <= now) this.#start(job, now);
    }
    this.#wakeAtNextDue(now);
  }

  #wakeAtNextDue(now: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    const due = Math.min(...this.#jobs.filter((job) => job.child === null && job.dueAtMs > now).map((job) => job.dueAtMs));
    this.#timer = Number.isFinite(due) ? setTimeout(() => this.#work(), due - now).unref() : null;
  }

  #start(job: ScriptJob, now: number): void {
    job.runs++;
    job.startedAtMs = now;
    const child = { pid: 0 };
    job.child = child;
    const [path = '', ...args] = job.argv;
    let limit: NodeJS.Timeout | null = null;
    const end = (exitCode: number, signal: NodeJS.Signals | null): void => {
      if (limit !== null) clearTimeout(limit);
      if (!this.#isClosed) this.#end(job, signal === null ? 0 : (constants.signals[signal] ?? 0), exitCode);
    };
    const process = starterThread.start({ path, args, isUnattended: true }, {
      started: (pid) => {
        child.pid = pid;
        limit = setTimeout(() => {
          if (this.#isClosed) return;
          this.#listener.timedOut(path, pid);
          process.kill('SIGKILL');
        }, this.#limits().maxRuntimeMs).unref();
      },
      // What can't be executed ends as a forked child of stock says it.
      failed: () => end(2, null),
      exited: (exitCode, signal) => end(exitCode ?? 0, signal),
    });
  }

  #end(job: ScriptJob, signal: number, exitCode: number): void {
    job.child = null;
    const mayRetry = signal !== 0 || exitCode === 1;
    if (mayRetry && job.runs < MAX_RUNS) {
      job.dueAtMs = Date.now() + this.#limits().retryDelayMs * 2 ** (job.runs - 1);
    } else {
      this.#jobs.splice(this.#jobs.indexOf(job), 1);
      if (mayRetry || exitCode !== 0) this.#listener.failed(job.argv[0] ?? '', signal, exitCode);
    }
    this.#work();
  }
}
