/**
 * Who may transfer: address ranges as `ip/prefix`, compared with the address a question came from.
 */
import { must } from '../assert.js';
import { parseIp } from './ip.js';

export interface AddressRange {
  readonly ip: Buffer;
  /** How many leading bits must be alike. */
  readonly bits: number;
}

/** Reads `ip` or `ip/prefix`, which the configuration has checked. */
export function addressRange(text: string): AddressRange {
  const [host = '', bits] = text.split('/');
  const ip = must(parseIp(host), `${text} is an address range`);
  // `::ffff:10.0.0.1/128` is one IPv4 address.
  const folded = host.includes(':') && ip.length === 4 ? 96 : 0;
  return { ip, bits: bits === undefined ? ip.length * 8 : Math.max(0, Number(bits) - folded) };
}

/** Whether one of the ranges holds this address, spelled as sockets spell it. */
export function isListed(ranges: readonly AddressRange[], address: string): boolean {
  const ip = parseIp(address);
  return ip !== null && ranges.some((range) => range.ip.length === ip.length && isAlike(range.ip, ip, range.bits));
}

function isAlike(a: Buffer, b: Buffer, bits: number): boolean {
  const whole = bits >> 3;
  if (!a.subarray(0, whole).equals(b.subarray(0, whole))) return false;
  const shift = 8 - (bits & 7);
  return shift === 8 || (a[whole] ?? 0) >> shift === (b[whole] ?? 0) >> shift;
}
