/**
 * RESP bytes to values, for both ends: replies from a server (here), requests from clients (request-decoder.ts).
 *
 * Feeding is incremental: whole, byte by byte or split anywhere gives the same values, in linear time, without recursion
 * and with bounds on size, length and depth. RESP3 kinds without a counterpart map to the nearest one: double and big
 * number → their digits as bulk, boolean → 0 or 1, verbatim → bulk, blob error → error; attributes are dropped.
 */
import { ByteQueue } from './byte-queue.js';
import { NULL, NULL_ARRAY, bulk, error, integer, simple } from './resp-value.js';
import type { RespValue } from './resp-value.js';

export { RequestDecoder, DEFAULT_LIMITS, UNAUTHENTICATED_LIMITS } from './request-decoder.js';
export type { Request, RequestLimits } from './request-decoder.js';

/** The peer does not speak RESP, or beyond our bounds; the connection is of no further use. */
export class RespError extends Error {
  override readonly name = 'RespError';

  /** `decoded`: replies of the same chunk that were complete before the fault. */
  constructor(message: string, readonly decoded: readonly RespValue[] = []) {
    super(message);
  }
}

/** Bounds of one reply. An INFO of a busy server or SENTINEL REPLICAS of a large group stay far below. */
export interface ReplyLimits {
  /** Bytes of one whole reply, framing included. */
  readonly maxReplyBytes: number;
  /** Items of one array, set or push; pairs of a map. */
  readonly maxItems: number;
  readonly maxDepth: number;
}

const DEFAULT_REPLY_LIMITS: ReplyLimits = { maxReplyBytes: 64 * 1024 * 1024, maxItems: 1024 * 1024, maxDepth: 32 };

type AggregateKind = 'array' | 'set' | 'push' | 'map' | 'attribute';
type BlobKind = 'bulk' | 'error' | 'verbatim';

/** An aggregate whose items are still arriving. `missing` counts values, so a map of n pairs starts with 2n. */
interface OpenAggregate {
  readonly kind: AggregateKind;
  readonly items: RespValue[];
  missing: number;
}

/** What one header line turned out to be. */
type Header =
  | { readonly kind: 'value'; readonly value: RespValue }
  | { readonly kind: 'blob'; readonly blob: BlobKind; readonly bytes: number }
  | { readonly kind: 'aggregate'; readonly aggregate: AggregateKind; readonly items: number };

const AGGREGATES: Readonly<Record<string, AggregateKind>> = { '*': 'array', '~': 'set', '>': 'push', '%': 'map', '|': 'attribute' };
const BLOBS: Readonly<Record<string, BlobKind>> = { $: 'bulk', '!': 'error', '=': 'verbatim' };
const LF = 10;
const CR = 13;

/** Decodes the replies of one connection; lives as long as it. */
export class RespReplyDecoder {
  readonly #queue = new ByteQueue();
  readonly #limits: ReplyLimits;
  readonly #open: OpenAggregate[] = [];
  #blob: { readonly kind: BlobKind; readonly bytes: number } | null = null;
  #replyBytes = 0;
  #fault: string | null = null;

  constructor(limits: Partial<ReplyLimits> = {}) {
    this.#limits = { ...DEFAULT_REPLY_LIMITS, ...limits };
  }

  /**
   * Takes received bytes and returns the replies that they complete, in order.
   *
   * @throws RespError on a protocol fault, now and at every later call.
   */
  push(chunk: Uint8Array): RespValue[] {
    if (this.#fault !== null) throw new RespError(this.#fault);
    this.#queue.append(chunk);
    const replies: RespValue[] = [];
    try {
      for (let reply = this.#next(); reply !== null; reply = this.#next()) replies.push(reply);
    } catch (fault) {
      if (!(fault instanceof RespError)) throw fault;
      this.#fault = fault.message;
      this.#queue.clear();
      this.#open.length = 0;
      throw new RespError(fault.message, replies);
    }
    return replies;
  }

  /** The next whole reply, or null until more bytes come. */
  #next(): RespValue | null {
    for (;;) {
      const value = this.#blob === null ? this.#takeHeader() : this.#takeBlob(this.#blob.kind, this.#blob.bytes);
      if (value === null) return null;
      const whole = value === 'opened' ? null : this.#close(value);
      if (whole === null) continue;
      this.#replyBytes = 0;
      return whole;
    }
  }

  /** Reads one header line: a value, or `opened` when a blob or an aggregate follows. */
  #takeHeader(): RespValue | 'opened' | null {
    const end = this.#queue.indexOf(LF);
    this.#bound((end < 0 ? this.#queue.length : end + 1), 'reply');
    if (end < 0) return null;
    if (end < 1 || this.#queue.at(end - 1) !== CR) throw new RespError('reply line does not end with CRLF');
    const header = readHeader(this.#queue.text(0, 1), this.#queue.text(1, end - 1));
    this.#consume(end + 1);
    if (header.kind === 'value') return header.value;
    if (header.kind === 'blob') {
      this.#bound(header.bytes + 2, 'bulk');
      this.#blob = { kind: header.blob, bytes: header.bytes };
      return 'opened';
    }
    const { aggregate: kind, items } = header;
    if (items > this.#limits.maxItems) throw new RespError(`${kind} of ${items} items is too long`);
    if (this.#open.length >= this.#limits.maxDepth) throw new RespError('reply is nested too deep');
    if (items === 0) return kind === 'attribute' ? 'opened' : aggregateValue(kind, []);
    this.#open.push({ kind, items: [], missing: kind === 'map' || kind === 'attribute' ? items * 2 : items });
    return 'opened';
  }

  #takeBlob(kind: BlobKind, bytes: number): RespValue | null {
    if (this.#queue.length < bytes + 2) return null;
    if (this.#queue.at(bytes) !== CR || this.#queue.at(bytes + 1) !== LF) throw new RespError('bulk does not end with CRLF');
    const text = this.#queue.text(0, bytes);
    this.#consume(bytes + 2);
    this.#blob = null;
    if (kind === 'error') return error(text);
    if (kind === 'bulk') return bulk(text);
    if (text[3] !== ':') throw new RespError('verbatim text has no format');
    return bulk(text.slice(4));
  }

  /** Puts a finished value where it belongs; the outermost one comes back. */
  #close(value: RespValue): RespValue | null {
    let done = value;
    for (let parent = this.#open.at(-1); parent !== undefined; parent = this.#open.at(-1)) {
      parent.items.push(done);
      if (--parent.missing > 0) return null;
      this.#open.pop();
      // An attribute describes the value after it and takes no place in its parent.
      if (parent.kind === 'attribute') return null;
      done = aggregateValue(parent.kind, parent.items);
    }
    return done;
  }

  #consume(bytes: number): void {
    this.#queue.skip(bytes);
    this.#replyBytes += bytes;
  }

  #bound(bytes: number, what: string): void {
    if (this.#replyBytes + bytes > this.#limits.maxReplyBytes) throw new RespError(`${what} is too big`);
  }
}

function readHeader(sign: string, rest: string): Header {
  const blob = BLOBS[sign];
  if (blob !== undefined) {
    if (rest === '-1' && sign === '$') return { kind: 'value', value: NULL };
    return { kind: 'blob', blob, bytes: readLength(rest, blob) };
  }
  const aggregate = AGGREGATES[sign];
  if (aggregate !== undefined) {
    if (rest === '-1' && sign === '*') return { kind: 'value', value: NULL_ARRAY };
    return { kind: 'aggregate', aggregate, items: readLength(rest, aggregate) };
  }
  return { kind: 'value', value: readScalar(sign, rest) };
}

function readScalar(sign: string, rest: string): RespValue {
  switch (sign) {
    case '+':
      return simple(rest);
    case '-':
      return error(rest);
    case ':':
    case '(': {
      if (!/^[+-]?\d+$/.test(rest)) throw new RespError(`invalid integer ${JSON.stringify(rest.slice(0, 32))}`);
      const value = Number(rest);
      // Digits that a number cannot hold exactly stay digits.
      return sign === ':' && Number.isSafeInteger(value) ? integer(value) : bulk(rest);
    }
    case ',':
      if (!/^(?:[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf)|-?nan)$/i.test(rest)) throw new RespError('invalid double');
      return bulk(rest);
    case '#':
      if (rest !== 't' && rest !== 'f') throw new RespError('invalid boolean');
      return integer(rest === 't' ? 1 : 0);
    case '_':
      if (rest !== '') throw new RespError('invalid null');
      return NULL;
    default:
      throw new RespError(`unknown reply type ${JSON.stringify(sign)}`);
  }
}

function readLength(text: string, what: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new RespError(`invalid ${what} length ${JSON.stringify(text.slice(0, 32))}`);
  return Number(text);
}

function aggregateValue(kind: Exclude<AggregateKind, 'attribute'>, items: readonly RespValue[]): RespValue {
  if (kind !== 'map') return { kind, items };
  const entries: [RespValue, RespValue][] = [];
  for (let index = 0; index < items.length; index += 2) entries.push([items[index] ?? NULL, items[index + 1] ?? NULL]);
  return { kind, entries };
}
