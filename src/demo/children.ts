/**
 * The processes that the demo starts: each with a log file, and none outlives the demo.
 *
 * They run in process groups of their own, so that Ctrl-C reaches the demo alone and it can still count before they end. The end
 * is asked for by TERM and, after a moment, enforced; when this process dies of an error, by KILL at once. Where the machine has a
 * setpriv that can do so, the kernel itself kills them when this process is killed.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentError, EXIT, FatalError } from '../errors.js';
import { programPath } from '../find-program.js';

const STOP_LIMIT_MS = 4000;
const LAST_LINES = 5;
/** Debian keeps some programs in sbin, which a user's PATH often leaves out. */
/** The path of a program; throws FatalError SETUP_MISSING when it is not installed. */
export function findProgram(name: string, hint: string): string {
  const found = programPath(name);
  if (found !== null) return found;
  throw new FatalError('SETUP_MISSING', `${name} is not in the PATH: ${hint}`, EXIT.missingTool, { program: name });
}

/** What to put before a command so that it dies with its parent; empty where the machine can't. */
function deathBond(): readonly string[] {
  const bond = ['setpriv', '--pdeathsig', 'KILL', '--'];
  return spawnSync('setpriv', [...bond.slice(1), 'true'], { stdio: 'ignore' }).status === 0 ? bond : [];
}

/** One started process. */
export class Child {
  readonly pid: number;
  readonly ended: Promise<void>;
  readonly #process: ChildProcess;
  #status: string | null = null;

  constructor(readonly name: string, readonly logPath: string, started: ChildProcess) {
    this.#process = started;
    this.pid = started.pid ?? 0;
    this.ended = new Promise((resolve) => {
      started.once('error', (error) => resolve(void (this.#status ??= error.message)));
      started.once('exit', (code, signal) => resolve(void (this.#status ??= signal ?? `status ${code}`)));
    });
  }

  /** How it ended (`SIGKILL`, `status 1`, why it could not start); null while it runs. */
  get status(): string | null {
    return this.#status;
  }

  kill(signal: NodeJS.Signals): void {
    if (this.#status === null) this.#process.kill(signal);
  }

  /** The end of its log, on one line. */
  lastWords(): string {
    return readFileSync(this.logPath, 'utf8').trimEnd().split('\n').slice(-LAST_LINES).join(' | ');
  }

  /** Throws, with its last words, when it has ended: PORT_IN_USE when they say so, else LINK_FAILED. */
  assertRunning(): void {
    if (this.#status === null) return;
    const words = this.lastWords();
    throw new AgentError(/already in use/i.test(words) ? 'PORT_IN_USE' : 'LINK_FAILED', `${this.name} ended (${this.#status}): ${words}`);
  }
}

/** All processes of one run; their logs are `<name>.log` in `logFolder`. */
export class Children {
  readonly #children: Child[] = [];
  readonly #bond = deathBond();
  readonly #onExit = (): void => this.#killAll();

  constructor(readonly logFolder: string) {}

  start(name: string, argv: readonly string[], cwd: string, env: NodeJS.ProcessEnv = process.env): Child {
    process.off('exit', this.#onExit).on('exit', this.#onExit);
    const logPath = join(this.logFolder, `${name}.log`);
    const log = openSync(logPath, 'a');
    const [command = '', ...args] = [...this.#bond, ...argv];
    const child = new Child(name, logPath, spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', log, log] }));
    closeSync(log);
    this.#children.push(child);
    return child;
  }

  /** Everything ever started, ended or not. */
  all(): readonly Child[] {
    return this.#children;
  }

  /** Ends whatever still runs and resolves when all is gone; more may be started afterwards. */
  async endAll(): Promise<void> {
    for (const child of this.#children) {
      // A stopped process would keep TERM for later.
      child.kill('SIGCONT');
      child.kill('SIGTERM');
    }
    const enforce = setTimeout(() => this.#killAll(), STOP_LIMIT_MS);
    await Promise.all(this.#children.map((child) => child.ended));
    clearTimeout(enforce);
    process.off('exit', this.#onExit);
  }

  #killAll(): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }
}
