/**
 * The admin port: health, readiness and status over HTTP, for people's tools and probes. Bound to loopback unless told otherwise.
 *
 * `/health` 200 while the process lives; `/ready` 200 when every master is confirmed and trusted and every output published,
 * else 503 with the list of what is not; `/status` the whole view as JSON.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EXIT, FatalError, messageOf } from '../errors.js';
import type { Log } from '../log.js';
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress } from '../sentinel/wire/address.js';
import type { AgentStatus } from './status.js';

export interface AdminServer {
  readonly address: Address;
  close(): Promise<void>;
}

export async function startAdminServer(listen: Address, status: () => AgentStatus, log: Log): Promise<AdminServer> {
  const server = createServer({ requestTimeout: 5_000 }, (request, response) => {
    try {
      answer(request, response, status());
    } catch (fault) {
      log.error({ url: request.url, error: messageOf(fault) }, 'admin request failed');
      send(response, 500, { error: 'internal error' });
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (fault: NodeJS.ErrnoException) => reject(listenFault(listen, fault)));
    server.listen(listen.port, listen.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    address: { host: listen.host, port },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listenFault(listen: Address, fault: NodeJS.ErrnoException): FatalError {
  const where = `admin cannot listen on ${formatAddress(listen)}`;
  if (fault.code === 'EADDRINUSE') return new FatalError('PORT_IN_USE', `${where}: address already in use`, EXIT.portInUse);
  return new FatalError('LISTEN_FAILED', `${where}: ${fault.message}`, EXIT.portInUse, {}, { cause: fault });
}

function answer(request: IncomingMessage, response: ServerResponse, status: AgentStatus): void {
  if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, { error: `method ${request.method ?? ''} not allowed` });
  const path = (request.url ?? '/').split('?')[0];
  switch (path) {
    case '/health':
    case '/liveness':
      return send(response, 200, { status: 'alive' });
    case '/ready':
    case '/readiness': {
      const missing = whatIsNotReady(status);
      return send(response, missing.length === 0 ? 200 : 503, { ready: missing.length === 0, missing });
    }
    case '/status':
      return send(response, 200, status);
    default:
      return send(response, 404, { error: `no such page ${path ?? ''}` });
  }
}

/** What keeps the agent from being ready, one short text each. */
export function whatIsNotReady(status: AgentStatus): string[] {
  return status.masters.flatMap((master) => [
    ...(master.confirmed ? [] : [`${master.name}: not confirmed by a majority yet`]),
    ...(master.trusted ? [] : [`${master.name}: no majority of its sentinels is heard`]),
    ...master.outputs.filter((output) => output.state !== 'published').map((output) => `${master.name}: output ${output.output} is ${output.state}`),
  ]);
}

function send(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(response.req.method === 'HEAD' ? undefined : `${JSON.stringify(body)}\n`);
}
