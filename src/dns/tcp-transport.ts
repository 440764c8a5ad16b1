/**
 * DNS over TCP (RFC 7766): dns2's server class for the listener, our own framing, deadlines and limits.
 *
 * A connection may be idle for a while between messages; a message that has begun must be whole within its deadline, and so must
 * an answer that the peer does not take: single bytes renew nothing. Connections are capped in all and per address. Queries
 * may be pipelined; while the peer does not read, nothing more of its queries is answered. A zone transfer is written message by
 * message, as the peer takes them and with a turn of the event loop after each, so that a big zone holds up nobody.
 */
import dns2 from 'dns2';
import type { Socket } from 'node:net';
import type { TransferStream } from './guarded-answer.js';
import { HEADER_BYTES } from './record.js';
import type { Responder } from './responder.js';
import { MessageFramer } from './tcp-framing.js';

export interface TcpLimits {
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** From the end of one message to the start of the next. */
  readonly idleMs: number;
  /** From the first byte of a message to its last, and for the peer to take our answers. */
  readonly messageMs: number;
}

export const DEFAULT_TCP_LIMITS: TcpLimits = { connections: 512, connectionsPerAddress: 64, idleMs: 10_000, messageMs: 3_000 };

/** Answers that wait for the peer to read; beyond this no further query of it is looked at. */
const MAX_UNREAD_BYTES = 64 * 1024;

export class TcpTransport extends dns2.TCPServer {
  readonly #responder: Responder;
  readonly #limits: TcpLimits;
  readonly #connections = new Set<Connection>();
  readonly #perAddress = new Map<string, number>();

  constructor(responder: Responder, limits: TcpLimits = DEFAULT_TCP_LIMITS) {
    super();
    this.#responder = responder;
    this.#limits = limits;
    this.maxConnections = limits.connections;
    this.on('drop', () => {
      responder.counters.tcpRefused += 1;
    });
  }

  /** Called by the base class for each connection, in place of its own. */
  handle(socket: Socket): void {
    const { counters } = this.#responder;
    const address = socket.remoteAddress ?? '';
    const open = this.#perAddress.get(address) ?? 0;
    socket.on('error', (error) => this.#responder.noteSocketError(error, 'tcp'));
    if (open >= this.#limits.connectionsPerAddress) {
      counters.tcpRefused += 1;
      socket.destroy();
      return;
    }
    this.#perAddress.set(address, open + 1);
    const connection = new Connection(socket, address, this.#responder, this.#limits);
    this.#connections.add(connection);
    counters.tcpAccepted += 1;
    counters.tcpOpen += 1;
    socket.once('close', () => {
      connection.stop();
      this.#connections.delete(connection);
      counters.tcpOpen -= 1;
      const left = (this.#perAddress.get(address) ?? 1) - 1;
      if (left === 0) this.#perAddress.delete(address);
      else this.#perAddress.set(address, left);
    });
  }

  /** Ends every connection, answered or not. */
  destroyConnections(): void {
    for (const connection of this.#connections) connection.destroy();
  }
}

type Waiting = 'message' | 'rest' | 'reader';

class Connection {
  readonly #socket: Socket;
  readonly #from: string;
  readonly #responder: Responder;
  readonly #limits: TcpLimits;
  readonly #framer = new MessageFramer();
  #pending: Buffer = Buffer.alloc(0);
  #peerEnded = false;
  #stream: TransferStream | null = null;
  #turnAhead = false;
  #waiting: Waiting | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(socket: Socket, from: string, responder: Responder, limits: TcpLimits) {
    this.#socket = socket;
    this.#from = from;
    this.#responder = responder;
    this.#limits = limits;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
      this.#work();
    });
    socket.on('drain', () => this.#work());
    socket.on('end', () => {
      this.#peerEnded = true;
      this.#work();
    });
    this.#waitFor('message');
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Answers what has arrived, as long as the peer takes the answers; the socket is paused while something is left. */
  #work(): void {
    const socket = this.#socket;
    if (socket.destroyed) return;
    if (this.#stream !== null) return this.#takeTurn();
    let at = 0;
    let answered = false;
    socket.cork();
    while (this.#stream === null && at < this.#pending.length && socket.writableLength < MAX_UNREAD_BYTES) {
      const taken = this.#framer.take(this.#pending, at);
      at = taken.at;
      if (taken.message === null) continue;
      // Less than a header is no DNS message at all: the stream has lost its frames, or never had any.
      if (taken.message.length < HEADER_BYTES) return this.destroy();
      const reply = this.#responder.respond(taken.message, 'tcp', this.#from);
      answered = true;
      if (Buffer.isBuffer(reply)) socket.write(framed(reply));
      else this.#stream = reply;
    }
    socket.uncork();
    this.#pending = this.#pending.subarray(at);
    this.#settle(answered);
  }

  /** Chooses what is waited for next. A deadline once set for the rest of a message stays until that message is whole. */
  #settle(answered: boolean): void {
    const socket = this.#socket;
    if (this.#stream !== null) {
      socket.pause();
      this.#waitFor('reader', answered);
      this.#takeTurn();
    } else if (this.#pending.length > 0) {
      socket.pause();
      this.#waitFor('reader', answered);
    } else if (this.#peerEnded) {
      if (this.#framer.isInside) this.destroy();
      else socket.end();
      this.#waitFor('reader', answered);
    } else {
      socket.resume();
      this.#waitFor(this.#framer.isInside ? 'rest' : 'message', answered);
    }
  }

  #takeTurn(): void {
    if (this.#turnAhead) return;
    this.#turnAhead = true;
    setImmediate(() => {
      this.#turnAhead = false;
      this.#sendNext();
    });
  }

  /** Writes one message of the transfer; the pending queries have their turn behind its last one. */
  #sendNext(): void {
    const socket = this.#socket;
    if (this.#stream === null || socket.destroyed || socket.writableLength >= MAX_UNREAD_BYTES) return;
    const next = this.#responder.nextOf(this.#stream, this.#from);
    if (next === 'failed') return this.destroy();
    if (next === null) {
      this.#stream = null;
      return this.#work();
    }
    socket.write(framed(next));
    this.#waitFor('reader', true);
    this.#takeTurn();
  }

  #waitFor(what: Waiting, renew = false): void {
    if (this.#waiting === what && !renew) return;
    this.#waiting = what;
    this.stop();
    this.#timer = setTimeout(() => {
      this.#responder.counters.tcpTimeouts += 1;
      this.destroy();
    }, what === 'message' ? this.#limits.idleMs : this.#limits.messageMs);
  }
}

/** The reply behind its length, in one write, so that one answer is one segment where it fits. */
function framed(reply: Buffer): Buffer {
  const out = Buffer.allocUnsafe(2 + reply.length);
  out.writeUInt16BE(reply.length, 0);
  reply.copy(out, 2);
  return out;
}
