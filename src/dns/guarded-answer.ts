/**
 * Signed queries and zone transfers: everything that needs to know who asks. Other queries pass by at the cost of two comparisons.
 *
 * Order: form, TSIG (check 4 of the order of checks), then for a transfer: the asker's address, the zone's name, whether the zone may
 * be given out now. Where a key is configured, a transfer needs both, a listed address and a signature.
 */
import { must } from '../assert.js';
import type { Millis } from '../time.js';
import { isListed } from './address-range.js';
import type { AddressRange } from './address-range.js';
import { answerRead, answerSound, refuse, refuseForm } from './answer.js';
import type { Transport } from './answer.js';
import type { Deliveries } from './deliveries.js';
import { readQuery } from './query.js';
import type { Query } from './query.js';
import { CLASS_IN, RCODE, TYPE } from './record.js';
import { asksForZone, difference, isAtLeast, packed, readIxfrSerial, soaReply, wholeZone } from './transfer.js';
import type { Signing } from './transfer.js';
import { signed, tsigBytes, verify, withSignedError, withUnsignedError } from './tsig.js';
import type { TsigKey } from './tsig.js';
import type { Zone } from './zone.js';

/** Who may have the zone, and how they prove it. */
export interface TransferGate {
  readonly key: TsigKey | null;
  readonly allow: readonly AddressRange[];
  readonly deliveries: Deliveries;
  /** Why nobody may have this zone now; null when it may be given out. */
  readonly whyClosed: (zone: Zone, now: Millis) => string | null;
  readonly clock: () => Millis;
}

/** The messages of one reply, made when they are asked for. */
export interface TransferStream {
  readonly kind: 'axfr' | 'ixfr';
  readonly serial: number;
  /** The serial that the asker has; null when it asked for the whole zone. */
  readonly from: number | null;
  readonly messages: Iterator<Buffer, void>;
}

export type Reply = Buffer | TransferStream | null;

/** The reply to one received message, or null for silence. `from`: the sender's address. Never throws for anything that was received. */
export function answerGuarded(gate: TransferGate | null, zone: Zone, message: Buffer, transport: Transport, from: string): Reply {
  const query = readQuery(message);
  if (query === null) return null;
  const { tsig, qtype } = query;
  const wantsTransfer = qtype === TYPE.IXFR || qtype === TYPE.AXFR;
  if (gate === null || (tsig === null && !wantsTransfer)) return answerRead(zone, message, query, transport);
  if (query.opcode !== 0 || !query.sound) return refuseForm(message, query);

  const { key, clock } = gate;
  const nowSeconds = (): number => Math.floor(clock() / 1000);
  let signing: Signing | null = null;
  if (tsig !== null) {
    const refusal = refuseSignature(key, message, query, nowSeconds());
    if (refusal !== null) return refusal;
    signing = { key: must(key, 'a valid signature has a key'), requestMac: tsig.mac, nowSeconds };
  }
  const isPlain = query.qclass === CLASS_IN && (query.edns?.version ?? 0) === 0;
  if (wantsTransfer && isPlain) return transferReply(gate, zone, message, query, transport, from, signing);
  return signedReply(answerSound(zone, message, query, transport, signing === null ? 0 : tsigBytes(signing.key)), signing);
}

/** The reply to a signature that is not right, null when it is (RFC 8945 5.2). */
function refuseSignature(key: TsigKey | null, message: Buffer, query: Query, nowSeconds: number): Buffer | null {
  const tsig = must(query.tsig, 'a signed query has a signature');
  const verdict = verify(key, message, tsig, null, nowSeconds);
  if (verdict.kind === 'valid') return null;
  if (verdict.kind === 'malformed') return refuse(message, query, RCODE.FORMERR);
  const reply = refuse(message, query, RCODE.NOTAUTH);
  if (verdict.kind === 'unsigned') return withUnsignedError(reply, tsig, verdict.error);
  return withSignedError(must(key, 'a valid MAC has a key'), reply, tsig, verdict.error, nowSeconds);
}

function signedReply(reply: Buffer, signing: Signing | null): Buffer {
  return signing === null ? reply : signed(signing.key, reply, signing.requestMac, signing.nowSeconds()).message;
}

function transferReply(
  gate: TransferGate, zone: Zone, message: Buffer, query: Query, transport: Transport, from: string, signing: Signing | null,
): Reply {
  const isIxfr = query.qtype === TYPE.IXFR;
  const refused = (rcode: number): Buffer => signedReply(refuse(message, query, rcode), signing);
  // RFC 5936 4.2: a whole zone does not fit a datagram, and nothing defines what a part of one would mean.
  if (!isIxfr && transport === 'udp') return refused(RCODE.NOTIMP);
  if (!isListed(gate.allow, from) || (gate.key !== null && signing === null)) return refused(RCODE.REFUSED);
  if (!asksForZone(message, query, zone.origin)) return refused(RCODE.NOTAUTH);
  const has = isIxfr ? readIxfrSerial(message, query, zone.origin) : null;
  if (isIxfr && has === null) return refused(RCODE.FORMERR);
  if (gate.whyClosed(zone, gate.clock()) !== null) return refused(RCODE.SERVFAIL);

  const isCurrent = has !== null && isAtLeast(has, zone.serial);
  if (isCurrent || transport === 'udp') return signedReply(soaReply(message, query, zone), signing);
  const base = has === null ? null : gate.deliveries.find(from, has);
  const records = base === null ? wholeZone(zone) : difference(base, zone);
  const messages = packed(message, query, records, signing, () => gate.deliveries.note(from, zone));
  return { kind: base === null ? 'axfr' : 'ixfr', serial: zone.serial, from: has, messages };
}
