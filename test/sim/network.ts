/**
 * A virtual network of machines with one process each, and TCP between them.
 *
 * What is modelled: delay per direction, order within a connection, connects that are refused (nobody listens) or vanish
 * (machine dead, network cut), partitions one way or both, resets by a crash, silence after a power loss, a stopped process
 * whose kernel still accepts. Data sent into a partition is not lost: TCP repeats it, so it arrives some time after healing.
 */
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import type { EventQueue } from './clock.js';
import type { Draw } from './draw.js';
import type { ReplicationMessage } from './replication.js';

/** What travels: whole requests, replies and pushes instead of bytes. */
export type Message =
  | { readonly kind: 'request'; readonly argv: readonly string[] }
  | { readonly kind: 'reply'; readonly value: RespValue }
  | { readonly kind: 'push'; readonly channel: string; readonly payload: string }
  | ReplicationMessage;

/** The process's side of a socket. Nothing is called after `closed`, nor after the process itself closed the socket. */
export interface Ear {
  up?(localIp: string): void;
  receive(message: Message): void;
  closed(reason: string): void;
}

/** A process that accepts connections. */
export type Accept = (socket: Socket) => Ear;

type Packet =
  | { readonly kind: 'syn' }
  | { readonly kind: 'synAck' }
  | { readonly kind: 'data'; readonly message: Message }
  | { readonly kind: 'end'; readonly reason: string };

/** A machine and the one process on it. */
export class Machine {
  /** False: no power, packets to it vanish. */
  isUp = true;
  isPaused = false;
  /** Non-null while a process listens. */
  accept: Accept | null = null;
  readonly sockets = new Set<Socket>();
  readonly #inbox: (() => void)[] = [];

  constructor(
    readonly index: number,
    readonly name: string,
    readonly ip: string,
    readonly port: number,
  ) {}

  /** Something for the process: now, or when it runs again. */
  deliver(run: () => void): void {
    if (this.isPaused) this.#inbox.push(run);
    else run();
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    // A delivery may pause the machine again; what is left then waits for the next time.
    while (this.#inbox.length > 0 && !this.isPaused) this.#inbox.shift()?.();
  }

  /** The process is gone: what waited for it is lost. */
  forgetInbox(): void {
    this.#inbox.length = 0;
    this.isPaused = false;
  }
}

/** One end of a connection. */
export class Socket {
  state: 'connecting' | 'open' | 'closed' = 'connecting';
  ear: Ear | null = null;
  peer: Socket | null = null;
  lastArrivalMs = 0;
  /** Packets that the network holds back until it is whole again. */
  readonly stalled: Packet[] = [];
  readonly unsent: Message[] = [];

  constructor(
    readonly network: Network,
    readonly machine: Machine,
    readonly remote: Machine | null,
    readonly remotePort: number,
  ) {}

  send(message: Message): void {
    if (this.state === 'connecting') this.unsent.push(message);
    else if (this.state === 'open') this.network.transmit(this, { kind: 'data', message });
  }

  close(reason = 'connection closed'): void {
    if (this.state === 'closed') return;
    const wasOpen = this.state === 'open';
    this.vanish();
    if (wasOpen) this.network.transmit(this, { kind: 'end', reason });
  }

  /** This end exists no more and tells nobody. */
  vanish(): void {
    this.state = 'closed';
    this.ear = null;
    this.machine.sockets.delete(this);
  }

  /** The other end (or the kernel) closed; the process hears of it. */
  end(reason: string): void {
    if (this.state === 'closed') return;
    const { ear } = this;
    this.vanish();
    ear?.closed(reason);
  }
}

export interface NetworkOptions {
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
  readonly connectTimeoutMs: number;
  /** Longest pause between healing and the repetition of what was lost. */
  readonly maxRetransmitMs: number;
  /** Share of packets that are lost and sent again by TCP, 200 ms later, 400 ms after that, and so on; other connections overtake. */
  readonly lossRate?: number;
  /** Share of pub/sub messages that no one ever sees. */
  readonly pushLossRate?: number;
}

const FIRST_REPEAT_MS = 200;
const LAST_REPEAT_MS = 3_200;

export class Network {
  readonly machines: Machine[] = [];
  readonly #byIp = new Map<string, Machine>();
  readonly #cuts = new Set<number>();
  readonly #stalled = new Set<Socket>();
  /** Added to every delay from and to a machine. */
  readonly slowMs = new Map<Machine, number>();

  constructor(
    readonly clock: EventQueue,
    readonly draw: Draw,
    readonly options: NetworkOptions,
  ) {}

  addMachine(name: string, ip: string, port: number): Machine {
    const machine = new Machine(this.machines.length, name, ip, port);
    this.machines.push(machine);
    this.#byIp.set(ip, machine);
    return machine;
  }

  machineAt(ip: string): Machine | undefined {
    return this.#byIp.get(ip);
  }

  connect(from: Machine, ip: string, port: number, ear: Ear): Socket {
    const socket = new Socket(this, from, this.#byIp.get(ip) ?? null, port);
    socket.ear = ear;
    from.sockets.add(socket);
    if (socket.remote !== null) this.transmit(socket, { kind: 'syn' });
    this.clock.after(this.options.connectTimeoutMs, () => {
      if (socket.state === 'connecting') from.deliver(() => socket.end('connect timed out'));
    });
    return socket;
  }

  transmit(from: Socket, packet: Packet): void {
    const { remote } = from;
    if (remote === null) return;
    const slowMs = this.slowMs.size === 0 ? 0 : (this.slowMs.get(from.machine) ?? 0) + (this.slowMs.get(remote) ?? 0);
    const { minDelayMs, maxDelayMs, lossRate = 0, pushLossRate = 0 } = this.options;
    if (pushLossRate > 0 && packet.kind === 'data' && packet.message.kind === 'push' && this.draw.chance(pushLossRate)) return;
    let delayMs = this.draw.between(minDelayMs, maxDelayMs) + slowMs;
    for (let waitMs = FIRST_REPEAT_MS; lossRate > 0 && waitMs <= LAST_REPEAT_MS && this.draw.chance(lossRate); waitMs *= 2) delayMs += waitMs;
    from.lastArrivalMs = Math.max(from.lastArrivalMs, this.clock.nowMs + delayMs);
    this.clock.at(from.lastArrivalMs, () => {
      if (from.stalled.length === 0 && this.#isOpen(from.machine, remote)) return this.#arrive(from, remote, packet);
      from.stalled.push(packet);
      this.#stalled.add(from);
    });
  }

  #arrive(from: Socket, target: Machine, packet: Packet): void {
    if (packet.kind === 'syn') return this.#arriveSyn(from, target);
    const { peer } = from;
    if (peer === null) return;
    switch (packet.kind) {
      case 'synAck':
        return target.deliver(() => establish(peer));
      case 'end':
        return target.deliver(() => peer.end(packet.reason));
      case 'data':
        if (!target.isPaused) return this.#receive(peer, from, packet.message);
        return target.deliver(() => this.#receive(peer, from, packet.message));
    }
  }

  #receive(peer: Socket, from: Socket, message: Message): void {
    if (peer.state === 'closed') this.#reset(peer, from);
    else peer.ear?.receive(message);
  }

  /** The kernel accepts even while the process is stopped; without a process it refuses. */
  #arriveSyn(client: Socket, target: Machine): void {
    if (client.state === 'closed') return;
    const { accept } = target;
    const server = new Socket(this, target, client.machine, client.machine.port);
    server.peer = client;
    if (accept === null || target.port !== client.remotePort) return this.transmit(server, { kind: 'end', reason: 'connection refused' });
    client.peer = server;
    server.state = 'open';
    target.sockets.add(server);
    target.deliver(() => {
      if (server.state === 'open') server.ear = accept(server);
    });
    this.transmit(server, { kind: 'synAck' });
  }

  /** Data met an end that is no more: its kernel answers with a reset. */
  #reset(gone: Socket, sender: Socket): void {
    if (sender.state === 'open') this.transmit(gone, { kind: 'end', reason: 'connection reset' });
  }

  #isOpen(from: Machine, to: Machine): boolean {
    return to.isUp && (this.#cuts.size === 0 || !this.#cuts.has(from.index * 1000 + to.index));
  }

  /** Nothing gets from one machine to the other; the way back is a cut of its own. */
  cut(from: Machine, to: Machine): void {
    this.#cuts.add(from.index * 1000 + to.index);
  }

  mend(from: Machine, to: Machine): void {
    this.#cuts.delete(from.index * 1000 + to.index);
    this.#retransmit();
  }

  mendAll(): void {
    this.#cuts.clear();
    this.slowMs.clear();
    this.#retransmit();
  }

  #retransmit(): void {
    for (const socket of this.#stalled) {
      this.clock.after(this.draw.between(0, this.options.maxRetransmitMs), () => this.#flush(socket));
    }
  }

  #flush(socket: Socket): void {
    const { remote, stalled } = socket;
    if (remote === null || !this.#isOpen(socket.machine, remote)) return;
    this.#stalled.delete(socket);
    for (const packet of stalled.splice(0)) this.#arrive(socket, remote, packet);
  }

  /** The process dies, its kernel lives: every connection is reset. */
  killProcess(machine: Machine): void {
    for (const socket of [...machine.sockets]) socket.close('connection reset');
    machine.accept = null;
    machine.forgetInbox();
  }

  /** The machine loses power: nobody is told anything. */
  killMachine(machine: Machine): void {
    for (const socket of [...machine.sockets]) socket.vanish();
    machine.accept = null;
    machine.forgetInbox();
    machine.isUp = false;
  }

  powerOn(machine: Machine): void {
    machine.isUp = true;
    this.#retransmit();
  }

  /** A router forgets a connection: both ends are reset. */
  dropConnection(socket: Socket): void {
    const { peer } = socket;
    socket.machine.deliver(() => socket.end('connection reset'));
    if (peer !== null) peer.machine.deliver(() => peer.end('connection reset'));
  }
}

function establish(socket: Socket): void {
  if (socket.state === 'closed') return socket.network.transmit(socket, { kind: 'end', reason: 'connection reset' });
  socket.state = 'open';
  // What waited for the connection goes first: replies are told apart by their order alone.
  for (const message of socket.unsent.splice(0)) socket.send(message);
  socket.ear?.up?.(socket.machine.ip);
}
