/**
 * Record sets as data, and the numbers of RFC 1035, 2782, 6891 and 8945 that this server knows by name.
 *
 * A record set is all records of one owner and type; they share one TTL (RFC 2181 5.2) and are answered whole or not at all.
 */

export const HEADER_BYTES = 12;
export const CLASS_IN = 1;
export const CLASS_ANY = 255;

/** Types with a meaning here; every other number is a type like others (RFC 3597). */
export const TYPE = {
  A: 1, NS: 2, SOA: 6, TXT: 16, AAAA: 28, SRV: 33, OPT: 41, TKEY: 249, TSIG: 250, IXFR: 251, AXFR: 252, ANY: 255,
} as const;

/** Response codes; BADVERS is the one that needs the upper bits in the OPT record. */
export const RCODE = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, NOTAUTH: 9, BADVERS: 16 } as const;

/** The content of one record. Names are wire names, lower-cased. */
export type RecordData =
  | { readonly kind: 'address'; readonly ip: Buffer }
  | { readonly kind: 'ns'; readonly host: Buffer }
  | { readonly kind: 'soa'; readonly soa: Soa }
  | { readonly kind: 'txt'; readonly text: string }
  | { readonly kind: 'srv'; readonly port: number; readonly target: Buffer };

/** Start of authority; times in seconds. */
export interface Soa {
  readonly primaryServer: Buffer;
  readonly mailbox: Buffer;
  readonly serial: number;
  readonly refreshSeconds: number;
  readonly retrySeconds: number;
  readonly expireSeconds: number;
  readonly minimumSeconds: number;
}

/** All records of one type at one owner. */
export interface Rrset {
  readonly type: number;
  readonly ttlSeconds: number;
  readonly records: readonly RecordData[];
}

/** A or AAAA, by the length of the address. */
export function addressType(ip: Buffer): number {
  return ip.length === 4 ? TYPE.A : TYPE.AAAA;
}

/** The A set and the AAAA set of one owner; a family without an address has no set. */
export function addressRrsets(ips: readonly Buffer[], ttlSeconds: number): Rrset[] {
  return [TYPE.A, TYPE.AAAA].flatMap((type) => {
    const records = ips.filter((ip) => addressType(ip) === type).map((ip) => ({ kind: 'address' as const, ip }));
    return records.length === 0 ? [] : [{ type, ttlSeconds, records }];
  });
}
