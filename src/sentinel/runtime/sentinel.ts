/**
 * The running sentinel: feeds inputs to the core one at a time and carries its effects out in order.
 *
 * Effects form one queue. A `persist` holds everything behind it until the state file is on disk, or until that has failed
 * and was said. One write covers all steps made before it began, so a burst of votes costs one fsync.
 */
import type { Log } from '../../log.js';
import { messageOf } from '../../errors.js';
import { millis } from '../../time.js';
import type { Millis } from '../../time.js';
import { assertNever } from '../../assert.js';
import type { Route } from '../../route/route.js';
import type { RespValue } from '../wire/resp-value.js';
import type { ConfLine } from '../wire/sentinel-conf.js';
import type { Effect, EventLevel } from '../core/effect.js';
import type { Input } from '../core/input.js';
import { configLines } from '../core/load.js';
import type { LogLevelName, SentinelState } from '../core/state.js';
import { nextDeadline, step } from '../core/step.js';
import type { ConfigStore } from './config-store.js';
import { Links } from './links.js';
import type { LinkOptions } from './links.js';
import { Resolver } from './resolver.js';
import { Rights } from './rights.js';
import type { MissingRules } from './rule-check.js';
import { ScriptRunner } from './script-runner.js';

/** What the sentinel tells the rest of the agent. */
export interface SentinelListener {
  /** A command that the core answered. */
  reply(client: number, value: RespValue): void;
  /** An event for subscribers of channel `name`. */
  publish(name: string, payload: string): void;
  /** The Route of a master changed; null = no longer monitored. Called behind the barrier of what made it. */
  routeChanged(master: string, route: Route | null): void;
  /** SENTINEL SIMULATE-FAILURE: end the process without any clean-up; the sentinel has stopped. */
  exit(code: number): void;
}

export interface SentinelOptions {
  readonly state: SentinelState;
  readonly store: ConfigStore;
  readonly log: Log;
  readonly listener: SentinelListener;
  readonly links?: LinkOptions;
  /** SENTINEL CONFIG SET loglevel. */
  readonly onLogLevel?: (level: LogLevelName) => void;
  /** Lines of the state file beside the core's own (ACL users), and the keys they answer for. */
  readonly extraLines?: () => { readonly lines: readonly ConfLine[]; readonly handled: readonly string[] };
  /** The projection; handed in so that the sentinel doesn't depend on what is made of its state. */
  readonly projectRoute: (state: Readonly<SentinelState>, master: string) => Route | null;
  readonly sameRoute: (a: Route, b: Route) => boolean;
}

type Work = (Effect | { readonly kind: 'route'; readonly master: string; readonly route: Route | null }) & { readonly step: number };

/** Inputs kept for a crash dump. */
const REMEMBERED_INPUTS = 50;

export class Sentinel {
  readonly state: SentinelState;
  readonly #options: SentinelOptions;
  readonly #log: Log;
  readonly #links: Links;
  readonly #resolver: Resolver;
  readonly #scripts: ScriptRunner;
  readonly #rights: Rights;
  readonly #routes = new Map<string, Route>();
  readonly #recent: Input[] = [];
  #work: Work[] = [];
  #steps = 0;
  /** All steps up to this one are on disk (or their write has failed: `#saved` false). */
  #savedStep = 0;
  #saved = true;
  #saving = false;
  #carrying = false;
  #logLevel: LogLevelName;
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;
  #idle: (() => void)[] = [];

  constructor(options: SentinelOptions) {
    this.#options = options;
    this.state = options.state;
    this.#logLevel = options.state.settings.logLevel;
    this.#log = options.log;
    this.#links = new Links(
      {
        connectionUp: (connection, localIp) => {
          this.dispatch({ kind: 'connectionUp', connection, localIp });
          this.#rights.connected(this.state, connection);
        },
        connectionDown: (connection, reason) => this.dispatch({ kind: 'connectionDown', connection, reason }),
        reply: (connection, tag, reply) => this.dispatch({ kind: 'reply', connection, tag, reply }),
        message: (connection, channel, payload) => this.dispatch({ kind: 'message', connection, channel, payload }),
        refused: (address, text) => this.#log.error({ code: 'LINK_FAILED', address }, `${address} refuses our commands: ${text}`),
      },
      options.links,
    );
    this.#rights = new Rights({ connection: this.#links.connectionOptions, log: this.#log });
    this.#resolver = new Resolver((host, ip) => this.dispatch({ kind: 'resolved', host, ip }));
    const { tunables } = options.state;
    this.#scripts = new ScriptRunner(
      {
        failed: (path, signal, exitCode) => this.dispatch({ kind: 'scriptFailed', path, signal, exitCode }),
        timedOut: (path, pid) => this.dispatch({ kind: 'scriptTimeout', path, pid }),
      },
      () => ({ maxRuntimeMs: tunables.scriptMaxRuntimeMs, retryDelayMs: tunables.scriptRetryDelayMs }),
    );
  }

  get scripts(): ScriptRunner {
    return this.#scripts;
  }

  /** What the nodes do not let us do, by `host:port`. */
  get missingRights(): ReadonlyMap<string, MissingRules> {
    return this.#rights.missing;
  }

  /** The last inputs, newest last, for a crash dump. */
  get recentInputs(): readonly Input[] {
    return this.#recent;
  }

  /** The Route of each monitored master as last published. */
  get routes(): ReadonlyMap<string, Route> {
    return this.#routes;
  }

  /** Looks up the names of the state file, then begins to monitor. */
  start(): void {
    for (const master of this.state.masters.values()) {
      for (const { address } of [master, ...master.replicas.values(), ...master.peers.values()]) {
        if (address.ip === '') this.#resolver.resolve(address.host);
      }
    }
    this.dispatch({ kind: 'start' });
  }

  /** One input into the core, now. */
  dispatch(input: Input): void {
    if (this.#stopped) return;
    this.#recent.push(input);
    if (this.#recent.length > REMEMBERED_INPUTS) this.#recent.shift();
    const effects = step(this.state, input, this.#now());
    this.#noteLogLevel();
    const at = ++this.#steps;
    // What a Route needs on disk is what its step persists, all of it by the first write, since the state is complete by then. It stands
    // right behind that, before events, logs and words to nodes, none of which clients wait for.
    const barrier = effects.findIndex((effect) => effect.kind === 'persist') + 1;
    for (const effect of effects.slice(0, barrier)) this.#work.push({ ...effect, step: at });
    for (const master of this.state.touched) this.#noteRoute(master, at);
    for (const effect of effects.slice(barrier)) this.#work.push({ ...effect, step: at });
    this.#carryOut();
    this.#schedule();
  }

  /** Saves whatever was not saved; used by ACL changes and at the end. Resolves to whether the file is written. */
  async persist(): Promise<boolean> {
    this.#work.push({ kind: 'persist', step: ++this.#steps });
    this.#carryOut();
    await this.settled();
    return this.#saved;
  }

  /** Resolves when no effect waits for the disk. */
  async settled(): Promise<void> {
    if (this.#work.length > 0 || this.#saving) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Stops monitoring; the state stays readable. What waits for the disk is finished first. */
  async stop(): Promise<void> {
    await this.settled();
    this.#halt();
    this.#links.closeAll();
    this.#scripts.close();
  }

  #halt(): void {
    this.#stopped = true;
    this.#work = [];
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #now(): Millis {
    return millis(Date.now());
  }

  #schedule(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    const delayMs = Math.max(0, nextDeadline(this.state) - Date.now());
    this.#timer = setTimeout(() => this.dispatch({ kind: 'wake' }), delayMs);
  }

  #noteLogLevel(): void {
    const { logLevel } = this.state.settings;
    if (logLevel === this.#logLevel) return;
    this.#logLevel = logLevel;
    this.#options.onLogLevel?.(logLevel);
  }

  #noteRoute(master: string, at: number): void {
    const route = this.#options.projectRoute(this.state, master);
    const before = this.#routes.get(master);
    if (route === null) {
      if (!this.#routes.delete(master)) return;
    } else {
      if (before !== undefined && this.#options.sameRoute(before, route)) return;
      this.#routes.set(master, route);
    }
    this.#work.push({ kind: 'route', master, route, step: at });
  }

  #carryOut(): void {
    // Carrying an effect out may bring the next input (a client's pipelined command): its effects queue behind these.
    if (this.#saving || this.#carrying) return;
    this.#carrying = true;
    let done = 0;
    for (; done < this.#work.length; done++) {
      const work = this.#work[done];
      if (work === undefined) break;
      if (work.kind === 'persist') {
        if (work.step <= this.#savedStep) continue;
        this.#save();
        done++;
        break;
      }
      this.#perform(work);
    }
    this.#work = this.#work.slice(done);
    this.#carrying = false;
    if (this.#saving || this.#work.length > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #save(): void {
    const covers = this.#steps;
    const extra = this.#options.extraLines?.() ?? { lines: [], handled: [] };
    const lines = [...extra.lines, ...configLines(this.state)];
    this.#saving = true;
    const end = (saved: boolean): void => {
      this.#saving = false;
      this.#saved = saved;
      this.#savedStep = covers;
      this.#carryOut();
    };
    this.#options.store.save(lines, extra.handled).then(
      () => {
        this.#log.debug('Sentinel new configuration saved on disk');
        end(true);
      },
      (fault: unknown) => {
        this.#log.error(`WARNING: Sentinel was not able to save the new configuration on disk!!!: ${messageOf(fault)}`);
        end(false);
      },
    );
  }

  #perform(work: Exclude<Work, { kind: 'persist' }>): void {
    switch (work.kind) {
      case 'connect':
        return this.#links.open(work.connection, work.channel, work.host, work.port);
      case 'close':
        return this.#links.close(work.connection);
      case 'send':
        return this.#links.send(work.connection, work.argv, work.tag);
      case 'event':
        return this.#event(work.name, work.payload, work.level);
      case 'notify':
        return this.#scripts.schedule([work.path, work.event, work.payload]);
      case 'log':
        return this.#write(work.level, work.text);
      case 'reply':
        return this.#options.listener.reply(work.client, this.#saved ? work.value : (work.ifNotSaved ?? work.value));
      case 'resolve':
        return this.#resolver.resolve(work.host);
      case 'exit':
        // Nothing of what stands behind it may still happen.
        this.#halt();
        return this.#options.listener.exit(work.code);
      case 'route':
        return this.#options.listener.routeChanged(work.master, work.route);
      default:
        return assertNever(work);
    }
  }

  #event(name: string, payload: string, level: EventLevel): void {
    this.#write(level, `${name} ${payload}`);
    if (level !== 'debug') this.#options.listener.publish(name, payload);
  }

  #write(level: EventLevel, text: string): void {
    switch (level) {
      case 'debug':
        return this.#log.trace(text);
      case 'verbose':
        return this.#log.debug(text);
      case 'notice':
        return this.#log.info(text);
      case 'warning':
        return this.#log.warn(text);
      default:
        return assertNever(level);
    }
  }
}
