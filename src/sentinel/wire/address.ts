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
  return a.port === b.port && (a.host === b.host || a.host.toLowerCase() === b.host.toLowerCase());
}

/** Whether the text of `a` stands before that of `b`. */
export function precedes(a: Address, b: Address): boolean {
  const isAlike = a.host.length === b.host.length && a.host.includes(':') === b.host.includes(':');
  // The texts differ first where the hosts do: no need to make them.
  if (isAlike && a.host !== b.host) return a.host < b.host;
  return formatAddress(a) < formatAddress(b);
}
