/**
 * The admin port: health, readiness and status over HTTP, for people's tools and probes. Bound to loopback unless told otherwise.
 *
 * `/health` 200 while the process lives; `/ready` 200 when every master is confirmed and trusted and every output published,
 * else 503 with the list of what is not; `/status` the whole view as JSON; `/metrics` the same for Prometheus; `/events` what happens
 * from now on, a line of JSON each.
 *
 * `POST /publish?master=M` looks at every output of M again, with `force=1` over a higher order (publishing.md, rule 2). It wants the
 * header `x-pointsman`, which no web page can make a browser send here.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EXIT, FatalError, messageOf } from '../errors.js';
import type { Log } from '../log.js';
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress } from '../sentinel/wire/address.js';
import type { EventFeed } from './event-feed.js';
import { Metrics } from './metrics.js';
import type { AgentCounters } from './metrics.js';
import type { AgentStatus } from './status.js';

/** What the pages show and do. */
export interface AdminPages {
  readonly status: () => AgentStatus;
  readonly feed: EventFeed;
  readonly counters: () => AgentCounters;
  /** Null when no such master is monitored; else the outputs that were told. */
  readonly publish: (master: string, force: boolean) => readonly string[] | null;
}

interface Served extends AdminPages {
  readonly metrics: Metrics;
  readonly log: Log;
}

export interface AdminServer {
  readonly address: Address;
  close(): Promise<void>;
}

export async function startAdminServer(listen: Address, pages: AdminPages, log: Log): Promise<AdminServer> {
  const served = { ...pages, metrics: new Metrics(pages.status, pages.counters), log };
  const server = createServer({ requestTimeout: 5_000 }, (request, response) => {
    try {
      answer(request, response, served);
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

async function sendMetrics(response: ServerResponse, { metrics, log }: Served): Promise<void> {
  try {
    const page = await metrics.page();
    response.writeHead(200, { 'content-type': metrics.contentType });
    response.end(response.req.method === 'HEAD' ? undefined : page);
  } catch (fault) {
    log.error({ error: messageOf(fault) }, 'metrics failed');
    send(response, 500, { error: 'internal error' });
  }
}

function answer(request: IncomingMessage, response: ServerResponse, pages: Served): void {
  if (request.method === 'POST') return act(request, response, pages);
  if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, { error: `method ${request.method ?? ''} not allowed` });
  const path = (request.url ?? '/').split('?')[0];
  switch (path) {
    case '/health':
    case '/liveness':
      return send(response, 200, { status: 'alive' });
    case '/ready':
    case '/readiness': {
      const missing = whatIsNotReady(pages.status());
      return send(response, missing.length === 0 ? 200 : 503, { ready: missing.length === 0, missing });
    }
    case '/status':
      return send(response, 200, pages.status());
    case '/metrics':
      return void sendMetrics(response, pages);
    case '/events':
      if (request.method === 'GET' && pages.feed.add(response)) return;
      return send(response, 503, { error: 'too many listeners' });
    default:
      return send(response, 404, { error: `no such page ${path ?? ''}` });
  }
}

function act(request: IncomingMessage, response: ServerResponse, pages: AdminPages): void {
  const url = new URL(request.url ?? '/', 'http://agent');
  if (url.pathname !== '/publish') return send(response, 404, { error: `no such action ${url.pathname}` });
  if (request.headers['x-pointsman'] === undefined) return send(response, 403, { error: 'the header x-pointsman is missing' });
  const master = url.searchParams.get('master') ?? '';
  const outputs = pages.publish(master, url.searchParams.get('force') === '1');
  if (outputs === null) return send(response, 404, { error: `no master named ${master} is monitored` });
  return send(response, 200, { master, outputs });
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
