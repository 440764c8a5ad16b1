/**
 * Asking our own listener over the wire, as a client would: the read-back behind "published".
 *
 * A datagram can get lost even on loopback when the socket is full, so the question is repeated until the signal ends it. A reply
 * counts only from the address asked, with our id and our question.
 */
import { createSocket } from 'node:dgram';
import { randomInt } from 'node:crypto';
import { encodeQuery } from './encode.js';
import type { BoundAddress } from './listeners.js';
import { HEADER_BYTES } from './record.js';

const REPEAT_MS = 150;

/** A wildcard listener is asked at loopback. */
function reachable(address: BoundAddress): BoundAddress {
  if (address.host === '0.0.0.0') return { ...address, host: '127.0.0.1' };
  return /^[0:]+$/.test(address.host) ? { ...address, host: '::1' } : address;
}

/** The raw reply to one question; rejects with the signal's reason, or with the socket's error. */
export function askOverUdp(listener: BoundAddress, qname: Buffer, qtype: number, signal: AbortSignal): Promise<Buffer> {
  const { host, port } = reachable(listener);
  const query = encodeQuery(randomInt(0x1_0000), qname, qtype);
  const question = query.subarray(HEADER_BYTES);
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const family = host.includes(':') ? 6 : 4;
    const socket = createSocket({ type: family === 6 ? 'udp6' : 'udp4', lookup: (name, _options, done) => done(null, name, family) });
    let repeat: NodeJS.Timeout | undefined;
    let finished = false;
    const finish = (settle: () => void): void => {
      if (finished) return;
      finished = true;
      clearInterval(repeat);
      signal.removeEventListener('abort', onAbort);
      socket.close();
      settle();
    };
    const onAbort = (): void => finish(() => reject(signal.reason as Error));
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('error', (error) => finish(() => reject(error)));
    socket.on('message', (reply) => {
      const ours = reply.length >= query.length && reply.readUInt16BE(0) === query.readUInt16BE(0) && ((reply[2] ?? 0) & 0x80) !== 0;
      if (ours && reply.subarray(HEADER_BYTES, query.length).equals(question)) finish(() => resolve(reply));
    });
    // A connected socket takes datagrams from this listener only, and hears at once when nobody listens.
    socket.on('connect', () => {
      // The signal may have closed the socket between the connect and this event.
      if (finished) return;
      socket.send(query);
      repeat = setInterval(() => socket.send(query), REPEAT_MS);
    });
    socket.connect(port, host);
  });
}
