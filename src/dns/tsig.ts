/**
 * TSIG (RFC 8945): a shared secret proves who sent a DNS message, and that it arrived as it was sent.
 *
 * Pure: the key brings its HMAC along (tsig-key.ts), the time is an argument. Only whole MACs are taken, since a cut one (5.2.2.1)
 * saves bytes that nobody misses here. A reply covers the MAC of its request; each further message of one reply covers the MAC before it.
 */
import { knownName, lowerCaseName } from './name.js';
import type { TsigRecord } from './query.js';
import { CLASS_ANY, TYPE } from './record.js';

/** The one algorithm, by its name on the wire (RFC 8945 6). */
export const TSIG_ALGORITHM: Buffer = knownName('hmac-sha256.');
export const MAC_BYTES = 32;
/** How far the clocks of both sides may be apart, as we ask of our peers (RFC 8945 10). */
const FUDGE_SECONDS = 300;
/** RFC 8945 5.2.2.1: a MAC shorter than half of the hash, or than ten bytes, is no MAC at all. */
const MIN_MAC_BYTES = MAC_BYTES / 2;
const ARCOUNT_AT = 10;

/** TSIG errors (RFC 8945 3). */
export const TSIG_ERROR = { NONE: 0, BADSIG: 16, BADKEY: 17, BADTIME: 18, BADTRUNC: 22 } as const;

/** A secret that two servers share. */
export interface TsigKey {
  /** Wire name, lower-cased. */
  readonly name: Buffer;
  /** HMAC-SHA256 over the parts, one behind the other: 32 bytes. */
  mac(parts: readonly Buffer[]): Buffer;
  /** Compares two MACs of one length in constant time. */
  isEqual(a: Buffer, b: Buffer): boolean;
}

/** Half of the hash: anything shorter is sooner guessed than the HMAC broken (RFC 8945 8 wants no less than the hash's size). */
const MIN_SECRET_BYTES = 16;

export type SecretReading = { readonly kind: 'secret'; readonly secret: Buffer } | { readonly kind: 'misfit'; readonly message: string };

/** The bytes of a secret in base64, as `tsig-keygen` and `keymgr` print it; or what is wrong with the text, without repeating it. */
export function readSecret(text: string): SecretReading {
  const compact = text.replace(/\s+/g, '');
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(compact) || compact.length % 4 !== 0) return { kind: 'misfit', message: 'holds no base64' };
  const secret = Buffer.from(compact, 'base64');
  if (secret.length < MIN_SECRET_BYTES) {
    return { kind: 'misfit', message: `holds a secret of ${secret.length} bytes, expected at least ${MIN_SECRET_BYTES}` };
  }
  return { kind: 'secret', secret };
}

/** What became of a received signature; `badTime` alone is answered with a signature, since the MAC was right. */
export type Verdict =
  | { readonly kind: 'valid' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'unsigned'; readonly error: number }
  | { readonly kind: 'signed'; readonly error: number };

/** Bytes that {@link signed} adds to a message; a signed error may carry six more. */
export function tsigBytes(key: TsigKey): number {
  return key.name.length + 10 + TSIG_ALGORITHM.length + 10 + MAC_BYTES + 6;
}

/**
 * Checks the TSIG record of `message` (RFC 8945 5.2: key, MAC, time, truncation, in this order).
 *
 * `priorMac` is the MAC of the request where `message` is the reply to it, null for a request. `nowSeconds`: unix time.
 */
export function verify(key: TsigKey | null, message: Buffer, tsig: TsigRecord, priorMac: Buffer | null, nowSeconds: number): Verdict {
  const isOurs = key !== null && lowerCaseName(tsig.keyName).equals(key.name) && lowerCaseName(tsig.algorithm).equals(TSIG_ALGORITHM);
  if (!isOurs) return { kind: 'unsigned', error: TSIG_ERROR.BADKEY };
  const { mac } = tsig;
  if (mac.length > MAC_BYTES || (mac.length > 0 && mac.length < MIN_MAC_BYTES)) return { kind: 'malformed' };

  const right = key.mac([...lengthAnd(priorMac), withoutTsig(message, tsig), variables(key, tsig)]);
  if (mac.length === 0 || !key.isEqual(mac, right.subarray(0, mac.length))) return { kind: 'unsigned', error: TSIG_ERROR.BADSIG };
  const apart = Math.abs(nowSeconds - tsig.timeAndFudge.readUIntBE(0, 6));
  if (apart > tsig.timeAndFudge.readUInt16BE(6)) return { kind: 'signed', error: TSIG_ERROR.BADTIME };
  return mac.length < MAC_BYTES ? { kind: 'signed', error: TSIG_ERROR.BADTRUNC } : { kind: 'valid' };
}

/** A message with its signature. */
export interface Signed {
  readonly message: Buffer;
  /** Goes into the signature of what answers or follows this message. */
  readonly mac: Buffer;
}

/** `message` signed: a request (`priorMac` null), or the first or only message of a reply. */
export function signed(key: TsigKey, message: Buffer, priorMac: Buffer | null, nowSeconds: number): Signed {
  const head: TsigHead = { timeAndFudge: timeAndFudge(nowSeconds), error: TSIG_ERROR.NONE, otherData: Buffer.alloc(0) };
  const mac = key.mac([...lengthAnd(priorMac), message, variables(key, head)]);
  return { message: withTsig(message, key.name, TSIG_ALGORITHM, head, mac, message.readUInt16BE(0)), mac };
}

/** A further message of a reply (RFC 8945 5.3.1): over the MAC before it, the message and the time alone. */
export function signedNext(key: TsigKey, message: Buffer, priorMac: Buffer, nowSeconds: number): Signed {
  const head: TsigHead = { timeAndFudge: timeAndFudge(nowSeconds), error: TSIG_ERROR.NONE, otherData: Buffer.alloc(0) };
  const mac = key.mac([...lengthAnd(priorMac), message, head.timeAndFudge]);
  return { message: withTsig(message, key.name, TSIG_ALGORITHM, head, mac, message.readUInt16BE(0)), mac };
}

/** The reply to a request whose key or MAC is wrong (RFC 8945 5.3.2): the error, the request's own times, and no MAC. */
export function withUnsignedError(message: Buffer, request: TsigRecord, error: number): Buffer {
  const head: TsigHead = { timeAndFudge: request.timeAndFudge, error, otherData: Buffer.alloc(0) };
  return withTsig(message, request.keyName, request.algorithm, head, Buffer.alloc(0), request.originalId);
}

/** The reply to a right request at a wrong time (RFC 8945 5.2.3): signed, with the request's time, and ours in Other Data. */
export function withSignedError(key: TsigKey, message: Buffer, request: TsigRecord, error: number, nowSeconds: number): Buffer {
  const ours = error === TSIG_ERROR.BADTIME;
  const head: TsigHead = {
    timeAndFudge: ours ? request.timeAndFudge : timeAndFudge(nowSeconds),
    error,
    otherData: ours ? timeAndFudge(nowSeconds).subarray(0, 6) : Buffer.alloc(0),
  };
  const mac = key.mac([...lengthAnd(request.mac), message, variables(key, head)]);
  return withTsig(message, key.name, TSIG_ALGORITHM, head, mac, request.originalId);
}

type TsigHead = Pick<TsigRecord, 'timeAndFudge' | 'error' | 'otherData'>;

function timeAndFudge(seconds: number): Buffer {
  const out = Buffer.alloc(8);
  out.writeUIntBE(seconds, 0, 6);
  out.writeUInt16BE(FUDGE_SECONDS, 6);
  return out;
}

function lengthAnd(mac: Buffer | null): Buffer[] {
  return mac === null ? [] : [uint16(mac.length), mac];
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}

/** What was signed: the message without its last record, under the id it had when it was signed. */
function withoutTsig(message: Buffer, tsig: TsigRecord): Buffer {
  const out = Buffer.from(message.subarray(0, tsig.at));
  out.writeUInt16BE(tsig.originalId, 0);
  out.writeUInt16BE(out.readUInt16BE(ARCOUNT_AT) - 1, ARCOUNT_AT);
  return out;
}

/** RFC 8945 4.3.3: names in lower case, class ANY and TTL 0 of the record, then its fields save MAC and id. */
function variables(key: TsigKey, { timeAndFudge: times, error, otherData }: TsigHead): Buffer {
  const classAndTtl = Buffer.from([0, CLASS_ANY, 0, 0, 0, 0]);
  return Buffer.concat([key.name, classAndTtl, TSIG_ALGORITHM, times, uint16(error), uint16(otherData.length), otherData]);
}

function withTsig(message: Buffer, keyName: Buffer, algorithm: Buffer, head: TsigHead, mac: Buffer, originalId: number): Buffer {
  const { timeAndFudge: times, error, otherData } = head;
  const data = [algorithm, times, uint16(mac.length), mac, uint16(originalId), uint16(error), uint16(otherData.length), otherData];
  const length = data.reduce((sum, part) => sum + part.length, 0);
  const typeToTtl = Buffer.from([0, TYPE.TSIG, 0, CLASS_ANY, 0, 0, 0, 0]);
  const out = Buffer.concat([message, keyName, typeToTtl, uint16(length), ...data]);
  out.writeUInt16BE(message.readUInt16BE(ARCOUNT_AT) + 1, ARCOUNT_AT);
  return out;
}
