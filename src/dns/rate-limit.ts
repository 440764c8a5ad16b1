/**
 * Response rate limiting for UDP, as name servers have it: a forged sender gets no flood of our replies.
 *
 * A bucket of one second's replies per network (IPv4 /24, IPv6 /56), refilled steadily. Over it, each `slip`th reply is sent without
 * records and with TC, so that an honest asker comes back by TCP, which proves its address; the others are not sent at all.
 */
import type { AddressRange } from './address-range.js';
import { isListed } from './address-range.js';
import { endOfName } from './query.js';
import { HEADER_BYTES, TYPE } from './record.js';
import { OPT_BYTES } from './edns.js';
import { parseIp } from './ip.js';

export interface RateLimitSettings {
  /** To one network, per second. */
  readonly responsesPerSecond: number;
  /** Each how many-eth reply beyond the limit is a truncated one; 0 = none, 1 = all. */
  readonly slip: number;
  /** Who is never limited: forwarders that ask for many, and this host. */
  readonly exempt: readonly AddressRange[];
}

export type Verdict = 'send' | 'slip' | 'drop';

interface Bucket {
  tokens: number;
  filledMs: number;
  over: number;
}

/** Some megabytes at most; the one that was not heard of for longest gives way. */
const MAX_NETWORKS = 20_000;
const TC = 0x02;

export class RateLimit {
  readonly #settings: RateLimitSettings;
  readonly #clock: () => number;
  readonly #buckets = new Map<string, Bucket>();

  /** `clock`: milliseconds that never go back. */
  constructor(settings: RateLimitSettings, clock: () => number) {
    this.#settings = settings;
    this.#clock = clock;
  }

  /** What to do with one more reply to this address. */
  judge(address: string): Verdict {
    const { responsesPerSecond, slip, exempt } = this.#settings;
    const network = networkOf(address);
    if (network === null || isListed(exempt, address)) return 'send';
    const bucket = this.#bucketOf(network);
    const now = this.#clock();
    bucket.tokens = Math.min(responsesPerSecond, bucket.tokens + ((now - bucket.filledMs) * responsesPerSecond) / 1000);
    bucket.filledMs = now;
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      bucket.over = 0;
      return 'send';
    }
    bucket.over += 1;
    return slip > 0 && bucket.over % slip === 0 ? 'slip' : 'drop';
  }

  #bucketOf(network: string): Bucket {
    const known = this.#buckets.get(network);
    if (known !== undefined) {
      // To the end of the map's order: the oldest one stands first.
      this.#buckets.delete(network);
      this.#buckets.set(network, known);
      return known;
    }
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size < MAX_NETWORKS) break;
      this.#buckets.delete(oldest);
    }
    const fresh = { tokens: this.#settings.responsesPerSecond, filledMs: this.#clock(), over: 0 };
    this.#buckets.set(network, fresh);
    return fresh;
  }
}

/** IPv4 /24, IPv6 /56: whoever can forge one address there can forge all. */
function networkOf(address: string): string | null {
  const ip = parseIp(address);
  return ip === null ? null : ip.toString('latin1', 0, ip.length === 4 ? 3 : 7);
}

/** The reply with TC and without records, save OPT: "ask again by TCP". */
export function slipOf(reply: Buffer): Buffer {
  const nameEnd = reply.readUInt16BE(4) === 1 ? endOfName(reply, HEADER_BYTES, false) : 0;
  const questionEnd = nameEnd === 0 ? HEADER_BYTES : nameEnd + 4;
  const optAt = reply.length - OPT_BYTES;
  const hasOpt = reply.readUInt16BE(10) > 0 && optAt >= questionEnd && reply.readUIntBE(optAt, 3) === TYPE.OPT && reply.readUInt16BE(reply.length - 2) === 0;
  const out = Buffer.concat([reply.subarray(0, questionEnd), hasOpt ? reply.subarray(optAt) : Buffer.alloc(0)]);
  out[2] = (out[2] ?? 0) | TC;
  out.writeUInt16BE(nameEnd === 0 ? 0 : 1, 4);
  out.writeUInt32BE(0, 6);
  out.writeUInt16BE(hasOpt ? 1 : 0, 10);
  return out;
}
