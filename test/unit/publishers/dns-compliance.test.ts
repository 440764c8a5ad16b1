// The suite that every publisher passes, for DNS: asked over real sockets, read by another decoder than ours.
import dnsPacket from 'dns-packet';
import { createSocket } from 'node:dgram';
import { startDnsListeners } from '../../../src/dns/listeners.js';
import type { DnsListeners } from '../../../src/dns/listeners.js';
import { DnsPublisher } from '../../../src/publishers/dns-publisher.js';
import type { Address } from '../../../src/sentinel/wire/address.js';
import { millis } from '../../../src/time.js';
import { settings } from '../dns/ask.js';
import { publisherCompliance } from './compliance.js';
import { captureLog } from './routes.js';

const ORIGIN = 'redis.test';

function query(port: number, name: string): Promise<dnsPacket.DecodedPacket & { readonly rcode?: string }> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4');
    const late = setTimeout(() => reject(new Error(`no answer for ${name}`)), 2_000);
    socket.once('message', (reply) => {
      clearTimeout(late);
      socket.close();
      resolve(dnsPacket.decode(reply));
    });
    socket.send(dnsPacket.encode({ type: 'query', id: 7, questions: [{ type: 'SRV', name, class: 'IN' }] }), port, '127.0.0.1');
  });
}

publisherCompliance('dns', async () => {
  let serial = 0;
  let current: DnsPublisher;
  let listeners: DnsListeners | null = null;
  const make = (): DnsPublisher => {
    current = new DnsPublisher({
      settings: settings({ origin: `${ORIGIN}.` }), masters: ['cache', 'other'], listeners: () => listeners?.addresses ?? [],
      clock: () => millis(Date.now()), log: captureLog().log, serials: { load: () => serial, save: async (saved) => void (serial = saved) },
    });
    return current;
  };
  const publisher = make();
  listeners = await startDnsListeners({ listen: ['127.0.0.1:0'], zone: () => current.zone(), log: captureLog().log });
  const port = listeners.addresses[0]?.port ?? 0;
  return {
    publisher,
    seen: async (master): Promise<Address | null> => {
      const reply = await query(port, `_redis._tcp.${master}.${ORIGIN}`);
      const service = reply.answers?.find((record) => record.type === 'SRV');
      const address = reply.additionals?.flatMap((record) => (record.type === 'A' || record.type === 'AAAA' ? [record] : []))[0];
      return service === undefined || address === undefined ? null : { host: String(address.data), port: service.data.port };
    },
    whenIsolated: 'answers',
    restart: async () => make(),
    dispose: async () => { await listeners?.close(); },
  };
});
