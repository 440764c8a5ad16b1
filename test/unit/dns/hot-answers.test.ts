// The hot path is the strict path, remembered: byte for byte, whatever the case, id, flags, OPT and order of the questions, and for the
// zone of this moment alone.
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { answerQuery } from '../../../src/dns/answer.js';
import { Responder } from '../../../src/dns/responder.js';
import { updateZone } from '../../../src/dns/zone.js';
import type { Zone } from '../../../src/dns/zone.js';
import { NOW, queryBytes, route, sampleZone } from './ask.js';

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const NAMES = [
  'redis.internal.', 'ns1.redis.internal.', 'none.redis.internal.', 'example.org.', 'pending.redis.internal.', '_tcp.cache.redis.internal.',
  ...['cache', 'six', 'alone'].flatMap((master) => [
    `${master}.redis.internal.`, `master.${master}.redis.internal.`, `replica.${master}.redis.internal.`, `_redis._tcp.${master}.redis.internal.`,
    `_redis._tcp.replica.${master}.redis.internal.`, `n-10-0-0-1.${master}.redis.internal.`,
  ]),
];
const TYPES = ['A', 'AAAA', 'SRV', 'TXT', 'SOA', 'NS', 'MX', 'ANY', '65', '97', 'AXFR', 'OPT'];

const questions = fc.record({
  name: fc.constantFrom(...NAMES),
  type: fc.constantFrom(...TYPES, 'A', 'A', 'AAAA', 'SRV'),
  klass: fc.constantFrom('IN', 'IN', 'IN', 'CH'),
  upper: fc.integer({ min: 0, max: 255 }),
  id: fc.integer({ min: 0, max: 65_535 }),
  rd: fc.boolean(),
  edns: fc.constantFrom('', '', ' edns=1232', ' edns=512', ' edns=100', ' edns=4096 do', ' edns=1232 version=1', ' edns=1232 opt=00030000'),
  tail: fc.constantFrom(0, 0, 0, 0, 1),
});

type Question = typeof questions extends fc.Arbitrary<infer T> ? T : never;

function bytesOf({ name, type, klass, upper, id, rd, edns, tail }: Question): Buffer {
  const mixed = [...name].map((letter, at) => ((upper >> (at % 8)) & 1 ? letter.toUpperCase() : letter)).join('');
  return Buffer.concat([queryBytes(`${mixed} ${type} class=${klass} id=${id}${rd ? ' +rd' : ''}${edns}`), Buffer.alloc(tail)]);
}

describe('the hot path', () => {
  test('says what the strict path says, zone after zone', () => {
    let strict = 0;
    let asked = 0;
    fc.assert(fc.property(fc.array(fc.tuple(questions, fc.integer({ min: 0, max: 400 })), { minLength: 300, maxLength: 600 }), (steps) => {
      let zone: Zone = sampleZone();
      let epoch = 10;
      const responder = new Responder(() => zone, log, (now, message, transport) => {
        strict += 1;
        return answerQuery(now, message, transport);
      });
      for (const [question, swap] of steps) {
        if (swap === 0) zone = updateZone(zone, route('cache', `10.0.0.${1 + (epoch % 3)}:6379`, ['10.0.0.8:6379', '10.0.0.9:6379'], { configEpoch: epoch++ }), NOW);
        const message = bytesOf(question);
        asked += 1;
        const [given, right] = [responder.respond(message, 'udp', '10.0.0.1'), answerQuery(zone, message, 'udp')];
        expect(given?.toString('hex')).toBe(right?.toString('hex'));
      }
    }), { numRuns: 25 });
    // It would be no hot path if it were not taken.
    expect(strict).toBeLessThan(asked - 200);
  });

  test('5 000 masters: the second time all are remembered, save a few that meet in one place', () => {
    let zone = sampleZone();
    const names = Array.from({ length: 5_000 }, (_, index) => `m${index}`);
    for (const name of names) zone = updateZone(zone, route(name, '10.1.2.3:6379'), NOW);
    let strict = 0;
    const responder = new Responder(() => zone, log, (now, message, transport) => {
      strict += 1;
      return answerQuery(now, message, transport);
    });
    const round = (): number => {
      strict = 0;
      for (const [id, name] of names.entries()) responder.respond(queryBytes(`${name}.redis.internal. A id=${id}`), 'udp', '10.0.0.1');
      return strict;
    };
    expect(round()).toBe(5_000);
    expect(round()).toBeLessThan(250);
    zone = updateZone(zone, route('m0', '10.1.2.4:6379', [], { configEpoch: 2 }), NOW);
    expect(round()).toBe(5_000);
  });
});
