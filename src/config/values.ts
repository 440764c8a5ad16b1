/**
 * The kinds of values that pointsman.yaml knows: one reader each, from raw yaml (or text of the environment) to a typed value.
 *
 * A reader returns the value or a sentence that names what it got and what it expected. The schema (schema.ts) puts them
 * together; nothing here knows a setting's name.
 */
import { isIP, isIPv6 } from 'node:net';
import { formatAddress, parseAddress } from '../sentinel/wire/address.js';
import type { Address } from '../sentinel/wire/address.js';
import { parseIdentity } from '../sentinel/wire/identity.js';
import type { ServerIdentity } from '../sentinel/wire/identity.js';
import { show } from './fault.js';

export type Reading<T> = { readonly kind: 'value'; readonly value: T } | { readonly kind: 'misfit'; readonly message: string };
export type Reader<T> = (raw: unknown) => Reading<T>;

const value = <T>(read: T): Reading<T> => ({ kind: 'value', value: read });
const misfit = (message: string): Reading<never> => ({ kind: 'misfit', message });

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
/** Longest duration taken: a month. Beyond it a timer of the runtime would overflow or the value is a slip. */
const MAX_DURATION_MS = 31 * 24 * 3_600_000;

/** `250ms`, `1s`, `2m`, `1h` → milliseconds. A bare number has no unit and is refused, 0 excepted. */
export const duration: Reader<number> = (raw) => {
  const match = /^(\d{1,12})(ms|s|m|h)$/.exec(typeof raw === 'string' ? raw : '');
  const ms = raw === 0 || raw === '0' ? 0 : Number(match?.[1]) * (UNIT_MS[match?.[2] ?? ''] ?? NaN);
  if (Number.isNaN(ms)) return misfit(`bad duration ${show(raw)}, expected e.g. 250ms, 1s, 2m`);
  return ms > MAX_DURATION_MS ? misfit(`duration ${show(raw)} is longer than 744h`) : value(ms);
};

/** A {@link duration} above zero. */
export const positiveDuration: Reader<number> = (raw) => {
  const read = duration(raw);
  return read.kind === 'value' && read.value === 0 ? misfit(`bad duration ${show(raw)}, expected more than 0`) : read;
};

/** A {@link duration} in whole seconds, as DNS has no finer ones. */
export const wholeSeconds: Reader<number> = (raw) => {
  const read = duration(raw);
  if (read.kind === 'misfit') return read;
  return read.value % 1000 === 0 ? value(read.value / 1000) : misfit(`bad duration ${show(raw)}, expected whole seconds, e.g. 1s`);
};

const SIZE_UNIT: Readonly<Record<string, number>> = { kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };

/** `512kb`, `10mb`, `1gb` (powers of 1024, as redis.conf has them) → bytes. */
export const size: Reader<number> = (raw) => {
  const match = /^([1-9]\d{0,5})(kb|mb|gb)$/i.exec(typeof raw === 'string' ? raw : '');
  if (match === null) return misfit(`bad size ${show(raw)}, expected e.g. 512kb, 10mb`);
  return value(Number(match[1]) * (SIZE_UNIT[(match[2] ?? '').toLowerCase()] ?? 1));
};

export const text: Reader<string> = (raw) =>
  typeof raw === 'string' && raw !== '' && !/[\0\r\n]/.test(raw) ? value(raw) : misfit(`bad value ${show(raw)}, expected a line of text`);

/** The path of a file; the loader takes relative ones from the yaml's own folder. */
export const path: Reader<string> = (raw) => {
  const read = text(raw);
  return read.kind === 'value' ? read : misfit(`bad path ${show(raw)}, expected the path of a file`);
};

/** Text that begins with a slash: programs are never looked for in PATH. */
export const absolutePath: Reader<string> = (raw) => {
  const read = text(raw);
  return read.kind === 'value' && !read.value.startsWith('/') ? misfit(`bad path ${show(raw)}, expected an absolute one`) : read;
};

export const flag: Reader<boolean> = (raw) =>
  (typeof raw === 'boolean' ? value(raw) : misfit(`bad value ${show(raw)}, expected true or false`));

/** A whole number within bounds. */
export const integer = (min: number, max: number): Reader<number> => (raw) =>
  typeof raw === 'number' && Number.isInteger(raw) && raw >= min && raw <= max
    ? value(raw)
    : misfit(`bad number ${show(raw)}, expected a whole number from ${min} to ${max}`);

/** One of a few words. */
export const oneOf = <const W extends string>(...words: readonly W[]): Reader<W> => (raw) => {
  const word = words.find((candidate) => candidate === raw);
  const choice = words.length === 1 ? words[0] : `one of ${words.join(', ')}`;
  return word === undefined ? misfit(`bad value ${show(raw)}, expected ${choice}`) : value(word);
};

/** `redis-7.2.4`, `valkey-8.0.1`: the server that a sentinel presents itself as. */
export const identity: Reader<ServerIdentity> = (raw) => {
  const read = parseIdentity(typeof raw === 'string' ? raw : '');
  return read === null ? misfit(`bad identity ${show(raw)}, expected e.g. redis-7.2.4 or valkey-8.0.1`) : value(read);
};

/** Where to listen: an IP (or `localhost`) and a port, IPv6 in brackets. Port 0 lets the system choose. */
export const listenAddress: Reader<Address> = (raw) => {
  const address = typeof raw === 'string' ? parseAddress(raw) : null;
  const bracketed = typeof raw === 'string' && raw.startsWith('[');
  if (address === null || !(bracketed ? isIPv6(address.host) : isIP(address.host) === 4 || address.host === 'localhost')) {
    return misfit(`bad address ${show(raw)}, expected ip:port or [ipv6]:port`);
  }
  return value(address);
};

/** Where to send to: an IP and a port from 1, IPv6 in brackets. */
export const ipAndPort: Reader<Address> = (raw) => {
  const read = listenAddress(raw);
  const isTarget = read.kind === 'value' && isIP(read.value.host) !== 0 && read.value.port !== 0;
  return isTarget ? read : misfit(`bad address ${show(raw)}, expected ip:port or [ipv6]:port`);
};

/** A node's address as clients or agents write it: `ip:port`, `[ipv6]:port` or `name:port`, port from 1. */
export const nodeAddress: Reader<Address> = (raw) => {
  const address = typeof raw === 'string' ? parseAddress(raw) : null;
  if (address === null || address.port === 0) return misfit(`bad address ${show(raw)}, expected host:port`);
  if (!isPlausibleHost(address.host)) return misfit(`bad address ${show(raw)}, ${show(address.host)} is neither an ip nor a host name`);
  return value(address);
};

/** All digits and dots but no IPv4 is a slip like `10.0.0.256`, not a host name. */
function isPlausibleHost(host: string): boolean {
  if (isIP(host) !== 0) return true;
  return !/^[\d.]+$/.test(host) && /^(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?$/.test(host) && host.length <= 253;
}

/** The canonical text of a {@link nodeAddress}. */
export const nodeAddressText: Reader<string> = (raw) => {
  const read = nodeAddress(raw);
  return read.kind === 'value' ? value(formatAddress(read.value)) : read;
};

export const ip: Reader<string> = (raw) =>
  (typeof raw === 'string' && isIP(raw) !== 0 ? value(raw) : misfit(`bad ip ${show(raw)}, expected an IPv4 or IPv6 address`));

/** `10.0.0.100/32`; without a prefix it is the single address (/32, /128). */
export const ipPrefix: Reader<string> = (raw) => {
  const [host = '', length, ...rest] = typeof raw === 'string' ? raw.split('/') : [];
  const widest = isIP(host) === 4 ? 32 : 128;
  const fits = isIP(host) !== 0 && rest.length === 0 && (length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= widest));
  if (!fits) return misfit(`bad address ${show(raw)}, expected ip or ip/prefix`);
  return value(`${host}/${length === undefined ? widest : Number(length)}`);
};

/** A domain name: lower case, ending in a dot. Letters, digits, hyphens and underscores; at most 63 per label, 253 in all. */
export const domain: Reader<string> = (raw) => {
  const labels = (typeof raw === 'string' ? raw.toLowerCase().replace(/\.$/, '') : '').split('.');
  const sound = labels.every((label) => /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label)) && labels.join('.').length <= 253;
  return sound ? value(`${labels.join('.')}.`) : misfit(`bad name ${show(raw)}, expected a domain name like redis.internal.`);
};

/** A zone's name: a {@link domain}, but not below `local.`, which multicast DNS owns (RFC 6762), nor all digits at its end. */
export const zone: Reader<string> = (raw) => {
  const read = domain(raw);
  if (read.kind === 'misfit') return read;
  if (/(^|\.)local\.$/.test(read.value)) {
    return misfit(`zone ${show(raw)} is refused, .local belongs to multicast DNS; use e.g. redis.internal.`);
  }
  return /(^|\.)\d+\.$/.test(read.value) ? misfit(`bad zone ${show(raw)}, its last label is a number`) : read;
};

/** One DNS label of a host name: what a master's name is replaced by. */
export const label: Reader<string> = (raw) =>
  typeof raw === 'string' && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(raw)
    ? value(raw.toLowerCase())
    : misfit(`bad label ${show(raw)}, expected up to 63 letters, digits and hyphens`);

/** `http://host:port` or `https://…`, nothing after the port; a bare `host:port` (as CONSUL_HTTP_ADDR may be) means http. */
export const httpUrl: Reader<string> = (raw) => {
  const spelled = typeof raw === 'string' && !raw.includes('://') ? `http://${raw}` : String(raw);
  const url = URL.canParse(spelled) ? new URL(spelled) : null;
  const bare = url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '' && url.pathname === '/' && url.search === '';
  if (typeof raw !== 'string' || !bare) {
    return misfit(`bad url ${url?.password ? 'with a password' : show(raw)}, expected e.g. http://127.0.0.1:8500`);
  }
  if (url.username !== '' || url.password !== '') return misfit('bad url, a user or password does not belong into it');
  return value(url.origin);
};
