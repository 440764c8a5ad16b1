/**
 * Addresses on the wire: `host:port`, with IPv6 in brackets where the two are joined.
 */

/** Where a server can be reached. `host` is an IP in text form or a host name, never bracketed. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** `10.0.0.1:6379`, `[::1]:6379`, `redis-a:6379`. */
export function formatAddress(address: Address): string {
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** Reads what {@link formatAddress} writes; null when the text is no `host:port` with a port of 0..65535. */
export function parseAddress(text: string): Address | null {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^\s:[\]]+)):(\d{1,5})$/.exec(text);
  if (match === null) return null;
  const port = Number(match[3]);
  if (port > 65535) return null;
  return { host: match[1] ?? match[2] ?? '', port };
}

/** Same port and same host; host names compare without case. */
export function sameAddress(a: Address, b: Address): boolean {
  return a.port === b.port && a.host.toLowerCase() === b.host.toLowerCase();
}

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/;

/** Whether `text` is a dotted quad, `0.0.0.0` to `255.255.255.255`. */
export function isIpv4(text: string): boolean {
  return IPV4.test(text);
}

/** Whether `text` is an IPv6 address in any of its text forms, with or without a `%zone`, without brackets. */
export function isIpv6(text: string): boolean {
  const match = /^([0-9a-fA-F:]*:)((?:\d+\.){3}\d+|[0-9a-fA-F]{0,4})(?:%[\w.-]+)?$/.exec(text);
  if (match === null) return false;
  const [, head = '', tail = ''] = match;
  if (tail.includes('.') && !isIpv4(tail)) return false;
  // A dotted tail stands for two groups.
  const halves = (head + (tail.includes('.') ? '0:0' : tail)).split('::');
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  if (halves.length > 2 || groups.some((group) => !/^[0-9a-fA-F]{1,4}$/.test(group))) return false;
  return halves.length === 2 ? groups.length <= 7 : groups.length === 8;
}

/** Whether `text` is an IP address and not a host name. */
export function isIp(text: string): boolean {
  return isIpv4(text) || isIpv6(text);
}
