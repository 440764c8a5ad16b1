/**
 * IP addresses in text and in bytes, and which of them may be told to clients at all.
 *
 * Four bytes are IPv4, sixteen IPv6; an IPv4 address mapped into IPv6 counts as the IPv4 address it is. Loopback, unspecified
 * and link-local addresses mean something else on every host, so they are never published unless the operator allows it.
 */
import { parseAddress } from '../sentinel/wire/address.js';
import type { Address } from '../sentinel/wire/address.js';

const MAPPED_PREFIX = Buffer.from('00000000000000000000ffff', 'hex');

/** 4 or 16 bytes; null when the text is no IP address. A zone (`%eth0`) is cut off, leading zeros in IPv4 are refused. */
export function parseIp(text: string): Buffer | null {
  if (!text.includes(':')) return parseIpv4(text);
  const bytes = parseIpv6(text.split('%', 1)[0] ?? '');
  return bytes !== null && bytes.subarray(0, 12).equals(MAPPED_PREFIX) ? Buffer.from(bytes.subarray(12)) : bytes;
}

function parseIpv4(text: string): Buffer | null {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return null;
  return Buffer.from(parts.map(Number));
}

function parseIpv6(text: string): Buffer | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const [head, tail] = [groupsOf(halves[0] ?? '', halves.length === 1), groupsOf(halves[1] ?? '', true)];
  if (head === null || tail === null) return null;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const bytes = Buffer.alloc(16);
  [...head, ...new Array<number>(missing).fill(0), ...tail].forEach((group, index) => bytes.writeUInt16BE(group, index * 2));
  return bytes;
}

/** The 16-bit groups of one side of `::`; only the last part of the whole text may be dotted. */
function groupsOf(text: string, mayEndDotted: boolean): number[] | null {
  if (text === '') return [];
  const parts = text.split(':');
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    const dotted = mayEndDotted && index === parts.length - 1 && part.includes('.') ? parseIpv4(part) : null;
    if (dotted !== null) groups.push(dotted.readUInt16BE(0), dotted.readUInt16BE(2));
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(parseInt(part, 16));
    else return null;
  }
  return groups;
}

/** The label under which a node's own address is found: `n-10-0-0-1`, `n-2001-db8-0-0-0-0-0-1` (never shortened). */
export function nodeLabel(ip: Buffer): string {
  if (ip.length === 4) return `n-${[...ip].join('-')}`;
  return `n-${[0, 2, 4, 6, 8, 10, 12, 14].map((at) => ip.readUInt16BE(at).toString(16)).join('-')}`;
}

/** Why clients must not get this host as an address; null when they may. `host` is an IP or a host name. */
export function whyNotPublishable(host: string, allowLoopback: boolean): string | null {
  const ip = parseIp(host);
  if (ip === null) return 'is a host name, which an address record cannot hold';
  if (allowLoopback) return null;
  const kind = localKindOf(ip);
  return kind === null ? null : `is ${kind} (allow-loopback is off)`;
}

function localKindOf(ip: Buffer): string | null {
  const [first = 0, second = 0] = ip;
  if (ip.length === 4) {
    if (first === 127) return 'a loopback address';
    if (first === 0) return 'an unspecified address';
    return first === 169 && second === 254 ? 'a link-local address' : null;
  }
  if (ip.subarray(0, 15).every((byte) => byte === 0)) {
    if (ip[15] === 1) return 'a loopback address';
    if (ip[15] === 0) return 'an unspecified address';
  }
  return first === 0xfe && (second & 0xc0) === 0x80 ? 'a link-local address' : null;
}

/** Reads one entry of `dns.listen` (`127.0.0.1:5301`, `[::]:5353`); null when it is no IP address with a port. */
export function parseListenAddress(text: string): Address | null {
  const address = parseAddress(text);
  return address !== null && parseIp(address.host) !== null ? address : null;
}
