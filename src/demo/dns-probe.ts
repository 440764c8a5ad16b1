/**
 * A plain DNS client, as close to `dig +short NAME A` as it gets: what the demo's ledger and its stopwatch see.
 *
 * Deliberately not the agent's own read-back: one socket per agent, bare queries, and only the rcode and the A records read.
 */
import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { encodeQuery } from '../dns/encode.js';
import { knownName } from '../dns/name.js';
import { HEADER_BYTES, RCODE, TYPE } from '../dns/record.js';
import type { Address } from '../sentinel/wire/address.js';

/** `silent`: nothing came in time, or nobody listens. `refused`: any rcode but NOERROR. */
export type DnsReply =
  | { readonly kind: 'addresses'; readonly hosts: readonly string[] }
  | { readonly kind: 'refused'; readonly rcode: number }
  | { readonly kind: 'silent' };

const SILENT: DnsReply = { kind: 'silent' };
const DEADLINE_MS = 200;
const RCODE_NAMES = new Map<number, string>(Object.entries(RCODE).map(([name, code]) => [code, name]));

/** `127.0.0.2`, `SERVFAIL`, `no answer`. */
export function showReply(reply: DnsReply): string {
  if (reply.kind === 'silent') return 'no answer';
  if (reply.kind === 'refused') return RCODE_NAMES.get(reply.rcode) ?? `rcode ${reply.rcode}`;
  return reply.hosts.length === 0 ? 'no address' : reply.hosts.join(' ');
}

/** Reads a response that belongs to our own question (a plain name, so it is as long as the query); null = no response at all. */
export function readReply(message: Buffer, queryBytes: number): DnsReply | null {
  if (message.length < queryBytes || ((message[2] ?? 0) & 0x80) === 0) return null;
  const rcode = (message[3] ?? 0) & 15;
  if (rcode !== RCODE.NOERROR) return { kind: 'refused', rcode };
  const hosts: string[] = [];
  let at = queryBytes;
  for (let left = message.readUInt16BE(6); left > 0; left--) {
    at = endOfOwner(message, at);
    if (at + 10 > message.length) return null;
    const [type, end] = [message.readUInt16BE(at), at + 10 + message.readUInt16BE(at + 8)];
    if (end > message.length) return null;
    if (type === TYPE.A && end === at + 14) hosts.push(message.subarray(at + 10, end).join('.'));
    at = end;
  }
  return { kind: 'addresses', hosts };
}

function endOfOwner(message: Buffer, start: number): number {
  let at = start;
  for (let length = message[at] ?? 0; length !== 0; length = message[at] ?? 0) {
    if (length >= 0xc0) return at + 2;
    at += 1 + length;
  }
  return at + 1;
}

/** Asks one server for the A records of one name; questions may overlap. */
export class DnsProbe {
  readonly #socket: Socket = createSocket('udp4');
  readonly #qname: Buffer;
  readonly #queryBytes: number;
  readonly #waiting = new Map<number, (reply: DnsReply) => void>();
  readonly #connected: Promise<void>;
  #nextId = Math.floor(Math.random() * 0x1_0000);
  #closed = false;

  constructor(server: Address, name: string) {
    this.#qname = knownName(name);
    this.#queryBytes = HEADER_BYTES + this.#qname.length + 4;
    this.#socket.on('message', (message) => this.#take(message));
    // ICMP said that nobody listens: an answer too, and sooner than the deadline.
    this.#socket.on('error', () => this.#settleAll());
    this.#connected = new Promise((resolve) => this.#socket.once('connect', resolve));
    this.#socket.connect(server.port, server.host);
  }

  /** Never rejects. */
  async ask(): Promise<DnsReply> {
    await this.#connected;
    if (this.#closed) return SILENT;
    const id = (this.#nextId = (this.#nextId + 1) & 0xffff);
    return new Promise((resolve) => {
      const late = setTimeout(() => settle(SILENT), DEADLINE_MS);
      const settle = (reply: DnsReply): void => {
        clearTimeout(late);
        this.#waiting.delete(id);
        resolve(reply);
      };
      this.#waiting.set(id, settle);
      this.#socket.send(encodeQuery(id, this.#qname, TYPE.A), (error) => {
        if (error !== null) settle(SILENT);
      });
    });
  }

  /** The only address in the answer, or null. */
  async askHost(): Promise<string | null> {
    const reply = await this.ask();
    return reply.kind === 'addresses' ? (reply.hosts[0] ?? null) : null;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#settleAll();
    this.#socket.close();
  }

  #take(message: Buffer): void {
    const reply = readReply(message, this.#queryBytes);
    if (reply !== null) this.#waiting.get(message.readUInt16BE(0))?.(reply);
  }

  #settleAll(): void {
    for (const settle of [...this.#waiting.values()]) settle(SILENT);
  }
}
