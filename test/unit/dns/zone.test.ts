import { describe, expect, test } from '@jest/globals';
import { addMaster, blockFor, buildZone, nextSerial, purgeZone, removeMaster, updateZone, whyNotAddable } from '../../../src/dns/zone.js';
import type { Zone } from '../../../src/dns/zone.js';
import { zoneFaults } from '../../../src/dns/zone-settings.js';
import { routeFaults } from '../../../src/dns/master-records.js';
import { addMs, millis } from '../../../src/time.js';
import { ask, NOW, route, SERIAL, settings } from './ask.js';

const start = (override: Parameters<typeof settings>[0] = {}): Zone => buildZone(settings(override), ['m'], 0, NOW);
const nodeName = 'n-10-0-0-1.m.redis.internal. A';

describe('serial', () => {
  test.each([
    ['from the clock', 0, NOW, SERIAL],
    ['one more when the clock is behind', SERIAL + 50, NOW, SERIAL + 51],
    ['the clock when it is ahead', SERIAL - 50, NOW, SERIAL],
    ['wraps', 0xffff_ffff, NOW, 0],
  ])('%s', (_name, last, now, expected) => expect(nextSerial(last, now)).toBe(expected));

  test('rises once per change of content, and only then', () => {
    const zone = start();
    expect(zone.serial).toBe(SERIAL);
    const first = updateZone(zone, route('m', '10.0.0.1:6379', ['10.0.0.2:6379', '10.0.0.3:6379']), NOW);
    expect(first.serial).toBe(SERIAL + 1);
    const unchanged = [
      route('m', '10.0.0.1:6379', ['10.0.0.3:6379', '10.0.0.2:6379']),
      route('m', '10.0.0.1:6379', ['10.0.0.2:6379', '10.0.0.3:6379'], { since: millis(1), role: 'leader' }),
      route('m', '10.0.0.9:6379', [], { trusted: false }),
    ];
    for (const each of unchanged) expect(updateZone(first, each, addMs(NOW, 60_000))).toBe(first);
    const changed = [
      route('m', '10.0.0.9:6379', ['10.0.0.2:6379', '10.0.0.3:6379']),
      route('m', '10.0.0.1:6380', ['10.0.0.2:6379', '10.0.0.3:6379']),
      route('m', '10.0.0.1:6379', ['10.0.0.2:6379', '!10.0.0.3:6379']),
      route('m', '10.0.0.1:6379', ['10.0.0.2:6379', '10.0.0.3:6379'], { configEpoch: 2 }),
      route('m', '10.0.0.1:6379', ['10.0.0.2:6379', '10.0.0.3:6379'], { phase: 'prepared' }),
      route('m', null),
    ];
    for (const each of changed) expect(updateZone(first, each, NOW).serial).toBe(SERIAL + 2);
  });

  test('a Route for a new master, its removal and a second addition count', () => {
    const zone = updateZone(start(), route('new', '10.0.0.1:6379'), NOW);
    expect([zone.serial, removeMaster(zone, 'new', NOW).serial, addMaster(zone, 'more', NOW).serial])
      .toEqual([SERIAL + 1, SERIAL + 2, SERIAL + 2]);
    expect(removeMaster(zone, 'unknown', NOW)).toBe(zone);
    expect(addMaster(zone, 'new', NOW)).toBe(zone);
  });

  test('the SOA of answers and of negative answers shows it', () => {
    const zone = updateZone(start(), route('m', '10.0.0.1:6379'), NOW);
    for (const name of ['redis.internal. SOA', 'm.redis.internal. AAAA', 'none.redis.internal. A'])
      expect(ask(zone, name)).toContain(` ${SERIAL + 1} `);
  });
});

describe('what a Route makes of a master', () => {
  const good = route('m', '10.0.0.1:6379');
  const served = 'NOERROR aa; AN m.redis.internal. 1 A 10.0.0.1';
  test.each([
    ['confirmed', {}, [good], served],
    ['no Route yet', {}, [], 'SERVFAIL'],
    ['unconfirmed', {}, [good, { ...good, confirmed: false }], 'SERVFAIL'],
    ['no primary', {}, [good, { ...good, primary: null }], 'SERVFAIL'],
    ['isolated from the start', {}, [{ ...good, trusted: false }], 'SERVFAIL'],
    ['isolated, last answers stay', {}, [good, { ...route('m', '10.0.0.2:6379'), trusted: false }], served],
    ['isolated, servfail wanted', { whenIsolated: 'servfail' }, [good, { ...good, trusted: false }], 'SERVFAIL'],
    ['healed', { whenIsolated: 'servfail' }, [good, { ...good, trusted: false }, good], served],
    ['loopback', {}, [good, route('m', '127.0.0.1:6379')], 'SERVFAIL'],
    ['loopback allowed', { allowLoopback: true }, [route('m', '127.0.0.1:6379')], 'NOERROR aa; AN m.redis.internal. 1 A 127.0.0.1'],
    ['host name', { allowLoopback: true }, [good, route('m', 'redis-a:6379')], 'SERVFAIL'],
  ] as const)('%s', (_name, override, routes, expected) => {
    const zone = routes.reduce((each: Zone, next) => updateZone(each, next, NOW), start(override));
    expect(ask(zone, 'm.redis.internal. A')).toBe(expected);
  });

  test('muting an isolated master is no change of content', () => {
    const zone = updateZone(start({ whenIsolated: 'servfail' }), good, NOW);
    const muted = updateZone(zone, { ...good, trusted: false }, addMs(NOW, 9000));
    const healed = updateZone(muted, good, addMs(NOW, 9000));
    expect([muted.serial, healed.serial]).toEqual([zone.serial, zone.serial]);
  });

  test('replicas: unhealthy ones have a name only, unpublishable ones nothing', () => {
    const zone = updateZone(start({ replicaFallback: false }), route('m', '10.0.0.1:1', ['!10.0.0.2:1', '127.0.0.1:2', 'host:3']), NOW);
    expect(ask(zone, 'replica.m.redis.internal. A')).toMatch(/^NOERROR aa; NS/);
    expect(ask(zone, '_redis._tcp.replica.m.redis.internal. SRV')).toMatch(/^NOERROR aa; NS/);
    expect(ask(zone, 'n-10-0-0-2.m.redis.internal. A')).toMatch(/AN .* A 10\.0\.0\.2$/);
    expect(ask(zone, 'n-127-0-0-1.m.redis.internal. A')).toMatch(/^NXDOMAIN/);
    expect(routeFaults(route('m', '127.0.0.1:1', ['10.0.0.2:1', 'host:3']), settings())).toEqual({
      primary: 'primary 127.0.0.1:1 is a loopback address (allow-loopback is off)',
      replicas: ['replica host:3 is a host name, which an address record cannot hold'],
    });
  });

  test('two nodes on one address: one address record, two services', () => {
    const zone = updateZone(start(), route('m', '10.0.0.1:1', ['10.0.0.2:1', '10.0.0.2:2']), NOW);
    expect(ask(zone, 'replica.m.redis.internal. A')).toBe('NOERROR aa; AN replica.m.redis.internal. 1 A 10.0.0.2');
    const [name, target] = ['_redis._tcp.replica.m.redis.internal.', 'n-10-0-0-2.m.redis.internal.'];
    const expected = `NOERROR aa; AN ${name} 1 SRV 0 1 1 ${target}, ${name} 1 SRV 0 1 2 ${target}; AR ${target} 1 A 10.0.0.2`;
    expect(ask(zone, `${name} SRV`)).toBe(expected);
  });
});

describe('names of nodes that are gone', () => {
  const moved = (ttlSeconds: number): Zone => {
    const zone = updateZone(start({ ttlSeconds }), route('m', '10.0.0.1:6379'), NOW);
    return updateZone(zone, route('m', '10.0.0.2:6379', [], { configEpoch: 2 }), NOW);
  };

  test('stay for twice the TTL', () => {
    const zone = moved(5);
    expect(ask(zone, nodeName)).toMatch(/A 10\.0\.0\.1$/);
    expect(blockFor(zone, 'm')?.retired.map(({ until }) => until - NOW)).toEqual([10_000]);
    expect(purgeZone(zone, 'm', addMs(NOW, 9999))).toBe(zone);
    const purged = purgeZone(zone, 'm', addMs(NOW, 10_000));
    expect(ask(purged, nodeName)).toMatch(/^NXDOMAIN/);
    expect(purged.serial).toBeGreaterThan(zone.serial);
    expect(ask(purged, 'm.redis.internal. A')).toMatch(/A 10\.0\.0\.2$/);
  });

  test('a later change does not prolong them, and drops those whose time is over', () => {
    const later = updateZone(moved(5), route('m', '10.0.0.3:6379', [], { configEpoch: 3 }), addMs(NOW, 6000));
    expect(blockFor(later, 'm')?.retired.map(({ until }) => until - NOW).sort()).toEqual([10_000, 16_000]);
    const latest = updateZone(later, route('m', '10.0.0.4:6379', [], { configEpoch: 4 }), addMs(NOW, 12_000));
    expect(ask(latest, nodeName)).toMatch(/^NXDOMAIN/);
  });

  test('go at once with TTL 0; a node that comes back is retired no more', () => {
    expect(ask(moved(0), nodeName)).toMatch(/^NXDOMAIN/);
    const back = updateZone(moved(5), route('m', '10.0.0.2:6379', ['10.0.0.1:6379'], { configEpoch: 3 }), NOW);
    expect(blockFor(back, 'm')?.retired).toEqual([]);
    expect(ask(purgeZone(back, 'm', addMs(NOW, 99_999)), nodeName)).toMatch(/A 10\.0\.0\.1$/);
  });
});

describe('immutability', () => {
  test('an old zone answers as before, and untouched masters are shared', () => {
    const old = updateZone(buildZone(settings(), ['m', 'n'], 0, NOW), route('n', '10.1.0.1:1'), NOW);
    const next = updateZone(old, route('m', '10.0.0.1:1'), NOW);
    expect(ask(old, 'm.redis.internal. A')).toBe('SERVFAIL');
    expect(ask(next, 'm.redis.internal. A')).toMatch(/10\.0\.0\.1/);
    expect(blockFor(next, 'n')).toBe(blockFor(old, 'n'));
    expect(ask(removeMaster(next, 'm', NOW), 'm.redis.internal. A')).toMatch(/^NXDOMAIN/);
    expect(ask(next, 'm.redis.internal. A')).toMatch(/10\.0\.0\.1/);
  });
});

describe('masters added later', () => {
  test.each([
    ['my-cache', /master "my-cache" and master "my_cache" share/], ['ns1', /name server/], ['-x', /no dns label/],
      ['my_cache', null], ['fine', null],
  ] as const)('%s', (master, expected) => {
    const reason = whyNotAddable(buildZone(settings(), ['my_cache'], 0, NOW), master);
    if (expected === null) expect(reason).toBeNull();
    else expect(reason).toMatch(expected);
  });
});

test('the label of the operator is the name', () => {
  const zone = updateZone(
    buildZone(settings({ labels: new Map([['my_cache', 'Kasse']]) }), ['my_cache'], 0, NOW), route('my_cache', '10.0.0.1:1'), NOW);
  expect(ask(zone, 'kasse.redis.internal. A')).toMatch(/10\.0\.0\.1/);
  expect(ask(zone, 'my-cache.redis.internal. A')).toMatch(/^NXDOMAIN/);
});

test('name servers: at the apex, deep in the zone, outside', () => {
  const ns = [{ name: 'redis.internal.', addresses: ['10.0.0.5'] },
    { name: 'a.b.c.redis.internal', addresses: ['10.0.0.6'] }, { name: 'ns.test.', addresses: [] }];
  const zone = buildZone(settings({ ns }), ['m'], 0, NOW);
  expect(ask(zone, 'redis.internal. A')).toMatch(/A 10\.0\.0\.5$/);
  expect(ask(zone, 'a.b.c.redis.internal. A')).toMatch(/A 10\.0\.0\.6$/);
  expect(ask(zone, 'b.c.redis.internal. A')).toMatch(/^NOERROR aa; NS/);
  expect(ask(zone, 'c.redis.internal. A')).toMatch(/^NOERROR aa; NS/);
  expect(ask(zone, 'x.c.redis.internal. A')).toMatch(/^NXDOMAIN/);
  expect(ask(zone, 'redis.internal. NS')).toMatch(/AR redis\.internal\. 1 A 10\.0\.0\.5, a\.b\.c\.redis\.internal\. 1 A 10\.0\.0\.6$/);
});

describe('faults of settings', () => {
  test.each([
    [{}, []],
    [{ origin: 'a..b' }, [/zone "a..b" is no domain name/]],
    [{ origin: '.' }, [/no domain name/]],
    [{ origin: 'cache.LOCAL' }, [/multicast/]],
    [{ origin: 'local.' }, [/multicast/]],
    [{ origin: 'notlocal.' }, []],
    [{ origin: `${'a'.repeat(63)}.`.repeat(3) + 'a'.repeat(40) }, [/too long/]],
    [{ ns: [] }, [/no name server/]],
    [{ ns: [{ name: 'NS.Redis.Internal', addresses: [] }] }, [/inside the zone and has no address/]],
    [{ ns: [{ name: 'ns.redis.internal', addresses: ['host'] }] }, [/"host" is no ip address/]],
    [{ ns: [{ name: '', addresses: [] }], ttlSeconds: -1, negativeTtlSeconds: 0.5 },
      [/zone ttl -1/, /negative ttl 0.5/, /name server "" is no/]],
  ] as const)('%j', (override, expected) => {
    const faults = zoneFaults(settings(override as Parameters<typeof settings>[0]));
    expect(faults).toHaveLength(expected.length);
    expected.forEach((pattern, index) => expect(faults[index]).toMatch(pattern));
  });
});
