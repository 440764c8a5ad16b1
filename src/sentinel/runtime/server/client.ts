/**
 * One connection: bytes in, one command at a time, replies out in the order of the commands.
 *
 * While a command waits for the core, later ones of the same client stay undecoded, so a pipeline keeps its order. What a client
 * does not read is bounded: a client that only asks is not read from until it has caught up; a subscriber, to whom we speak
 * unasked, is dropped at the limits of client-output-buffer-limit pubsub (32 MB, or 8 MB for 60 s). Divergence D37: the server
 * would buffer without limit for the former.
 */
import type { Socket } from 'node:net';
import { formatAddress } from '../../wire/address.js';
import type { RequestLimits } from '../../wire/request-decoder.js';
import { RequestDecoder } from '../../wire/request-decoder.js';
import type { RespProtocol } from '../../wire/resp-encoder.js';
import { encodeReply } from '../../wire/resp-encoder.js';
import type { RespValue } from '../../wire/resp-value.js';
import { error } from '../../wire/resp-value.js';
import { OutputLimit } from './output-limit.js';
import type { Outcome } from './options.js';
import type { ServerStats } from './stats.js';
import type { Tracking } from './client-tracking.js';
import { NO_TRACKING } from './client-tracking.js';

/** What a client needs from its server. */
export interface ClientHost {
  readonly stats: ServerStats;
  limitsFor(client: Client): RequestLimits;
  execute(client: Client, argv: readonly string[]): Outcome;
  protocolFault(client: Client, text: string): void;
  closed(client: Client, reason: string): void;
}

/** `skipNext`: the next command's replies are dropped; `skip`: this one's are. */
type ReplyMode = 'on' | 'off' | 'skipNext' | 'skip';

/** Unread output at which a client is not read from any more. */
const OUTPUT_BACKPRESSURE_BYTES = 1024 * 1024;
/** Undecoded input at which a client that waits for a reply is not read from any more. */
const INPUT_BACKPRESSURE_BYTES = 64 * 1024;
/** How long a connection that we end may stay open to take what was sent last. */
const LINGER_MS = 2000;

export class Client {
  readonly #socket: Socket;
  readonly #host: ClientHost;
  readonly #decoder = new RequestDecoder();
  readonly #outputLimit = new OutputLimit();
  readonly isUnix: boolean;
  readonly address: string;
  readonly localAddress: string;
  readonly connectedAtMs = performance.now();
  readonly channels = new Set<string>();
  readonly patterns = new Set<string>();
  protocol: RespProtocol = 2;
  userName = 'default';
  name = '';
  libName = '';
  libVersion = '';
  noEvict = false;
  tracking: Tracking = NO_TRACKING;
  lastCommand = 'NULL';
  replyMode: ReplyMode = 'on';
  lastActiveMs = performance.now();
  #waiting = false;
  #running = false;
  #heldBytes = 0;
  #peerEnded = false;
  #closing = false;
  #closed = false;
  #linger: NodeJS.Timeout | null = null;

  /** `unixPath`: where it came in, when by a unix socket. `authenticated`: whether it may command without a log-in. */
  constructor(readonly id: number, socket: Socket, host: ClientHost, unixPath: string | null, public authenticated: boolean) {
    this.#socket = socket;
    this.#host = host;
    const { remoteAddress = '?', remotePort = 0, localAddress = '?', localPort = 0 } = socket;
    this.isUnix = unixPath !== null;
    this.address = unixPath === null ? formatAddress({ host: remoteAddress, port: remotePort }) : `${unixPath}:0`;
    this.localAddress = unixPath === null ? formatAddress({ host: localAddress, port: localPort }) : `${unixPath}:0`;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 300_000);
    socket.on('data', (chunk) => this.#received(chunk));
    socket.on('end', () => this.#ended());
    socket.on('drain', () => this.#drained());
    socket.on('error', (fault) => this.destroy(fault.message));
    socket.on('close', () => this.destroy('closed by the client'));
  }

  get subscriptions(): number {
    return this.channels.size + this.patterns.size;
  }

  /** In RESP2 a subscriber may do little else. */
  get isRestricted(): boolean {
    return this.protocol === 2 && this.subscriptions > 0;
  }

  /** Bytes that we have sent and the peer's kernel has not taken. */
  get unreadBytes(): number {
    return this.#socket.writableLength;
  }

  get isClosing(): boolean {
    return this.#closing || this.#closed;
  }

  /** The socket's descriptor, -1 once closed. */
  get descriptor(): number {
    const handle = (this.#socket as { readonly _handle?: { readonly fd?: number } | null })._handle;
    return handle?.fd ?? -1;
  }

  /** Says something unasked, or as confirmation of a subscription: CLIENT REPLY does not silence it. */
  push(value: RespValue): void {
    if (this.isClosing) return;
    this.#write(encodeReply(value, this.protocol));
    this.checkOutput(performance.now());
  }

  /** {@link push} for a message already encoded for this client's protocol: one event goes to many subscribers. */
  pushBytes(bytes: Buffer): void {
    if (this.isClosing) return;
    this.#write(bytes);
    this.checkOutput(performance.now());
  }

  /** Ends the command in progress with `reply`, or without one, and goes on with the next. Nothing happens when none is. */
  settle(reply: RespValue | null): void {
    if (!this.#waiting) return;
    this.#waiting = false;
    if (reply !== null) this.#reply(reply);
    if (this.replyMode === 'skip') this.replyMode = 'on';
    if (this.#closing) this.#end();
    else this.#run();
  }

  /** Ends the connection once the reply of the command in progress, or what was written so far, is out. */
  closeAfterReply(): void {
    this.#closing = true;
    if (!this.#waiting) this.#end();
  }

  /** Ends the connection at once. */
  destroy(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#linger !== null) clearTimeout(this.#linger);
    this.#socket.destroy();
    this.#host.closed(this, reason);
  }

  /** Drops a subscriber that has read too little for too long. */
  checkOutput(nowMs: number): void {
    if (this.subscriptions === 0) return;
    const excess = this.#outputLimit.judge(this.unreadBytes, nowMs);
    if (excess !== null) this.destroy(`did not read: ${excess}`);
  }

  #received(chunk: Buffer): void {
    const { stats } = this.#host;
    stats.inputBytes += chunk.length;
    stats.reads++;
    if (this.isClosing) return;
    this.lastActiveMs = performance.now();
    this.#decoder.append(chunk);
    this.#heldBytes += chunk.length;
    this.#run();
    if (this.#waiting || this.#isBehind()) {
      if (this.#heldBytes > INPUT_BACKPRESSURE_BYTES) this.#socket.pause();
    }
  }

  /** Runs what has been received, until a command has to wait. */
  #run(): void {
    if (this.#running) return;
    this.#running = true;
    this.#socket.cork();
    let request = this.#nextRequest();
    for (; request?.kind === 'command'; request = this.#nextRequest()) this.#execute(request.argv);
    this.#socket.uncork();
    this.#running = false;
    if (request?.kind === 'protocolError') {
      this.#host.protocolFault(this, request.text);
      this.#reply(error(`ERR ${request.text}`));
      this.closeAfterReply();
    }
    if (this.isClosing || this.#waiting || this.#isBehind()) return;
    this.#heldBytes = 0;
    if (this.#socket.isPaused()) this.#socket.resume();
    if (this.#peerEnded) this.closeAfterReply();
  }

  #nextRequest(): ReturnType<RequestDecoder['next']> {
    if (this.#waiting || this.isClosing || this.#isBehind()) return null;
    this.#decoder.limits = this.#host.limitsFor(this);
    return this.#decoder.next();
  }

  #execute(argv: readonly string[]): void {
    this.#waiting = true;
    if (this.replyMode === 'skipNext') this.replyMode = 'skip';
    const outcome = this.#host.execute(this, argv);
    if (outcome === 'pending') return;
    if (outcome instanceof Promise) void outcome.then((reply) => this.settle(reply));
    else this.settle(outcome === 'none' ? null : outcome);
  }

  #reply(value: RespValue): void {
    if (value.kind === 'error') this.#host.stats.errors++;
    if (this.replyMode === 'on' || this.replyMode === 'skipNext') this.#write(encodeReply(value, this.protocol));
  }

  #write(bytes: Buffer): void {
    if (this.#closed || this.#socket.writableEnded) return;
    this.#host.stats.outputBytes += bytes.length;
    this.#host.stats.writes++;
    this.#socket.write(bytes);
  }

  #isBehind(): boolean {
    return this.unreadBytes > OUTPUT_BACKPRESSURE_BYTES;
  }

  #drained(): void {
    this.#outputLimit.judge(0, performance.now());
    if (!this.#waiting && !this.isClosing) this.#run();
  }

  #ended(): void {
    this.#peerEnded = true;
    if (!this.#waiting && !this.isClosing && !this.#isBehind()) this.closeAfterReply();
  }

  /** Half closes, so that the last reply is not lost to a reset, and discards what still comes for a while. */
  #end(): void {
    if (this.#closed || this.#linger !== null) return;
    if (this.#socket.isPaused()) this.#socket.resume();
    this.#socket.end();
    this.#linger = setTimeout(() => this.destroy('closed by the sentinel'), LINGER_MS);
    this.#linger.unref();
  }
}
