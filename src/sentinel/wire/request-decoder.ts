/**
 * Client bytes to commands: multibulk and inline requests, pipelined, one decoder per connection.
 *
 * Mirrors processInlineBuffer and processMultibulkBuffer in networking.c, texts included. Whoever has not authenticated
 * yet gets the small limits, so that a stranger cannot make us hold much. A line that is too long is refused even when it
 * arrives at once with its end: what a request means does not depend on how the network cut it.
 */
import { ByteQueue } from './byte-queue.js';
import { splitArgs } from './conf-tokens.js';

/** One request, or the reason why the connection has to be closed (to be sent as `-ERR <text>`). */
export type Request =
  | { readonly kind: 'command'; readonly argv: readonly string[] }
  | { readonly kind: 'protocolError'; readonly text: string };

/** How much one client may send at once. */
export interface RequestLimits {
  readonly maxItems: number;
  /** Bytes of one argument. */
  readonly maxBulkBytes: number;
  /** Bytes of one whole request, framing included. */
  readonly maxRequestBytes: number;
  /** Bytes of one inline request or one header line. */
  readonly maxInlineBytes: number;
  /** The word in the refusal: `invalid multibulk length` or `unauthenticated multibulk length`. */
  readonly wording: 'invalid' | 'unauthenticated';
}

/** For clients that may command: far above what a sentinel is asked, far below what hurts. */
export const DEFAULT_LIMITS: RequestLimits = {
  maxItems: 1024 * 1024,
  maxBulkBytes: 1024 * 1024,
  maxRequestBytes: 1024 * 1024,
  maxInlineBytes: 64 * 1024,
  wording: 'invalid',
};

/** For clients that still have to authenticate: room for AUTH and HELLO. */
export const UNAUTHENTICATED_LIMITS: RequestLimits = { ...DEFAULT_LIMITS, maxItems: 10, maxBulkBytes: 16384, wording: 'unauthenticated' };

const MAX_ITEMS_EVER = 2 ** 31 - 1;
const MAX_BULK_BYTES_EVER = 512 * 1024 * 1024;
const LF = 10;
const CR = 13;
const STAR = 42;
const DOLLAR = 36;

/** Decodes the requests of one client. After a `protocolError` it is dead and returns nothing more. */
export class RequestDecoder {
  /** May be replaced between two requests (AUTH succeeded, ACL changed). */
  limits: RequestLimits;
  readonly #queue = new ByteQueue();
  /** Arguments still to come of the multibulk in progress; 0 between requests. */
  #missing = 0;
  #argv: string[] = [];
  #bulkBytes: number | null = null;
  #requestBytes = 0;
  #dead = false;

  constructor(limits: Partial<RequestLimits> = {}) {
    this.limits = { ...DEFAULT_LIMITS, ...limits };
  }

  /** Takes received bytes and returns all requests that they complete. */
  push(chunk: Uint8Array): Request[] {
    this.append(chunk);
    const requests: Request[] = [];
    for (let request = this.next(); request !== null; request = this.next()) requests.push(request);
    return requests;
  }

  /** Takes received bytes without looking at them; for a server that changes {@link limits} between pipelined requests. */
  append(chunk: Uint8Array): void {
    if (!this.#dead) this.#queue.append(chunk);
  }

  /** The next whole request, or null until more bytes come. */
  next(): Request | null {
    while (!this.#dead) {
      if (this.#missing === 0 && this.#queue.length === 0) return null;
      const inline = this.#missing === 0 && this.#queue.at(0) !== STAR;
      const request = inline ? this.#takeInline() : this.#missing === 0 ? this.#takeCount() : this.#takeArgument();
      if (request !== 'more') return request;
    }
    return null;
  }

  /** `more`: this step is done, go on with the next; null: not enough bytes. */
  #takeInline(): Request | 'more' | null {
    const end = this.#queue.indexOf(LF);
    if ((end < 0 ? this.#queue.length : end) > this.limits.maxInlineBytes) return this.#refuse('too big inline request');
    if (end < 0) return null;
    const argv = splitArgs(this.#queue.text(0, this.#queue.at(end - 1) === CR ? end - 1 : end));
    if (argv === null) return this.#refuse('unbalanced quotes in request');
    this.#queue.skip(end + 1);
    return argv.length === 0 ? 'more' : { kind: 'command', argv };
  }

  #takeCount(): Request | 'more' | null {
    const line = this.#takeLine('too big mbulk count string');
    if (typeof line !== 'string') return line;
    const count = strictInteger(line.slice(1));
    if (count === null || count > MAX_ITEMS_EVER) return this.#refuse('invalid multibulk length');
    if (count > this.limits.maxItems) return this.#refuse(`${this.limits.wording} multibulk length`);
    // `*0` and `*-1` are requests for nothing.
    if (count <= 0) return 'more';
    this.#missing = count;
    this.#argv = [];
    this.#requestBytes = line.length + 2;
    return 'more';
  }

  #takeArgument(): Request | 'more' | null {
    if (this.#bulkBytes === null) {
      const line = this.#takeLine('too big bulk count string');
      if (typeof line !== 'string') return line;
      const refusal = this.#whyNotBulk(line);
      if (refusal !== null) return this.#refuse(refusal);
      this.#bulkBytes = Number(line.slice(1));
    }
    const bytes = this.#bulkBytes;
    if (this.#queue.length < bytes + 2) return null;
    this.#argv.push(this.#queue.text(0, bytes));
    // Like the server, without a look at the two bytes that end it.
    this.#queue.skip(bytes + 2);
    this.#bulkBytes = null;
    if (--this.#missing > 0) return 'more';
    const argv = this.#argv;
    this.#argv = [];
    return { kind: 'command', argv };
  }

  #whyNotBulk(line: string): string | null {
    const first = line.codePointAt(0) ?? CR;
    if (first !== DOLLAR) return `expected '$', got '${String.fromCodePoint(first)}'`;
    const bytes = strictInteger(line.slice(1));
    if (bytes === null || bytes < 0 || bytes > MAX_BULK_BYTES_EVER) return 'invalid bulk length';
    this.#requestBytes += line.length + 2 + bytes + 2;
    const { maxBulkBytes, maxRequestBytes, wording } = this.limits;
    return bytes > maxBulkBytes || this.#requestBytes > maxRequestBytes ? `${wording} bulk length` : null;
  }

  /** Takes a header line, cut at CR; the byte after the CR is skipped unseen, as the server does. */
  #takeLine(tooBig: string): string | Request | null {
    const end = this.#queue.indexOf(CR);
    if ((end < 0 ? this.#queue.length : end) > this.limits.maxInlineBytes) return this.#refuse(tooBig);
    if (end < 0 || this.#queue.length < end + 2) return null;
    const line = this.#queue.text(0, end);
    this.#queue.skip(end + 2);
    return line;
  }

  #refuse(what: string): Request {
    this.#dead = true;
    this.#queue.clear();
    this.#argv = [];
    return { kind: 'protocolError', text: `Protocol error: ${what}` };
  }
}

/** An integer as string2ll takes it: no plus sign, no blanks, no leading zeros; null for anything else. */
function strictInteger(text: string): number | null {
  return /^(?:0|-?[1-9]\d{0,17})$/.test(text) ? Number(text) : null;
}
