/**
 * How many queries a second `answerQuery` answers in this process, without sockets. Run: npx tsx bench/dns-answer.ts
 */
import { answerQuery } from '../src/dns/answer.js';
import { encodeQuery } from '../src/dns/encode.js';
import { knownName } from '../src/dns/name.js';
import { TYPE } from '../src/dns/record.js';
import { buildZone, updateZone } from '../src/dns/zone.js';
import type { Zone, ZoneSettings } from '../src/dns/zone.js';
import type { Route } from '../src/route/route.js';
import { millis } from '../src/time.js';

const MASTERS = 5000;
const ROUNDS = 5;
const PER_ROUND = 400_000;
const NOW = millis(1_764_456_000_000);

const settings: ZoneSettings = {
  origin: 'redis.internal.', ttlSeconds: 1, negativeTtlSeconds: 1, ns: [{ name: 'ns1.redis.internal.', addresses: ['10.0.0.53'] }],
  labels: new Map(), whenIsolated: 'serve-last', allowLoopback: false, replicaFallback: true,
};

function routeOf(index: number, configEpoch: number): Route {
  const host = (last: number): string => `10.${index >> 8}.${index & 255}.${last}`;
  const replicas = [2, 3].map((last) => ({ address: { host: host(last), port: 6379 }, healthy: true }));
  return {
    master: `m${index}`, primary: { host: host(1), port: 6379 }, replicas, configEpoch, order: 2 * configEpoch, phase: 'steady',
    trusted: true, confirmed: true, role: 'observer', previous: null, since: NOW,
  };
}

function measure(name: string, zone: Zone, queries: readonly Buffer[]): void {
  const rates: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    for (let index = 0; index < PER_ROUND; index++) answerQuery(zone, queries[index % queries.length] as Buffer, 'udp');
    rates.push(PER_ROUND / ((performance.now() - start) / 1000));
  }
  rates.sort((a, b) => a - b);
  console.log(`${name.padEnd(28)} ${Math.round((rates[ROUNDS >> 1] ?? 0) / 1000)}k answers/s (median of ${ROUNDS})`);
}

const buildStart = performance.now();
let zone = buildZone(settings, Array.from({ length: MASTERS }, (_, index) => `m${index}`), 0, NOW);
for (let index = 0; index < MASTERS; index++) zone = updateZone(zone, routeOf(index, 1), NOW);
console.log(`zone of ${MASTERS} masters built in ${Math.round(performance.now() - buildStart)} ms`);
const changeStart = performance.now();
for (let epoch = 2; epoch < 1002; epoch++) zone = updateZone(zone, routeOf(epoch % MASTERS, epoch), NOW);
// A thousand changes: milliseconds for all are microseconds for one.
console.log(`one change costs ${(performance.now() - changeStart).toFixed(0)} us`);

const withOpt = (query: Buffer): Buffer => {
  const out = Buffer.concat([query, Buffer.from('0000291000000000000000', 'hex')]);
  out.writeUInt16BE(1, 10);
  return out;
};
const names = Array.from({ length: MASTERS }, (_, index) => `m${(index * 7919) % MASTERS}.redis.internal.`);
measure('A, one name', zone, [encodeQuery(1, knownName(names[0] as string), TYPE.A)]);
measure('A, 5000 names', zone, names.map((name, id) => encodeQuery(id, knownName(name), TYPE.A)));
measure('A + EDNS, 5000 names', zone, names.map((name, id) => withOpt(encodeQuery(id, knownName(name), TYPE.A))));
measure('SRV + EDNS, 5000 names', zone, names.map((name, id) => withOpt(encodeQuery(id, knownName(`_redis._tcp.${name}`), TYPE.SRV))));
measure('AAAA NODATA', zone, names.map((name, id) => encodeQuery(id, knownName(name), TYPE.AAAA)));
measure('NXDOMAIN', zone, names.map((name, id) => encodeQuery(id, knownName(`no.${name}`), TYPE.A)));
