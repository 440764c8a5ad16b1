/**
 * A script as an output: called when a master's clients have to go elsewhere.
 *
 * Stock's exit codes (0 done, 1 or a signal: again, others: given up), but level-triggered: a retry asks for the target of now, so a
 * stale one never runs; calls of one master never overlap; a newer target ends a running call. At a plain start there is nothing to
 * do: the primary found then is what later changes are measured against.
 */
import { AgentError } from '../../errors.js';
import type { Log } from '../../log.js';
import type { Route } from '../../route/route.js';
import { formatAddress, sameAddress } from '../../sentinel/wire/address.js';
import type { Address } from '../../sentinel/wire/address.js';
import { millis } from '../../time.js';
import type { Millis } from '../../time.js';
import type { Published, Publisher } from '../publisher.js';
import { backoffMs } from '../reconciler.js';
import { argvOf, environmentOf, inputOf, verdictOf } from './call.js';
import type { Call, CallKind, Program } from './call.js';
import { runScript } from './child.js';
import type { ScriptEnd } from './child.js';
import { MoveKinds } from './move-kinds.js';
import { Slots } from './slots.js';
import { HookMemories, callFrom } from './targets.js';
import type { HookMemory } from './targets.js';

/** One call that runs or waits, as SENTINEL PENDING-SCRIPTS shows it. */
export type PendingScript = { readonly argv: readonly string[]; /** Starts so far. */ readonly runs: number } & (
  | { readonly running: true; readonly pid: number; readonly startedAtMs: Millis }
  | { readonly running: false; readonly pid: null; readonly dueAtMs: Millis }
);

export interface ScriptPublisherOptions {
  /** The output's name, e.g. `client-reconfig-script`. */
  readonly name: string;
  /** The program for a master as it is configured now, or null. */
  readonly programOf: (master: string) => Program | null;
  /** Whether it is called for moves of this kind; where not, the new primary only counts as known. */
  readonly wants: (kind: CallKind) => boolean;
  /** Whether the Route goes to standard input as JSON. */
  readonly tellsRoute: boolean;
  readonly log: Log;
  /** The call is given up (exit code ≥ 2), or has failed {@link ALARM_RUNS} times: stock's `-script-error`. */
  readonly onFailure: (path: string, signal: number, exitCode: number) => void;
  /** Stock's script-max-runtime, or the hook's own limit; asked at every call. */
  readonly maxRuntimeMs: () => number;
  /** Where the last targets are kept over restarts. */
  readonly stateFile?: string;
  /** Shared by all scripts of an agent; default: slots of its own. */
  readonly slots?: Slots;
  readonly now?: () => Millis;
}

/** Stock gives a script up after so many runs; here it is said then, and the target keeps being tried at the longest back-off. */
export const ALARM_RUNS = 10;
export const MAX_RUNNING = 16;
/** Beyond the script's own limit: waiting for a slot and for the last group to be gone. */
const DEADLINE_SLACK_MS = 10_000;

export class ScriptPublisher implements Publisher {
  readonly name: string;
  readonly wantsUntrusted = false;
  readonly #options: ScriptPublisherOptions;
  readonly #now: () => Millis;
  readonly #memories: HookMemories;
  readonly #slots: Slots;
  readonly #pending = new Map<string, PendingScript>();
  /** Per master, what its next call has to wait for. */
  readonly #tails = new Map<string, Promise<void>>();
  readonly #kinds = new MoveKinds();
  readonly #forced = new Set<string>();
  readonly #running = new Set<AbortController>();
  #closed = false;

  constructor(options: ScriptPublisherOptions) {
    this.#options = options;
    this.name = options.name;
    this.#now = options.now ?? (() => millis(Date.now()));
    this.#memories = new HookMemories(options.stateFile ?? null, options.log);
    this.#slots = options.slots ?? new Slots(MAX_RUNNING);
  }

  get deadlineMs(): number {
    return this.#options.maxRuntimeMs() + DEADLINE_SLACK_MS;
  }

  /** Scripts move clients from primary to primary; replicas, phase and order alone are no reason to end a running one. */
  differs(a: Route, b: Route): boolean {
    return a.primary === null || b.primary === null ? a.primary !== b.primary : !sameAddress(a.primary, b.primary);
  }

  /** Calls that run or wait for their next run. */
  pending(): PendingScript[] {
    return [...this.#pending.values()];
  }

  /** What was served at a higher order (a state file from another life of the group) counts for nothing at the next `apply`. */
  forceNext(master: string): void {
    this.#forced.add(master);
  }

  async apply(route: Route, signal: AbortSignal): Promise<Published> {
    return await this.#inTurn(route.master, signal, async () => {
      const memory = await this.#memories.of(route.master);
      if (this.#forced.delete(route.master)) memory.order = -1;
      if (route.order < memory.order) return { order: memory.order, detail: 'a newer target was served' };
      signal.throwIfAborted();
      const detail = route.primary === null ? 'no primary yet' : await this.#reconcile(route, route.primary, memory, signal);
      if (memory.order !== route.order) {
        memory.order = route.order;
        await this.#memories.save();
      }
      return { order: route.order, detail };
    });
  }

  async forget(master: string): Promise<void> {
    await this.#inTurn(master, new AbortController().signal, async () => {
      this.#pending.delete(master);
      this.#kinds.forget(master);
      this.#forced.delete(master);
      await this.#memories.forget(master);
    });
  }

  /** Ends what runs. Its target is not remembered as served, so the next start calls the script again. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const controller of this.#running) controller.abort(new AgentError('SCRIPT_FAILED', 'the agent is stopping'));
    await Promise.all(this.#tails.values());
    await this.#memories.save();
  }

  /** One at a time per master, in order; gives up waiting when `signal` aborts. */
  async #inTurn<T>(master: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(master) ?? Promise.resolve();
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => { leave = resolve; });
    const tail = before.then(() => left);
    this.#tails.set(master, tail);
    try {
      await abortable(before, signal);
      if (this.#closed) throw new AgentError('SCRIPT_FAILED', `${this.name} is closed`, { master });
      return await work();
    } finally {
      leave();
      if (this.#tails.get(master) === tail) this.#tails.delete(master);
    }
  }

  async #reconcile(route: Route, to: Address, memory: HookMemory, signal: AbortSignal): Promise<string> {
    const { master } = route;
    const { kind, planned } = this.#kinds.of(route, to);
    const program = this.#options.programOf(master);
    if (program === null) return this.#settle(master, memory, to, 'no script');
    if (memory.handled === null) {
      if (route.previous === null || sameAddress(route.previous, to)) return this.#settle(master, memory, to, 'nothing has moved yet');
      memory.good = memory.handled = route.previous;
    }
    const from = callFrom(memory, to);
    const tellsEnd = this.#options.wants('steady');
    let detail = `points to ${formatAddress(to)}`;
    if (from === null) {
      memory.unfinished = null;
      this.#pending.delete(master);
    } else {
      if (this.#options.wants(kind)) detail = await this.#call({ program, route, kind, from, to, memory, planned }, signal);
      else detail = await this.#settle(master, memory, to, `not called for ${kind}`);
      memory.movedFrom = tellsEnd ? from : null;
    }
    if (!tellsEnd || route.phase !== 'steady' || memory.movedFrom === null) return detail;
    return await this.#call({ program, route, kind: 'steady', from: memory.movedFrom, to, memory, planned }, signal);
  }

  /** `to` is where clients are, without a call. */
  async #settle(master: string, memory: HookMemory, to: Address, detail: string): Promise<string> {
    this.#pending.delete(master);
    if (memory.good !== null && sameAddress(memory.good, to) && memory.handled === memory.good && memory.unfinished === null) return detail;
    memory.good = memory.handled = to;
    memory.unfinished = null;
    await this.#memories.save();
    return detail;
  }

  async #call(call: Call, signal: AbortSignal): Promise<string> {
    const { master } = call.route;
    const argv = argvOf(call);
    const before = this.#pending.get(master);
    const runs = before !== undefined && String(before.argv) === String(argv) ? before.runs : 0;
    this.#pending.set(master, { argv, runs, running: false, pid: null, dueAtMs: this.#now() });
    const giveBack = await this.#slots.take(signal);
    try {
      const end = await this.#run(call, argv, runs + 1, signal);
      return await this.#conclude(call, argv, runs + 1, end);
    } finally {
      giveBack();
    }
  }

  async #run(call: Call, argv: readonly string[], runs: number, signal: AbortSignal): Promise<ScriptEnd> {
    const { program, route, to, memory } = call;
    const stop = new AbortController();
    this.#running.add(stop);
    let saved = Promise.resolve();
    const onStart = (pid: number): void => {
      this.#pending.set(route.master, { argv, runs, running: true, pid, startedAtMs: this.#now() });
      memory.unfinished = to;
      // Written while the script runs: it must not wait for a disk. After a crash a half-done call is then known as such.
      saved = this.#memories.save();
    };
    try {
      return await runScript({
        path: program.path, args: argv.slice(1), wrap: program.wrap, env: environmentOf(call), limitMs: this.#options.maxRuntimeMs(),
        ...(this.#options.tellsRoute ? { input: inputOf(call) } : {}),
        signal: AbortSignal.any([signal, stop.signal]), onStart,
      });
    } finally {
      this.#running.delete(stop);
      await saved;
    }
  }

  /** What the end of a run means: the detail of a success, or an error that makes the reconciler come again. */
  async #conclude(call: Call, argv: readonly string[], runs: number, end: ScriptEnd): Promise<string> {
    const { program: { path }, route, to, memory, kind } = call;
    const { master } = route;
    const verdict = verdictOf(end);
    const fields = { master, script: path, phase: kind, run: runs, runtimeMs: end.runtimeMs, output: end.output };
    if (verdict.kind === 'again') {
      if (end.kind === 'aborted') this.#pending.delete(master);
      else this.#pending.set(master, { argv, runs, running: false, pid: null, dueAtMs: millis(this.#now() + backoffMs(runs)) });
      this.#options.log[end.kind === 'aborted' ? 'info' : 'warn'](fields, `${this.name} ${verdict.reason}`);
      if (end.kind !== 'aborted' && runs === ALARM_RUNS) this.#options.onFailure(path, verdict.signal, verdict.exitCode);
      throw new AgentError('SCRIPT_FAILED', `${this.name} ${verdict.reason}`, { master, path });
    }
    this.#pending.delete(master);
    if (kind === 'steady') memory.movedFrom = null;
    memory.handled = to;
    memory.unfinished = null;
    if (verdict.kind === 'done') memory.good = to;
    await this.#memories.save();
    if (verdict.kind === 'done') {
      this.#options.log.info(fields, kind === 'steady' ? `${this.name} was told that all is settled` : `${this.name} moved clients to ${formatAddress(to)}`);
      return kind === 'steady' ? `settled on ${formatAddress(to)}` : `script moved clients to ${formatAddress(to)}`;
    }
    this.#options.log.error(fields, `${this.name} gave up: ${verdict.reason}`);
    this.#options.onFailure(path, 0, verdict.exitCode);
    return `script gave up: ${verdict.reason}`;
  }
}

/** `work`, or the signal's reason as soon as it aborts. */
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
