import { describe, expect, test } from '@jest/globals';
import { answerQuery } from '../../../src/dns/answer.js';
import { buildZone, updateZone } from '../../../src/dns/zone.js';
import { ask, NOW, queryBytes, render, route, sampleZone, settings } from './ask.js';

const zone = sampleZone();
const SOA = `redis.internal. 1 SOA ns1.redis.internal. hostmaster.redis.internal. ${zone.serial} 30 5 86400 1`;
const target = (ip: string, master = 'cache'): string => `n-${ip.replaceAll('.', '-')}.${master}.redis.internal.`;

describe('what the zone says', () => {
  test.each([
    ['cache.redis.internal. A', 'NOERROR aa; AN cache.redis.internal. 1 A 10.0.0.1'],
    ['master.cache.redis.internal. A', 'NOERROR aa; AN master.cache.redis.internal. 1 A 10.0.0.1'],
    ['cache.redis.internal. TXT', 'NOERROR aa; AN cache.redis.internal. 1 TXT "epoch=7 phase=steady"'],
    ['cache.redis.internal. AAAA', `NOERROR aa; NS ${SOA}`],
    ['six.redis.internal. AAAA', 'NOERROR aa; AN six.redis.internal. 1 AAAA 2001:db8::1'],
    ['six.redis.internal. A', `NOERROR aa; NS ${SOA}`],
    ['replica.six.redis.internal. A', 'NOERROR aa; AN replica.six.redis.internal. 1 A 10.0.1.2'],
    ['replica.cache.redis.internal. A id=2',
      'NOERROR aa; AN replica.cache.redis.internal. 1 A 10.0.0.2, replica.cache.redis.internal. 1 A 10.0.0.3'],
    ['replica.cache.redis.internal. A id=3',
      'NOERROR aa; AN replica.cache.redis.internal. 1 A 10.0.0.3, replica.cache.redis.internal. 1 A 10.0.0.2'],
    ['replica.alone.redis.internal. A', 'NOERROR aa; AN replica.alone.redis.internal. 1 A 10.0.2.1'],
    [
      '_redis._tcp.cache.redis.internal. SRV',
      `NOERROR aa; AN _redis._tcp.cache.redis.internal. 1 SRV 0 1 6379 ${target('10.0.0.1')}; AR ${target('10.0.0.1')} 1 A 10.0.0.1`,
    ],
    [
      '_redis._tcp.replica.cache.redis.internal. SRV edns=1232',
      'NOERROR aa; '
      + `AN _redis._tcp.replica.cache.redis.internal. 1 SRV 0 1 6380 ${target('10.0.0.2')}, `
      + `_redis._tcp.replica.cache.redis.internal. 1 SRV 0 1 6379 ${target('10.0.0.3')}; `
      + `AR ${target('10.0.0.2')} 1 A 10.0.0.2, ${target('10.0.0.3')} 1 A 10.0.0.3, OPT 1232`,
    ],
    [
      '_redis._tcp.six.redis.internal. SRV',
      'NOERROR aa; AN _redis._tcp.six.redis.internal. 1 SRV 0 1 7000 n-2001-db8-0-0-0-0-0-1.six.redis.internal.; '
      + 'AR n-2001-db8-0-0-0-0-0-1.six.redis.internal. 1 AAAA 2001:db8::1',
    ],
    [`${target('10.0.0.1')} A`, `NOERROR aa; AN ${target('10.0.0.1')} 1 A 10.0.0.1`],
    [`${target('10.0.0.4')} A`, `NOERROR aa; AN ${target('10.0.0.4')} 1 A 10.0.0.4`],
    ['redis.internal. SOA', `NOERROR aa; AN ${SOA}`],
    [
      'redis.internal. NS',
      'NOERROR aa; AN redis.internal. 1 NS ns1.redis.internal, redis.internal. 1 NS ns.example.org; '
      + 'AR ns1.redis.internal. 1 A 10.0.0.53, ns1.redis.internal. 1 AAAA 2001:db8::53',
    ],
    ['ns1.redis.internal. A', 'NOERROR aa; AN ns1.redis.internal. 1 A 10.0.0.53'],
    ['redis.internal. A', `NOERROR aa; NS ${SOA}`],
  ])('%s', (question, expected) => {
    expect(ask(zone, question)).toBe(expected);
    expect(ask(zone, question, 'tcp')).toBe(expected);
  });
});

describe('the order of checks', () => {
  test.each([
    // 2: opcode before anything is read, even without a question; the opcode is sent back.
    ['cache.redis.internal. A opcode=4', 'NOTIMP'],
    ['cache.redis.internal. A opcode=5 edns=1232', 'NOTIMP; AR OPT 1232'],
    ['cache.redis.internal. A opcode=2 +rd', 'NOTIMP rd'],
    ['cache.redis.internal. A opcode=15 class=CH', 'NOTIMP'],
    // 5: the version before class and zone.
    ['cache.redis.internal. A edns=1232 version=1', 'BADVERS; AR OPT 1232'],
    ['example.org. A edns=1232 version=255 do', 'BADVERS; AR OPT 1232 do'],
    ['version.bind. TXT class=CH edns=512 version=1', 'BADVERS; AR OPT 1232'],
    // 6: class before meta types and zone.
    ['version.bind. TXT class=CH', 'REFUSED'],
    ['cache.redis.internal. OPT class=CH', 'REFUSED'],
    ['cache.redis.internal. A class=ANY', 'REFUSED'],
    ['cache.redis.internal. A class=NONE', 'REFUSED'],
    ['cache.redis.internal. A class=0 edns=1232', 'REFUSED; AR OPT 1232'],
    // 7: meta types before the zone.
    ['example.org. OPT', 'FORMERR'],
    ['cache.redis.internal. TSIG edns=1232', 'FORMERR; AR OPT 1232'],
    ['pending.redis.internal. TKEY', 'FORMERR'],
    // 8: foreign names, without AA and without SOA.
    ['example.org. A +rd', 'REFUSED rd'],
    ['internal. SOA edns=4096', 'REFUSED; AR OPT 1232'],
    ['. NS', 'REFUSED'],
    ['redis.internal.example.org. A', 'REFUSED'],
    ['xredis.internal. A', 'REFUSED'],
    ['cache.xredis.internal. A', 'REFUSED'],
    // Transfers: nobody is listed.
    ['redis.internal. AXFR', 'NOTIMP'],
    ['redis.internal. IXFR', 'REFUSED'],
    // 9: a master without a primary, its whole subtree and every type alike.
    ['pending.redis.internal. A', 'SERVFAIL'],
    ['pending.redis.internal. AAAA edns=1232', 'SERVFAIL; AR OPT 1232 option=15'],
    ['pending.redis.internal. 65280', 'SERVFAIL'],
    ['pending.redis.internal. ANY', 'SERVFAIL'],
    ['no.such.name.pending.redis.internal. A', 'SERVFAIL'],
    ['_redis._tcp.pending.redis.internal. SRV', 'SERVFAIL'],
    // 10: names with something below them exist.
    ['_tcp.cache.redis.internal. A', `NOERROR aa; NS ${SOA}`],
    ['_tcp.replica.cache.redis.internal. SRV', `NOERROR aa; NS ${SOA}`],
    ['_redis._tcp.cache.redis.internal. A', `NOERROR aa; NS ${SOA}`],
    ['nobody.redis.internal. A', `NXDOMAIN aa; NS ${SOA}`],
    ['x.cache.redis.internal. A +rd edns=1232', `NXDOMAIN aa rd; NS ${SOA}; AR OPT 1232`],
    ['master.master.cache.redis.internal. A', `NXDOMAIN aa; NS ${SOA}`],
    ['x.ns1.redis.internal. A', `NXDOMAIN aa; NS ${SOA}`],
    ['cache.cache.redis.internal. A', `NXDOMAIN aa; NS ${SOA}`],
    ['cache.redis.internal. ANY', 'NOERROR aa; AN cache.redis.internal. 1 A 10.0.0.1'],
    ['_tcp.cache.redis.internal. ANY', `NOERROR aa; NS ${SOA}`],
    ['redis.internal. ANY', `NOERROR aa; AN ${SOA}`],
    ['cache.redis.internal. 0', `NOERROR aa; NS ${SOA}`],
    ['cache.redis.internal. MAILB', `NOERROR aa; NS ${SOA}`],
    ['cache.redis.internal. RRSIG', `NOERROR aa; NS ${SOA}`],
    ['cache.redis.internal. 65280', `NOERROR aa; NS ${SOA}`],
    // Flags of the asker other than RD are not copied.
    ['cache.redis.internal. A +ad+cd+z', 'NOERROR aa; AN cache.redis.internal. 1 A 10.0.0.1'],
    ['cache.redis.internal. A +rd', 'NOERROR aa rd; AN cache.redis.internal. 1 A 10.0.0.1'],
  ])('%s', (question, expected) => {
    expect(ask(zone, question)).toBe(expected);
  });

  test.each([['redis.internal. AXFR', 'REFUSED'], ['redis.internal. IXFR', 'REFUSED'],
    ['redis.internal. AXFR edns=1232', 'REFUSED; AR OPT 1232']])(
    'by tcp: %s', (question, expected) => expect(ask(zone, question, 'tcp')).toBe(expected));

  test('opcode and id come back', () => {
    const reply = answerQuery(zone, queryBytes('cache.redis.internal. A opcode=9 id=48879'), 'udp');
    expect(reply?.readUInt16BE(0)).toBe(48879);
    expect((reply?.readUInt8(2) ?? 0) >> 3).toBe(0x10 | 9);
  });
});

describe('EDNS', () => {
  const COOKIE = '000a00080102030405060708';
  test.each([
    ['cookie ignored', `cache.redis.internal. A edns=1232 opt=${COOKIE}`, 'OPT 1232'],
    ['cookie of a bad length ignored', 'cache.redis.internal. A edns=1232 opt=000a000101', 'OPT 1232'],
    ['client subnet of a bad form ignored', 'cache.redis.internal. A edns=1232 opt=00080002ffff', 'OPT 1232'],
    ['keepalive and padding ignored', 'cache.redis.internal. A edns=1232 opt=000b0000000c000400000000', 'OPT 1232'],
    ['DO copied', 'cache.redis.internal. A edns=4096 do', 'OPT 1232 do'],
    ['tiny size asked', 'cache.redis.internal. A edns=0', 'OPT 1232'],
  ])('%s', (_name, question, expected) => {
    expect(ask(zone, question)).toBe(`NOERROR aa; AN cache.redis.internal. 1 A 10.0.0.1; AR ${expected}`);
  });

  test('Not Ready is the error code 14', () => {
    const reply = answerQuery(zone, queryBytes('pending.redis.internal. A edns=1232'), 'udp');
    expect(reply?.subarray(-6).toString('hex')).toBe('000f0002000e');
    expect(reply?.length).toBe(queryBytes('pending.redis.internal. A').length + 17);
  });
});

describe('case of letters (RFC 4343)', () => {
  test.each(['CaChE.ReDiS.iNtErNaL. A', 'x.CACHE.Redis.Internal. A', 'CACHE.redis.INTERNAL. AAAA',
    'EXAMPLE.org. A', 'Pending.Redis.internal. A'])(
    '%s is answered like its lower-case twin, its own spelling kept', (question) => {
      const query = queryBytes(question);
      const reply = answerQuery(zone, query, 'udp') as Buffer;
      const twin = answerQuery(zone, queryBytes(question.toLowerCase().replace(/ \w+$/, (type) => type.toUpperCase())), 'udp') as Buffer;
      expect(reply.subarray(12, query.length)).toEqual(query.subarray(12));
      expect(reply.subarray(0, 12)).toEqual(twin.subarray(0, 12));
      // Everything behind the question is the same bytes: owners are pointers into the question.
      expect(reply.subarray(query.length)).toEqual(twin.subarray(query.length));
    });

  test('the owner shows the asker\'s case', () => {
    expect(ask(zone, 'CaChE.ReDiS.iNtErNaL. A')).toBe('NOERROR aa; AN CaChE.ReDiS.iNtErNaL. 1 A 10.0.0.1');
  });
});

describe('compression', () => {
  test('SRV targets are whole names, owners are pointers', () => {
    const query = queryBytes('_redis._tcp.cache.redis.internal. SRV');
    const reply = answerQuery(zone, query, 'udp') as Buffer;
    const wireTarget = '0a6e2d31302d302d302d3105636163686505726564697308696e7465726e616c00';
    expect(reply.subarray(query.length).toString('hex')).toBe(
      `c00c00210001000000010027${'0000'}${'0001'}${'18eb'}${wireTarget}` // answer
      + `0a6e2d31302d302d302d31c0180001000100000001000${'4'}0a000001`); // additional: n-10-0-0-1 + pointer to cache.redis.internal
  });
});

describe('too long for the transport (RFC 2181 9)', () => {
  const replicas = Array.from({ length: 55 }, (_, index) => `10.9.0.${index + 1}:6379`);
  const crowd = updateZone(buildZone(settings(), ['crowd'], 0, NOW), route('crowd', '10.9.1.1:6379', replicas), NOW);
  const counts = (question: string, transport: 'udp' | 'tcp' = 'udp'): string => {
    const reply = answerQuery(crowd, queryBytes(question), transport) as Buffer;
    render(reply);
    const sections = [6, 8, 10].map((at) => reply.readUInt16BE(at)).join('/');
    return `${(reply.readUInt8(2) & 2) !== 0 ? 'tc ' : ''}${sections} ${reply.length <= 1232}`;
  };
  test.each([
    ['A fits into 1232', 'replica.crowd.redis.internal. A edns=4096', 'udp', '55/0/1 true'],
    ['A does not fit into 512', 'replica.crowd.redis.internal. A', 'udp', 'tc 0/0/0 true'],
    ['a size below 512 counts as 512', 'replica.crowd.redis.internal. A edns=100', 'udp', 'tc 0/0/1 true'],
    ['A by tcp', 'replica.crowd.redis.internal. A', 'tcp', '55/0/0 true'],
    ['SRV: as many as fit into 1232, no Additional and no TC',
      '_redis._tcp.replica.crowd.redis.internal. SRV edns=1232', 'udp', '22/0/1 true'],
    ['SRV without EDNS', '_redis._tcp.replica.crowd.redis.internal. SRV', 'udp', 'tc 0/0/0 true'],
    ['SRV by tcp has its Additional', '_redis._tcp.replica.crowd.redis.internal. SRV', 'tcp', '22/0/22 false'],
  ] as const)('%s', (_name, question, transport, expected) => expect(counts(question, transport)).toBe(expected));

  test('an address set is never larger than one datagram, however many replicas there are', () => {
    const many = Array.from({ length: 200 }, (_, index) => `10.8.${index >> 6}.${index & 63}:6379`);
    const huge = updateZone(crowd, route('crowd', '10.9.1.1:6379', many, { configEpoch: 2 }), NOW);
    const reply = answerQuery(huge, queryBytes('replica.crowd.redis.internal. A edns=1232'), 'udp') as Buffer;
    expect(reply.readUInt8(2) & 2).toBe(0);
    expect(reply.length).toBeLessThanOrEqual(1232);
    expect(reply.length).toBeGreaterThan(1232 - 16);
  });

  test('turning by id brings each replica to the front and loses none', () => {
    const firsts = new Set<string>();
    for (let id = 0; id < 55; id++) {
      const text = ask(crowd, `replica.crowd.redis.internal. A edns=1232 id=${id}`);
      const ips = [...text.matchAll(/ A ([\d.]+)/g)].map(([, ip]) => ip ?? '');
      expect(new Set(ips).size).toBe(55);
      firsts.add(ips[0] ?? '');
    }
    expect(firsts.size).toBe(55);
  });
});

describe('longest names', () => {
  test('a negative answer to the longest name fits without EDNS', () => {
    const long = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(46)}.redis.internal.`;
    const query = queryBytes(`${long} A`);
    expect(query.length).toBe(12 + 255 + 4);
    const reply = answerQuery(zone, query, 'udp') as Buffer;
    expect(reply.length).toBeLessThanOrEqual(512);
    expect(render(reply)).toBe(`NXDOMAIN aa; NS ${SOA}`);
  });

  test.each([[0, 5, 0], [5, 0, 0], [5, 3, 3], [3, 5, 3]])(
    'ttl %i, negative ttl %i: SOA in Authority has ttl %i', (ttlSeconds, negativeTtlSeconds, ttl) => {
    const other = sampleZone({ ttlSeconds, negativeTtlSeconds });
    expect(ask(other, 'none.redis.internal. A')).toContain(`NS redis.internal. ${ttl} SOA`);
    expect(ask(other, 'redis.internal. SOA')).toContain(`AN redis.internal. ${ttlSeconds} SOA`);
  });
});
