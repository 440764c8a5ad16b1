import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { startDnsListeners } from '../../../src/dns/listeners.js';
import type { BoundAddress, DnsListeners } from '../../../src/dns/listeners.js';
import { DnsPublisher } from '../../../src/publishers/dns-publisher.js';
import type { DnsPublisherOptions } from '../../../src/publishers/dns-publisher.js';
import { addMs } from '../../../src/time.js';
import type { Millis } from '../../../src/time.js';
import { ask, NOW, route, SERIAL, settings } from '../dns/ask.js';

const nothing = (): void => undefined;
const quiet = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const never = new AbortController().signal;

let now: Millis;
let saved: number[];
let listeners: DnsListeners | null;
let bound: readonly BoundAddress[];
let publisher: DnsPublisher;

async function open(override: Partial<DnsPublisherOptions> = {}, listen = ['127.0.0.1:0', '[::1]:0']): Promise<void> {
  publisher = new DnsPublisher({
    settings: settings(), masters: ['m', 'n'], listeners: () => bound, clock: () => now, log: quiet,
    serials: { load: () => saved.at(-1) ?? 0, save: async (serial) => void saved.push(serial) },
    ...override,
  });
  listeners = await startDnsListeners({ listen, zone: () => publisher.zone(), log: quiet });
  bound = listeners.addresses;
}

beforeEach(() => {
  [now, saved, listeners, bound] = [NOW, [], null, []];
});
afterEach(async () => {
  await publisher.close();
  await listeners?.close();
});

describe('apply', () => {
  test('publishes what clients then get, on every listener', async () => {
    await open();
    expect(await publisher.apply(route('m', '10.0.0.1:6379'), never)).toEqual({ order: 2, detail: `serial ${SERIAL + 1}` });
    expect(ask(publisher.zone(), 'm.redis.internal. A')).toMatch(/10\.0\.0\.1/);
    expect(ask(publisher.zone(), 'n.redis.internal. A')).toBe('SERVFAIL');
    expect(await publisher.apply(route('m', '[2001:db8::7]:6379', [], { configEpoch: 2 }), never))
      .toEqual({ order: 4, detail: `serial ${SERIAL + 2}` });
    // Asked at two listeners, for address and service, twice.
    expect(listeners?.counters.udpQueries).toBe(8);
  });

  test('the same Route again changes nothing', async () => {
    await open();
    const first = await publisher.apply(route('m', '10.0.0.1:6379'), never);
    const zone = publisher.zone();
    now = addMs(NOW, 60_000);
    expect(await publisher.apply(route('m', '10.0.0.1:6379'), never)).toEqual(first);
    expect(publisher.zone()).toBe(zone);
    expect(saved).toEqual([SERIAL, SERIAL + 1]);
  });

  test('is done when the followers have the change, and not before', async () => {
    const told: string[] = [];
    let follow: () => void = nothing;
    await open({ followers: () => ({ changed: (master) => new Promise((done) => void (told.push(master), follow = done)) }) });
    const steps: string[] = [];
    const applied = publisher.apply(route('m', '10.0.0.1:6379'), never).then(() => steps.push('applied'));
    await new Promise((done) => void setTimeout(done, 50));
    steps.push('followed');
    follow();
    await applied;
    expect([told, steps]).toEqual([['m'], ['followed', 'applied']]);
  });

  test('followers that do not come make it fail in time', async () => {
    await open({ followers: () => ({ changed: () => new Promise(() => undefined) }) });
    await expect(publisher.apply(route('m', '10.0.0.1:6379'), never)).rejects.toThrow('dns workers have not the new zone of m');
  });

  test('a lower order is left alone', async () => {
    await open();
    await publisher.apply(route('m', '10.0.0.2:6379', [], { configEpoch: 5 }), never);
    const published = await publisher.apply(route('m', '10.0.0.1:6379', [], { configEpoch: 4 }), never);
    expect(published).toEqual({ order: 10, detail: `serial ${SERIAL + 1}; order 10 is shown, 8 is older` });
    expect(ask(publisher.zone(), 'm.redis.internal. A')).toMatch(/10\.0\.0\.2/);
  });

  test.each([
    ['127.0.0.1:6379', 'dns cannot publish m: primary 127.0.0.1:6379 is a loopback address (allow-loopback is off)'],
    ['169.254.0.1:1', 'dns cannot publish m: primary 169.254.0.1:1 is a link-local address (allow-loopback is off)'],
    ['redis-a:6379', 'dns cannot publish m: primary redis-a:6379 is a host name, which an address record cannot hold'],
  ])('primary %s is not published, and the error says why', async (primary, message) => {
    await open();
    await publisher.apply(route('m', '10.0.0.1:6379'), never);
    await expect(publisher.apply(route('m', primary, [], { configEpoch: 2 }), never))
      .rejects.toMatchObject({ code: 'PUBLISH_FAILED', message });
    expect(ask(publisher.zone(), 'm.redis.internal. A')).toBe('SERVFAIL');
  });

  test('a replica that cannot be shown is said, not refused', async () => {
    await open();
    const { detail } = await publisher.apply(route('m', '10.0.0.1:6379', ['127.0.0.1:6380']), never);
    expect(detail).toBe(`serial ${SERIAL + 1}; replica 127.0.0.1:6380 is a loopback address (allow-loopback is off)`);
  });

  test.each([
    ['serve-last', 'isolated: last trusted answers', /A 10\.0\.0\.1/],
    ['servfail', 'isolated: servfail', /^SERVFAIL$/],
  ] as const)('untrusted, %s', async (whenIsolated, note, expected) => {
    await open({ settings: settings({ whenIsolated }) });
    await publisher.apply(route('m', '10.0.0.1:6379'), never);
    const published = await publisher.apply(route('m', '10.0.0.2:6379', [], { trusted: false, configEpoch: 2 }), never);
    expect(published).toEqual({ order: 2, detail: `serial ${SERIAL + 1}; ${note}` });
    expect(ask(publisher.zone(), 'm.redis.internal. A')).toMatch(expected);
  });

  test('unconfirmed is an answer too: SERVFAIL, read back', async () => {
    await open();
    expect(await publisher.apply(route('m', '127.0.0.1:6379', [], { confirmed: false }), never)).toMatchObject({ order: 2 });
    expect(listeners?.counters.replies).toEqual({ 2: 2 });
  });

  test('wildcard listeners are asked at loopback', async () => {
    await open({}, ['0.0.0.0:0', '[::]:0']);
    await publisher.apply(route('m', '10.0.0.1:6379'), never);
    expect(listeners?.counters.udpQueries).toBe(4);
  });
});

describe('read-back', () => {
  test('no listener, nothing is published', async () => {
    await open({ listeners: () => [] });
    await expect(publisher.apply(route('m', '10.0.0.1:1'), never))
      .rejects.toMatchObject({ code: 'PUBLISH_FAILED', message: /no listener is open/ });
  });

  test('a listener that is gone', async () => {
    await open();
    await listeners?.close();
    await expect(publisher.apply(route('m', '10.0.0.1:1'), never))
      .rejects.toMatchObject({ code: 'PUBLISH_FAILED', message: /ECONNREFUSED/ });
  });

  test('a listener with another zone', async () => {
    await open();
    const other = new DnsPublisher({ settings: settings(), masters: ['m'], listeners: () => bound, clock: () => now, log: quiet });
    await expect(other.apply(route('m', '10.0.0.1:1'), never))
      .rejects.toMatchObject({ code: 'PUBLISH_FAILED', message: /answers something else for m \(rcode 2\)/ });
  });

  test('a newer Route ends the waiting', async () => {
    const dgram = await import('node:dgram');
    const mute = dgram.createSocket('udp4');
    await new Promise<void>((resolve) => mute.bind(0, '127.0.0.1', resolve));
    await open({ listeners: () => [{ host: '127.0.0.1', port: mute.address().port }] });
    const newer = new AbortController();
    const applied = publisher.apply(route('m', '10.0.0.1:1'), newer.signal);
    newer.abort(new Error('superseded'));
    await expect(applied).rejects.toMatchObject({ code: 'PUBLISH_TIMEOUT', message: /superseded/ });
    await expect(publisher.apply(route('m', '10.0.0.1:1'), never)).rejects.toMatchObject({ code: 'PUBLISH_TIMEOUT' });
    mute.close();
  });
});

describe('masters come and go', () => {
  test('added, it is not ready; forgotten, it does not exist', async () => {
    await open();
    publisher.addMaster('later');
    expect(ask(publisher.zone(), 'later.redis.internal. A')).toBe('SERVFAIL');
    await publisher.forget('later');
    expect(ask(publisher.zone(), 'later.redis.internal. A')).toMatch(/^NXDOMAIN/);
    await publisher.apply(route('m', '10.0.0.1:1', [], { configEpoch: 9 }), never);
    await publisher.forget('m');
    // Monitored again it starts anew, whatever order it had.
    expect(await publisher.apply(route('m', '10.0.0.2:1'), never)).toMatchObject({ order: 2 });
  });

  test('a name that clashes is refused and both are named', async () => {
    await open({ masters: ['my_cache'] });
    expect(publisher.whyNotAddable('my-cache')).toMatch(/master "my-cache" and master "my_cache"/);
    expect(() => publisher.addMaster('my-cache')).toThrow(/master "my-cache" and master "my_cache"/);
    await expect(publisher.apply(route('my-cache', '10.0.0.1:1'), never)).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
    const bad = { settings: settings({ origin: 'x.local' }), masters: ['a.b', 'a-b'], listeners: () => [], clock: () => now, log: quiet };
    expect(() => new DnsPublisher(bad)).toThrow(/multicast.*master "a-b" and master "a\.b"/);
  });

  test('names of nodes that are gone go by timer', async () => {
    await open();
    await publisher.apply(route('m', '10.0.0.1:1'), never);
    await publisher.apply(route('m', '10.0.0.2:1', [], { configEpoch: 2 }), never);
    const gone = 'n-10-0-0-1.m.redis.internal. A';
    expect(ask(publisher.zone(), gone)).toMatch(/A 10\.0\.0\.1$/);
    const started = Date.now();
    now = addMs(NOW, 1999);
    await publisher.apply(route('m', '10.0.0.2:1', [], { configEpoch: 2 }), never);
    while (/A 10/.test(ask(publisher.zone(), gone)) && Date.now() - started < 5000) {
      now = addMs(NOW, 2001);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(ask(publisher.zone(), gone)).toMatch(/^NXDOMAIN/);
    expect(saved.at(-1)).toBe(publisher.zone().serial);
  });
});

describe('serials over restarts', () => {
  test('go on where the last life ended', async () => {
    saved = [SERIAL + 500];
    await open();
    expect(publisher.zone().serial).toBe(SERIAL + 501);
    expect(saved).toEqual([SERIAL + 500, SERIAL + 501]);
  });

  test('a store that cannot write does not stop the zone', async () => {
    const warnings: string[] = [];
    const save = (): Promise<void> => Promise.reject(new Error('disk full'));
    await open({ serials: { load: () => 0, save }, log: { ...quiet, warn: (_context, message) => void warnings.push(message) } });
    await publisher.apply(route('m', '10.0.0.1:1'), never);
    expect(warnings).toEqual(['dns zone serial not saved', 'dns zone serial not saved']);
  });
});
