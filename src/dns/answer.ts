/**
 * `answerQuery(zone, message) -> reply`: the whole of the server but its sockets.
 *
 * The order of checks is the contract (publishing page of the docs): silence, NOTIMP, FORMERR, NOTAUTH, BADVERS, class, meta
 * types, foreign names, masters that are not ready, and only then the zone's own yes or no, the one answer with AA.
 * Answers are compiled when the zone changes; a query costs a header, a copy of its question and an OPT record.
 */
import { encodeOpt, OPT_BYTES, udpLimit, writeOpt } from './edns.js';
import { readQuery } from './query.js';
import type { Query, TsigRecord } from './query.js';
import { CLASS_ANY, CLASS_IN, HEADER_BYTES, RCODE, TYPE } from './record.js';
import { fitAnswer } from './truncate.js';
import { findName, soaFor } from './zone.js';
import type { Zone } from './zone.js';
import { answerOf } from './zone-node.js';
import type { CompiledAnswer } from './zone-node.js';

export type Transport = 'udp' | 'tcp';

const MAX_TCP_BYTES = 65_535;
const TSIG_BADKEY = 17;
const [QR, AA, TC, RD] = [0x80, 0x04, 0x02, 0x01];
const NOTHING = Buffer.alloc(0);
const EMPTY: CompiledAnswer = { type: 0, answerCount: 0, answer: NOTHING, additionalCount: 0, additional: NOTHING, turnBytes: 0 };

/** The one reply to one received message, or null for silence. Never throws for anything that was received. */
export function answerQuery(zone: Zone, message: Buffer, transport: Transport): Buffer | null {
  const query = readQuery(message);
  if (query === null) return null;
  if (query.opcode !== 0) return refuse(message, query, RCODE.NOTIMP);
  if (!query.sound) return refuse(message, query, RCODE.FORMERR);
  if (query.tsig !== null) return refuse(message, query, RCODE.NOTAUTH, encodeBadKey(query.tsig));
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

  const limit = transport === 'udp' ? udpLimit(query.edns) : MAX_TCP_BYTES;
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

/** A reply without AA and without records: header, the question where it could be read, OPT, and `tsig` where one is due. */
function refuse(message: Buffer, query: Query, rcode: number, tsig: Buffer = NOTHING): Buffer {
  const { questionEnd } = query;
  const opt = query.edns === null ? NOTHING : encodeOpt(query.edns, rcode, rcode === RCODE.SERVFAIL);
  const out = Buffer.concat([message.subarray(0, questionEnd), opt, tsig]);
  writeRefusalHeader(out, rcode, questionEnd > HEADER_BYTES ? 1 : 0, (opt.length > 0 ? 1 : 0) + (tsig.length > 0 ? 1 : 0));
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

/** RFC 8945 5.2.1: we share no key, so the reply carries an unsigned TSIG that says BADKEY. */
function encodeBadKey(tsig: TsigRecord): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(TYPE.TSIG, 0);
  fixed.writeUInt16BE(CLASS_ANY, 2);
  const tail = Buffer.alloc(8);
  tail.writeUInt16BE(tsig.originalId, 2);
  tail.writeUInt16BE(TSIG_BADKEY, 4);
  fixed.writeUInt16BE(tsig.algorithm.length + tsig.timeAndFudge.length + tail.length, 8);
  return Buffer.concat([tsig.keyName, fixed, tsig.algorithm, tsig.timeAndFudge, tail]);
}

/** The rcode in a reply's header: the lower four bits, so BADVERS reads as 0. */
export function rcodeOf(reply: Buffer): number {
  return (reply[3] ?? 0) & 15;
}
