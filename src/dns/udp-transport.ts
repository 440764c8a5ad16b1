/**
 * DNS over UDP: dns2's server class for the socket, our own handling of every datagram; its parser never sees one.
 *
 * The socket's own synchronous look-up spares a name resolution per send, and sends carry no callback: at full load that is a
 * tenth of the cost. Replies are never put into a shared buffer, since a send that would block still reads it later.
 */
import dns2 from 'dns2';
import type { RemoteInfo, SocketOptions } from 'node:dgram';
import type { Responder } from './responder.js';

/** A stall of some milliseconds at full load fits into this; the kernel gives what its own limit allows. */
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;

type BaseOptions = ConstructorParameters<typeof dns2.UDPServer>[0];

export class UdpTransport extends dns2.UDPServer {
  readonly #responder: Responder;

  constructor(family: 4 | 6, responder: Responder) {
    const socket: SocketOptions = {
      type: family === 4 ? 'udp4' : 'udp6',
      ipv6Only: family === 6,
      recvBufferSize: RECEIVE_BUFFER_BYTES,
      lookup: (host, _options, done) => done(null, host, family),
    };
    // The base class hands `type` to the socket as it is, so whole socket options pass; its typings know only the short form.
    super({ type: socket } as unknown as BaseOptions);
    this.#responder = responder;
  }

  override handle(message: Buffer, sender: RemoteInfo): void {
    // Nothing can be sent to port 0; only a forged datagram comes from there.
    if (sender.port === 0) return;
    const reply = this.#responder.respond(message, 'udp', sender.address);
    if (reply === null) return;
    try {
      this.send(reply, 0, reply.length, sender.port, sender.address);
    } catch (error) {
      this.#responder.noteSocketError(error, 'udp');
    }
  }
}
