/**
 * Runs one script as stock Sentinel does, and leaves nothing of it behind: no shell, own session, one time limit for all of it.
 *
 * The script leads a process group of its own. Whatever ends it (itself, the limit, a newer Route), the call is over only
 * when no member of the group is alive but zombies, so two calls never overlap. A process that starts its own session escapes.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync, readSync, readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf, messageOf } from '../../errors.js';

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
  let child: ChildProcess;
  try {
    const env = { ...process.env, ...call.env };
    const [program = file, ...before] = [...(call.wrap ?? []), ...(call.wrap?.length ? [file] : [])];
    const argv0 = call.wrap?.length ? program : call.path;
    const stdio = [call.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] as const;
    child = spawn(program, [...before, ...call.args], { argv0, detached: true, stdio: [...stdio], env });
  } catch (error) {
    return { kind: 'notStarted', reason: messageOf(error), ...nothing() };
  }
  // Listen before the first await: a failed start is told in the next turn.
  const ended = endOf(child);
  const output = collect(child);
  const { pid } = child;
  if (pid === undefined) {
    const end = await ended;
    return { ...startFailure(end.kind === 'failed' ? end.error : null), ...nothing() };
  }
  call.onStart?.(pid);
  // Who does not read it closes the pipe; that is no fault.
  child.stdin?.on('error', () => undefined).end(call.input);
  const cause = await supervise(pid, ended, call);
  const end = await ended;
  signalGroup(pid, 'SIGKILL');
  await Promise.race([output.closed, sleep(DRAIN_MS)]);
  output.stop();
  await groupGone(pid);
  const facts = { output: output.text(), runtimeMs: Math.round(performance.now() - startedAt) };
  if (cause !== null) return { kind: cause, ...facts };
  if (end.kind === 'signalled') return { kind: 'signalled', signal: end.signal, ...facts };
  return { kind: 'exited', exitCode: end.kind === 'exited' ? end.exitCode : 2, ...facts };
}

type ChildEnd =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'signalled'; readonly signal: number }
  | { readonly kind: 'failed'; readonly error: Error };

function endOf(child: ChildProcess): Promise<ChildEnd> {
  return new Promise((done) => {
    child.once('error', (error) => done({ kind: 'failed', error }));
    child.once('exit', (code, signal) =>
      done(signal === null ? { kind: 'exited', exitCode: code ?? 2 } : { kind: 'signalled', signal: constants.signals[signal] }));
  });
}

/** Lack of resources passes; a file that can't be executed stays so. */
function startFailure(error: Error | null): { kind: 'refused' | 'notStarted'; reason: string } {
  const passing = ['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE', 'ETXTBSY'].includes(codeOf(error) ?? '');
  return { kind: passing ? 'notStarted' : 'refused', reason: error === null ? 'it did not start' : error.message };
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

function collect(child: ChildProcess): { closed: Promise<void>; stop: () => void; text: () => string } {
  const chunks: Buffer[] = [];
  let room = OUTPUT_CAP;
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null);
  for (const stream of streams) {
    // Read on beyond the cap, so that a talkative script never blocks on a full pipe.
    stream.on('data', (chunk: Buffer) => {
      if (room > 0) chunks.push(chunk.subarray(0, room));
      room -= Math.min(room, chunk.length);
    });
    stream.on('error', () => undefined); // The pipe goes with the process; its end is told by `exit`.
  }
  return {
    closed: new Promise((done) => child.once('close', () => done())),
    stop: () => streams.forEach((stream) => stream.destroy()),
    text: () => Buffer.concat(chunks).toString('utf8').trimEnd(),
  };
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
