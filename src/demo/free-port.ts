/**
 * Ports that nobody uses, picked by chance and proved by binding.
 *
 * Below 32768 the kernel gives none away to outgoing connections, so a port that is free now is still free when the server it
 * is meant for has started. One port serves all addresses asked for, TCP and UDP, so that clients can know it beforehand.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { EXIT, FatalError } from '../errors.js';

const FIRST = 10_000;
/** Exclusive: a Redis port and its cluster bus (+10000) both stay below 32768. */
const END = 22_000;
const ATTEMPTS = 200;
const given = new Set<number>();

/** A port free at each of `hosts`; never the same one twice in a process. Rejects with FatalError LISTEN_FAILED when none is found. */
export async function freePort(hosts: readonly string[] = ['127.0.0.1']): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = FIRST + Math.floor(Math.random() * (END - FIRST));
    if (given.has(port)) continue;
    given.add(port);
    if ((await Promise.all(hosts.map((host) => isFree(host, port)))).every(Boolean)) return port;
  }
  throw new FatalError('LISTEN_FAILED', `no free port at ${hosts.join(', ')}: are these addresses this machine's?`, EXIT.portInUse);
}

async function isFree(host: string, port: number): Promise<boolean> {
  return (await tcpIsFree(host, port)) && (await udpIsFree(host, port));
}

async function tcpIsFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
  } catch {
    // Taken, or not ours: both mean "try another one".
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

async function udpIsFree(host: string, port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind({ address: host, port, exclusive: true });
    await once(socket, 'listening');
  } catch {
    return false;
  } finally {
    socket.close();
  }
  return true;
}
