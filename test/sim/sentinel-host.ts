/**
 * The runtime's part of one sentinel: inputs in, effects out in array order, the persist barrier, the wake-up, the clock.
 *
 * The process may crash (what the disk holds is all that comes back), stop for a while, or see its clock jump. A write covers
 * every `persist` that was emitted before it began, since it takes the state as it is then.
 */
import { assert, must } from '../../src/assert.js';
import type { Effect, Input, ReplyTag, SentinelState } from '../../src/sentinel/index.js';
import { sameRoute } from '../../src/route/route.js';
import type { Route } from '../../src/route/route.js';
import type { LoadedConf } from '../../src/sentinel/wire/sentinel-conf.js';
import { loadSentinelConf, rewriteConf, SENTINEL_KEYS } from '../../src/sentinel/wire/sentinel-conf.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import { OK, simple } from '../../src/sentinel/wire/resp-value.js';
import { millis } from '../../src/time.js';
import type { Core } from './core.js';
import type { Disk } from './disk.js';
import type { Draw } from './draw.js';
import type { Ear, Machine, Message, Network, Socket } from './network.js';

/** What a sentinel's host tells those who watch the simulation. */
export interface HostWatcher {
  /** A turn of the core is over; its effects are not carried out yet. */
  stepped(host: SentinelHost, input: Input, effects: readonly Effect[]): void;
  /** An effect reaches the outside world right now. */
  carriedOut(host: SentinelHost, effect: Effect): void;
  /** A reply leaves for the process at the other end; `argv` is the question. */
  replied(host: SentinelHost, argv: readonly string[], value: RespValue): void;
  /** A Route is published: what made it is on disk, or that write has failed. null: no longer monitored. */
  routed(host: SentinelHost, master: string, route: Route | null): void;
  saved(host: SentinelHost, conf: LoadedConf): void;
  started(host: SentinelHost, conf: LoadedConf): void;
  /** The host itself saw something that must not be. */
  broken(host: SentinelHost, reason: string): void;
}

interface OpenLink {
  readonly socket: Socket;
  /** What the next replies answer, in order. */
  readonly tags: ReplyTag[];
}

/** A client's question that waits for its answer; answers leave in the order of the questions. */
interface Slot {
  readonly argv: readonly string[];
  value: RespValue | null;
}

interface Client {
  /** null: an operator at this machine, who is told through `onReply`. */
  readonly socket: Socket | null;
  readonly slots: Slot[];
  readonly onReply?: (value: RespValue) => void;
}

interface Queued {
  readonly effect: Effect | { readonly kind: 'route'; readonly master: string; readonly route: Route | null };
  /** For `persist`: its number. */
  readonly save: number;
}

export interface HostOptions {
  readonly tunables: Partial<SentinelState['tunables']>;
}

export class SentinelHost {
  state: SentinelState | null = null;
  /** This machine's clock minus the world's. */
  clockOffsetMs = 0;
  /** What the outputs of this sentinel tell clients. They keep it while the process is away. */
  readonly published = new Map<string, Route>();
  /** The latest Route of each master, on its way to `published`. */
  readonly #routes = new Map<string, Route>();
  readonly #links = new Map<number, OpenLink>();
  readonly #clients = new Map<number, Client>();
  readonly #queue: Queued[] = [];
  #nextClient = 1;
  #writing = false;
  #savesAsked = 0;
  #savesDone = 0;
  #saveFailed = false;
  #timer = 0;
  #timerAtMs = -1;
  #life = 0;

  constructor(
    readonly core: Core,
    readonly network: Network,
    readonly machine: Machine,
    readonly disk: Disk,
    readonly draw: Draw,
    readonly options: HostOptions,
    readonly watcher: HostWatcher,
  ) {}

  get name(): string {
    return this.machine.name;
  }

  get isRunning(): boolean {
    return this.state !== null;
  }

  nowMs(): number {
    return this.network.clock.nowMs + this.clockOffsetMs;
  }

  /** Starts the process from what is on disk. */
  start(): void {
    const conf = loadSentinelConf(this.disk.text, { path: 'sentinel.conf', readInclude: () => null });
    if (conf.faults.length > 0) return this.watcher.broken(this, `cannot read its own file: ${JSON.stringify(conf.faults[0])}`);
    const birth = { conf, freshId: this.draw.hex(40), seed: this.draw.seed(), now: millis(this.nowMs()) };
    this.state = this.core.createState(birth);
    Object.assign(this.state.tunables, this.options.tunables);
    if (!this.machine.isUp) this.network.powerOn(this.machine);
    this.machine.accept = (socket) => this.#accept(socket);
    this.watcher.started(this, conf);
    if (conf.globals.myId === null) {
      this.#enqueue({ kind: 'persist' });
      this.#drain();
    }
    this.input({ kind: 'start' });
  }

  /** SIGKILL, or a power loss when `withMachine`. */
  kill(withMachine: boolean): void {
    this.#life++;
    this.state = null;
    this.#links.clear();
    this.#clients.clear();
    this.#routes.clear();
    this.#queue.length = 0;
    this.#writing = false;
    this.#savesAsked = this.#savesDone = 0;
    this.#saveFailed = false;
    this.disk.crash();
    if (withMachine) this.network.killMachine(this.machine);
    else this.network.killProcess(this.machine);
  }

  /** SIGCONT: a wake-up that was due comes first. */
  resume(): void {
    this.machine.resume();
  }

  input(input: Input): void {
    if (this.state === null) return;
    const now = millis(this.nowMs());
    const effects = this.core.step(this.state, input, now);
    this.watcher.stepped(this, input, effects);
    if (this.state === null) return;
    const deadline = this.core.nextDeadline(this.state);
    if (!(deadline > now)) this.watcher.broken(this, `nextDeadline ${deadline - now} ms from now after ${input.kind}: a busy loop`);
    this.#setTimer(this.network.clock.nowMs + Math.max(1, Math.ceil(deadline - now)));
    // A Route stands right behind the write that covers its step, as in runtime/sentinel.ts.
    const barrier = effects.findIndex((effect) => effect.kind === 'persist') + 1;
    for (const effect of effects.slice(0, barrier)) this.#enqueue(effect);
    for (const master of this.state.touched) this.#noteRoute(this.state, master);
    for (const effect of effects.slice(barrier)) this.#enqueue(effect);
    this.#drain();
  }

  /** A command by an operator at this machine. */
  command(argv: readonly string[], onReply: (value: RespValue) => void): void {
    const client = this.#nextClient++;
    this.#clients.set(client, { socket: null, slots: [{ argv, value: null }], onReply });
    this.input({ kind: 'command', client, argv });
  }

  /** Timers follow the monotonic clock: a jump of the wall clock doesn't move them. */
  #setTimer(atMs: number): void {
    if (atMs === this.#timerAtMs) return;
    this.#timerAtMs = atMs;
    const timer = ++this.#timer;
    const life = this.#life;
    this.network.clock.at(atMs, () => {
      if (timer !== this.#timer || life !== this.#life) return;
      this.#timerAtMs = -1;
      this.machine.deliver(() => (life === this.#life ? this.input({ kind: 'wake' }) : undefined));
    });
  }

  #noteRoute(state: SentinelState, master: string): void {
    const route = this.core.projectRoute(state, master);
    const before = this.#routes.get(master);
    if (route === null) {
      if (this.#routes.delete(master)) this.#enqueue({ kind: 'route', master, route });
      return;
    }
    if (before !== undefined && sameRoute(before, route)) return;
    this.#routes.set(master, route);
    this.#enqueue({ kind: 'route', master, route });
  }

  #enqueue(effect: Queued['effect']): void {
    this.#queue.push({ effect, save: effect.kind === 'persist' ? ++this.#savesAsked : 0 });
  }

  #drain(): void {
    while (!this.#writing) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      if (next.effect.kind === 'persist') this.#save(next.save);
      else this.#carryOut(next.effect);
    }
  }

  #save(number: number): void {
    if (number <= this.#savesDone || this.state === null) return;
    this.#writing = true;
    const covered = this.#savesAsked;
    const life = this.#life;
    const text = rewriteConf(this.disk.text, this.core.configLines(this.state), SENTINEL_KEYS);
    this.disk.write(text, (saved) => {
      if (life !== this.#life) return;
      if (saved) this.watcher.saved(this, loadSentinelConf(text, { path: 'sentinel.conf', readInclude: () => null }));
      this.machine.deliver(() => {
        if (life !== this.#life) return;
        this.#writing = false;
        this.#saveFailed = !saved;
        this.#savesDone = covered;
        this.#drain();
      });
    });
  }

  #carryOut(effect: Queued['effect']): void {
    if (effect.kind === 'route') return this.#publish(effect.master, effect.route);
    this.watcher.carriedOut(this, effect);
    switch (effect.kind) {
      case 'connect':
        return this.#connect(effect.connection, effect.host, effect.port);
      case 'close':
        this.#links.get(effect.connection)?.socket.close();
        this.#links.delete(effect.connection);
        return;
      case 'send': {
        const link = this.#links.get(effect.connection);
        if (link === undefined) return;
        link.tags.push(effect.tag);
        return link.socket.send({ kind: 'request', argv: effect.argv });
      }
      case 'reply':
        return this.#answer(effect.client, this.#saveFailed && effect.ifNotSaved !== undefined ? effect.ifNotSaved : effect.value);
      case 'exit':
        return this.kill(false);
      default:
        return;
    }
  }

  #publish(master: string, route: Route | null): void {
    if (route === null) this.published.delete(master);
    else this.published.set(master, route);
    this.watcher.routed(this, master, route);
  }

  #connect(connection: number, host: string, port: number): void {
    const life = this.#life;
    const socket = this.network.connect(this.machine, host, port, {
      up: (localIp) => this.input({ kind: 'connectionUp', connection, localIp }),
      receive: (message) => this.#received(connection, message),
      closed: (reason) => {
        if (life !== this.#life) return;
        this.#links.delete(connection);
        this.input({ kind: 'connectionDown', connection, reason });
      },
    });
    this.#links.set(connection, { socket, tags: [] });
  }

  #received(connection: number, message: Message): void {
    const link = this.#links.get(connection);
    if (link === undefined) return;
    if (message.kind === 'push') this.input({ kind: 'message', connection, channel: message.channel, payload: message.payload });
    if (message.kind !== 'reply') return;
    const tag = must(link.tags.shift(), 'a reply without a question');
    this.input({ kind: 'reply', connection, tag, reply: message.value });
  }

  #accept(socket: Socket): Ear {
    const client = this.#nextClient++;
    this.#clients.set(client, { socket, slots: [] });
    return {
      receive: (message) => (message.kind === 'request' ? this.#request(client, message.argv) : undefined),
      closed: () => this.#clients.delete(client),
    };
  }

  #request(client: number, argv: readonly string[]): void {
    const session = this.#clients.get(client);
    if (session === undefined) return;
    const word = (argv[0] ?? '').toUpperCase();
    const value = word === 'PING' ? simple('PONG') : word === 'CLIENT' || word === 'AUTH' || word === 'HELLO' ? OK : null;
    session.slots.push({ argv, value });
    if (value === null) this.input({ kind: 'command', client, argv });
    else this.#flushSlots(client);
  }

  #answer(client: number, value: RespValue): void {
    const session = this.#clients.get(client);
    if (session === undefined) return;
    const slot = session.slots.find((open) => open.value === null);
    assert(slot !== undefined, `${this.name} answered a question that nobody asked`);
    slot.value = value;
    this.#flushSlots(client);
  }

  #flushSlots(client: number): void {
    const session = this.#clients.get(client);
    if (session === undefined) return;
    const { slots, socket } = session;
    for (let first = slots[0]; first !== undefined && first.value !== null; first = slots[0]) {
      slots.shift();
      if (first.argv.length > 1) this.watcher.replied(this, first.argv, first.value);
      socket?.send({ kind: 'reply', value: first.value });
      if (socket === null) {
        this.#clients.delete(client);
        session.onReply?.(first.value);
      }
    }
  }
}
