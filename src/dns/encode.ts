/**
 * Records to bytes. Owners are compressed by a pointer into the question, which also keeps the asker's spelling for free; the
 * names of SOA and NS may point there too, SRV targets never (RFC 2782, 3597).
 *
 * A pointer into the question is the same for every query of one name, so answers are compiled once per zone change.
 */
import { assertNever } from '../assert.js';
import { isBelow } from './name.js';
import { CLASS_IN, HEADER_BYTES } from './record.js';
import type { RecordData, Rrset, Soa } from './record.js';

/** A pointer to `at` (RFC 1035 4.1.4). */
export function pointerTo(at: number): Buffer {
  return Buffer.from([0xc0 | (at >> 8), at & 0xff]);
}

/** The pointer to the question's name: the owner of every record in the Answer section. */
export const QNAME_POINTER: Buffer = pointerTo(HEADER_BYTES);

/** A place in the question that encoded names may point to: the bytes of `name` begin at `at`. */
export interface Anchor {
  readonly name: Buffer;
  readonly at: number;
}

function encodeName(name: Buffer, anchor: Anchor | null): Buffer {
  if (anchor === null || !isBelow(name, anchor.name)) return name;
  return Buffer.concat([name.subarray(0, name.length - anchor.name.length), pointerTo(anchor.at)]);
}

/** RDATA of one record. With an anchor, the names of NS and SOA end in a pointer to it. */
export function encodeData(data: RecordData, anchor: Anchor | null): Buffer {
  switch (data.kind) {
    case 'address':
      return data.ip;
    case 'ns':
      return encodeName(data.host, anchor);
    case 'soa':
      return encodeSoa(data.soa, anchor);
    case 'txt':
      return Buffer.concat([Buffer.from([data.text.length]), Buffer.from(data.text, 'latin1')]);
    case 'srv': {
      const fixed = Buffer.alloc(6);
      // Priority 0 for all: clients choose among equals, by equal weight.
      fixed.writeUInt16BE(1, 2);
      fixed.writeUInt16BE(data.port, 4);
      return Buffer.concat([fixed, data.target]);
    }
    default:
      return assertNever(data);
  }
}

function encodeSoa(soa: Soa, anchor: Anchor | null): Buffer {
  const numbers = Buffer.alloc(20);
  const values = [soa.serial, soa.refreshSeconds, soa.retrySeconds, soa.expireSeconds, soa.minimumSeconds];
  values.forEach((value, index) => numbers.writeUInt32BE(value, index * 4));
  return Buffer.concat([encodeName(soa.primaryServer, anchor), encodeName(soa.mailbox, anchor), numbers]);
}

/** One record: owner as given (wire name or pointer), type, class IN, TTL, length and RDATA. */
export function encodeRecord(owner: Buffer, type: number, ttlSeconds: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(CLASS_IN, 2);
  fixed.writeUInt32BE(ttlSeconds, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([owner, fixed, data]);
}

/** All records of a set, one behind the other. */
export function encodeRrset(owner: Buffer, rrset: Rrset, anchor: Anchor | null = null): Buffer {
  return Buffer.concat(rrset.records.map((data) => encodeRecord(owner, rrset.type, rrset.ttlSeconds, encodeData(data, anchor))));
}

/** A standard query without EDNS. */
export function encodeQuery(id: number, qname: Buffer, qtype: number): Buffer {
  const query = Buffer.alloc(HEADER_BYTES + qname.length + 4);
  query.writeUInt16BE(id, 0);
  query.writeUInt16BE(1, 4);
  qname.copy(query, HEADER_BYTES);
  query.writeUInt16BE(qtype, HEADER_BYTES + qname.length);
  query.writeUInt16BE(CLASS_IN, HEADER_BYTES + qname.length + 2);
  return query;
}
