/**
 * EDNS(0), RFC 6891: what the asker's OPT record says, and ours in return.
 *
 * Ours is version 0, size 1232, DO copied and no options, save Extended DNS Error 14 "Not Ready" (RFC 8914) with a SERVFAIL. The
 * asker's options (cookie, client subnet, NSID, padding, keepalive) are checked for their form and otherwise ignored, as is legal.
 */
import { RCODE, TYPE } from './record.js';

/** The largest UDP message ever sent: the size that passes every sane path unfragmented. */
export const MAX_UDP_BYTES = 1232;
/** The largest UDP message for an asker without EDNS. */
export const PLAIN_UDP_BYTES = 512;
/** An OPT record without options. */
export const OPT_BYTES = 11;

/** One sound OPT record of a query. */
export interface Edns {
  readonly udpBytes: number;
  readonly version: number;
  readonly dnssecOk: boolean;
}

/** Reads the OPT record whose class field begins at `at` and whose options are `[from, to)`; null when an option is cut. */
export function readEdns(message: Buffer, at: number, from: number, to: number): Edns | null {
  let option = from;
  while (option < to) {
    if (option + 4 > to) return null;
    option += 4 + message.readUInt16BE(option + 2);
  }
  if (option !== to) return null;
  return { udpBytes: message.readUInt16BE(at), version: message[at + 3] ?? 0, dnssecOk: ((message[at + 4] ?? 0) & 0x80) !== 0 };
}

/** What fits into one UDP reply to this asker: min(max(asked, 512), 1232), without OPT 512. */
export function udpLimit(edns: Edns | null): number {
  return edns === null ? PLAIN_UDP_BYTES : Math.min(Math.max(edns.udpBytes, PLAIN_UDP_BYTES), MAX_UDP_BYTES);
}

/** Extended DNS Error "Not Ready" as an option: code 15, length 2, info-code 14. */
const NOT_READY_OPTION = Buffer.from([0, 15, 0, 2, 0, 14]);

/** Our OPT record; `rcode` may exceed the four bits of the header, `notReady` adds the Extended DNS Error. */
export function encodeOpt(edns: Edns, rcode: number, notReady: boolean): Buffer {
  const options = notReady && rcode === RCODE.SERVFAIL ? NOT_READY_OPTION : Buffer.alloc(0);
  const opt = Buffer.alloc(OPT_BYTES + options.length);
  writeOpt(opt, 0, edns, rcode);
  opt.writeUInt16BE(options.length, OPT_BYTES - 2);
  options.copy(opt, OPT_BYTES);
  return opt;
}

/** Writes our OPT record without options at `at`; every byte of it is set. */
export function writeOpt(out: Buffer, at: number, edns: Edns, rcode: number): void {
  out[at] = 0;
  out[at + 1] = 0;
  out[at + 2] = TYPE.OPT;
  out[at + 3] = MAX_UDP_BYTES >> 8;
  out[at + 4] = MAX_UDP_BYTES & 0xff;
  out[at + 5] = rcode >> 4;
  out[at + 6] = 0;
  out[at + 7] = edns.dnssecOk ? 0x80 : 0;
  out[at + 8] = 0;
  out[at + 9] = 0;
  out[at + 10] = 0;
}
