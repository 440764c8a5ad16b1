// pointsman.yaml as a whole: what a full file becomes, and what a bad one is told, with lines.
import { describe, expect, test } from '@jest/globals';
import { formatFaults } from '../../../src/config/fault.js';
import { loadConfig } from '../../../src/config/load.js';
import type { LoadOptions } from '../../../src/config/load.js';
import { LEAVES, variableOf } from '../../../src/config/overrides.js';

const load = (text: string, more: Partial<LoadOptions> = {}) =>
  loadConfig({ path: '/etc/pointsman/pointsman.yaml', env: {}, read: (path) => fileOf(path, text), ...more });

const SECRET = Buffer.alloc(32, 7).toString('base64');
const SECRETS: Readonly<Record<string, string>> = { 'tsig.key': `${SECRET}\n`, 'short.key': 'c2VjcmV0', 'text.key': 'hunter2 is no base64' };

function fileOf(path: string, yaml: string): string {
  const name = path.split('/').at(-1) ?? '';
  if (name === 'gone.key') throw new Error('ENOENT');
  return SECRETS[name] ?? yaml;
}

function loaded(text: string, more: Partial<LoadOptions> = {}) {
  const result = load(text, more);
  if (result.kind === 'faults') throw new Error(formatFaults(result.faults));
  return result;
}

function faultsOf(text: string, more: Partial<LoadOptions> = {}): string[] {
  const result = load(text, { path: 'pointsman.yaml', ...more });
  return result.kind === 'faults' ? formatFaults(result.faults).split('\n') : [];
}

const FULL = `
sentinel:
  config: sentinel.conf
route:
  allow-loopback: true
  isolation-after: 30s
  address-map: { "10.0.0.1:6379": "203.0.113.7:6379", cache: { "10.0.0.2:6379": "redis.example:7000" } }
dns:
  listen: ["0.0.0.0:5353", "[::]:5353"]
  zone: Redis.Internal
  ttl: 2s
  negative-ttl: 0s
  ns: { ns1.redis.internal.: 10.0.0.11, ns2.redis.internal: [10.0.0.12, "2001:db8::1"], ns.example.org.: ~ }
  when-isolated: servfail
  replica-fallback: false
  labels: { "my.master": my-master }
  transfer: { allow: ["10.0.0.53"], notify: ["10.0.0.53:53"], tsig: { name: key.x, algorithm: hmac-sha256, secret-file: tsig.key } }
  rate-limit: { responses-per-second: 200, slip: 3, exempt: [10.0.0.0/24] }
consul:
  address: http://127.0.0.1:8500
  mode: agent
  service: "{master}"
  kv-prefix: pm
hooks:
  - { name: pager, command: [/usr/local/bin/page], on: [failover], timeout: 5s, user: nobody, capabilities: keep, limits: { nofile: 64 } }
vip:
  - { master: cache, address: 10.0.0.100/32, interface: eth0, when-isolated: keep }
admin: { listen: 127.0.0.1:9127 }
journal: { path: /var/lib/pointsman/journal.ndjson, max-size: 1mb, keep: 2 }
log: { level: debug, format: text }
`;

describe('a good file', () => {
  test('becomes a typed value with every setting', () => {
    const { config, warnings } = loaded(FULL);
    expect(config).toEqual({
      sentinel: expect.objectContaining({ config: '/etc/pointsman/sentinel.conf' }),
      route: {
        allowLoopback: true, isolationAfterMs: 30_000,
        addressMap: [
          { master: null, from: '10.0.0.1:6379', to: '203.0.113.7:6379' },
          { master: 'cache', from: '10.0.0.2:6379', to: 'redis.example:7000' },
        ],
      },
      dns: {
        listen: [{ host: '0.0.0.0', port: 5353 }, { host: '::', port: 5353 }], zone: 'redis.internal.', ttlSeconds: 2,
        negativeTtlSeconds: 0,
        ns: [
          { name: 'ns1.redis.internal.', addresses: ['10.0.0.11'] },
          { name: 'ns2.redis.internal.', addresses: ['10.0.0.12', '2001:db8::1'] },
          { name: 'ns.example.org.', addresses: [] },
        ],
        whenIsolated: 'servfail', replicaFallback: false, labels: { 'my.master': 'my-master' }, workers: 0,
        transfer: {
          allow: ['10.0.0.53/32'], notify: [{ host: '10.0.0.53', port: 53 }],
          tsig: { name: 'key.x.', algorithm: 'hmac-sha256', secretFile: '/etc/pointsman/tsig.key', secret: SECRET },
        },
        rateLimit: { responsesPerSecond: 200, slip: 3, exempt: ['10.0.0.0/24'] },
      },
      consul: {
        address: 'http://127.0.0.1:8500', mode: 'agent', service: '{master}', kvPrefix: 'pm', token: null, tokenFile: null, caFile: null,
        certFile: null, keyFile: null, tlsServerName: null, namespace: null, datacenter: null,
      },
      hooks: [{
        name: 'pager', command: ['/usr/local/bin/page'], on: ['failover'], masters: [], timeoutMs: 5000, user: 'nobody',
        capabilities: 'keep',
        limits: { nofile: 64 },
      }],
      vip: [{ master: 'cache', address: '10.0.0.100/32', interface: 'eth0', whenIsolated: 'keep', label: null, dad: false }],
      admin: { listen: { host: '127.0.0.1', port: 9127 } },
      journal: { path: '/var/lib/pointsman/journal.ndjson', maxBytes: 1024 * 1024, keep: 2 },
      log: { level: 'debug', format: 'text' },
    });
    expect(warnings).toEqual([]);
  });

  test.each(['', '# only a comment\n', '---\n', '{}'])('%j is a file with everything off', (text) => {
    expect(loaded(text).config).toEqual({
      sentinel: null, route: { allowLoopback: false, isolationAfterMs: null, addressMap: [] }, dns: null, consul: null, hooks: [], vip: [],
      admin: null, journal: null, log: { level: 'info', format: 'json' },
    });
  });

  test('an empty block has the documented defaults', () => {
    expect(loaded('dns: {}').config.dns).toMatchObject({
      listen: [{ host: '0.0.0.0', port: 5353 }, { host: '::', port: 5353 }], zone: 'redis.internal.', ttlSeconds: 1,
      negativeTtlSeconds: 1, ns: [],
      whenIsolated: 'serve-last', transfer: null, rateLimit: null, workers: 0,
    });
    expect(loaded('admin: {}').config.admin).toEqual({ listen: { host: '127.0.0.1', port: 9126 } });
  });
});

describe('a bad file', () => {
  test('is told everything at once, in the order of the lines', () => {
    const text = ['dns:', '  zone: foo.local', '  tttl: 1s', '  ttl: 1 sec', '  listen: ["0.0.0.0:5353", "::1:53"]', 'vip:',
      '  - { master: m, interface: eth0 }', 'admin: 5', 'log:'];
    expect(faultsOf(text.join('\n'))).toEqual([
      'pointsman.yaml:2:9 dns.zone: zone "foo.local" is refused, .local belongs to multicast DNS; use e.g. redis.internal.',
      'pointsman.yaml:3:3 dns.tttl: unknown key, did you mean "ttl"?',
      'pointsman.yaml:4:8 dns.ttl: bad duration "1 sec", expected e.g. 250ms, 1s, 2m',
      'pointsman.yaml:5:28 dns.listen[1]: bad address "::1:53", expected ip:port or [ipv6]:port',
      'pointsman.yaml:7:5 vip[0].address: missing, expected ip/prefix',
      'pointsman.yaml:8:8 admin: bad value 5, expected a block of settings',
      'pointsman.yaml:9:5 log: empty, leave the key out to switch it off',
    ]);
  });

  test.each([
    ['a: 1', 'pointsman.yaml:1:1 a: unknown key'],
    ['hook: []', 'pointsman.yaml:1:1 hook: unknown key, did you mean "hooks"?'],
    ['__proto__: { dns: {} }', 'pointsman.yaml:1:1 __proto__: unknown key'],
    ['- dns', 'pointsman.yaml:1:1 bad value a list, expected a block of settings'],
    ['log: { level: info, level: warn }', 'pointsman.yaml:1:21 duplicate key "level"'],
    ['log: [1', 'bad yaml'],
    ['log:\n\tlevel: info', 'pointsman.yaml:2:1 bad yaml'],
    ['log: {}\n---\nlog: {}', 'a second document'],
    ['log: { level: *x }', 'pointsman.yaml:1:15 unknown alias "*x"'],
    ['? { level: info }\n: 1', 'pointsman.yaml:1:3 a key that is no word'],
    ['log: { [level]: info }', 'pointsman.yaml:1:8 a key that is no word'],
    ['!!binary aGk=: 1', 'pointsman.yaml:1:10 a key that is no word'],
    ['log: { level: !secret x }', 'unresolved tag'],
    ['dns: { listen: [] }', 'pointsman.yaml:1:8 dns.listen: empty list, expected an address to listen on'],
    ['dns: { listen: "0.0.0.0:53" }', 'dns.listen: bad value "0.0.0.0:53", expected a list'],
    ['dns: { ns: [a] }', 'dns.ns: bad value a list, expected a map of keys to values'],
    ['dns: { ns: { ns1.redis.internal: ~ } }', 'is inside the zone and needs an address'],
    ['dns: { ns: { ns1.x.: 1.2.3 } }', 'dns.ns["ns1.x."]: bad ip "1.2.3"'],
    ['dns: { rate-limit: { slip: 2 } }', 'dns.rate-limit.responses-per-second: missing, expected how many replies'],
    ['dns: { rate-limit: { responses-per-second: 5, slip: 11 } }', 'dns.rate-limit.slip: bad number 11'],
    ['dns: { workers: 1.5 }', 'dns.workers: bad number 1.5'],
    ['dns: { transfer: { allow: [10.0.0.1], tsig: { name: k } } }', 'dns.transfer.tsig.secret-file: missing'],
    ['dns: { transfer: { allow: [10.0.0.1], tsig: { name: k, secret-file: gone.key } } }',
      'pointsman.yaml:1:69 dns.transfer.tsig.secret-file: "gone.key" cannot be read: ENOENT'],
    ['dns: { transfer: { allow: [10.0.0.1], tsig: { name: k, secret-file: text.key } } }', 'secret-file: "text.key" holds no base64'],
    ['dns: { transfer: { allow: [10.0.0.1], tsig: { name: k, secret-file: short.key } } }', '"short.key" holds a secret of 6 bytes, expected at least 16'],
    ['dns: { transfer: { notify: ["10.0.0.1:53"] } }', 'dns.transfer.allow: missing, expected the addresses of the secondaries'],
    ['dns: { transfer: { allow: [10.0.0.0/33] } }', 'dns.transfer.allow[0]: bad address "10.0.0.0/33", expected ip or ip/prefix'],
    ['dns: { transfer: { allow: [10.0.0.1], notify: ["ns2.example.org:53"] } }',
      'dns.transfer.notify[0]: bad address "ns2.example.org:53", expected ip:port or [ipv6]:port'],
    ['dns: { transfer: { allow: [10.0.0.1], notify: ["10.0.0.1:0"] } }', 'dns.transfer.notify[0]: bad address "10.0.0.1:0"'],
    ['hooks: [{ name: a, command: [page] }]', 'pointsman.yaml:1:30 hooks[0].command[0]: bad path "page", expected an absolute one'],
    ['hooks: [{ name: a, command: [/a], on: [failver] }]', 'hooks[0].on[0]: bad value "failver", expected one of failover, prepared'],
    ['hooks: [{ name: a, command: [/a] }, { name: A, command: [/b] }]', 'hooks[1].name: "A" is there twice'],
    ['hooks: { name: a }', 'hooks: bad value a block, expected a list'],
    ['sentinel: {}', 'pointsman.yaml:1:1 sentinel.config: missing, expected the path of a sentinel.conf'],
    ['route: { address-map: { a: "b:1" } }', 'route.address-map.a: bad address "a"'],
    ['consul: { address: "http://u:hunter2@h" }', 'does not belong into it'],
  ])('%j', (text, expected) => {
    const faults = faultsOf(text);
    expect(faults).toEqual([expect.stringContaining(expected)]);
    expect(faults.join()).not.toContain('hunter2');
  });

  test('a duplicate key does not hide the faults of the rest', () => {
    expect(faultsOf('log: { level: loud }\nlog: { level: loud }')).toEqual([
      'pointsman.yaml:2:1 duplicate key "log"', expect.stringContaining('log.level: bad value "loud"'),
    ]);
  });

  test('an unreadable file is one fault', () => {
    const read = (): never => { throw new Error('ENOENT: no such file'); };
    expect(faultsOf('', { read })).toEqual(['pointsman.yaml cannot be read: ENOENT: no such file']);
  });

  test('an alias bomb is refused, not expanded', () => {
    const nine = (name: string): string => Array<string>(9).fill(`*${name}`).join(',');
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]', ...Array.from('bcdefgh', (name, i) => `${name}: &${name} [${nine('abcdefg'.charAt(i))}]`)];
    expect(faultsOf(bomb.join('\n'))).toEqual([expect.stringContaining('alias')]);
  });
});

describe('environment and flags', () => {
  test('flag over environment over file over default', () => {
    const env = { POINTSMAN_DNS_TTL: '2s', POINTSMAN_LOG_LEVEL: 'warn', POINTSMAN_LOG_FORMAT: '' };
    const { config } = loaded('dns: { ttl: 9s, negative-ttl: 9s }\nlog: { level: debug, format: text }',
      { env, flags: { 'log.level': 'error' } });
    expect(config.dns).toMatchObject({ ttlSeconds: 2, negativeTtlSeconds: 9 });
    expect(config.log).toEqual({ level: 'error', format: 'text' });
  });

  test('switches a block on without a file; lists and maps have a text form', () => {
    const env = {
      POINTSMAN_DNS_LISTEN: '127.0.0.1:53, [::1]:53', POINTSMAN_DNS_NS: 'ns1.redis.internal=10.0.0.1',
      POINTSMAN_ROUTE_ALLOW_LOOPBACK: 'yes',
      POINTSMAN_DNS_TRANSFER_ALLOW: '10.0.0.2', POINTSMAN_DNS_WORKERS: '3',
    };
    const { config } = loaded('', { path: null, env });
    expect(config.dns).toMatchObject({
      listen: [{ host: '127.0.0.1', port: 53 }, { host: '::1', port: 53 }], ns: [{ name: 'ns1.redis.internal.', addresses: ['10.0.0.1'] }],
      transfer: { allow: ['10.0.0.2/32'] }, workers: 3,
    });
    expect(config.route.allowLoopback).toBe(true);
  });

  test('a bad variable is named instead of a line, and does not hide the file', () => {
    const env = { POINTSMAN_DNS_TTL: '7 y', POINTSMAN_DNS_WORKERS: 'many' };
    expect(faultsOf('dns: { zone: local }', { env, flags: { 'log.level': 'loud' } })).toEqual([
      expect.stringContaining('pointsman.yaml:1:14 dns.zone'),
      'env POINTSMAN_DNS_TTL dns.ttl: bad duration "7 y", expected e.g. 250ms, 1s, 2m',
      'env POINTSMAN_DNS_WORKERS dns.workers: bad number "many", expected a whole number from 0 to 64',
      'flag log.level: bad value "loud", expected one of trace, debug, info, warn, error, fatal',
    ]);
  });

  test('an unknown variable is a warning with the name it was probably meant to be', () => {
    const { warnings } = loaded('', { env: { POINTSMAN_DNS_TLT: '1s', POINTSMAN_SENTINELS: 'a:1', POINTSMAN_MASTER: 'm', PATH: '/bin' } });
    expect(formatFaults(warnings)).toBe('env POINTSMAN_DNS_TLT unknown variable, ignored; did you mean "POINTSMAN_DNS_TTL"?');
  });

  test('no two settings share a variable', () => {
    const names = LEAVES.map((leaf) => variableOf(leaf.path));
    expect(names).toContain('POINTSMAN_DNS_NEGATIVE_TTL');
    expect(new Set(names).size).toBe(names.length);
  });

  test.each([
    [{ CONSUL_HTTP_ADDR: '10.0.0.1:8500' }, 'http://10.0.0.1:8500'],
    [{ CONSUL_HTTP_ADDR: '10.0.0.1:8500', CONSUL_HTTP_SSL: 'true' }, 'https://10.0.0.1:8500'],
    [{ CONSUL_HTTP_ADDR: 'https://c:8501' }, 'https://c:8501'],
    [{}, 'http://127.0.0.1:8500'],
  ])('CONSUL variables %j', (env, address) => {
    expect(loaded('consul: {}', { env }).config.consul?.address).toBe(address);
    expect(loaded('consul: { address: "h:1" }', { env }).config.consul?.address).toBe('http://h:1');
    expect(loaded('', { env }).config.consul).toBeNull();
  });

  test('a token comes from the environment, unless the file names a token file', () => {
    const env = { CONSUL_HTTP_TOKEN: 't', CONSUL_NAMESPACE: 'n' };
    expect(loaded('consul: {}', { env }).config.consul).toMatchObject({ token: 't', tokenFile: null, namespace: 'n' });
    expect(loaded('consul: { token-file: /t }', { env }).config.consul).toMatchObject({ token: null, tokenFile: '/t' });
  });

  test('a bad CONSUL_HTTP_ADDR is a fault only where Consul is on', () => {
    const env = { CONSUL_HTTP_ADDR: 'ftp://x' };
    expect(faultsOf('consul: {}', { env })).toEqual([expect.stringContaining('env CONSUL_HTTP_ADDR consul.address: bad url "ftp://x"')]);
    expect(faultsOf('', { env })).toEqual([]);
  });
});
