/**
 * Starts processes in a thread of its own.
 *
 * Whoever starts a process waits until the new one has been scheduled and has reached its exec: half a second on a machine with a
 * queue of runnable processes, and a failover is when scripts come in bursts. Links must be served meanwhile, so another thread
 * waits. The thread begins with the first script and does not keep the program alive.
 */
import { Worker } from 'node:worker_threads';

/** What the owner of a script is told. */
export interface ScriptWatcher {
  started(pid: number): void;
  /** Exit status 2 also for what could not be executed, as a forked child of stock says it. */
  ended(signal: NodeJS.Signals | null, exitCode: number | null): void;
}

type Order =
  | { readonly kind: 'start'; readonly id: number; readonly path: string; readonly args: readonly string[] }
  | { readonly kind: 'kill'; readonly id: number };
type Report =
  | { readonly kind: 'started'; readonly id: number; readonly pid: number }
  | { readonly kind: 'ended'; readonly id: number; readonly signal: NodeJS.Signals | null; readonly exitCode: number | null };

// As text, because a thread needs a file of its own otherwise, which is another one in dist than in src.
const THREAD = `
const { spawn } = require('node:child_process');
const { parentPort } = require('node:worker_threads');
const children = new Map();
parentPort.on('message', (order) => {
  if (order.kind === 'kill') return void children.get(order.id)?.kill('SIGKILL');
  const { id } = order;
  const child = spawn(order.path, order.args, { stdio: 'ignore' });
  children.set(id, child);
  const end = (signal, exitCode) => {
    if (children.delete(id)) parentPort.postMessage({ kind: 'ended', id, signal, exitCode });
  };
  child.on('error', () => end(null, 2));
  child.on('exit', (exitCode, signal) => end(signal, exitCode));
  if (child.pid !== undefined) parentPort.postMessage({ kind: 'started', id, pid: child.pid });
});`;

export class ScriptStarter {
  readonly #watchers = new Map<number, ScriptWatcher>();
  #thread: Worker | null = null;
  #lastId = 0;

  /** Starts a program without a shell; the return value kills it. */
  start(path: string, args: readonly string[], watcher: ScriptWatcher): () => void {
    const id = ++this.#lastId;
    this.#watchers.set(id, watcher);
    this.#order({ kind: 'start', id, path, args });
    return () => this.#order({ kind: 'kill', id });
  }

  /** Tells nobody anything any more; what runs lives on. */
  close(): void {
    this.#watchers.clear();
    void this.#thread?.terminate();
    this.#thread = null;
  }

  #order(order: Order): void {
    this.#thread ??= this.#open();
    this.#thread.postMessage(order);
  }

  #open(): Worker {
    const thread = new Worker(THREAD, { eval: true });
    // Once more when it runs: until then there is no port to let go of.
    thread.unref();
    thread.on('online', () => thread.unref());
    thread.on('message', (report: Report) => this.#report(report));
    return thread;
  }

  #report(report: Report): void {
    const watcher = this.#watchers.get(report.id);
    if (report.kind === 'started') return watcher?.started(report.pid);
    this.#watchers.delete(report.id);
    watcher?.ended(report.signal, report.exitCode);
  }
}
