/**
 * The laboratory of the integration tests: real redis-servers, agents and stock sentinels on free loopback ports, in a temporary
 * folder; ended by pid, logs shown when a wait fails.
 *
 * Redis nodes of one lab share a port on 127.0.0.1, .2, .3 …, so that an A record alone says who is master.
 */
import dnsPacket from 'dns-packet';
import { createSocket } from 'node:dgram';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MASTER_NAME, whyNotIn, whyNotServing, whyNotWatching } from '../../src/demo/agreement.js';
import { askRedis, fieldsOf, textsOf } from '../../src/demo/ask-redis.js';
import { Children, findProgram, type Child } from '../../src/demo/children.js';
import { freePort } from '../../src/demo/free-port.js';
import type { Address } from '../../src/sentinel/wire/address.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import { ROOT } from '../tidy/sources.js';

export { MASTER_NAME, fieldsOf, freePort, textsOf };
export const MAIN = join(ROOT, process.env['DIST_UNDER_TEST'] ?? 'dist', 'main.js');
export const NAME = `${MASTER_NAME}.redis.test`;
const POLL_MS = 15;
const START_LIMIT_MS = 60_000;
const pause = (durationMs: number): Promise<void> => new Promise((done) => void setTimeout(done, durationMs));

/** Polls until `holds`; throws with `what` (a function is asked at the end) after `limitMs`. */
export async function waitFor(what: string | (() => string), limitMs: number, holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`not in ${limitMs} ms: ${typeof what === 'string' ? what : what()}`);
    await pause(POLL_MS);
  }
}

export interface RedisNode {
  readonly name: string;
  readonly address: Address;
  readonly args: readonly string[];
  child: Child;
}

/** One of ours (`dns` set when it serves DNS) or a stock redis-sentinel. */
export interface LabSentinel {
  readonly name: string;
  readonly kind: 'ours' | 'stock';
  readonly address: Address;
  readonly dnsPort: number | null;
  readonly folder: string;
  readonly conf: string;
  readonly argv: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  child: Child;
}

export interface SentinelSpec {
  readonly downAfterMs?: number;
  /** More lines of sentinel.conf. */
  readonly lines?: readonly string[];
  /** More lines of pointsman.yaml. */
  readonly yaml?: readonly string[];
  readonly port?: number;
  readonly dnsPort?: number;
  readonly env?: NodeJS.ProcessEnv;
  /** Do not wait until it answers. */
  readonly unwaited?: boolean;
}

export class Lab {
  readonly folder = mkdtempSync(join(tmpdir(), 'pointsman-lab-'));
  readonly children = new Children(this.folder);
  readonly nodes: RedisNode[] = [];
  readonly sentinels: LabSentinel[] = [];
  #redisPort = 0;

  /** A master and `replicas` replicas. */
  async group(replicas: number, args: readonly string[] = []): Promise<RedisNode> {
    const master = await this.redis(args);
    const replicaOf = ['--replicaof', `${master.address.host} ${master.address.port}`];
    for (let index = 0; index < replicas; index++) await this.redis([...args, ...replicaOf]);
    return master;
  }

  /** One more redis-server. A restart leaves `--replicaof` out. */
  async redis(args: readonly string[] = []): Promise<RedisNode> {
    const host = `127.0.0.${this.nodes.length + 1}`;
    this.#redisPort ||= await freePort(['127.0.0.1', '127.0.0.2', '127.0.0.3']);
    const name = `redis${this.nodes.length + 1}`;
    const address = { host, port: this.#redisPort };
    mkdirSync(join(this.folder, name));
    const node = { name, address, args, child: this.#startRedis(name, address, args) };
    this.nodes.push(node);
    await this.#answering(name, address, node.child);
    return node;
  }

  async restartRedis(node: RedisNode): Promise<void> {
    const replicaOf = node.args.indexOf('--replicaof');
    const args = replicaOf < 0 ? node.args : node.args.filter((_, at) => at < replicaOf || at > replicaOf + 1);
    node.child = this.#startRedis(node.name, node.address, args);
    await this.#answering(node.name, node.address, node.child);
  }

  /** One of our agents with DNS. */
  async agent(master: RedisNode, spec: SentinelSpec = {}): Promise<LabSentinel> {
    const name = `agent${this.sentinels.length + 1}`;
    const folder = join(this.folder, name);
    const dnsPort = spec.dnsPort ?? (await freePort());
    const port = spec.port ?? (await freePort());
    const conf = this.writeConf(folder, master, port, spec);
    const yaml = join(folder, 'pointsman.yaml');
    writeFileSync(yaml, [
      'sentinel: { config: sentinel.conf }',
      'route: { allow-loopback: true }',
      `dns: { listen: ["127.0.0.1:${dnsPort}"], zone: redis.test., ttl: 1s }`,
      `admin: { listen: "127.0.0.1:${await freePort()}" }`,
      'log: { format: text }',
      ...(spec.yaml ?? []), '',
    ].join('\n'));
    const argv = [process.execPath, MAIN, 'run', '--config', yaml];
    return this.start({ name, kind: 'ours', port, dnsPort, folder, conf, argv }, spec);
  }

  /** One of ours in place of redis-sentinel: sentinel.conf alone. */
  async dropIn(master: RedisNode, spec: SentinelSpec = {}): Promise<LabSentinel> {
    const name = `dropin${this.sentinels.length + 1}`;
    const folder = join(this.folder, name);
    const port = spec.port ?? (await freePort());
    const conf = this.writeConf(folder, master, port, spec);
    const argv = [process.execPath, MAIN, 'sentinel', conf];
    return this.start({ name, kind: 'ours', port, dnsPort: null, folder, conf, argv }, spec);
  }

  /** A redis-sentinel as Redis ships it. */
  async stock(master: RedisNode, spec: SentinelSpec = {}): Promise<LabSentinel> {
    const name = `stock${this.sentinels.length + 1}`;
    const folder = join(this.folder, name);
    const port = spec.port ?? (await freePort());
    const conf = this.writeConf(folder, master, port, spec);
    return this.start({ name, kind: 'stock', port, dnsPort: null, folder, conf, argv: [program('redis-sentinel'), conf] }, spec);
  }

  async restartSentinel(sentinel: LabSentinel, spec: SentinelSpec = {}): Promise<void> {
    sentinel.child = this.children.start(sentinel.name, sentinel.argv, sentinel.folder, sentinel.env);
    if (spec.unwaited !== true) await this.#answering(sentinel.name, sentinel.address, sentinel.child);
  }

  /** Resolves when all nodes and sentinels agree on `master` and are ready for a failover. */
  async settled(master: RedisNode, limitMs: number, sentinels = this.sentinels): Promise<void> {
    const company = { replicas: this.nodes.length - 1, peers: this.sentinels.length - 1 };
    let reasons: (string | null)[] = [];
    const agree = async (): Promise<boolean> => {
      reasons = (await Promise.all([
        ...this.nodes.map(({ name, address }) => whyNotIn(name, () => whyNotServing(address, master.address))),
        ...sentinels.map(({ name, address }) => whyNotIn(name, () => whyNotWatching(address, master.address, company))),
        ...sentinels.map(({ name, dnsPort }) => whyNotIn(name, async () => {
          const answer = dnsPort === null ? master.address.host : await answerOf(dnsPort, NAME, 'A');
          return answer === master.address.host ? null : `DNS answers ${answer}`;
        })),
      ])).filter((reason) => reason !== null);
      return reasons.length === 0;
    };
    await waitFor(() => `${reasons.join('; ')}\n${this.logs()}`, limitMs, agree);
  }

  /** The end of every log, for a failure's message. */
  logs(lines = 12): string {
    const tail = ({ logPath }: Child): string => readFileSync(logPath, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
    return this.children.all().map((child) => `── ${child.name}\n${tail(child)}`).join('\n');
  }

  async stop(): Promise<void> {
    await this.children.endAll();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A sentinel.conf in `folder` that monitors `master` with quorum 2; its path. */
  writeConf(folder: string, master: RedisNode, port: number, spec: SentinelSpec): string {
    mkdirSync(folder, { recursive: true });
    const conf = join(folder, 'sentinel.conf');
    writeFileSync(conf, [
      `port ${port}`, 'bind 127.0.0.1', `dir ${folder}`,
      `sentinel monitor ${MASTER_NAME} ${master.address.host} ${master.address.port} 2`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${spec.downAfterMs ?? 1000}`,
      `sentinel failover-timeout ${MASTER_NAME} 10000`,
      ...(spec.lines ?? []), '',
    ].join('\n'));
    return conf;
  }

  /** A sentinel by its whole command line. */
  async start(facts: Omit<LabSentinel, 'child' | 'address' | 'env'> & { port: number }, spec: SentinelSpec = {}): Promise<LabSentinel> {
    const { port, ...rest } = facts;
    const env = { ...process.env, ...spec.env };
    const child = this.children.start(rest.name, rest.argv, rest.folder, env);
    const sentinel = { ...rest, env, address: { host: '127.0.0.1', port }, child };
    this.sentinels.push(sentinel);
    if (spec.unwaited !== true) await this.#answering(sentinel.name, sentinel.address, child);
    return sentinel;
  }

  #startRedis(name: string, { host, port }: Address, args: readonly string[]): Child {
    const base = ['--port', String(port), '--bind', host, '--replica-announce-ip', host, '--dir', join(this.folder, name)];
    const storage = args.includes('--appendonly') ? [] : ['--appendonly', 'no'];
    const argv = [program('redis-server'), ...base, '--save', '', '--repl-diskless-sync-delay', '0', ...storage, ...args];
    return this.children.start(name, argv, join(this.folder, name));
  }

  async #answering(name: string, address: Address, child: Child): Promise<void> {
    await waitFor(() => `${name} answering PING\n${child.lastWords()}`, START_LIMIT_MS, async () => {
      child.assertRunning();
      const reply = await askRedis(address, ['PING']).catch(() => null);
      // A password is asked for by a living server too.
      return reply !== null && (reply.kind === 'simple' || reply.kind === 'error');
    });
  }
}

export const program = (name: string): string => findProgram(name, 'the integration tests need it');

/** One command to a node or a sentinel. */
export const ask = ({ address }: { readonly address: Address }, ...argv: string[]): Promise<RespValue> => askRedis(address, argv);

/** What ROLE says, a word each; nothing while the node's role changes, which cuts its clients. */
export const roleOf = (node: { readonly address: Address }): Promise<string[]> => ask(node, 'ROLE').then((reply) => [...textsOf(reply)], () => []);

/** A bulk or simple reply's text; else the reply as JSON. */
export const textOf = (reply: RespValue): string => ('text' in reply ? reply.text : JSON.stringify(reply));

export type Answer = dnsPacket.DecodedPacket & { readonly rcode: string };

/** One datagram to a DNS port, whatever it is, and the first one back; null after `limitMs`. */
export function datagram(port: number, bytes: Buffer, limitMs = 1000): Promise<Buffer | null> {
  return new Promise((done, fail) => {
    const socket = createSocket('udp4');
    const settle = (reply: Buffer | null): void => {
      clearTimeout(late);
      socket.close();
      done(reply);
    };
    const late = setTimeout(() => settle(null), limitMs);
    socket.on('error', fail);
    socket.once('message', settle);
    socket.send(bytes, port, '127.0.0.1');
  });
}

/** A query by UDP, decoded by another decoder than ours; null when nothing came. */
export async function query(port: number, name: string, type: dnsPacket.RecordType, limitMs = 1000): Promise<Answer | null> {
  const id = Math.floor(Math.random() * 0x1_0000);
  const reply = await datagram(port, dnsPacket.encode({ type: 'query', id, questions: [{ type, name, class: 'IN' }] }), limitMs);
  if (reply === null) return null;
  const answer = dnsPacket.decode(reply);
  if (answer.id !== id) throw new Error(`reply has id ${answer.id}, not ${id}`);
  return answer as Answer;
}

/** `127.0.0.2`, or the rcode, or `silence`: what a client would say it got. */
export async function answerOf(port: number, name: string, type: 'A' | 'AAAA', limitMs = 1000): Promise<string> {
  const answer = await query(port, name, type, limitMs);
  if (answer === null) return 'silence';
  if (answer.rcode !== 'NOERROR') return answer.rcode;
  const data = (answer.answers ?? []).map((record) => ('data' in record ? String(record.data) : ''));
  return data.length === 0 ? 'NODATA' : data.join(' ');
}

export interface Conversation {
  readonly received: Buffer;
  readonly closed: boolean;
}

/** Sends bytes by TCP and returns all that comes back until the server closes or `limitMs` are over. */
export function converse(port: number, bytes: Buffer | string, limitMs = 1000): Promise<Conversation> {
  return new Promise((done) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const settle = (closed: boolean): void => {
      clearTimeout(late);
      socket.destroy();
      done({ received: Buffer.concat(chunks), closed });
    };
    const late = setTimeout(() => settle(false), limitMs);
    socket.on('data', (chunk) => void chunks.push(chunk));
    // A reset is a way of closing.
    socket.on('error', () => settle(true));
    socket.on('end', () => settle(true));
  });
}
