/**
 * One name of the zone: its record sets, and the answers to every type compiled from them.
 *
 * A node without record sets is an empty non-terminal: it exists because something exists below it (RFC 8020).
 */
import { MAX_UDP_BYTES, OPT_BYTES } from './edns.js';
import { encodeData, encodeRrset, QNAME_POINTER } from './encode.js';
import type { Anchor } from './encode.js';
import { HEADER_BYTES, TYPE } from './record.js';
import type { RecordData, Rrset } from './record.js';

/** The Answer and Additional sections for one (name, type); right for every query of that name, whatever its case. */
export interface CompiledAnswer {
  readonly type: number;
  readonly answerCount: number;
  readonly answer: Buffer;
  readonly additionalCount: number;
  readonly additional: Buffer;
  /** Bytes of one record where the set may be turned by whole records from query to query; 0 = it stays in order. */
  readonly turnBytes: number;
}

export interface ZoneNode {
  readonly rrsets: readonly Rrset[];
  /** One for each record set; few, so that a search beats a map. */
  readonly answers: readonly CompiledAnswer[];
}

/** The answer to a question of this type: ANY gets one record set (RFC 8482); null = NODATA. */
export function answerOf(node: ZoneNode, qtype: number): CompiledAnswer | null {
  if (qtype === TYPE.ANY) return node.answers[0] ?? null;
  for (const answer of node.answers) if (answer.type === qtype) return answer;
  return null;
}

/** Records for Additional, already encoded. */
export interface Additional {
  readonly count: number;
  readonly bytes: Buffer;
}

export const NO_ADDITIONAL: Additional = { count: 0, bytes: Buffer.alloc(0) };

/** A node with its answers. `anchor` is where names in RDATA may point to; `additionalFor` adds to the answer of a set. */
export function compileNode(
  rrsets: readonly Rrset[],
  anchor: Anchor | null = null,
  additionalFor: (rrset: Rrset) => Additional = () => NO_ADDITIONAL,
): ZoneNode {
  const answers = rrsets.map((rrset): CompiledAnswer => {
    const additional = additionalFor(rrset);
    const answer = encodeRrset(QNAME_POINTER, rrset, anchor);
    const answerCount = rrset.records.length;
    // Only addresses all have the same length; SRV records carry weights, which do the same job.
    const turnBytes = answerCount > 1 && (rrset.type === TYPE.A || rrset.type === TYPE.AAAA) ? answer.length / answerCount : 0;
    return { type: rrset.type, answerCount, answer, additionalCount: additional.count, additional: additional.bytes, turnBytes };
  });
  return { rrsets, answers };
}

/** The first records of a set that fit into one UDP answer to a question whose name has `qnameBytes`. */
export function fitRecords(records: readonly RecordData[], qnameBytes: number): readonly RecordData[] {
  let room = MAX_UDP_BYTES - HEADER_BYTES - qnameBytes - 4 - OPT_BYTES;
  const end = records.findIndex((data) => (room -= QNAME_POINTER.length + 10 + encodeData(data, null).length) < 0);
  return end === -1 ? records : records.slice(0, end);
}
