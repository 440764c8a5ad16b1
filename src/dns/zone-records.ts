/**
 * The zone as a list of records, and the difference of two zones, as transfers carry them.
 *
 * Owners end in a pointer to the origin in the question, which every message of a transfer therefore repeats. A master that nobody
 * can answer for has no records. Differences cost what has changed: zones share all but that, so equal parts are the same objects.
 */
import { must } from '../assert.js';
import { encodeData, encodeRecord, QNAME_POINTER } from './encode.js';
import { HEADER_BYTES, TYPE } from './record.js';
import type { MasterBlock, Zone } from './zone.js';
import type { ZoneNode } from './zone-node.js';

/** The SOA record, which begins and ends every transfer. */
export function soaRecord(zone: Zone): Buffer {
  const apex = must(zone.apex.get(Buffer.alloc(0)), 'a zone has an apex');
  return must(nodeRecords(zone, Buffer.alloc(0), apex, true)[0], 'an apex has an SOA');
}

/** Every record but the SOA, those of the zone itself first. */
export function* recordsOf(zone: Zone): Generator<Buffer> {
  for (const [owner, node] of zone.apex.entries()) yield* nodeRecords(zone, owner, node);
  for (const [, block] of zone.blocks.entries()) yield* blockRecords(zone, block);
}

/** The records that `zone` has and `other` has not; both are of one origin, one made from the other. */
export function* recordsBeyond(zone: Zone, other: Zone): Generator<Buffer> {
  for (const { name, before, after } of zone.apex.changesSince(other.apex)) {
    yield* missingFrom(before === null ? [] : nodeRecords(other, name, before), after === null ? [] : nodeRecords(zone, name, after));
  }
  for (const { before, after } of zone.blocks.changesSince(other.blocks)) {
    yield* missingFrom(before === null ? [] : blockRecords(other, before), after === null ? [] : blockRecords(zone, after));
  }
}

function* missingFrom(known: Iterable<Buffer>, records: Iterable<Buffer>): Generator<Buffer> {
  const seen = new Set<string>();
  for (const record of known) seen.add(record.toString('latin1'));
  for (const record of records) if (!seen.has(record.toString('latin1'))) yield record;
}

function* blockRecords(zone: Zone, block: MasterBlock): Generator<Buffer> {
  for (const [prefix, node] of block.nodes.entries()) yield* nodeRecords(zone, Buffer.concat([prefix, block.label]), node);
}

/** The records of one name; `owner` is the wire name without the origin. */
function nodeRecords(zone: Zone, owner: Buffer, node: ZoneNode, withSoa = false): Buffer[] {
  const name = Buffer.concat([owner, QNAME_POINTER]);
  const anchor = { name: zone.origin, at: HEADER_BYTES };
  return node.rrsets
    .filter(({ type }) => withSoa === (type === TYPE.SOA))
    .flatMap(({ type, ttlSeconds, records }) => records.map((data) => encodeRecord(name, type, ttlSeconds, encodeData(data, anchor))));
}
