/**
 * A model of one Redis server: role, replication link, data, and the commands that a sentinel and a client send.
 *
 * It follows what 7.0 does where Sentinel can see it: replicas and masters cut their replicas' links when their own role or
 * history changes, CONFIG REWRITE is what a restart comes back to, CLIENT KILL spares the sender, a master's PUBLISH reaches
 * its replicas' subscribers, a full resync makes the node answer LOADING for a while. CLIENT PAUSE ... WRITE holds writes and
 * PUBLISH, and whatever waits behind them on a connection; what a writable replica is given is in no stream. A killed node comes
 * back with all its data and without its place in the history, as one with an append-only file does.
 * test/conformance/redis-model.test.ts compares it with redis-server.
 */
import type { Address } from '../../src/sentinel/wire/address.js';
import { sameAddress } from '../../src/sentinel/wire/address.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import { array, bulk, error, integer, OK, simple } from '../../src/sentinel/wire/resp-value.js';
import type { Draw } from './draw.js';
import type { Ear, Machine, Message, Network, Socket } from './network.js';
import type { NodeWatcher, RedisOptions, Session } from './redis-session.js';
import { READONLY, refusalOf } from './redis-session.js';
import { infoText, roleReply } from './redis-texts.js';
import type { StreamEntry } from './replication.js';
import { ReplicationLog } from './replication.js';

export type { NodeWatcher, RedisOptions };

const CRON_MS = 1_000;
const STREAM_PING_MS = 10_000;

export class RedisNode {
  runId = '';
  log: ReplicationLog;
  /** Whom it follows; null = it is a master. */
  master: Address | null;
  linkUp = false;
  linkDownSinceMs: number | null = null;
  isSyncing = false;
  isLoading = false;
  priority = 100;
  /** replica-read-only. */
  isReadOnly = true;
  /** CLIENT PAUSE is in force until then; `pausesAll`: not only for writes. */
  pausedUntilMs = 0;
  pausesAll = false;
  /** Full and partial resyncs granted, and partial ones refused, since the process started. */
  syncFull = 0;
  syncPartialOk = 0;
  syncPartialErr = 0;
  /** A script does not end: all that most commands get is -BUSY. */
  isBusy = false;
  #scriptOf: Session | null = null;
  /** Whether some sentinel sends clients here; without it a writable replica refuses all the same (see world.ts). */
  takesLocalWrites: () => boolean = () => true;
  /** Set by a script: replaces the reply to a command, e.g. PING by -BUSY. */
  readonly canned = new Map<string, RespValue>();
  #rewritten: { readonly master: Address | null; readonly isReadOnly: boolean };
  #sessions = new Set<Session>();
  #masterSocket: Socket | null = null;
  /** There is a place in a history from which a new master might continue; without one it is asked for everything. */
  #hasPlace = false;
  #masterHeardMs = 0;
  #life = 0;
  #lastStreamPingMs = 0;

  constructor(
    readonly network: Network,
    readonly machine: Machine,
    readonly draw: Draw,
    readonly options: RedisOptions,
    readonly watcher: NodeWatcher,
    master: Address | null,
  ) {
    this.master = master;
    this.#rewritten = { master, isReadOnly: true };
    this.log = new ReplicationLog(draw.hex(40), options.backlogSize);
  }

  get isRunning(): boolean {
    return this.machine.accept !== null;
  }

  nowMs(): number {
    return this.network.clock.nowMs;
  }

  /** Starts the process as its configuration file says; `keepData` false: the data directory is empty. */
  start(keepData: boolean): void {
    const { values, expiring } = this.log;
    this.log = new ReplicationLog(this.draw.hex(40), this.options.backlogSize);
    if (keepData) this.log.values = values;
    if (keepData) for (const [value, atMs] of expiring) this.log.expiring.set(value, atMs);
    this.runId = this.draw.hex(40);
    this.master = this.#rewritten.master;
    this.isReadOnly = this.#rewritten.isReadOnly;
    this.pausedUntilMs = 0;
    this.pausesAll = false;
    this.isBusy = false;
    this.syncFull = this.syncPartialOk = this.syncPartialErr = 0;
    this.#hasPlace = false;
    this.linkUp = false;
    this.linkDownSinceMs = null;
    this.isSyncing = false;
    this.#masterSocket = null;
    this.#sessions = new Set();
    this.#lastStreamPingMs = this.nowMs();
    if (!this.machine.isUp) this.network.powerOn(this.machine);
    this.machine.accept = (socket) => this.#accept(socket);
    if (keepData && values.length > 0) this.#load(() => undefined);
    this.#cron(this.#life);
  }

  /** The process dies at once; `withMachine`: nobody is told. */
  kill(withMachine: boolean): void {
    this.#life++;
    this.isLoading = false;
    if (withMachine) this.network.killMachine(this.machine);
    else this.network.killProcess(this.machine);
  }

  replicaLines(): string[] {
    const replicas = [...this.#sessions].filter((session) => session.from !== '');
    return [
      `connected_slaves:${replicas.length}`,
      ...replicas.map(({ from, online, ackOffset }, index) => {
        const [ip, port] = from.split(' ');
        return `slave${index}:ip=${ip},port=${port},state=${online ? 'online' : 'wait_bgsave'},offset=${ackOffset},lag=0`;
      }),
    ];
  }

  replicaAddresses(): (readonly [string, string, string])[] {
    return [...this.#sessions]
      .filter((session) => session.online)
      .map(({ from, ackOffset }) => [...from.split(' '), String(ackOffset)] as unknown as readonly [string, string, string]);
  }

  #later(delayMs: number, run: () => void): void {
    const life = this.#life;
    this.network.clock.after(delayMs, () => {
      if (life === this.#life) this.machine.deliver(() => (life === this.#life ? run() : undefined));
    });
  }

  #load(done: () => void): void {
    this.isLoading = true;
    this.#later(this.draw.between(0, this.options.maxLoadingMs), () => {
      this.isLoading = false;
      done();
    });
  }

  #cron(life: number): void {
    if (life !== this.#life) return;
    const { replTimeoutMs } = this.options;
    if (this.master === null) {
      const pings = this.nowMs() - this.#lastStreamPingMs >= (this.options.streamPingMs ?? STREAM_PING_MS) && [...this.#sessions].some((session) => session.online);
      if (pings) {
        this.#lastStreamPingMs = this.nowMs();
        this.#feed({ kind: 'ping' });
      }
    } else if (this.#masterSocket === null) {
      this.#connectToMaster(this.master);
    } else if (this.nowMs() - this.#masterHeardMs > replTimeoutMs) {
      this.#loseMaster('replication timeout');
    } else if (this.linkUp) {
      this.#masterSocket.send({ kind: 'ack', offset: this.log.offset });
    }
    this.#later(CRON_MS, () => this.#cron(life));
  }

  #accept(socket: Socket): Ear {
    const session: Session = {
      socket, kind: 'normal', channels: new Set(), multi: null, isAborted: false, from: '', online: false, ackOffset: 0, held: [],
    };
    this.#sessions.add(session);
    return {
      receive: (message) => this.#receive(session, message),
      closed: () => this.#sessions.delete(session),
    };
  }

  #receive(session: Session, message: Message): void {
    switch (message.kind) {
      case 'request':
        if (session.held.length > 0 || this.#isHeld(session, message.argv)) session.held.push(message.argv);
        else this.#request(session, message.argv);
        return;
      case 'psync':
        // The link is no replica's link before this, so a full pause holds it up like any client's.
        if (this.isPaused && this.pausesAll) this.#later(this.pausedUntilMs - this.nowMs() + 1, () => this.#receive(session, message));
        else this.#serveReplica(session, message);
        return;
      case 'ack':
        session.ackOffset = message.offset;
        return;
      default:
        return;
    }
  }

  get isPaused(): boolean {
    return this.nowMs() < this.pausedUntilMs;
  }

  /** Writes and PUBLISH wait; REPLICAOF, CONFIG, CLIENT and what only reads pass, in a transaction, too. */
  #isHeld(session: Session, argv: readonly string[]): boolean {
    if (!this.isPaused) return false;
    if (this.pausesAll) return session.kind !== 'replica';
    const waits = ([word = '']: readonly string[]): boolean => /^(?:SET|PUBLISH)$/i.test(word);
    if (session.multi === null) return waits(argv);
    return argv[0]?.toUpperCase() === 'EXEC' && session.multi.some(waits);
  }

  #release(): void {
    for (const session of [...this.#sessions]) {
      while (this.#sessions.has(session)) {
        const next = session.held[0];
        if (next === undefined || this.#isHeld(session, next)) break;
        session.held.shift();
        this.#request(session, next);
      }
    }
    // What came due under the pause.
    this.#expire();
  }

  #request(session: Session, argv: readonly string[]): void {
    const word = (argv[0] ?? '').toUpperCase();
    const reply = (value: RespValue): void => session.socket.send({ kind: 'reply', value });
    if (session.multi !== null && word !== 'EXEC') {
      const refusal = refusalOf(word, this);
      if (refusal !== null) session.isAborted = true;
      else session.multi.push(argv);
      return reply(refusal ?? simple('QUEUED'));
    }
    if (word === 'EXEC') {
      const queued = session.multi ?? [];
      const { isAborted } = session;
      session.multi = null;
      session.isAborted = false;
      if (isAborted) return reply(error('EXECABORT Transaction discarded because of previous errors.'));
      return reply(this.#watchRole(session, () => array(queued.map((queuedArgv) => this.#execute(session, queuedArgv)))));
    }
    if (word !== 'EVAL' || this.isBusy) return reply(this.#watchRole(session, () => this.#execute(session, argv)));
    this.isBusy = true;
    this.#scriptOf = session;
  }

  #watchRole(session: Session, run: () => RespValue): RespValue {
    const wasReplica = this.master !== null;
    const value = run();
    if (wasReplica && this.master === null) this.watcher.promoted?.(this, session.socket.remote);
    return value;
  }

  #execute(session: Session, argv: readonly string[]): RespValue {
    const word = (argv[0] ?? '').toUpperCase();
    const canned = this.canned.get(word);
    if (canned !== undefined) return canned;
    if (word === 'SET' && this.master !== null && (this.isReadOnly || !this.takesLocalWrites())) return error(READONLY);
    const refusal = refusalOf(word, this);
    if (refusal !== null) return refusal;
    switch (word) {
      case 'PING':
        return simple('PONG');
      case 'INFO':
        return bulk(infoText(this));
      case 'ROLE':
        return roleReply(this);
      case 'MULTI':
        session.multi = [];
        return OK;
      case 'SLAVEOF':
      case 'REPLICAOF':
        return this.#commandReplicaOf(session, argv);
      case 'CONFIG':
        if (argv[1]?.toUpperCase() === 'SET' && argv[2] === 'replica-read-only') this.isReadOnly = argv[3] !== 'no';
        if (argv[1]?.toUpperCase() === 'REWRITE') this.#rewritten = { master: this.master, isReadOnly: this.isReadOnly };
        return OK;
      case 'CLIENT':
        return this.#client(session, argv);
      case 'SUBSCRIBE':
        session.kind = 'pubsub';
        session.channels.add(argv[1] ?? '');
        return array([bulk('subscribe'), bulk(argv[1] ?? ''), integer(1)]);
      case 'PUBLISH':
        return this.#publish(argv[1] ?? '', argv[2] ?? '');
      case 'SET':
        return this.#write(Number(argv[1]), argv[3] === 'PX' ? Number(argv[4]) : null);
      case 'SCRIPT':
        return this.#killScript();
      default:
        return OK;
    }
  }

  #write(value: number, expiresMs: number | null): RespValue {
    const local = this.master !== null;
    if (local) this.log.values.push(value);
    else this.#feed({ kind: 'write', value, expiresMs: expiresMs === null ? null : this.nowMs() + expiresMs });
    this.watcher.wrote?.(this, value, local);
    return OK;
  }

  /** A master deletes what has expired, unless it is held; replicas hear of it. */
  #expire(): void {
    if (this.master !== null || this.isPaused) return;
    for (const [value, atMs] of this.log.expiring) if (atMs <= this.nowMs()) this.#feed({ kind: 'delete', value });
  }

  #killScript(): RespValue {
    if (!this.isBusy) return error('NOTBUSY No scripts in execution right now.');
    this.isBusy = false;
    this.#scriptOf?.socket.send({ kind: 'reply', value: error('ERR Error running script: Script killed by user with SCRIPT KILL') });
    this.#scriptOf = null;
    return OK;
  }

  #client(session: Session, argv: readonly string[]): RespValue {
    const word = argv[1]?.toUpperCase();
    if (word === 'PAUSE') {
      // A shorter or milder pause does not change one that is in force.
      this.pausesAll = (this.isPaused && this.pausesAll) || argv[3]?.toUpperCase() !== 'WRITE';
      this.pausedUntilMs = Math.max(this.pausedUntilMs, this.nowMs() + Number(argv[2]));
      this.#later(Number(argv[2]) + 1, () => this.#release());
    }
    if (word === 'UNPAUSE') {
      this.pausedUntilMs = 0;
      this.#later(0, () => this.#release());
    }
    if (word !== 'KILL') return OK;
    const kind = argv[3]?.toLowerCase();
    const victims = [...this.#sessions].filter((other) => other !== session && other.kind === kind);
    for (const victim of victims) {
      this.#sessions.delete(victim);
      victim.socket.close('killed');
    }
    return integer(victims.length);
  }

  #publish(channel: string, payload: string): RespValue {
    const reached = this.#toSubscribers(channel, payload);
    if (this.master === null) this.#feed({ kind: 'publish', channel, payload });
    return integer(reached);
  }

  #toSubscribers(channel: string, payload: string): number {
    let reached = 0;
    for (const session of this.#sessions) {
      if (!session.channels.has(channel)) continue;
      session.socket.send({ kind: 'push', channel, payload });
      reached++;
    }
    return reached;
  }

  /** A new entry of our own history goes to the backlog and to the replicas. */
  #feed(entry: StreamEntry, offset?: number): void {
    this.log.append(entry, offset);
    if (entry.kind === 'write' && entry.expiresMs !== null) this.#later(entry.expiresMs - this.nowMs() + 1, () => this.#expire());
    for (const session of this.#sessions) {
      if (session.online) session.socket.send({ kind: 'stream', offset: this.log.offset, entry });
    }
  }

  #commandReplicaOf(session: Session, argv: readonly string[]): RespValue {
    const [, host = '', port = ''] = argv;
    const target = host.toUpperCase() === 'NO' ? null : { host, port: Number(port) };
    this.watcher.replicaOf(this, target, session.socket.remote);
    if (target !== null && this.master !== null && sameAddress(target, this.master)) return simple('OK Already connected to specified master');
    this.follow(target);
    return OK;
  }

  /** REPLICAOF: the same master again changes nothing. */
  follow(target: Address | null): void {
    if (target === null ? this.master === null : this.master !== null && sameAddress(target, this.master)) return;
    this.#masterSocket?.close('role change');
    this.#masterSocket = null;
    this.linkUp = false;
    this.isSyncing = false;
    this.linkDownSinceMs = target === null ? null : this.nowMs();
    if (this.master === null) this.#hasPlace = true;
    if (target === null) this.log.branch(this.draw.hex(40));
    this.master = target;
    // Who only follows another one keeps its own replicas until it knows that the history is another one.
    if (target === null) this.#dropReplicas();
    this.watcher.note(this, target === null ? 'is a master now' : `follows ${target.host}:${target.port} now`);
    if (target === null) this.#expire();
    else this.#later(1, () => (this.#masterSocket === null ? this.#connectToMaster(target) : undefined));
  }

  /** Replicas must learn that the history changed. */
  #dropReplicas(): void {
    for (const session of [...this.#sessions]) {
      if (session.kind !== 'replica') continue;
      this.#sessions.delete(session);
      session.socket.close('history changed');
    }
  }

  #connectToMaster(target: Address): void {
    if (this.master !== target || this.isLoading) return;
    this.#masterHeardMs = this.nowMs();
    const socket = this.network.connect(this.machine, target.host, target.port, {
      up: () => {
        this.#later(this.draw.between(1, this.options.maxHandshakeMs), () => {
          const { replid, offset } = this.#hasPlace ? this.log : { replid: '?', offset: -1 };
          socket.send({ kind: 'psync', replid, offset, from: `${this.machine.ip} ${this.machine.port}` });
        });
      },
      receive: (message) => {
        if (this.#masterSocket === socket) this.#fromMaster(message);
      },
      closed: (reason) => {
        if (this.#masterSocket === socket) this.#loseMaster(reason);
      },
    });
    this.#masterSocket = socket;
  }

  #loseMaster(reason: string): void {
    this.#masterSocket?.close(reason);
    this.#masterSocket = null;
    this.isSyncing = false;
    if (this.linkUp) this.linkDownSinceMs = this.nowMs();
    this.linkUp = false;
  }

  #fromMaster(message: Message): void {
    this.#masterHeardMs = this.nowMs();
    switch (message.kind) {
      case 'psyncRefused':
        return this.#loseMaster('no master link there');
      case 'continue':
        if (this.log.continueAs(message.replid)) this.#dropReplicas();
        return this.#linked('partial');
      case 'fullResync': {
        const socket = this.#masterSocket;
        this.isSyncing = true;
        this.#hasPlace = false;
        this.#dropReplicas();
        this.log.replace(message);
        for (const atMs of this.log.expiring.values()) this.#later(atMs - this.nowMs() + 1, () => this.#expire());
        this.watcher.replaced?.(this);
        // What arrives while loading is kept by the kernel; the model takes it at once, which nobody can tell apart.
        return this.#load(() => (this.#masterSocket === socket && socket !== null ? this.#linked('full') : undefined));
      }
      case 'stream':
        if (message.entry.kind === 'publish') this.#toSubscribers(message.entry.channel, message.entry.payload);
        return this.#feed(message.entry, message.offset);
      default:
        return;
    }
  }

  #linked(how: string): void {
    this.isSyncing = false;
    this.#hasPlace = true;
    this.linkUp = true;
    this.linkDownSinceMs = null;
    this.watcher.note(this, `synced (${how}) at ${this.log.offset}`);
  }

  #serveReplica(session: Session, ask: { readonly replid: string; readonly offset: number; readonly from: string }): void {
    const refused = this.isLoading || this.isBusy || (this.master !== null && !this.linkUp);
    if (refused) return session.socket.send({ kind: 'psyncRefused' });
    session.kind = 'replica';
    session.from = ask.from;
    const missing = this.log.missing(ask.replid, ask.offset);
    if (missing === null) {
      this.syncFull++;
      if (ask.replid !== '?') this.syncPartialErr++;
      if (!this.log.hasBacklog) this.log.begin(this.draw.hex(40));
      this.#later(this.draw.between(1, this.options.maxSnapshotMs), () => {
        if (!this.#sessions.has(session)) return;
        const { replid, offset, values, expiring } = this.log;
        session.socket.send({ kind: 'fullResync', replid, offset, values: [...values], expiring: [...expiring] });
        session.online = true;
      });
      return;
    }
    this.syncPartialOk++;
    session.socket.send({ kind: 'continue', replid: this.log.replid });
    for (const { offset, entry } of missing) session.socket.send({ kind: 'stream', offset, entry });
    session.online = true;
  }

  /** For checkers: INFO would say the same. */
  facts(): string {
    const link = this.master === null ? '' : ` of ${this.master.host}:${this.master.port} link ${this.linkUp ? 'up' : 'down'}`;
    const role = this.master === null ? 'master' : 'replica';
    return `${this.isRunning ? role : 'dead'}${link} offset ${this.log.offset} keys ${this.log.values.length}`;
  }
}
