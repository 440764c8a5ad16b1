/**
 * Starts programs in a thread of its own.
 *
 * Whoever starts a process waits until the new one has been scheduled and has reached its exec: ten milliseconds on an idle small
 * machine, half a second beside a queue of runnable processes. A failover is when hooks, scripts and announcements come in bursts,
 * and links and DNS must be served meanwhile; so another thread waits. It begins with the first program.
 */
import { Worker } from 'node:worker_threads';

export interface Program {
  readonly path: string;
  readonly args: readonly string[];
  /** What it finds as its own name; default `path`. */
  readonly argv0?: string;
  /** Default: this process's own. */
  readonly env?: Readonly<NodeJS.ProcessEnv>;
  /** It leads a session and process group of its own. */
  readonly detached?: boolean;
  /** Its standard input; default nothing. */
  readonly input?: string;
  /** Standard output and error are told, `errors`: the latter only; default: neither. */
  readonly output?: 'both' | 'errors';
  /** This process may end before it: nobody waits for its end. */
  readonly isUnattended?: boolean;
}

/** What is told of a program, in this order: `started` or `failed`, output, `exited`, `closed`. */
export interface ProgramListener {
  started?(pid: number): void;
  /** It does not run; `code` is the system's (ENOENT, EAGAIN …). Nothing follows. */
  failed(fault: { readonly code: string; readonly message: string }): void;
  output?(chunk: Uint8Array): void;
  exited(exitCode: number | null, signal: NodeJS.Signals | null): void;
  /** Nobody holds its pipes any more. */
  closed?(): void;
}

export interface StartedProgram {
  kill(signal: NodeJS.Signals): void;
  /** Its output is not read any more. */
  mute(): void;
}

type Order =
  | { readonly kind: 'start'; readonly id: number; readonly program: Program }
  | { readonly kind: 'kill'; readonly id: number; readonly signal: NodeJS.Signals }
  | { readonly kind: 'mute'; readonly id: number };
type Report = { readonly id: number } & (
  | { readonly kind: 'started'; readonly pid: number }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  | { readonly kind: 'output'; readonly chunk: Uint8Array }
  | { readonly kind: 'exited'; readonly exitCode: number | null; readonly signal: NodeJS.Signals | null }
  | { readonly kind: 'closed' }
);

// As text, because a thread needs a file of its own otherwise, which is another one in dist than in src.
const THREAD = `
const { spawn } = require('node:child_process');
const { parentPort } = require('node:worker_threads');
const children = new Map();
function start(id, { path, args, argv0, env, detached = false, input, output }) {
  const tell = (kind, more) => parentPort.postMessage({ id, kind, ...more });
  const failed = ({ code = '', message }) => {
    children.delete(id);
    tell('failed', { code: String(code), message });
  };
  const stdio = [input === undefined ? 'ignore' : 'pipe', output === 'both' ? 'pipe' : 'ignore', output === undefined ? 'ignore' : 'pipe'];
  let child;
  try {
    child = spawn(path, args, { argv0: argv0 ?? path, env: env ?? process.env, detached, stdio });
  } catch (fault) {
    return failed(fault);
  }
  child.on('error', (fault) => void (child.pid === undefined && failed(fault)));
  if (child.pid === undefined) return;
  children.set(id, child);
  tell('started', { pid: child.pid });
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => tell('output', { chunk: Uint8Array.from(chunk) }));
    stream?.on('error', () => undefined);
  }
  child.on('exit', (exitCode, signal) => tell('exited', { exitCode, signal }));
  child.on('close', () => {
    children.delete(id);
    tell('closed');
  });
  // Who does not read it closes the pipe; that is no fault.
  child.stdin?.on('error', () => undefined).end(input);
}
parentPort.on('message', (order) => {
  if (order.kind === 'start') return start(order.id, order.program);
  const child = children.get(order.id);
  if (order.kind === 'kill') return void child?.kill(order.signal);
  child?.stdout?.destroy();
  child?.stderr?.destroy();
});`;

/** One thread; what it has started lives on when this process ends. */
export class StarterThread {
  readonly #listeners = new Map<number, { readonly listener: ProgramListener; readonly isAttended: boolean }>();
  #thread: Worker | null = null;
  #attended = 0;
  #lastId = 0;

  /** Starts a program without a shell. Never throws: what goes wrong is told to the listener. */
  start(program: Program, listener: ProgramListener): StartedProgram {
    const id = ++this.#lastId;
    const isAttended = program.isUnattended !== true;
    this.#listeners.set(id, { listener, isAttended });
    const thread = (this.#thread ??= this.#open());
    if (isAttended && this.#attended++ === 0) thread.ref();
    this.#order({ kind: 'start', id, program });
    return { kill: (signal) => this.#order({ kind: 'kill', id, signal }), mute: () => this.#order({ kind: 'mute', id }) };
  }

  #order(order: Order): void {
    this.#thread?.postMessage(order);
  }

  #open(): Worker {
    const thread = new Worker(THREAD, { eval: true });
    thread.unref();
    // Once more when it runs: until then there is no port to let go of.
    thread.on('online', () => void (this.#attended === 0 && thread.unref()));
    thread.on('message', (report: Report) => this.#report(report));
    return thread;
  }

  #report(report: Report): void {
    const found = this.#listeners.get(report.id);
    if (found === undefined) return;
    const { listener, isAttended } = found;
    if (report.kind === 'failed' || report.kind === 'closed') {
      this.#listeners.delete(report.id);
      if (isAttended && --this.#attended === 0) this.#thread?.unref();
    }
    switch (report.kind) {
      case 'started': return listener.started?.(report.pid);
      case 'failed': return listener.failed(report);
      case 'output': return listener.output?.(report.chunk);
      case 'exited': return listener.exited(report.exitCode, report.signal);
      case 'closed': return listener.closed?.();
    }
  }
}

/** The one that all parts of the agent share. */
export const starterThread = new StarterThread();
