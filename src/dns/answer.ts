/**
 * `answerQuery(zone, message) -> reply`: the whole of the server but its sockets.
 *
 * The order of checks is the contract (publishing page of the docs): silence, NOTIMP, FORMERR, NOTAUTH, BADVERS, class, meta
 * types, foreign names, masters that are not ready, and only then the zone's own yes or no, the one answer with AA.
 * Answers are compiled when the zone changes; a query costs a header, a copy of its question and an OPT record.
 */
import { encodeOpt, OPT_BYTES, udpLimit, writeOpt } from './edns.js';
import { readQuery } from './query.js';
import type { Query } from './query.js';
import { CLASS_IN, HEADER_BYTES, RCODE, TYPE } from './record.js';
import { fitAnswer } from './truncate.js';
import { TSIG_ERROR, withUnsignedError } from './tsig.js';
import { findName, soaFor } from './zone.js';
import type { Zone } from './zone.js';
import { answerOf } from './zone-node.js';
import type { CompiledAnswer } from './zone-node.js';

export type Transport = 'udp' | 'tcp';

const MAX_TCP_BYTES = 65_535;
export const [QR, AA, TC, RD] = [0x80, 0x04, 0x02, 0x01];
const NOTHING = Buffer.alloc(0);
const EMPTY: CompiledAnswer = { type: 0, answerCount: 0, answer: NOTHING, additionalCount: 0, additional: NOTHING, turnBytes: 0 };

/** The one reply to one received message, or null for silence, of a server that shares no key and transfers nothing. Never throws for input. */
export function answerQuery(zone: Zone, message: Buffer, transport: Transport): Buffer | null {
  const query = readQuery(message);
  return query === null ? null : answerRead(zone, message, query, transport);
}

/** {@link answerQuery} for a message that has been read already. */
export function answerRead(zone: Zone, message: Buffer, query: Query, transport: Transport): Buffer {
  if (query.opcode !== 0 || !query.sound) return refuseForm(message, query);
  if (query.tsig !== null) return withUnsignedError(refuse(message, query, RCODE.NOTAUTH), query.tsig, TSIG_ERROR.BADKEY);
  return answerSound(zone, message, query, transport);
}

/** The reply to an opcode that is not served, or to a message that has not its form; these come before all else. */
export function refuseForm(message: Buffer, query: Query): Buffer {
  return refuse(message, query, query.opcode !== 0 ? RCODE.NOTIMP : RCODE.FORMERR);
}

/** The checks behind TSIG, and the answer. `reservedBytes`: what the reply must leave free for a signature. */
export function answerSound(zone: Zone, message: Buffer, query: Query, transport: Transport, reservedBytes = 0): Buffer {
  if (query.edns !== null && query.edns.version > 0) return refuse(message, query, RCODE.BADVERS);
  if (query.qclass !== CLASS_IN) return refuse(message, query, RCODE.REFUSED);
  const { qtype } = query;
  if (qtype === TYPE.OPT || qtype === TYPE.TKEY || qtype === TYPE.TSIG) return refuse(message, query, RCODE.FORMERR);

  const found = findName(zone, message, HEADER_BYTES, query.qnameEnd);
  if (found.kind === 'outside') return refuse(message, query, RCODE.REFUSED);
  // No address is allowed to transfer the zone; AXFR cannot go by UDP at all (RFC 5936 4.2).
  if (qtype === TYPE.AXFR) return refuse(message, query, transport === 'udp' ? RCODE.NOTIMP : RCODE.REFUSED);
  if (qtype === TYPE.IXFR) return refuse(message, query, RCODE.REFUSED);
  if (found.kind === 'notReady') return refuse(message, query, RCODE.SERVFAIL);

  const limit = (transport === 'udp' ? udpLimit(query.edns) : MAX_TCP_BYTES) - reservedBytes;
  if (found.kind === 'absent') return decline(zone, message, query, RCODE.NXDOMAIN, limit);
  const compiled = answerOf(found.node, qtype);
  if (compiled === null) return decline(zone, message, query, RCODE.NOERROR, limit);
  return reply(message, query, RCODE.NOERROR, compiled, NOTHING, limit);
}

/** NODATA or NXDOMAIN: no answer, and the SOA says for how long that holds (RFC 2308). */
function decline(zone: Zone, message: Buffer, query: Query, rcode: number, limit: number): Buffer {
  return reply(message, query, rcode, EMPTY, soaFor(zone, query.qnameEnd - zone.origin.length), limit);
}

/** An authoritative reply, fitted to `limit`; `authority` holds one record or nothing. */
function reply(message: Buffer, query: Query, rcode: number, compiled: CompiledAnswer, authority: Buffer, limit: number): Buffer {
  const { edns, questionEnd } = query;
  const { answer, additional, turnBytes } = compiled;
  const optBytes = edns === null ? 0 : OPT_BYTES;
  const fit = fitAnswer(limit, questionEnd + optBytes, answer.length + authority.length, additional.length);
  const required = fit === 'truncated' ? 0 : answer.length + authority.length;
  const extra = fit === 'whole' ? additional.length : 0;

  const out = Buffer.allocUnsafe(questionEnd + required + extra + optBytes);
  message.copy(out, 0, 0, questionEnd);
  out[2] = QR | AA | (fit === 'truncated' ? TC : 0) | ((message[2] ?? 0) & RD);
  out[3] = rcode;
  out.writeUInt16BE(required === 0 ? 0 : compiled.answerCount, 6);
  out.writeUInt16BE(required === 0 || authority.length === 0 ? 0 : 1, 8);
  out.writeUInt16BE((extra === 0 ? 0 : compiled.additionalCount) + (edns === null ? 0 : 1), 10);
  let at = questionEnd;
  if (required > 0) {
    // Sets of addresses are turned by the query's id: each asker gets another first one, and a reply stays a function of the query.
    const turn = turnBytes === 0 ? 0 : turnBytes * (message.readUInt16BE(0) % compiled.answerCount);
    at += answer.copy(out, at, turn);
    if (turn > 0) at += answer.copy(out, at, 0, turn);
    if (authority.length > 0) at += authority.copy(out, at);
  }
  if (extra > 0) at += additional.copy(out, at);
  if (edns !== null) writeOpt(out, at, edns, rcode);
  return out;
}

/** A reply without AA and without records: header, the question where it could be read, OPT. */
export function refuse(message: Buffer, query: Query, rcode: number): Buffer {
  const { questionEnd } = query;
  const opt = query.edns === null ? NOTHING : encodeOpt(query.edns, rcode, rcode === RCODE.SERVFAIL);
  const out = Buffer.concat([message.subarray(0, questionEnd), opt]);
  writeRefusalHeader(out, rcode, questionEnd > HEADER_BYTES ? 1 : 0, opt.length > 0 ? 1 : 0);
  return out;
}

function writeRefusalHeader(out: Buffer, rcode: number, questions: number, additionals: number): void {
  out[2] = QR | ((out[2] ?? 0) & 0x78) | ((out[2] ?? 0) & RD);
  out[3] = rcode & 15;
  out.writeUInt16BE(questions, 4);
  out.writeUInt32BE(0, 6);
  out.writeUInt16BE(additionals, 10);
}

/** The bare SERVFAIL that is sent when answering itself failed; null where even that would be wrong. */
export function failureReply(message: Buffer): Buffer | null {
  if (message.length < HEADER_BYTES || ((message[2] ?? 0) & QR) !== 0) return null;
  const out = Buffer.from(message.subarray(0, HEADER_BYTES));
  writeRefusalHeader(out, RCODE.SERVFAIL, 0, 0);
  return out;
}

/** The rcode in a reply's header: the lower four bits, so BADVERS reads as 0. */
export function rcodeOf(reply: Buffer): number {
  return (reply[3] ?? 0) & 15;
}
