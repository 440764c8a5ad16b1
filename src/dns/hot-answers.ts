/**
 * The hot path of UDP: answers that were given once, found again by the bytes of their question, in one stretch of memory.
 *
 * With thousands of names the objects of a zone lie all over the heap, and a question pays for each of them with a cache miss; here
 * hash, question and answer of one slot lie side by side. Only what most resolvers send is looked at: one plain question, at most one
 * plain OPT; all else, and what is not known yet, is the strict path's. A reply from here is byte for byte what that path would give.
 * Another zone makes all slots void at once, at no cost.
 */
import { OPT_BYTES, PLAIN_UDP_BYTES, writeOpt } from './edns.js';
import { LOWER_CASE } from './name.js';
import { endOfName } from './query.js';
import { HEADER_BYTES, RCODE, TYPE } from './record.js';
import type { Zone } from './zone.js';

const SLOT_BYTES = 256;
const SLOT_WORDS = SLOT_BYTES / 4;
/** Slots that a hash may have: with one, two names that meet would push each other out for ever. */
const WAYS = 2;
const SETS_AT_LEAST = 256;
/** Names of one master that are asked for. */
const SETS_PER_MASTER = 3;

/** Words of a slot, and where its bytes begin: the question in lower case, then what follows it in the reply, save OPT. */
const [GENERATION, HASH, LENGTHS, COUNTS, TURN] = [0, 1, 2, 3, 4];
const DATA_AT = 20;
const ROOM = SLOT_BYTES - DATA_AT;
/** Type and class, in which case is no matter. */
const TYPE_AND_CLASS = 4;
const [QR, AA, TC, RD] = [0x80, 0x04, 0x02, 0x01];

export class HotAnswers {
  #zone: Zone | null = null;
  #generation = 0;
  #mask = 0;
  #words = new Int32Array(0);
  #bytes = Buffer.alloc(0);

  /** The reply by UDP to this message, null when it is not for this path. */
  answer(zone: Zone, message: Buffer): Buffer | null {
    if (zone !== this.#zone) this.#renew(zone);
    const questionEnd = plainQuestionEnd(message);
    if (questionEnd === 0) return null;
    const hash = hashQuestion(message, questionEnd);
    const slot = this.#find(message, questionEnd, hash);
    return slot < 0 ? null : this.#reply(message, questionEnd, slot);
  }

  /** Keeps what the strict path has answered to this message, if it can be given again. */
  learn(zone: Zone, message: Buffer, reply: Buffer): void {
    const questionEnd = plainQuestionEnd(message);
    if (zone !== this.#zone || questionEnd === 0 || reply.length > PLAIN_UDP_BYTES) return;
    if (((reply[2] ?? 0) & (AA | TC)) !== AA || (reply[3] ?? 0) !== RCODE.NOERROR) return;
    const opt = message.length > questionEnd ? OPT_BYTES : 0;
    const tailEnd = reply.length - opt;
    const [answers, authorities, additionals] = [reply.readUInt16BE(6), reply.readUInt16BE(8), reply.readUInt16BE(10) - (opt > 0 ? 1 : 0)];
    const length = questionEnd - HEADER_BYTES;
    // To ANY the strict path gives one set or another; it is no question of resolvers.
    if (message.readUInt16BE(questionEnd - TYPE_AND_CLASS) === TYPE.ANY) return;
    if (length + tailEnd - questionEnd > ROOM || Math.max(answers, authorities, additionals) > 255) return;

    const hash = hashQuestion(message, questionEnd);
    const slot = this.#slotFor(hash);
    const words = slot * SLOT_WORDS;
    const data = slot * SLOT_BYTES + DATA_AT;
    for (let at = 0; at < length; at++) this.#bytes[data + at] = lowered(message, HEADER_BYTES + at, questionEnd);
    reply.copy(this.#bytes, data + length, questionEnd, tailEnd);
    const turnBytes = turnOf(message, questionEnd, answers, tailEnd - questionEnd);
    // As if the first record stood first: the strict path has turned the set by this message's id.
    const turned = turnBytes === 0 ? 0 : message.readUInt16BE(0) % answers;
    this.#words[words + GENERATION] = this.#generation;
    this.#words[words + HASH] = hash;
    this.#words[words + LENGTHS] = length | ((tailEnd - questionEnd) << 16);
    this.#words[words + COUNTS] = answers | (authorities << 8) | (additionals << 16);
    this.#words[words + TURN] = turnBytes | (turned << 16);
  }

  #renew(zone: Zone): void {
    this.#zone = zone;
    this.#generation = (this.#generation + 1) | 0;
    let sets = SETS_AT_LEAST;
    while (sets < SETS_PER_MASTER * zone.blockOf.size) sets *= 2;
    if (sets - 1 === this.#mask) return;
    this.#mask = sets - 1;
    const memory = new ArrayBuffer(sets * WAYS * SLOT_BYTES);
    this.#words = new Int32Array(memory);
    this.#bytes = Buffer.from(memory);
    this.#generation = 1;
  }

  #find(message: Buffer, questionEnd: number, hash: number): number {
    const first = (hash & this.#mask) * WAYS;
    for (let slot = first; slot < first + WAYS; slot++) {
      const words = slot * SLOT_WORDS;
      if (this.#words[words + HASH] !== hash || this.#words[words + GENERATION] !== this.#generation) continue;
      if (this.#isAsked(slot, message, questionEnd)) return slot;
    }
    return -1;
  }

  #isAsked(slot: number, message: Buffer, questionEnd: number): boolean {
    const length = questionEnd - HEADER_BYTES;
    if (((this.#words[slot * SLOT_WORDS + LENGTHS] ?? 0) & 0xffff) !== length) return false;
    const data = slot * SLOT_BYTES + DATA_AT;
    for (let at = 0; at < length; at++) {
      if (this.#bytes[data + at] !== lowered(message, HEADER_BYTES + at, questionEnd)) return false;
    }
    return true;
  }

  /** A void slot of the hash, else one of the two by a bit of the hash that did not choose the set. */
  #slotFor(hash: number): number {
    const first = (hash & this.#mask) * WAYS;
    for (let slot = first; slot < first + WAYS; slot++) if (this.#words[slot * SLOT_WORDS + GENERATION] !== this.#generation) return slot;
    return first + ((hash >>> 30) & (WAYS - 1));
  }

  #reply(message: Buffer, questionEnd: number, slot: number): Buffer {
    const words = slot * SLOT_WORDS;
    const lengths = this.#words[words + LENGTHS] ?? 0;
    const counts = this.#words[words + COUNTS] ?? 0;
    const tail = lengths >>> 16;
    const optAt = questionEnd + tail;
    const hasOpt = message.length > questionEnd;
    const out = Buffer.allocUnsafe(hasOpt ? optAt + OPT_BYTES : optAt);
    for (let at = 0; at < questionEnd; at++) out[at] = message[at] ?? 0;
    out[2] = QR | AA | ((message[2] ?? 0) & RD);
    out[3] = RCODE.NOERROR;
    out[6] = 0;
    out[7] = counts & 0xff;
    out[8] = 0;
    out[9] = (counts >>> 8) & 0xff;
    out[10] = 0;
    out[11] = ((counts >>> 16) & 0xff) + (hasOpt ? 1 : 0);
    this.#copyTail(out, questionEnd, slot, tail, message);
    if (hasOpt) writeOpt(out, optAt, { udpBytes: 0, version: 0, dnssecOk: ((message[message.length - 4] ?? 0) & 0x80) !== 0 }, RCODE.NOERROR);
    return out;
  }

  #copyTail(out: Buffer, to: number, slot: number, tail: number, message: Buffer): void {
    const words = slot * SLOT_WORDS;
    const from = slot * SLOT_BYTES + DATA_AT + ((this.#words[words + LENGTHS] ?? 0) & 0xffff);
    const turning = this.#words[words + TURN] ?? 0;
    let skip = 0;
    if (turning !== 0) {
      const answers = (this.#words[words + COUNTS] ?? 0) & 0xff;
      const turned = turning >>> 16;
      skip = (turning & 0xffff) * ((message.readUInt16BE(0) + answers - turned) % answers);
    }
    for (let at = skip; at < tail; at++) out[to + at - skip] = this.#bytes[from + at] ?? 0;
    for (let at = 0; at < skip; at++) out[to + tail - skip + at] = this.#bytes[from + at] ?? 0;
  }
}

/** The offset behind the question of a message that holds nothing else, or only a plain OPT behind it; 0 for all others. */
function plainQuestionEnd(message: Buffer): number {
  // Opcode QUERY, no response; one question, no answers, no authorities, at most one record behind.
  if (message.length < HEADER_BYTES + 1 + TYPE_AND_CLASS || ((message[2] ?? 0) & 0xf8) !== 0) return 0;
  if (message.readUInt32BE(4) !== 0x10000 || message.readUInt16BE(8) !== 0 || message[10] !== 0) return 0;
  const nameEnd = endOfName(message, HEADER_BYTES, false);
  const questionEnd = nameEnd + TYPE_AND_CLASS;
  if (nameEnd === 0) return 0;
  if (message[11] === 0) return message.length === questionEnd ? questionEnd : 0;
  if (message[11] !== 1 || message.length !== questionEnd + OPT_BYTES) return 0;
  // The root, type OPT; version 0; no options.
  const isPlainOpt = message.readUInt16BE(questionEnd) === 0 && message[questionEnd + 2] === TYPE.OPT && message[questionEnd + 6] === 0;
  return isPlainOpt && message.readUInt16BE(questionEnd + 9) === 0 ? questionEnd : 0;
}

const lowered = (message: Buffer, at: number, questionEnd: number): number => {
  const byte = message[at] ?? 0;
  return at < questionEnd - TYPE_AND_CLASS ? LOWER_CASE[byte] ?? 0 : byte;
};

/** FNV-1a over the question as {@link lowered} spells it, its upper half folded in since the lowest bits choose. */
function hashQuestion(message: Buffer, questionEnd: number): number {
  let hash = 0x811c9dc5;
  for (let at = HEADER_BYTES; at < questionEnd; at++) hash = Math.imul(hash ^ lowered(message, at, questionEnd), 0x01000193);
  return hash ^ (hash >>> 15);
}

/** Bytes of one record where a set of addresses is the whole reply and is turned from query to query; else 0. */
function turnOf(message: Buffer, questionEnd: number, answers: number, tailBytes: number): number {
  const type = message.readUInt16BE(questionEnd - TYPE_AND_CLASS);
  const isAddress = type === TYPE.A || type === TYPE.AAAA;
  return isAddress && answers > 1 ? tailBytes / answers : 0;
}
