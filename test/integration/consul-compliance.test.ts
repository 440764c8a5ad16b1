/**
 * The suite that every publisher passes, against a real Consul behind a proxy that can be half-open.
 */
import { afterAll, beforeAll } from '@jest/globals';
import { ConsulPublisher } from '../../src/publishers/consul/consul-publisher.js';
import { publisherCompliance } from '../unit/publishers/compliance.js';
import { captureLog } from '../unit/publishers/routes.js';
import { ConsulProxy, ConsulServer, settingsOf } from './consul-lab.js';

let server: ConsulServer;
let lives = 0;

beforeAll(async () => { server = await ConsulServer.start(); });
afterAll(async () => { await server.end(); });

publisherCompliance('consul', async () => {
  const proxy = await new ConsulProxy(server).open();
  // Names of its own for each life: one server serves all tests.
  const suffix = `-${++lives}`;
  const make = (): ConsulPublisher => new ConsulPublisher({
    settings: settingsOf(proxy.url), writer: 'agent-1', masters: [], labelOf: (master) => `${master}${suffix}`,
    whyNotPublishable: () => null, isKeeper: () => true, wake: () => undefined, log: captureLog().log, random: () => 0,
  });
  return {
    publisher: make(),
    seen: async (master) => {
      const passing = await server.passing(`${master}${suffix}`);
      const match = /^(.*):(\d+)$/.exec(passing.join());
      return match === null ? null : { host: match[1] ?? '', port: Number(match[2]) };
    },
    writes: async () => proxy.writes.length,
    stall: async () => {
      proxy.mode = 'swallow';
      return async () => { proxy.mode = 'pass'; };
    },
    restart: async () => make(),
    dispose: () => proxy.close(),
  };
});
