/**
 * The servers that the DNS bench compares, each a process on a free port of this machine.
 */
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../src/demo/free-port.js';
import { programPath } from '../../src/find-program.js';
import type { Target } from './dnsperf.js';

const here = (name: string): string => new URL(name, import.meta.url).pathname;

export class Servers {
  readonly #children: ChildProcess[] = [];

  constructor(readonly folder: string) {}

  /** A file of queries for dnsperf. */
  queriesFor(name: string, lines: readonly string[]): string {
    const path = join(this.folder, `${name}.queries`);
    writeFileSync(path, `${lines.join('\n')}\n`);
    return path;
  }

  /** server.mjs, see there. */
  async node(kind: 'echo' | 'dns2' | 'ours', host: string, masters = '1', workers = '0'): Promise<Target & { readonly child: ChildProcess }> {
    const port = await freePort();
    const child = spawn(process.execPath, [here('server.mjs'), kind, host, String(port), masters, workers], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#children.push(child);
    await heard(child, 'ready');
    return { host, port, pid: child.pid ?? 0, child };
  }

  /** One Consul server with a service `m0` at one address. */
  async consul(): Promise<Target> {
    const binary = execFileSync(process.execPath, [here('../../scripts/consul-binary.mjs')], { encoding: 'utf8' }).trim();
    const [http, dns, server, lan, wan] = [await freePort(), await freePort(), await freePort(), await freePort(), await freePort()];
    const config = {
      server: true, bootstrap: true, data_dir: join(this.folder, 'consul'), bind_addr: '127.0.0.1', client_addr: '127.0.0.1', log_level: 'ERR',
      ports: { http, dns, server, serf_lan: lan, serf_wan: wan, grpc: -1, https: -1 }, performance: { raft_multiplier: 1 },
      dns_config: { service_ttl: { '*': '1s' } },
    };
    const path = join(this.folder, 'consul.json');
    writeFileSync(path, JSON.stringify(config));
    this.#start(binary, ['agent', '-config-file', path]);
    const registration = { Node: 'n0', Address: '10.0.0.1', Service: { Service: 'm0', Port: 6379 } };
    await until(async () => (await fetch(`http://127.0.0.1:${http}/v1/catalog/register`, { method: 'PUT', body: JSON.stringify(registration) })).ok);
    return this.#target(dns);
  }

  /** BIND with one thread and a zone of one name. */
  async named(): Promise<Target> {
    const binary = programPath('named') ?? 'named';
    const port = await freePort();
    const zone = join(this.folder, 'redis.internal.zone');
    writeFileSync(zone, '$TTL 1\n@ SOA ns1 hostmaster 1 30 5 86400 1\n@ NS ns1\nns1 A 10.0.0.53\nm0 A 10.0.0.1\n');
    const conf = join(this.folder, 'named.conf');
    writeFileSync(conf, [
      `options { directory "${this.folder}"; pid-file none; session-keyfile none; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };`,
      '  recursion no; dnssec-validation no; };', 'controls { };', `zone "redis.internal" { type primary; file "${zone}"; };`, '',
    ].join('\n'));
    this.#start(binary, ['-g', '-n', '1', '-c', conf]);
    await new Promise((done) => void setTimeout(done, 2_000));
    return this.#target(port);
  }

  end(): void {
    for (const child of this.#children.splice(0)) child.kill('SIGKILL');
  }

  #start(program: string, args: readonly string[]): void {
    this.#children.push(spawn(program, args, { stdio: 'ignore' }));
  }

  #target(port: number): Target {
    return { host: '127.0.0.1', port, pid: this.#children.at(-1)?.pid ?? 0 };
  }
}

/** Resolves when the child has written this line. */
export async function heard(child: ChildProcess, line: string): Promise<void> {
  const { stdout } = child;
  if (stdout === null) throw new Error('a server without stdout');
  for (let text = ''; !text.includes(`${line}\n`);) text += String((await once(stdout, 'data', { signal: AbortSignal.timeout(120_000) }))[0]);
}

export async function until(holds: () => Promise<boolean>, limitMs = 30_000): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!(await holds().catch(() => false))) {
    if (performance.now() > endMs) throw new Error('a server of the bench does not come up');
    await new Promise((done) => void setTimeout(done, 200));
  }
}
