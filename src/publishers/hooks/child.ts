/**
 * Runs one script as stock Sentinel does, and leaves nothing of it behind: no shell, own session, one time limit for all of it.
 *
 * The script leads a process group of its own. Whatever ends it (itself, the limit, a newer Route), the call is over only
 * when no member of the group is alive but zombies, so two calls never overlap. A process that starts its own session escapes.
 */
import { closeSync, openSync, readFileSync, readSync, readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf, messageOf } from '../../errors.js';
import { starterThread } from '../../starter-thread.js';
import type { StartedProgram } from '../../starter-thread.js';

export interface ScriptCall {
  /** As configured; without a slash it is taken from the working directory, never from PATH. */
  readonly path: string;
  readonly args: readonly string[];
  /** Programs that run `path` with other rights or limits, e.g. `['/usr/bin/setpriv', '--reuid', …, '--']`; none: it runs directly. */
  readonly wrap?: readonly string[];
  /** What the script finds on its standard input; default: nothing. */
  readonly input?: string;
  /** Laid over this process's own environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Longest run time, milliseconds; then the whole group is killed. */
  readonly limitMs: number;
  /** Aborts: TERM to the group, KILL after {@link TERM_GRACE_MS}. */
  readonly signal?: AbortSignal;
  readonly onStart?: (pid: number) => void;
}

/** How a call ended; `output` is stdout and stderr together, at most {@link OUTPUT_CAP} bytes. */
export type ScriptEnd = { readonly output: string; readonly runtimeMs: number } & (
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'signalled'; readonly signal: number }
  | { readonly kind: 'timedOut' }
  | { readonly kind: 'aborted' }
  /** Not a program that can run: missing, not executable, neither `#!` nor ELF. Stock counts it as exit code 2. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The system could not start it now (out of processes or memory); worth another try. */
  | { readonly kind: 'notStarted'; readonly reason: string }
);

export const OUTPUT_CAP = 4096;
export const TERM_GRACE_MS = 2_000;
/** A background child may hold the pipes open after the script is gone; so long, and no longer, is read on. */
const DRAIN_MS = 100;
const FIRST_POLL_MS = 5;
const LONGEST_POLL_MS = 200;

/** Runs `call` to its end and resolves when its process group is gone; never rejects for what the script does. */
export async function runScript(call: ScriptCall): Promise<ScriptEnd> {
  const startedAt = performance.now();
  const file = resolve(call.path);
  const nothing = (): { output: string; runtimeMs: number } => ({ output: '', runtimeMs: Math.round(performance.now() - startedAt) });
  if (call.signal?.aborted) return { kind: 'aborted', ...nothing() };
  const refusal = whyNotRunnable(file);
  if (refusal !== null) return { kind: 'refused', reason: refusal, ...nothing() };
  const child = new Child(file, call);
  const { pid, fault } = await child.begun;
  if (pid === null) return { ...startFailure(fault), ...nothing() };
  call.onStart?.(pid);
  const cause = await supervise(pid, child.ended, call);
  const end = await child.ended;
  signalGroup(pid, 'SIGKILL');
  await Promise.race([child.closed, sleep(DRAIN_MS)]);
  child.mute();
  await groupGone(pid);
  const facts = { output: child.output(), runtimeMs: Math.round(performance.now() - startedAt) };
  if (cause !== null) return { kind: cause, ...facts };
  if (end.kind === 'signalled') return { kind: 'signalled', signal: end.signal, ...facts };
  return { kind: 'exited', exitCode: end.exitCode, ...facts };
}

type ChildEnd = { readonly kind: 'exited'; readonly exitCode: number } | { readonly kind: 'signalled'; readonly signal: number };

interface StartFault {
  readonly code: string;
  readonly message: string;
}

/** A process on the other side of the starter's thread: what becomes of it, as promises that never reject. */
class Child {
  /** `pid` null: it does not run, for the reason told. */
  readonly begun: Promise<{ readonly pid: number | null; readonly fault: StartFault | null }>;
  readonly ended: Promise<ChildEnd>;
  /** Nobody holds its pipes any more. */
  readonly closed: Promise<void>;
  readonly #chunks: Uint8Array[] = [];
  readonly #process: StartedProgram;
  #room = OUTPUT_CAP;

  constructor(file: string, call: ScriptCall) {
    const [program = file, ...before] = [...(call.wrap ?? []), ...(call.wrap?.length ? [file] : [])];
    let begin: (begun: { pid: number | null; fault: StartFault | null }) => void = () => undefined;
    let end: (ended: ChildEnd) => void = () => undefined;
    let close: () => void = () => undefined;
    this.begun = new Promise((done) => (begin = done));
    this.ended = new Promise((done) => (end = done));
    this.closed = new Promise((done) => (close = done));
    this.#process = starterThread.start({
      path: program, args: [...before, ...call.args], argv0: call.wrap?.length ? program : call.path, env: { ...process.env, ...call.env }, detached: true,
      output: 'both', ...(call.input === undefined ? {} : { input: call.input }),
    }, {
      started: (pid) => begin({ pid, fault: null }),
      failed: (fault) => begin({ pid: null, fault }),
      output: (chunk) => this.#keep(chunk),
      exited: (code, signal) => end(signal === null ? { kind: 'exited', exitCode: code ?? 2 } : { kind: 'signalled', signal: constants.signals[signal] }),
      closed: () => close(),
    });
  }

  mute(): void {
    this.#process.mute();
  }

  /** What it has said so far, up to the cap. */
  output(): string {
    return Buffer.concat(this.#chunks).toString('utf8').trimEnd();
  }

  /** Read on beyond the cap, so that a talkative script never blocks on a full pipe. */
  #keep(chunk: Uint8Array): void {
    if (this.#room > 0) this.#chunks.push(chunk.subarray(0, this.#room));
    this.#room -= Math.min(this.#room, chunk.length);
  }
}

/** Lack of resources passes; a file that can't be executed stays so. */
function startFailure(fault: StartFault | null): { kind: 'refused' | 'notStarted'; reason: string } {
  const passing = ['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE', 'ETXTBSY'].includes(fault?.code ?? '');
  return { kind: passing ? 'notStarted' : 'refused', reason: fault?.message ?? 'it did not start' };
}

/** Waits for the script's own end; on abort or at the limit ends it. Says which of the two came first, or null. */
async function supervise(pid: number, ended: Promise<ChildEnd>, { limitMs, signal }: ScriptCall): Promise<'timedOut' | 'aborted' | null> {
  let cause: 'timedOut' | 'aborted' | null = null;
  let killTimer: NodeJS.Timeout | undefined;
  const abort = (): void => {
    if (cause !== null) return;
    cause = 'aborted';
    signalGroup(pid, 'SIGTERM');
    killTimer = setTimeout(() => signalGroup(pid, 'SIGKILL'), TERM_GRACE_MS);
  };
  const limitTimer = setTimeout(() => {
    cause ??= 'timedOut';
    signalGroup(pid, 'SIGKILL');
  }, limitMs);
  signal?.addEventListener('abort', abort, { once: true });
  // It may have come while the program was being started.
  if (signal?.aborted) abort();
  try {
    await ended;
    // The leader obeyed TERM; its children get the rest of the grace, not the KILL that follows a normal end.
    if (cause === 'aborted') await groupGone(pid, TERM_GRACE_MS);
    return cause;
  } finally {
    clearTimeout(limitTimer);
    clearTimeout(killTimer);
    signal?.removeEventListener('abort', abort);
  }
}

/** Why `file` can't be run directly, or null. The runtime would hand a file without magic to /bin/sh; stock does not. */
export function whyNotRunnable(file: string): string | null {
  const magic = Buffer.alloc(4);
  try {
    const descriptor = openSync(file, 'r');
    try {
      readSync(descriptor, magic, 0, 4, 0);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    // Executable but not readable is legal for a program; then only the kernel can tell.
    if (codeOf(error) === 'EACCES') return null;
    return messageOf(error);
  }
  const runnable = magic.toString('latin1', 0, 2) === '#!' || magic.toString('latin1') === '\x7fELF';
  return runnable ? null : `${file} begins with neither #! nor an ELF header`;
}

function signalGroup(pgid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pgid, signal);
  } catch (error) {
    // ESRCH: nobody left. EPERM: what is left runs as somebody else; groupGone keeps waiting for it.
    if (!['ESRCH', 'EPERM'].includes(codeOf(error) ?? '')) throw error;
  }
}

/** Resolves when the group has no living member, or after `limitMs`. */
async function groupGone(pgid: number, limitMs = Infinity): Promise<void> {
  const until = performance.now() + limitMs;
  let pauseMs = FIRST_POLL_MS;
  while (isGroupAlive(pgid) && performance.now() < until) {
    await sleep(pauseMs);
    pauseMs = Math.min(2 * pauseMs, LONGEST_POLL_MS);
  }
}

/** Whether any process of the group still runs. A zombie answers signals but does nothing more, so /proc decides. */
export function isGroupAlive(pgid: number): boolean {
  try {
    process.kill(-pgid, 0);
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false;
  }
  return readdirSync('/proc').some((name) => /^\d+$/.test(name) && isLivingMember(name, pgid));
}

function isLivingMember(pid: string, pgid: number): boolean {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    // Ended between the listing and the read.
    return false;
  }
  // `pid (name) state ppid pgrp …`; the name may hold anything, so count from the last parenthesis.
  const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(group) === pgid && state !== 'Z' && state !== 'X';
}
