/**
 * NOTIFY as bytes (RFC 1996): "the zone has changed, and this is its SOA", and what counts as an answer to it.
 *
 * A reply is told from a stray one by its id, its opcode, and its question where it repeats one; who sent it is the socket's
 * business. Where the request was signed, only a signed reply proves that the secondary has heard it.
 */
import { equalsIgnoringCase } from './name-table.js';
import { endOfName, readRecords } from './query.js';
import { CLASS_IN, HEADER_BYTES, TYPE } from './record.js';
import { verify } from './tsig.js';
import type { TsigKey } from './tsig.js';
import type { Zone } from './zone.js';
import { soaRecord } from './zone-records.js';

const OPCODE_NOTIFY = 4;
const [QR, AA] = [0x80, 0x04];

/** The request, not signed yet. The SOA in Answer is a hint (RFC 1996 3.7) that spares a secondary that has it a query. */
export function encodeNotify(id: number, zone: Zone): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt16BE(id, 0);
  head[2] = (OPCODE_NOTIFY << 3) | AA;
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(1, 6);
  return Buffer.concat([head, zone.origin, Buffer.from([0, TYPE.SOA, 0, CLASS_IN]), soaRecord(zone)]);
}

export type NotifyReply =
  | { readonly kind: 'stray' }
  /** A reply by its looks, without the signature that it owes us. */
  | { readonly kind: 'unproven'; readonly rcode: number }
  | { readonly kind: 'answered'; readonly rcode: number };

/** What was sent, as far as its answer is judged by it. */
export interface SentNotify {
  readonly id: number;
  readonly origin: Buffer;
  /** The key and the MAC of the request; null where it was not signed. */
  readonly signature: { readonly key: TsigKey; readonly mac: Buffer } | null;
}

/** Judges one datagram from the address that the request went to. Never throws for anything that was received. */
export function readNotifyReply(message: Buffer, sent: SentNotify, nowSeconds: number): NotifyReply {
  const isReply = message.length >= HEADER_BYTES && ((message[2] ?? 0) & (QR | 0x78)) === (QR | (OPCODE_NOTIFY << 3));
  if (!isReply || message.readUInt16BE(0) !== sent.id) return { kind: 'stray' };
  const rcode = (message[3] ?? 0) & 15;
  const questions = message.readUInt16BE(4);
  const qnameEnd = questions === 1 ? endOfName(message, HEADER_BYTES, false) : 0;
  if (questions > 1 || (questions === 1 && (qnameEnd === 0 || !equalsIgnoringCase(sent.origin, message, HEADER_BYTES, qnameEnd)))) {
    return { kind: 'stray' };
  }
  if (sent.signature === null) return { kind: 'answered', rcode };
  const bodyAt = questions === 1 ? qnameEnd + 4 : HEADER_BYTES;
  const tsig = bodyAt > message.length ? null : readRecords(message, bodyAt)?.tsig ?? null;
  const { key, mac } = sent.signature;
  const isProven = tsig !== null && verify(key, message, tsig, mac, nowSeconds).kind === 'valid';
  return { kind: isProven ? 'answered' : 'unproven', rcode };
}
