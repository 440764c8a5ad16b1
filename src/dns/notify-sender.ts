/**
 * Sends NOTIFY to the secondaries (RFC 1996), each until it answers or a newer serial takes over.
 *
 * A socket of its own: bound to the address that the secondaries list as their primary, and deaf to everything but replies from
 * those asked. A request gets lost, a secondary is down: it is repeated after 0.25 s, then twice as long, up to 30 s. Any proven
 * answer ends it, a refusal too (RFC 1996 3.14), which the log then tells. Changes within some milliseconds are told together.
 */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import type { RemoteInfo, Socket } from 'node:dgram';
import { messageOf } from '../errors.js';
import { formatAddress } from '../sentinel/wire/address.js';
import type { Address } from '../sentinel/wire/address.js';
import type { Millis } from '../time.js';
import { parseIp } from './ip.js';
import { LimitedLog } from './limited-log.js';
import type { DnsLog } from './limited-log.js';
import { encodeNotify, readNotifyReply } from './notification.js';
import type { SentNotify } from './notification.js';
import { RCODE } from './record.js';
import { signed } from './tsig.js';
import type { TsigKey } from './tsig.js';
import type { Zone } from './zone.js';

const FIRST_REPEAT_MS = 250;
const LONGEST_REPEAT_MS = 30_000;
/** Changes closer together than this share one NOTIFY, all but the first. */
const APART_MS = 20;
/** A signature is used again for a repetition, so that an answer to either counts; not near the end of its time. */
const SIGNATURE_MS = 60_000;
/** So many repetitions without an answer are told in the log. */
const SILENT_AFTER = 5;

export interface NotifyOptions {
  /** IP addresses with port. */
  readonly targets: readonly Address[];
  /** The address that the secondaries list as their primary, by family; absent: the system chooses by its routes. */
  readonly sources: { readonly 4?: string; readonly 6?: string };
  readonly key: TsigKey | null;
  readonly clock: () => Millis;
  readonly log: DnsLog;
}

type Family = 4 | 6;
const familyOf = ({ host }: Address): Family => (host.includes(':') ? 6 : 4);

export class NotifySender {
  readonly #options: NotifyOptions;
  readonly #tellings: readonly Telling[];
  readonly #sockets = new Map<Family, Socket>();
  readonly #log: LimitedLog;
  #closed = false;

  constructor(options: NotifyOptions) {
    this.#options = options;
    this.#log = new LimitedLog(options.log);
    this.#tellings = options.targets.map((target) => new Telling(target, options, (message) => this.#send(target, message)));
  }

  /** Tells every secondary of this zone; what was not answered yet is dropped in its favour. */
  announce(zone: Zone): void {
    if (this.#closed) return;
    for (const telling of this.#tellings) telling.begin(zone);
  }

  /** Ends all repetitions and frees the ports. */
  close(): void {
    this.#closed = true;
    for (const telling of this.#tellings) telling.stop();
    for (const family of [...this.#sockets.keys()]) this.#drop(family);
  }

  #send(target: Address, message: Buffer): void {
    const socket = this.#socketFor(familyOf(target));
    const failed = (error: unknown): void => this.#log.write('warn', 'dns notify not sent', () => ({ to: formatAddress(target), error: messageOf(error) }));
    try {
      socket.send(message, target.port, target.host, (error) => {
        if (error !== null) failed(error);
      });
    } catch (error) {
      failed(error);
    }
  }

  #socketFor(family: Family): Socket {
    const open = this.#sockets.get(family);
    if (open !== undefined) return open;
    const socket = createSocket({ type: family === 4 ? 'udp4' : 'udp6', lookup: (host, _options, done) => done(null, host, family) });
    const address = this.#options.sources[family];
    socket.on('message', (message, sender) => this.#receive(message, sender));
    // Its address may not be on this host yet; the next repetition tries with a new socket.
    socket.on('error', (error) => {
      this.#log.write('warn', 'dns notify not sent', () => ({ source: address, error: messageOf(error) }));
      this.#drop(family, socket);
    });
    socket.bind({ port: 0, ...(address === undefined ? {} : { address }) });
    socket.unref();
    this.#sockets.set(family, socket);
    return socket;
  }

  #drop(family: Family, socket = this.#sockets.get(family)): void {
    if (this.#sockets.get(family) === socket) this.#sockets.delete(family);
    try {
      socket?.close();
    } catch (error) {
      this.#options.log.debug({ error: messageOf(error) }, 'dns notify socket was closed already');
    }
  }

  #receive(message: Buffer, { address, port }: RemoteInfo): void {
    const ip = parseIp(address);
    for (const telling of this.#tellings) {
      if (telling.target.port === port && ip !== null && parseIp(telling.target.host)?.equals(ip) === true) telling.hear(message);
    }
  }
}

interface Request {
  readonly message: Buffer;
  readonly sent: SentNotify;
  readonly madeAt: Millis;
}

/** One secondary, and what it has still to be told. */
class Telling {
  readonly target: Address;
  readonly #options: NotifyOptions;
  readonly #send: (message: Buffer) => void;
  readonly #log: LimitedLog;
  #zone: Zone | null = null;
  #id = 0;
  #request: Request | null = null;
  #attempts = 0;
  #timer: NodeJS.Timeout | null = null;
  #lastSentMs = -Infinity;

  constructor(target: Address, options: NotifyOptions, send: (message: Buffer) => void) {
    this.target = target;
    this.#options = options;
    this.#send = send;
    this.#log = new LimitedLog(options.log);
  }

  begin(zone: Zone): void {
    this.#zone = zone;
    this.#id = randomInt(0x1_0000);
    this.#request = null;
    this.#attempts = 0;
    const waitMs = this.#lastSentMs + APART_MS - performance.now();
    if (waitMs > 0) this.#wait(waitMs);
    else this.#try();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#zone = null;
  }

  hear(message: Buffer): void {
    const { log, clock } = this.#options;
    const zone = this.#zone;
    if (zone === null || this.#request === null) return;
    const reply = readNotifyReply(message, this.#request.sent, Math.floor(clock() / 1000));
    if (reply.kind === 'stray') return;
    const context = (): object => ({ to: formatAddress(this.target), serial: zone.serial, rcode: reply.rcode });
    if (reply.kind === 'unproven') return this.#log.write('warn', 'dns notify answered without a valid signature', context);
    if (reply.rcode !== RCODE.NOERROR) this.#log.write('warn', 'dns notify refused', context);
    log.debug({ ...context(), ms: Math.round(performance.now() - this.#lastSentMs) }, 'dns notify answered');
    this.stop();
  }

  #try(): void {
    const zone = this.#zone;
    if (zone === null) return;
    this.#request = this.#current(zone);
    this.#lastSentMs = performance.now();
    this.#send(this.#request.message);
    this.#attempts += 1;
    if (this.#attempts > SILENT_AFTER) {
      this.#log.write('warn', 'dns notify unanswered', () => ({ to: formatAddress(this.target), serial: zone.serial, attempts: this.#attempts }));
    }
    this.#wait(Math.min(FIRST_REPEAT_MS * 2 ** (this.#attempts - 1), LONGEST_REPEAT_MS));
  }

  #wait(ms: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#try(), ms).unref();
  }

  #current(zone: Zone): Request {
    const { key, clock } = this.#options;
    const now = clock();
    const kept = this.#request;
    if (kept !== null && Math.abs(now - kept.madeAt) < SIGNATURE_MS) return kept;
    const bare = encodeNotify(this.#id, zone);
    const made = key === null ? null : signed(key, bare, null, Math.floor(now / 1000));
    const signature = key === null || made === null ? null : { key, mac: made.mac };
    return { message: made?.message ?? bare, sent: { id: this.#id, origin: zone.origin, signature }, madeAt: now };
  }
}
