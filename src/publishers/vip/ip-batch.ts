/**
 * Addresses of this machine through one resident `ip -j -force -batch -`: a change takes 0.4 ms instead of a process start.
 *
 * Every request ends with `addr show`; its JSON marks the end, and it alone says what has become of the request. What the program
 * complained about goes into the error of whoever finds the state other than wanted.
 */
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentError } from '../../errors.js';

export interface LinkAddress {
  readonly local: string;
  readonly prefix: number;
  /** IPv6: another host has it (`dadfailed`). */
  readonly isRefused: boolean;
  /** IPv6: not usable yet, the kernel still asks whether another host has it. */
  readonly isTentative: boolean;
}

export interface Link {
  readonly name: string;
  /** Administratively up and, where the driver tells, with a carrier. */
  readonly isUp: boolean;
  readonly addresses: readonly LinkAddress[];
}

/** Room for the start of the process on a busy machine; an answer takes milliseconds. */
const DEADLINE_MS = 4_000;
/** Standard error is another pipe and may be read later than the state that it explains. */
const COMPLAINT_MS = 50;

export class IpBatch {
  readonly #argv: readonly string[];
  #child: ChildProcessWithoutNullStreams | null = null;
  #tail: Promise<unknown> = Promise.resolve();
  #complaint = '';

  /** `argv`: the program and its first words, e.g. `['ip']`. */
  constructor(argv: readonly string[]) {
    this.#argv = argv;
  }

  /**
   * Runs the commands in order, whatever becomes of each, and shows all links after them. Requests never mix. Who aborts does not wait;
   * what was begun is done before the next request, which then sees it: killing the program would leave that open.
   */
  run(commands: readonly string[], signal: AbortSignal): Promise<Link[]> {
    const turn = this.#tail.then(() => {
      signal.throwIfAborted();
      return this.#run(commands);
    });
    this.#tail = turn.catch(() => undefined);
    return new Promise((resolve, reject) => {
      const abort = (): void => reject(signal.reason as Error);
      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort, { once: true });
      turn.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
    });
  }

  /** What the program said about the commands of the last request; empty = nothing. */
  async complaint(): Promise<string> {
    await sleep(COMPLAINT_MS);
    return this.#complaint.replace(/\s+/g, ' ').replace(/ ?Command failed -:\d+/g, '').trim();
  }

  /** Starts afresh with the next request: a resident program may remember an interface that was replaced. */
  reset(): void {
    this.#child?.kill('SIGKILL');
    this.#child = null;
  }

  close(): void {
    this.#child?.stdin.end();
    this.#child = null;
  }

  async #run(commands: readonly string[]): Promise<Link[]> {
    const child = (this.#child ??= this.#start());
    this.#complaint = '';
    try {
      return await exchange(child, commands);
    } catch (error) {
      // An answer that comes late would pass for the next request's.
      this.reset();
      throw error;
    }
  }

  #start(): ChildProcessWithoutNullStreams {
    const [program = 'ip', ...words] = this.#argv;
    const child = spawn(program, [...words, '-j', '-force', '-batch', '-'], { stdio: 'pipe' });
    child.on('error', () => undefined); // Told to the request that waits (exchange).
    child.stdin.on('error', () => undefined);
    child.stderr.on('data', (chunk: Buffer) => void (this.#complaint = `${this.#complaint}${chunk.toString()}`.slice(-1_000)));
    child.on('exit', () => {
      if (this.#child === child) this.#child = null;
    });
    return child;
  }
}

function exchange(child: ChildProcessWithoutNullStreams, commands: readonly string[]): Promise<Link[]> {
  return new Promise((resolve, reject) => {
    let shown = '';
    const end = (): void => {
      child.stdout.off('data', onShown);
      child.off('error', onError).off('exit', onExit);
      clearTimeout(late);
    };
    const fail = (reason: string): void => {
      end();
      reject(new AgentError('PUBLISH_FAILED', `ip ${reason}`));
    };
    const onShown = (chunk: Buffer): void => {
      shown += chunk.toString();
      if (!shown.endsWith(']\n')) return;
      const links = linksOf(shown);
      if (links === null) return;
      end();
      resolve(links);
    };
    const onError = (error: Error): void => fail(`cannot be started: ${error.message}`);
    const onExit = (): void => fail('ended before it answered');
    const late = setTimeout(() => fail(`did not answer within ${DEADLINE_MS} ms`), DEADLINE_MS);
    child.stdout.on('data', onShown);
    child.on('error', onError).on('exit', onExit);
    child.stdin.write([...commands, 'addr show', ''].join('\n'));
  });
}

interface RawLink {
  readonly ifname?: string;
  readonly flags?: readonly string[];
  readonly addr_info?: readonly { readonly local?: string; readonly prefixlen?: number; readonly dadfailed?: boolean; readonly tentative?: boolean }[];
}

/** Null while the text is not complete. */
function linksOf(text: string): Link[] | null {
  let raw: readonly RawLink[];
  try {
    raw = JSON.parse(text) as readonly RawLink[];
  } catch {
    return null;
  }
  return raw.filter(({ ifname }) => ifname !== undefined).map(({ ifname = '', flags = [], addr_info: addresses = [] }) => ({
    name: ifname,
    isUp: flags.includes('UP') && !flags.includes('NO-CARRIER'),
    addresses: addresses.map(({ local = '', prefixlen = 0, dadfailed = false, tentative = false }) =>
      ({ local, prefix: prefixlen, isRefused: dadfailed, isTentative: tentative })),
  }));
}
