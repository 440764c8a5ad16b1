import { describe, expect, test } from '@jest/globals';
import { addressRange } from '../../../src/dns/address-range.js';
import { RateLimit } from '../../../src/dns/rate-limit.js';
import type { RateLimitSettings } from '../../../src/dns/rate-limit.js';
import { Responder } from '../../../src/dns/responder.js';
import { queryBytes, render, sampleZone } from './ask.js';

const settings: RateLimitSettings = { responsesPerSecond: 10, slip: 2, exempt: [] };
const times = <T>(count: number, each: () => T): T[] => Array.from({ length: count }, each);

describe('the rate limit', () => {
  test('a second\'s replies at once, then every other one is slipped, then what trickles in', () => {
    let now = 0;
    const limit = new RateLimit(settings, () => now);
    expect(times(14, () => limit.judge('10.0.0.1'))).toEqual([...times(10, () => 'send'), 'drop', 'slip', 'drop', 'slip']);
    now = 100;
    expect(times(2, () => limit.judge('10.0.0.1'))).toEqual(['send', 'drop']);
    now = 60_000;
    expect(times(11, () => limit.judge('10.0.0.1'))).toEqual([...times(10, () => 'send'), 'drop']);
  });

  test.each([
    ['10.0.0.1', '10.0.0.200', true],
    ['10.0.0.1', '10.0.1.1', false],
    ['2001:db8:0:1::1', '2001:db8:0:2::1', true],
    ['2001:db8:0:100::1', '2001:db8:0:200::1', false],
    ['::ffff:10.0.0.1', '10.0.0.2', true],
  ])('%s and %s share a bucket: %s', (one, other, isShared) => {
    const limit = new RateLimit({ ...settings, responsesPerSecond: 1 }, () => 0);
    limit.judge(one);
    expect(limit.judge(other)).toBe(isShared ? 'drop' : 'send');
  });

  test.each([[0, ['drop', 'drop', 'drop']], [1, ['slip', 'slip', 'slip']], [3, ['drop', 'drop', 'slip']]])('slip %d', (slip, verdicts) => {
    const limit = new RateLimit({ ...settings, responsesPerSecond: 1, slip }, () => 0);
    limit.judge('10.0.0.1');
    expect(times(3, () => limit.judge('10.0.0.1'))).toEqual(verdicts);
  });

  test('who is exempt is never limited, and takes nothing from its neighbours', () => {
    const limit = new RateLimit({ ...settings, responsesPerSecond: 1, exempt: [addressRange('10.0.0.53')] }, () => 0);
    expect(times(100, () => limit.judge('10.0.0.53')).every((verdict) => verdict === 'send')).toBe(true);
    expect(limit.judge('10.0.0.54')).toBe('send');
    expect(limit.judge('10.0.0.54')).toBe('drop');
  });

  test('a flood from 100 000 networks keeps memory bounded, and the busy one limited', () => {
    const limit = new RateLimit({ ...settings, responsesPerSecond: 1, slip: 0 }, () => 0);
    limit.judge('192.0.2.1');
    for (let index = 0; index < 100_000; index++) {
      limit.judge(`10.${index >> 8 & 255}.${index & 255}.${index >> 16}`);
      if (index % 1000 === 0) expect(limit.judge('192.0.2.1')).toBe('drop');
    }
  });
});

describe('limited replies', () => {
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const limit = (slip: number): RateLimit => {
    const made = new RateLimit({ ...settings, responsesPerSecond: 1, slip }, () => 0);
    made.judge('10.0.0.9');
    return made;
  };

  test.each([
    ['cache.redis.internal. A', 'NOERROR aa tc'],
    ['CaChE.redis.internal. SRV +rd edns=1232 do', 'NOERROR aa tc rd; AR OPT 1232 do'],
    ['none.redis.internal. A edns=512', 'NXDOMAIN aa tc; AR OPT 1232'],
    ['example.org. A', 'REFUSED tc'],
    ['pending.redis.internal. A edns=1232', 'SERVFAIL tc'],
  ])('slipped: %s → %s', (question, expected) => {
    const limited = limit(1);
    const responder = new Responder(() => sampleZone(), log, undefined, () => limited);
    const query = queryBytes(question);
    const slipped = responder.respond(query, 'udp', '10.0.0.9') as Buffer;
    expect(render(slipped)).toBe(expected);
    // Nothing is amplified.
    expect(slipped.length).toBeLessThanOrEqual(query.length);
    expect(responder.counters).toMatchObject({ slipped: 1, dropped: 0 });
  });

  test('garbage and dropped replies; TCP is not limited', () => {
    const limited = limit(0);
    const responder = new Responder(() => sampleZone(), log, undefined, () => limited);
    expect(responder.respond(Buffer.alloc(12), 'udp', '10.0.0.9')).toBeNull();
    expect(responder.respond(queryBytes('cache.redis.internal. A'), 'udp', '10.0.0.9')).toBeNull();
    expect(render(responder.respond(queryBytes('alone.redis.internal. A'), 'tcp', '10.0.0.9') as Buffer)).toMatch(/^NOERROR aa; AN/);
    expect(responder.counters).toMatchObject({ slipped: 0, dropped: 2 });
  });
});
