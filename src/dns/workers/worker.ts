/**
 * One DNS worker: a process that answers UDP from the zone that the agent tells it. It decides nothing and keeps nothing.
 *
 * It ends with the agent, whose signals it leaves to the agent.
 */
import { once } from 'node:events';
import { must } from '../../assert.js';
import { codeOf, messageOf } from '../../errors.js';
import { millis } from '../../time.js';
import { addressRange } from '../address-range.js';
import { answerQuery } from '../answer.js';
import { Deliveries } from '../deliveries.js';
import type { TransferGate } from '../guarded-answer.js';
import { answerGuarded } from '../guarded-answer.js';
import type { DnsLog } from '../limited-log.js';
import { RateLimit } from '../rate-limit.js';
import { Responder } from '../responder.js';
import type { Answerer } from '../responder.js';
import { whyNotTransferable } from '../transfer-service.js';
import { tsigKey } from '../tsig-key.js';
import { UdpTransport } from '../udp-transport.js';
import type { Zone } from '../zone.js';
import { withChange, zoneOf } from '../zone-image.js';
import type { FromWorker, Order, ToWorker, UdpAddress, WorkerService } from './messages.js';

const COUNTERS_MS = 1_000;

let zone: Zone | null = null;
let gate: TransferGate | null = null;
let rateLimit: RateLimit | null = null;
const sockets = new Map<string, UdpTransport>();

const tell = (message: FromWorker): void => void process.send?.(message);
const logAt = (level: 'debug' | 'info' | 'warn' | 'error') => (context: object, message: string): void => {
  tell({ kind: 'log', level, context, message });
};
const log: DnsLog = { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
const answer: Answerer = (now, message, transport, from) => (
  gate === null ? answerQuery(now, message, transport) : answerGuarded(gate, now, message, transport, from)
);
const responder = new Responder(() => must(zone, 'a worker listens without a zone'), log, answer, () => rateLimit);

function serve(service: WorkerService): void {
  rateLimit = service.rateLimit === null ? null : new RateLimit(service.rateLimit, () => performance.now());
  if (service.gate === null) {
    gate = null;
    return;
  }
  const { key, allow, startedAt } = service.gate;
  gate = {
    key: key === null ? null : tsigKey(key.name, key.secret),
    allow: allow.map(addressRange),
    // Whole zones go by TCP, which the agent keeps to itself.
    deliveries: new Deliveries(),
    whyClosed: (now, at) => whyNotTransferable(now, at - startedAt),
    clock: () => millis(Date.now()),
  };
}

async function open({ host, port }: UdpAddress): Promise<void> {
  const udp = new UdpTransport(host.includes(':') ? 6 : 4, responder);
  const listening = once(udp, 'listening');
  // Not exclusive: all workers get the one socket of the agent.
  udp.bind({ address: host, port, exclusive: false });
  await listening;
  udp.on('error', (error) => responder.noteSocketError(error, 'udp'));
  sockets.set(`${host} ${port}`, udp);
}

async function close({ host, port }: UdpAddress): Promise<void> {
  const udp = sockets.get(`${host} ${port}`);
  if (udp === undefined) return;
  sockets.delete(`${host} ${port}`);
  const closed = once(udp, 'close');
  udp.close();
  await closed;
}

async function obey(order: Order): Promise<void> {
  switch (order.kind) {
    case 'zone':
      zone = zoneOf(order.zone);
      return serve(order.service);
    case 'change':
      zone = withChange(must(zone, 'a change comes after a zone'), order.change);
      return;
    case 'open':
      return open(order.address);
    case 'close':
      return close(order.address);
  }
}

let last = Promise.resolve();
process.on('message', (message: ToWorker) => {
  last = last.then(() => obey(message)).then(
    () => tell({ kind: 'done', id: message.id, fault: null }),
    (error: unknown) => tell({ kind: 'done', id: message.id, fault: { code: codeOf(error) ?? '', message: messageOf(error) } }),
  );
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {});
setInterval(() => tell({ kind: 'counters', counters: responder.counters }), COUNTERS_MS);
process.title = 'pointsman: dns worker';
tell({ kind: 'ready' });
