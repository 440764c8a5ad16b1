/**
 * The listeners: UDP and TCP on each address, started together or not at all.
 *
 * Port 0 picks a port that is free for both. IPv6 sockets take IPv6 only, so that `0.0.0.0` and `[::]` can share a port.
 */
import type { AddressInfo, Server } from 'node:net';
import { once } from 'node:events';
import { AgentError, EXIT, FatalError, messageOf } from '../errors.js';
import { answerQuery } from './answer.js';
import { answerGuarded } from './guarded-answer.js';
import type { TransferGate } from './guarded-answer.js';
import { parseListenAddress } from './ip.js';
import type { DnsLog } from './limited-log.js';
import type { RateLimit } from './rate-limit.js';
import { Responder, sumOf } from './responder.js';
import type { Answerer, DnsCounters } from './responder.js';
import { DEFAULT_TCP_LIMITS, TcpTransport } from './tcp-transport.js';
import type { TcpLimits } from './tcp-transport.js';
import { UdpTransport } from './udp-transport.js';
import type { Zone } from './zone.js';

/** An address on which both transports listen, with the real port. */
export interface BoundAddress {
  readonly host: string;
  readonly port: number;
}

export interface DnsListeners {
  readonly addresses: readonly BoundAddress[];
  /** As they are now, of all processes. */
  readonly counters: Readonly<DnsCounters>;
  /** Frees the ports and ends all connections; may be called again. */
  close(): Promise<void>;
}

export interface ListenOptions {
  /** `127.0.0.1:5301`, `[::]:5353`; port 0 picks one. */
  readonly listen: readonly string[];
  /** Asked once per message, so a swapped zone counts from the next message on. */
  readonly zone: () => Zone;
  /** Who may transfer the zone, asked once per message; absent or null: nobody, and no key is shared. */
  readonly gate?: () => TransferGate | null;
  /** Asked once per UDP reply; absent or null: no limit. */
  readonly rateLimit?: () => RateLimit | null;
  /** Who answers UDP instead of this process. */
  readonly workers?: UdpWorkers | null;
  readonly log: DnsLog;
  readonly tcpLimits?: TcpLimits;
}

/** Other processes that listen for UDP, all on the same sockets. */
export interface UdpWorkers {
  /** Rejects with the error of the socket. */
  open(address: BoundAddress): Promise<void>;
  shut(address: BoundAddress): Promise<void>;
  counters(): DnsCounters;
}

interface Pair {
  readonly tcp: TcpTransport;
  readonly bound: BoundAddress;
  readonly closeUdp: () => Promise<void>;
}

const PORT_PICKS = 20;

/**
 * Opens every listener.
 *
 * Rejects with FatalError PORT_IN_USE or LISTEN_FAILED (address not on this host, no right to the port), with nothing left open.
 */
export async function startDnsListeners(options: ListenOptions): Promise<DnsListeners> {
  const { gate, workers = null } = options;
  const answer: Answerer = gate === undefined
    ? answerQuery
    : (zone, message, transport, from) => answerGuarded(gate(), zone, message, transport, from);
  const responder = new Responder(options.zone, options.log, answer, options.rateLimit);
  const pairs: Pair[] = [];
  try {
    for (const text of options.listen) pairs.push(await openPair(text, responder, options.tcpLimits ?? DEFAULT_TCP_LIMITS, workers));
  } catch (error) {
    await Promise.all(pairs.map(closePair));
    throw error;
  }
  let closing: Promise<unknown> | null = null;
  return {
    addresses: pairs.map(({ bound }) => bound),
    get counters() {
      return workers === null ? responder.counters : sumOf([responder.counters, workers.counters()]);
    },
    close: async () => {
      closing ??= Promise.all(pairs.map(closePair));
      await closing;
    },
  };
}

async function openPair(text: string, responder: Responder, limits: TcpLimits, workers: UdpWorkers | null): Promise<Pair> {
  const address = parseListenAddress(text);
  if (address === null) throw new AgentError('CONFIG_INVALID', `dns cannot listen on ${text}: no ip address with a port`);
  for (let pick = 1; ; pick++) {
    const tcp = await listenTcp(address, text, responder, limits);
    const bound = { host: address.host, port: (tcp.address() as AddressInfo).port };
    try {
      return { tcp, bound, closeUdp: await openUdp(bound, text, responder, workers) };
    } catch (error) {
      await closeTcp(tcp);
      const taken = error instanceof AgentError && error.code === 'PORT_IN_USE';
      if (address.port !== 0 || !taken || pick === PORT_PICKS) throw error;
    }
  }
}

/** Resolves to what closes it. */
async function openUdp(bound: BoundAddress, text: string, responder: Responder, workers: UdpWorkers | null): Promise<() => Promise<void>> {
  if (workers === null) {
    const udp = await bindUdp(bound.host, bound.port, text, responder);
    return () => closeUdp(udp);
  }
  await workers.open(bound).catch((error: unknown) => {
    throw listenError(error, text);
  });
  return () => workers.shut(bound);
}

async function bindUdp(host: string, port: number, text: string, responder: Responder): Promise<UdpTransport> {
  const udp = new UdpTransport(host.includes(':') ? 6 : 4, responder);
  try {
    const listening = once(udp, 'listening');
    udp.bind({ address: host, port, exclusive: true });
    await listening;
  } catch (error) {
    await closeUdp(udp);
    throw listenError(error, text);
  }
  udp.on('error', (error) => responder.noteSocketError(error, 'udp'));
  return udp;
}

async function listenTcp(bound: BoundAddress, text: string, responder: Responder, limits: TcpLimits): Promise<TcpTransport> {
  const tcp = new TcpTransport(responder, limits);
  try {
    const listening = once(tcp, 'listening');
    tcp.listen({ host: bound.host, port: bound.port, ipv6Only: true, exclusive: true });
    await listening;
  } catch (error) {
    throw listenError(error, text);
  }
  tcp.on('error', (error: Error) => responder.noteSocketError(error, 'tcp'));
  return tcp;
}

function listenError(error: unknown, text: string): FatalError {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null;
  const context = { listen: text, cause: code };
  if (code === 'EADDRINUSE') {
    return new FatalError('PORT_IN_USE', `dns cannot listen on ${text}: address already in use`, EXIT.portInUse, context, { cause: error });
  }
  const reasons: Record<string, string> = { EACCES: 'permission denied', EADDRNOTAVAIL: 'address is not on this host' };
  const reason = (typeof code === 'string' ? reasons[code] : undefined) ?? messageOf(error);
  return new FatalError('LISTEN_FAILED', `dns cannot listen on ${text}: ${reason}`, EXIT.portInUse, context, { cause: error });
}

async function closePair({ closeUdp: close, tcp }: Pair): Promise<void> {
  const closed = closeTcp(tcp);
  tcp.destroyConnections();
  await Promise.all([close(), closed]);
}

function closeUdp(udp: UdpTransport): Promise<void> {
  return new Promise((resolve) => {
    udp.close(() => resolve());
  });
}

function closeTcp(tcp: Server): Promise<void> {
  return new Promise((resolve) => {
    tcp.close(() => resolve());
  });
}
