/**
 * Resolvers of every temper ask us: the tools of BIND, Knot and ldns, getaddrinfo of glibc and musl, systemd-resolved.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startDnsListeners } from '../../src/dns/listeners.js';
import type { DnsListeners } from '../../src/dns/listeners.js';
import { programPath } from '../../src/find-program.js';
import { ROOT } from '../tidy/sources.js';
import { sampleZone } from '../unit/dns/ask.js';
import { whyNotHere } from './secondary-lab.js';

const run = promisify(execFile);
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const folder = mkdtempSync(join(tmpdir(), 'pointsman-resolvers-'));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('tools', () => {
  let listeners: DnsListeners;
  const zone = sampleZone();

  beforeAll(async () => {
    listeners = await startDnsListeners({ listen: ['127.0.0.1:0'], zone: () => zone, log: quiet });
  });
  afterAll(() => listeners.close());

  /** How each is asked; all print presentation format. */
  const TOOLS: Readonly<Record<string, (port: string, name: string, type: string) => string[]>> = {
    dig: (port, name, type) => ['@127.0.0.1', '-p', port, '+norecurse', name, type],
    kdig: (port, name, type) => ['@127.0.0.1', '-p', port, '+norec', name, type, '+edns', '+dnssec'],
    drill: (port, name, type) => ['-D', '-p', port, name, '@127.0.0.1', type],
    // Without validation: nobody has signed a private zone.
    delv: (port, name, type) => ['@127.0.0.1', '-p', port, '-i', name, type],
  };
  const QUESTIONS = [
    ['cache.redis.internal.', 'A', 'A 10.0.0.1'],
    ['CACHE.redis.internal.', 'A', 'A 10.0.0.1'],
    ['six.redis.internal.', 'AAAA', 'AAAA 2001:db8::1'],
    ['replica.six.redis.internal.', 'A', 'A 10.0.1.2'],
    ['_redis._tcp.cache.redis.internal.', 'SRV', 'SRV 0 1 6379 n-10-0-0-1.cache.redis.internal.'],
    ['cache.redis.internal.', 'TXT', 'TXT "epoch=7 phase=steady"'],
    ['redis.internal.', 'NS', 'NS ns1.redis.internal.'],
    ['cache.redis.internal.', 'AAAA', ''],
    ['none.redis.internal.', 'A', ''],
  ] as const;

  for (const [tool, argsOf] of Object.entries(TOOLS)) {
    const here = whyNotHere(`resolvers: ${tool}`, tool) === null ? test : test.skip;
    here.each(QUESTIONS)(`${tool}: %s %s`, async (name, type, expected) => {
      const argv = argsOf(String(listeners.addresses[0]?.port), name, type);
      const { stdout, stderr } = await run(programPath(tool) ?? tool, argv).catch((error: unknown) => error as { stdout: string; stderr: string });
      const records = stdout.split('\n').filter((line) => !line.startsWith(';') && line.trim() !== '').map((line) => line.replace(/\s+/g, ' ').trim());
      const answers = records.filter((line) => new RegExp(`^${name.replaceAll('.', '\\.')} 1 IN ${type} `, 'i').test(line)).map((line) => line.replace(/^\S+ 1 IN /, ''));
      if (expected === '') expect(answers).toEqual([]);
      else expect(answers).toContain(expected);
      expect(`${stdout}${stderr}`).not.toMatch(/malformed|warning|bad (?:packet|label)|parse|mismatch|FORMERR|SERVFAIL|timed? ?out/i);
    });
  }
});

describe('a machine of its own', () => {
  const mayUnshare = process.getuid?.() === 0 && spawnSync('unshare', ['-n', '-m', 'true']).status === 0;
  if (!mayUnshare) process.stderr.write('skipped: resolvers of the system: namespaces cannot be made here\n');
  const inNamespace = mayUnshare ? test : test.skip;

  inNamespace('glibc, musl and systemd-resolved find the master by name', async () => {
    const found = spawnSync(process.execPath, [join(ROOT, 'scripts/resolved-binary.mjs')], { encoding: 'utf8' });
    const [resolved = '', libraries = ''] = found.stdout.split('\n');
    if (resolved === '') process.stderr.write(`skipped: systemd-resolved: ${found.stderr}`);
    const argv = ['-n', '-m', 'sh', join(ROOT, 'test/integration/resolver-namespace.sh'), join(ROOT, 'bench/dns/server.mjs'), folder, resolved, libraries, musl()];
    const { stdout } = await run('unshare', argv);
    const said = new Map(stdout.trim().split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]));
    expect(said.get('glibc A')).toMatch(/^10\.0\.0\.1 .* ok/);
    expect(said.get('glibc any')).toMatch(/^10\.0\.0\.1 .* ok/);
    expect(said.get('glibc hosts')).toMatch(/^10\.0\.1\.[23] .* ok/);
    expect(said.get('glibc none')).toMatch(/^status 2/);
    expect(said.get('glibc no address')).toMatch(/^status 2/);
    if (said.has('musl any')) expect([said.get('musl any'), said.get('musl none')]).toEqual(['10.0.0.1 ok ', 'Name does not resolve status 1 ']);
    if (resolved === '') return;
    expect(said.get('resolved A')).toMatch(/NOERROR.*10\.0\.0\.1/);
    expect(said.get('resolved AAAA')).toMatch(/NOERROR(?!.*\sAAAA\s+\S)/);
    expect(said.get('resolved SRV')).toMatch(/NOERROR.*0 1 6379 n-10-0-0-1\.m0\.redis\.internal\./);
    expect(said.get('resolved TXT')).toMatch(/NXDOMAIN/);
  }, 60_000);
});

/** A program of musl's own that looks a name up; empty where musl's compiler is not. */
function musl(): string {
  if (whyNotHere('resolvers: musl', 'musl-gcc') !== null) return '';
  const source = join(folder, 'look-up.c');
  writeFileSync(source, `
    #include <arpa/inet.h>
    #include <netdb.h>
    #include <stdio.h>
    int main(int argc, char **argv) {
      struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
      char text[64];
      int fault = getaddrinfo(argv[1], 0, &hints, &found);
      if (fault) return puts(gai_strerror(fault)), 1;
      for (; found; found = found->ai_next) {
        void *ip = found->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)found->ai_addr)->sin_addr
                                               : (void *)&((struct sockaddr_in6 *)found->ai_addr)->sin6_addr;
        puts(inet_ntop(found->ai_family, ip, text, sizeof text));
      }
      return 0;
    }`);
  const program = join(folder, 'look-up');
  const built = spawnSync('musl-gcc', ['-static', '-include', 'sys/socket.h', '-include', 'netinet/in.h', '-o', program, source], { encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`musl-gcc: ${built.stderr}`);
  return program;
}
