// A zone in another process: as an image, then change by change, it answers as the first one does.
import { expect, test } from '@jest/globals';
import { deserialize, serialize } from 'node:v8';
import fc from 'fast-check';
import { addMaster, buildZone, purgeZone, removeMaster, updateZone } from '../../../src/dns/zone.js';
import type { Zone } from '../../../src/dns/zone.js';
import { changeOf, imageOf, withChange, zoneOf } from '../../../src/dns/zone-image.js';
import { addMs } from '../../../src/time.js';
import { NOW, ask, route, sampleZone, settings } from './ask.js';

/** What node:cluster does with a message on its way. */
const sent = <T>(value: T): T => deserialize(serialize(value)) as T;

const MASTERS = ['cache', 'six', 'alone', 'pending'];
const QUESTIONS = [
  'redis.internal. SOA', 'redis.internal. NS', 'ns1.redis.internal. A', 'none.redis.internal. A',
  ...MASTERS.flatMap((master) => [
    `${master}.redis.internal. A`, `${master}.redis.internal. AAAA`, `${master}.redis.internal. TXT`, `replica.${master}.redis.internal. A`,
    `_redis._tcp.${master}.redis.internal. SRV`, `_redis._tcp.replica.${master}.redis.internal. SRV`, `_tcp.${master}.redis.internal. A`,
    `n-10-0-0-1.${master}.redis.internal. A`, `n-10-0-0-2.${master}.redis.internal. A`, `n-10-0-0-3.${master}.redis.internal. A`,
  ]),
];
const answers = (zone: Zone): string[] => QUESTIONS.map((question) => `${question} → ${ask(zone, `${question} edns=1232`)}`);

test('an image says all', () => {
  let zone = sampleZone({ whenIsolated: 'servfail' });
  zone = updateZone(zone, route('cache', '10.0.0.2:6379', [], { configEpoch: 8 }), NOW);
  zone = updateZone(zone, route('alone', '10.0.2.1:6379', [], { trusted: false }), NOW);
  const copy = zoneOf(sent(imageOf(zone)));
  expect(answers(copy)).toEqual(answers(zone));
  expect([copy.serial, copy.silence, [...copy.blockOf.keys()].sort()]).toEqual([zone.serial, zone.silence, [...zone.blockOf.keys()].sort()]);
});

const changes = fc.array(fc.oneof(
  fc.record({ kind: fc.constant('route' as const), master: fc.constantFrom(...MASTERS), last: fc.integer({ min: 1, max: 3 }), trusted: fc.boolean() }),
  fc.record({ kind: fc.constantFrom('add' as const, 'remove' as const, 'purge' as const), master: fc.constantFrom(...MASTERS) }),
), { maxLength: 30 });

test('change by change, both answer alike', () => {
  fc.assert(fc.property(changes, (steps) => {
    let zone = buildZone(settings({ whenIsolated: 'servfail' }), ['cache'], 0, NOW);
    let copy = zoneOf(sent(imageOf(zone)));
    let now = NOW;
    steps.forEach((step, index) => {
      now = addMs(now, 700);
      if (step.kind === 'add') zone = addMaster(zone, step.master, now);
      else if (step.kind === 'remove') zone = removeMaster(zone, step.master, now);
      else if (step.kind === 'purge') zone = purgeZone(zone, step.master, now);
      else if ('last' in step) {
        const news = { configEpoch: 10 + index, trusted: step.trusted };
        zone = updateZone(zone, route(step.master, `10.0.0.${step.last}:6379`, ['10.0.0.9:6379'], news), now);
      }
      copy = withChange(copy, sent(changeOf(zone, step.master)));
      expect([copy.serial, copy.silence]).toEqual([zone.serial, zone.silence]);
    });
    expect(answers(copy)).toEqual(answers(zone));
  }), { numRuns: 200 });
});
