/**
 * The one place between sockets and zone: counts, logs garbage with a limit, and keeps a mistake of our own from killing a listener.
 *
 * An exception while answering is a bug, yet the other masters' clients still need their answers: it becomes a SERVFAIL, a
 * counter and a log line.
 */
import { messageOf } from '../errors.js';
import { answerQuery, failureReply, rcodeOf } from './answer.js';
import type { Transport } from './answer.js';
import type { Reply, TransferStream } from './guarded-answer.js';
import { HotAnswers } from './hot-answers.js';
import { LimitedLog } from './limited-log.js';
import type { DnsLog } from './limited-log.js';
import type { RateLimit } from './rate-limit.js';
import { slipOf } from './rate-limit.js';
import { RCODE } from './record.js';
import type { Zone } from './zone.js';

/** Totals since the start; `tcpOpen` is the number of connections now. */
export interface DnsCounters {
  udpQueries: number;
  tcpQueries: number;
  /** Replies by the rcode of their header (BADVERS counts as 0). */
  readonly replies: Record<number, number>;
  silent: number;
  exceptions: number;
  socketErrors: number;
  tcpOpen: number;
  tcpAccepted: number;
  tcpRefused: number;
  tcpTimeouts: number;
  /** Zone transfers given to their end. */
  transfers: number;
  /** Replies beyond the rate limit: sent truncated, and not sent. */
  slipped: number;
  dropped: number;
}

export function freshCounters(): DnsCounters {
  return {
    udpQueries: 0, tcpQueries: 0, replies: {}, silent: 0, exceptions: 0, socketErrors: 0,
    tcpOpen: 0, tcpAccepted: 0, tcpRefused: 0, tcpTimeouts: 0, transfers: 0, slipped: 0, dropped: 0,
  };
}

/** Of several processes, as if one had counted. */
export function sumOf(all: readonly DnsCounters[]): DnsCounters {
  const sum = freshCounters();
  for (const { replies, ...counts } of all) {
    for (const [rcode, count] of Object.entries(replies)) sum.replies[Number(rcode)] = (sum.replies[Number(rcode)] ?? 0) + count;
    for (const name of Object.keys(counts) as (keyof typeof counts)[]) sum[name] += counts[name];
  }
  return sum;
}

export type Answerer = (zone: Zone, message: Buffer, transport: Transport, from: string) => Reply;

export class Responder {
  readonly counters = freshCounters();
  readonly #zone: () => Zone;
  readonly #log: LimitedLog;
  readonly #plainLog: DnsLog;
  readonly #answer: Answerer;
  readonly #rateLimit: () => RateLimit | null;
  readonly #hot = new HotAnswers();

  /** `rateLimit` is asked per message, so that one with other settings can take over. */
  constructor(zone: () => Zone, log: DnsLog, answer: Answerer = answerQuery, rateLimit: () => RateLimit | null = () => null) {
    this.#zone = zone;
    this.#log = new LimitedLog(log);
    this.#plainLog = log;
    this.#answer = answer;
    this.#rateLimit = rateLimit;
  }

  /** The reply to send, or null for silence. Never throws. `from`: the sender's address. Only TCP gets streams. */
  respond(message: Buffer, transport: 'udp', from: string): Buffer | null;
  respond(message: Buffer, transport: Transport, from: string): Reply;
  respond(message: Buffer, transport: Transport, from: string): Reply {
    const { counters } = this;
    if (transport === 'udp') counters.udpQueries += 1;
    else counters.tcpQueries += 1;
    const reply = this.#tryAnswer(message, transport, from);
    if (reply === null) {
      counters.silent += 1;
      this.#log.write('warn', 'dns message ignored', () => ({ from, transport, bytes: message.length }));
      return null;
    }
    const rcode = Buffer.isBuffer(reply) ? rcodeOf(reply) : RCODE.NOERROR;
    counters.replies[rcode] = (counters.replies[rcode] ?? 0) + 1;
    if (rcode === RCODE.FORMERR) this.#log.write('warn', 'dns message malformed', () => ({ from, transport, bytes: message.length }));
    return transport === 'udp' && Buffer.isBuffer(reply) ? this.#limited(reply, from) : reply;
  }

  #limited(reply: Buffer, from: string): Buffer | null {
    const verdict = this.#rateLimit()?.judge(from) ?? 'send';
    if (verdict === 'send') return reply;
    this.#log.write('warn', 'dns replies limited', () => ({ from }));
    if (verdict === 'slip') {
      this.counters.slipped += 1;
      return slipOf(reply);
    }
    this.counters.dropped += 1;
    return null;
  }

  /** Notes a failed send or socket error; strangers can cause these, so the log is limited. */
  noteSocketError(error: unknown, transport: Transport): void {
    this.counters.socketErrors += 1;
    this.#log.write('warn', 'dns socket error', () => ({ transport, error: messageOf(error) }));
  }

  /** The next message of a transfer, null behind its last one; `failed` when making it failed, which is a bug. */
  nextOf(stream: TransferStream, from: string): Buffer | null | 'failed' {
    try {
      const { done, value } = stream.messages.next();
      if (done !== true) return value;
      this.counters.transfers += 1;
      this.#plainLog.info({ to: from, form: stream.kind, serial: stream.serial, from: stream.from }, 'dns zone transferred');
      return null;
    } catch (error) {
      this.counters.exceptions += 1;
      this.#log.write('error', 'dns transfer failed', () => ({ from, err: error }));
      return 'failed';
    }
  }

  #tryAnswer(message: Buffer, transport: Transport, from: string): Reply {
    try {
      const zone = this.#zone();
      const known = transport === 'udp' ? this.#hot.answer(zone, message) : null;
      if (known !== null) return known;
      const reply = this.#answer(zone, message, transport, from);
      if (transport === 'udp' && Buffer.isBuffer(reply)) this.#hot.learn(zone, message, reply);
      return reply;
    } catch (error) {
      this.counters.exceptions += 1;
      const bytes = message.subarray(0, 512);
      this.#log.write('error', 'dns answer failed', () => ({ from, transport, err: error, message: bytes.toString('hex') }));
      return failureReply(message);
    }
  }
}
