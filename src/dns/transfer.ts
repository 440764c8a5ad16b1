/**
 * Zone transfers as messages: AXFR (RFC 5936), IXFR (RFC 1995), made one by one as the peer takes them, each signed where the request was.
 *
 * A transfer works on one immutable zone: whatever changes meanwhile is the next transfer's business. Messages stay below 16 KiB, so
 * that every pointer reaches the question and no other work waits long; each repeats the question that its pointers point to.
 */
import { AA, QR, RD } from './answer.js';
import { OPT_BYTES, writeOpt } from './edns.js';
import { equalsIgnoringCase } from './name-table.js';
import { endOfName, expandName } from './query.js';
import type { Query } from './query.js';
import { HEADER_BYTES, RCODE, TYPE } from './record.js';
import { signed, signedNext, tsigBytes } from './tsig.js';
import type { TsigKey } from './tsig.js';
import type { Zone } from './zone.js';
import { recordsBeyond, recordsOf, soaRecord } from './zone-records.js';

/** Most bytes of one message, signature included. */
export const MAX_TRANSFER_BYTES = 16_384;

/** How the messages of one transfer are to be signed. */
export interface Signing {
  readonly key: TsigKey;
  readonly requestMac: Buffer;
  /** Unix time, asked for each message: a slow peer may take long. */
  readonly nowSeconds: () => number;
}

/** The whole zone: SOA, everything else, SOA (RFC 5936 2.2). */
export function* wholeZone(zone: Zone): Generator<Buffer> {
  yield soaRecord(zone);
  yield* recordsOf(zone);
  yield soaRecord(zone);
}

/** One difference from `base` to `zone` (RFC 1995 4): new SOA; old SOA, what goes; new SOA, what comes; new SOA. */
export function* difference(base: Zone, zone: Zone): Generator<Buffer> {
  yield soaRecord(zone);
  yield soaRecord(base);
  yield* recordsBeyond(base, zone);
  yield soaRecord(zone);
  yield* recordsBeyond(zone, base);
  yield soaRecord(zone);
}

/** Packs records into the messages of a reply to `message`; `onDone` is called when the last message has been taken. */
export function* packed(message: Buffer, query: Query, records: Iterable<Buffer>, signing: Signing | null, onDone: () => void): Generator<Buffer> {
  const room = MAX_TRANSFER_BYTES - query.questionEnd - (query.edns === null ? 0 : OPT_BYTES) - (signing === null ? 0 : tsigBytes(signing.key));
  let mac: Buffer | null = null;
  const finish = (batch: readonly Buffer[]): Buffer => {
    const bare = transferMessage(message, query, batch);
    if (signing === null) return bare;
    const { key, requestMac, nowSeconds } = signing;
    const done = mac === null ? signed(key, bare, requestMac, nowSeconds()) : signedNext(key, bare, mac, nowSeconds());
    mac = done.mac;
    return done.message;
  };
  let [batch, bytes]: [Buffer[], number] = [[], 0];
  for (const record of records) {
    if (bytes + record.length > room) {
      yield finish(batch);
      [batch, bytes] = [[], 0];
    }
    batch.push(record);
    bytes += record.length;
  }
  yield finish(batch);
  onDone();
}

/** The one SOA that says "nothing newer here", or by UDP "come by TCP" (RFC 1995 2). */
export function soaReply(message: Buffer, query: Query, zone: Zone): Buffer {
  return transferMessage(message, query, [soaRecord(zone)]);
}

function transferMessage(message: Buffer, query: Query, records: readonly Buffer[]): Buffer {
  const { edns, questionEnd } = query;
  const opt = Buffer.alloc(edns === null ? 0 : OPT_BYTES);
  if (edns !== null) writeOpt(opt, 0, edns, RCODE.NOERROR);
  const out = Buffer.concat([message.subarray(0, questionEnd), ...records, opt]);
  out[2] = QR | AA | ((message[2] ?? 0) & RD);
  out[3] = RCODE.NOERROR;
  out.writeUInt16BE(records.length, 6);
  out.writeUInt16BE(0, 8);
  out.writeUInt16BE(edns === null ? 0 : 1, 10);
  return out;
}

/** The serial the asker has: that of the first SOA in Authority, which must be the zone's (RFC 1995 3); null when there is none. */
export function readIxfrSerial(message: Buffer, query: Query, origin: Buffer): number | null {
  let at = query.questionEnd;
  for (let left = message.readUInt16BE(6); left > 0; left--) at = endOfRecord(message, at);
  if (message.readUInt16BE(8) === 0) return null;
  const ownerEnd = endOfName(message, at, true);
  const owner = expandName(message, at);
  const ours = owner !== null && equalsIgnoringCase(origin, owner, 0, owner.length);
  if (!ours || message.readUInt16BE(ownerEnd) !== TYPE.SOA) return null;
  const mailboxAt = endOfName(message, ownerEnd + 10, true);
  const serialAt = mailboxAt === 0 ? 0 : endOfName(message, mailboxAt, true);
  return serialAt === 0 || serialAt + 20 !== endOfRecord(message, at) ? null : message.readUInt32BE(serialAt);
}

/** Only for messages whose form {@link readQuery} has checked. */
function endOfRecord(message: Buffer, at: number): number {
  const ownerEnd = endOfName(message, at, true);
  return ownerEnd + 10 + message.readUInt16BE(ownerEnd + 8);
}

/** Whether serial `a` is `b` or newer, as RFC 1982 counts: at most half the circle ahead. */
export function isAtLeast(a: number, b: number): boolean {
  return (a - b) >>> 0 < 0x8000_0000;
}

/** Whether the question is for the zone's apex, which alone can be transferred. */
export function asksForZone(message: Buffer, query: Query, origin: Buffer): boolean {
  return equalsIgnoringCase(origin, message, HEADER_BYTES, query.qnameEnd);
}
