/**
 * Real Consul for tests: one server or a cluster, with ACL and TLS on demand, and a proxy that counts, swallows and cuts.
 *
 * Configured as on a small production site, but with raft's clock at full speed. Every server has six ports of its own below 32768
 * and is ended by its own pid.
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../src/demo/free-port.js';
import { parseFence } from '../../src/publishers/consul/entry.js';
import type { Fence } from '../../src/publishers/consul/entry.js';
import type { Operation } from '../../src/publishers/consul/operation.js';
import { ConsulPublisher } from '../../src/publishers/consul/consul-publisher.js';
import type { ConsulPublisherOptions } from '../../src/publishers/consul/consul-publisher.js';
import type { ConsulSettings } from '../../src/publishers/consul/settings.js';
import { Reconciler } from '../../src/publishers/reconciler.js';
import type { OutputResult } from '../../src/publishers/reconciler.js';
import type { Route } from '../../src/route/route.js';
import { captureLog, waitFor } from '../unit/publishers/routes.js';

export const MASTER_TOKEN = '11111111-2222-3333-4444-555555555555';
const finder = new URL('../../scripts/consul-binary.mjs', import.meta.url).pathname;
const binary = execFileSync(process.execPath, [finder], { encoding: 'utf8' }).trim();

export interface ServerOptions {
  readonly acl?: boolean;
  /** A folder with what {@link makeCertificates} made: HTTPS only, client certificates demanded. */
  readonly tls?: string;
  readonly name?: string;
  readonly dnsConfig?: Readonly<Record<string, unknown>>;
  /** More of its configuration file. */
  readonly more?: Readonly<Record<string, unknown>>;
}

interface Ports {
  readonly http: number;
  readonly https: number;
  readonly dns: number;
  readonly server: number;
  readonly serf_lan: number;
  readonly serf_wan: number;
}

export class ConsulServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'pointsman-consul-'));
  #child: ChildProcess | null = null;

  private constructor(readonly options: ServerOptions, readonly ports: Ports) {}

  static async prepare(options: ServerOptions = {}): Promise<ConsulServer> {
    const names = ['http', 'https', 'dns', 'server', 'serf_lan', 'serf_wan'] as const;
    const ports: [string, number][] = [];
    for (const name of names) ports.push([name, await freePort()]);
    return new ConsulServer(options, Object.fromEntries(ports) as unknown as Ports);
  }

  /** One server that is its own leader. */
  static async start(options: ServerOptions = {}): Promise<ConsulServer> {
    const server = await ConsulServer.prepare(options);
    server.run([server]);
    await server.ready();
    return server;
  }

  get url(): string {
    return this.options.tls === undefined ? `http://127.0.0.1:${this.ports.http}` : `https://127.0.0.1:${this.ports.https}`;
  }

  run(cluster: readonly ConsulServer[], args: readonly string[] = []): void {
    const { acl, tls, name, dnsConfig, more } = this.options;
    const others = cluster.filter((each) => each !== this);
    const pem = (file: string): string => join(tls ?? '', file);
    const config = {
      server: true, bootstrap_expect: cluster.length, node_name: name ?? `server-${this.ports.http}`,
      bind_addr: '127.0.0.1', client_addr: '127.0.0.1',
      data_dir: join(this.folder, 'data'), log_level: 'warn', disable_update_check: true, performance: { raft_multiplier: 1 },
      ports: { ...this.ports, grpc: -1, http: tls === undefined ? this.ports.http : -1, https: tls === undefined ? -1 : this.ports.https },
      retry_join: others.map((each) => `127.0.0.1:${each.ports.serf_lan}`), retry_interval: '1s', retry_join_wan: [],
      ...(dnsConfig === undefined ? {} : { dns_config: dnsConfig }),
      ...(acl === true ? { acl: { enabled: true, default_policy: 'deny', tokens: { master: MASTER_TOKEN, agent: MASTER_TOKEN } } } : {}),
      ...(tls === undefined ? {} : {
        ca_file: pem('consul-agent-ca.pem'), cert_file: pem('dc1-server-consul-0.pem'), key_file: pem('dc1-server-consul-0-key.pem'),
        verify_incoming: true, verify_outgoing: true,
      }),
      ...more,
    };
    const path = join(this.folder, 'consul.json');
    writeFileSync(path, JSON.stringify(config));
    this.#child = spawn(binary, ['agent', '-config-file', path, ...args], { stdio: 'ignore' });
  }

  /** Until it has a leader that answers. */
  async ready(limitMs = 30_000): Promise<void> {
    const token = this.options.acl === true ? MASTER_TOKEN : undefined;
    // The catalog lists the server itself once it serves as leader and (with ACL) has read its tokens.
    const isReady = async (): Promise<boolean> => {
      const nodes = await this.get('/v1/catalog/nodes', token).catch(() => null);
      return Array.isArray(nodes) && nodes.length > 0;
    };
    await waitFor(isReady, `a leader at ${this.url}`, limitMs);
  }

  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  }

  /** Without its past when `withData` is false. */
  async restart(withData: boolean): Promise<void> {
    await this.stop();
    if (!withData) rmSync(join(this.folder, 'data'), { recursive: true, force: true });
    this.run([this]);
  }

  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  async end(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  get(path: string, token?: string): Promise<unknown> {
    return this.request('GET', path, undefined, token);
  }

  put(path: string, body?: unknown, token?: string): Promise<unknown> {
    return this.request('PUT', path, body, token);
  }

  async request(method: string, path: string, body?: unknown, token?: string): Promise<unknown> {
    const { tls } = this.options;
    const headers = token === undefined ? {} : { 'x-consul-token': token };
    const certificates = tls === undefined ? {} : {
      ca: readFileSync(join(tls, 'consul-agent-ca.pem')), cert: readFileSync(join(tls, 'dc1-client-consul-0.pem')),
      key: readFileSync(join(tls, 'dc1-client-consul-0-key.pem')), servername: 'server.dc1.consul',
    };
    const options = { method, headers, timeout: 5_000, agent: false, ...certificates };
    const request = (tls === undefined ? http : https).request(new URL(path, this.url), options);
    request.on('timeout', () => request.destroy(new Error(`${method} ${path} took too long`)));
    request.end(body === undefined ? undefined : Buffer.isBuffer(body) ? body : JSON.stringify(body));
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const bytes = Buffer.concat(await response.toArray() as Buffer[]);
    if (response.statusCode !== 200) throw new Error(`${method} ${path}: ${response.statusCode} ${bytes.toString()}`);
    if (response.headers['content-type']?.includes('json') !== true) return bytes;
    return JSON.parse(bytes.toString()) as unknown;
  }

  /** Lines of `dig +short`, sorted. */
  dig(name: string, type: string): string[] {
    const args = ['@127.0.0.1', '-p', String(this.ports.dns), '+short', '+tries=1', '+time=2', name, type];
    return execFileSync('dig', args, { encoding: 'utf8' }).split('\n').filter((line) => line !== '').sort();
  }

  /** Status and A records of one answer, asked without blocking anybody else; no answer has the status `NONE`. */
  async ask(name: string): Promise<{ readonly status: string; readonly addresses: readonly string[] }> {
    const args = ['@127.0.0.1', '-p', String(this.ports.dns), '+tries=1', '+time=2', name, 'A'];
    const text = await new Promise<string>((resolve) => { execFile('dig', args, (_error, stdout) => resolve(stdout)); });
    const addresses = [...text.matchAll(/^\S+\s+\d+\s+IN\s+A\s+(\S+)$/gm)].map((match) => match[1] ?? '');
    return { status: /status: (\w+)/.exec(text)?.[1] ?? 'NONE', addresses };
  }

  /** What clients that ask for healthy entries get: `host:port`, sorted. */
  async passing(service: string, token?: string): Promise<string[]> {
    const entries = (await this.get(`/v1/health/service/${service}?passing`, token)) as { Service: { Address: string; Port: number } }[];
    return entries.map(({ Service }) => `${Service.Address}:${Service.Port}`).sort();
  }

  /** The key's JSON; null when it is absent. */
  async key(master: string, token?: string): Promise<Fence | null> {
    const items = (await this.get(`/v1/kv/pointsman/${master}`, token).catch((error: unknown) => {
      if (/: 404 /.test(String(error))) return [];
      throw error;
    })) as { Value: string }[];
    return parseFence(Buffer.from(items[0]?.Value ?? '', 'base64').toString());
  }

  /** ModifyIndexes of all that belongs to a master: unchanged means that nobody wrote. */
  async indexes(master: string): Promise<string> {
    const found = await Promise.all([`health/service/${master}`, `health/service/${master}-replica`, `kv/pointsman/${master}`].map(
      (path) => this.get(`/v1/${path}`),
    ));
    return JSON.stringify(found).match(/"ModifyIndex":\d+/g)?.join(' ') ?? '';
  }
}

/** A CA, one server and one client certificate, made by `consul tls`. */
export function makeCertificates(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-consul-tls-'));
  for (const args of [['ca', 'create'], ['cert', 'create', '-server'], ['cert', 'create', '-client']]) {
    execFileSync(binary, ['tls', ...args], { cwd: folder, stdio: 'ignore' });
  }
  return folder;
}

/** The rules of the policy as the documentation shows them, one a line. */
export function documentedRules(): string[] {
  const page = readFileSync(new URL('../../docs/consul.md', import.meta.url), 'utf8');
  const policy = /```hcl\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  return policy.split('\n').filter((line) => line.includes('policy')).map((line) => line.replace(/\s+/g, ' '));
}

type ProxyMode = 'pass' | 'swallow' | 'cut-answers' | 'refuse';

/** Stands before a Consul and sees every request; can be half-open (`swallow`) or lose the answers to writes (`cut-answers`). */
export class ConsulProxy {
  readonly requests: { readonly method: string; readonly path: string; readonly body: string; readonly atMs: number }[] = [];
  mode: ProxyMode = 'pass';
  connections = 0;
  readonly #server: http.Server;
  port = 0;

  constructor(target: ConsulServer) {
    this.#server = http.createServer((request, response) => {
      void (async () => {
        const body = Buffer.concat(await request.toArray() as Buffer[]);
        const { method = '', url = '' } = request;
        this.requests.push({ method, path: url, body: body.toString(), atMs: performance.now() });
        if (this.mode === 'swallow') return;
        if (this.mode === 'refuse') {
          response.writeHead(503).end('try later');
          return;
        }
        const { headers } = request;
        const onward = http.request({ host: '127.0.0.1', port: target.ports.http, method, path: url, headers, agent: false });
        onward.on('error', () => request.socket.destroy());
        response.on('close', () => onward.destroy());
        onward.on('response', (answer) => {
          if (this.mode === 'cut-answers' && method !== 'GET') {
            request.socket.destroy();
            return;
          }
          response.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(response);
        });
        onward.end(body);
      })();
    });
    this.#server.on('connection', () => { this.connections++; });
  }

  async open(): Promise<this> {
    this.port = await freePort();
    this.#server.listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Transactions and other writes, without the self-tests, which change nothing. */
  get writes(): { readonly path: string; readonly operations: Operation[] }[] {
    return this.requests.filter(({ method, body }) => method !== 'GET' && !body.includes('.never'))
      .map(({ path, body }) => ({ path, operations: path.startsWith('/v1/txn') ? JSON.parse(body) as Operation[] : [] }));
  }

  /** The orders of all key writes that were sent, in order of time. */
  get orders(): number[] {
    return this.writes.flatMap(({ operations }) => operations).flatMap((operation) => {
      if (!('KV' in operation) || operation.KV.Value === undefined) return [];
      return [parseFence(Buffer.from(operation.KV.Value, 'base64').toString())?.order ?? -1];
    });
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

export function settingsOf(address: string, change: Partial<ConsulSettings> = {}): ConsulSettings {
  return {
    address, mode: 'catalog', service: '{master}', kvPrefix: 'pointsman', token: null, tokenFile: null, caFile: null, certFile: null,
    keyFile: null, tlsServerName: null, namespace: null, datacenter: null, ...change,
  };
}

export type AgentChange = Partial<ConsulPublisherOptions> & { readonly recheckMs?: number };

/** A publisher behind a reconciler, as in an agent; everything that came of it is kept. */
export class PublishingAgent {
  readonly results: OutputResult[] = [];
  readonly publisher: ConsulPublisher;
  readonly reconciler: Reconciler;
  readonly lines: string[];

  constructor(readonly writer: string, settings: ConsulSettings, change: AgentChange = {}) {
    const { log, lines } = captureLog();
    this.lines = lines;
    this.publisher = new ConsulPublisher({
      settings, writer, masters: [], labelOf: (master) => master.toLowerCase().replace(/[_.]/g, '-'), whyNotPublishable: () => null,
      isKeeper: () => writer === 'agent-1', wake: (master) => this.reconciler.recheck('consul', master), log, ...change,
    });
    this.reconciler = new Reconciler({
      publishers: [this.publisher], log, onResult: (result) => this.results.push(result),
      ...(change.recheckMs === undefined ? {} : { recheckMs: change.recheckMs }),
    });
  }

  /** Submits a Route and waits until it is said to be published. */
  async publish(route: Route, limitMs = 10_000): Promise<void> {
    this.reconciler.submit(route);
    await this.published(route, limitMs);
  }

  async published(route: Route, limitMs = 10_000): Promise<void> {
    const status = (): string => JSON.stringify(this.reconciler.status().find(({ master }) => master === route.master));
    const isDone = (): boolean => this.reconciler.status().some((each) =>
      each.master === route.master && each.state === 'published' && each.publishedOrder === route.order);
    await waitFor(isDone, `order ${route.order} from ${this.writer}`, limitMs).catch((error: unknown) => {
      throw new Error(`${String(error)}; ${status()}`);
    });
  }

  lastError(master = 'cache'): string {
    return this.reconciler.status().find((each) => each.master === master)?.lastError?.message ?? '';
  }

  async close(): Promise<void> {
    await this.reconciler.close();
    await this.publisher.close();
  }
}
