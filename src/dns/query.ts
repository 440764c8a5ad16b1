/**
 * The strict reader of queries: header, one question, and the form of everything behind it (RFC 1035 4.1, 9619).
 *
 * Records of a query are stepped over, not interpreted, save OPT and TSIG, which have rules of their own about where they may
 * stand. A name in the question must be plain; owners elsewhere may end in a pointer, which is never followed. No count is
 * trusted: a record takes at least 11 bytes, so a count that the rest of the message cannot hold ends the reading at once.
 */
import { readEdns } from './edns.js';
import type { Edns } from './edns.js';
import { MAX_LABEL_BYTES, MAX_NAME_BYTES } from './name.js';
import { CLASS_ANY, HEADER_BYTES, TYPE } from './record.js';

const MIN_RECORD_BYTES = 11;
const ADDITIONAL_COUNT_AT = 10;

/** A well-formed TSIG record (RFC 8945 4.2). */
export interface TsigRecord {
  /** Where the record begins; it ends with the message. */
  readonly at: number;
  readonly keyName: Buffer;
  readonly algorithm: Buffer;
  /** Time signed, fudge. */
  readonly timeAndFudge: Buffer;
  readonly mac: Buffer;
  readonly originalId: number;
  readonly error: number;
  readonly otherData: Buffer;
}

/** What a message says, as far as it could be read. */
export interface Query {
  readonly opcode: number;
  /** Offset behind the root label of the question's name; 0 when there is no single readable question. */
  readonly qnameEnd: number;
  /** Offset behind the question; {@link HEADER_BYTES} when there is none. */
  readonly questionEnd: number;
  readonly qtype: number;
  readonly qclass: number;
  /** Whether every section has its form and the last one ends with the message. */
  readonly sound: boolean;
  /** The OPT record; null when there is none, or the message is not sound. */
  readonly edns: Edns | null;
  readonly tsig: TsigRecord | null;
}

/** Null = deserves silence: shorter than a header, or itself a response. */
export function readQuery(message: Buffer): Query | null {
  if (message.length < HEADER_BYTES || ((message[2] ?? 0) & 0x80) !== 0) return null;
  const opcode = ((message[2] ?? 0) >> 3) & 15;
  const qnameEnd = message.readUInt16BE(4) === 1 ? endOfName(message, HEADER_BYTES, false) : 0;
  const questionEnd = qnameEnd + 4;
  if (qnameEnd === 0 || questionEnd > message.length) return unreadable(opcode);

  const qtype = message.readUInt16BE(qnameEnd);
  const qclass = message.readUInt16BE(qnameEnd + 2);
  const records = readRecords(message, questionEnd);
  const sound = records !== null;
  return { opcode, qnameEnd, questionEnd, qtype, qclass, sound, edns: records?.edns ?? null, tsig: records?.tsig ?? null };
}

function unreadable(opcode: number): Query {
  return { opcode, qnameEnd: 0, questionEnd: HEADER_BYTES, qtype: 0, qclass: 0, sound: false, edns: null, tsig: null };
}

/** The two records of a message that speak of the message itself. */
export interface SpecialRecords {
  readonly edns: Edns | null;
  readonly tsig: TsigRecord | null;
}

const NO_SPECIAL_RECORDS: SpecialRecords = { edns: null, tsig: null };

/** Steps over Answer, Authority and Additional; null when one of them has not its form. */
export function readRecords(message: Buffer, start: number): SpecialRecords | null {
  let at = start;
  let edns: Edns | null = null;
  let tsig: TsigRecord | null = null;
  for (let countAt = 6; countAt <= ADDITIONAL_COUNT_AT; countAt += 2) {
    const count = message.readUInt16BE(countAt);
    if (count * MIN_RECORD_BYTES > message.length - at) return null;
    for (let index = 0; index < count; index++) {
      const ownerEnd = endOfName(message, at, true);
      if (ownerEnd === 0 || ownerEnd + 10 > message.length) return null;
      const dataAt = ownerEnd + 10;
      const end = dataAt + message.readUInt16BE(ownerEnd + 8);
      if (end > message.length) return null;
      const type = message.readUInt16BE(ownerEnd);
      if (type === TYPE.OPT) {
        if (countAt !== ADDITIONAL_COUNT_AT || edns !== null || ownerEnd !== at + 1) return null;
        edns = readEdns(message, ownerEnd + 2, dataAt, end);
        if (edns === null) return null;
      } else if (type === TYPE.TSIG) {
        if (countAt !== ADDITIONAL_COUNT_AT || index !== count - 1) return null;
        tsig = readTsig(message, at, ownerEnd, end);
        if (tsig === null) return null;
      }
      at = end;
    }
  }
  if (at !== message.length) return null;
  return edns === null && tsig === null ? NO_SPECIAL_RECORDS : { edns, tsig };
}

/** The offset behind the name at `at`, 0 when it is none. A pointer ends it, where one is allowed. */
export function endOfName(message: Buffer, start: number, mayPoint: boolean): number {
  let at = start;
  while (at < message.length) {
    const length = message[at] ?? 0;
    if (length > MAX_LABEL_BYTES) return mayPoint && length >= 0xc0 && at + 2 <= message.length ? at + 2 : 0;
    at += 1 + length;
    if (at - start > MAX_NAME_BYTES) return 0;
    if (length === 0) return at <= message.length ? at : 0;
  }
  return 0;
}

/** The plain wire name at `at`, pointers followed: each must lead further back than the last, so that no loop can be. */
export function expandName(message: Buffer, start: number): Buffer | null {
  const parts: Buffer[] = [];
  let [at, floor, total] = [start, start, 0];
  while (at < message.length) {
    const length = message[at] ?? 0;
    if (length >= 0xc0) {
      if (at + 2 > message.length) return null;
      at = message.readUInt16BE(at) & 0x3fff;
      if (at >= floor || at < HEADER_BYTES) return null;
      floor = at;
      continue;
    }
    total += 1 + length;
    if (length > MAX_LABEL_BYTES || total > MAX_NAME_BYTES || at + 1 + length > message.length) return null;
    parts.push(message.subarray(at, at + 1 + length));
    if (length === 0) return Buffer.concat(parts);
    at += 1 + length;
  }
  return null;
}

/** RFC 8945 4.2: class ANY, TTL 0, algorithm, time (6), fudge (2), MAC, original id, error, other data, and nothing behind. */
export function readTsig(message: Buffer, ownerAt: number, ownerEnd: number, end: number): TsigRecord | null {
  const keyName = expandName(message, ownerAt);
  const dataAt = ownerEnd + 10;
  const algorithmEnd = endOfName(message, dataAt, false);
  if (keyName === null || algorithmEnd === 0 || algorithmEnd + 10 > end) return null;
  if (message.readUInt16BE(ownerEnd + 2) !== CLASS_ANY || message.readUInt32BE(ownerEnd + 4) !== 0) return null;
  const idAt = algorithmEnd + 10 + message.readUInt16BE(algorithmEnd + 8);
  if (idAt + 6 > end || idAt + 6 + message.readUInt16BE(idAt + 4) !== end) return null;
  return {
    at: ownerAt,
    keyName,
    algorithm: message.subarray(dataAt, algorithmEnd),
    timeAndFudge: message.subarray(algorithmEnd, algorithmEnd + 8),
    mac: message.subarray(algorithmEnd + 10, idAt),
    originalId: message.readUInt16BE(idAt),
    error: message.readUInt16BE(idAt + 2),
    otherData: message.subarray(idAt + 6, end),
  };
}
