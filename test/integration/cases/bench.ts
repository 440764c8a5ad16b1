/**
 * The bench of the cases: redis-servers and sentinels started from bare command lines and sentinel.conf texts, where the laboratory's
 * standard group does not fit: TLS, users, other names for commands, host names, processes in a name space of their own.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Children, type Child } from '../../../src/demo/children.js';
import { MAIN, MASTER_NAME, program, waitFor } from '../lab.js';

const START_LIMIT_MS = 60_000;

/** How to reach a process, and as whom. */
export type Access = Pick<RedisOptions, 'host' | 'port' | 'path' | 'tls' | 'username' | 'password'>;

export interface Started {
  readonly name: string;
  readonly folder: string;
  readonly conf: string;
  readonly argv: readonly string[];
  readonly access: Access;
  child: Child;
}

export interface StartOptions {
  readonly access: Access;
  /** Words before the program's own: another name space, another environment. */
  readonly wrap?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

export class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), 'pointsman-case-'));
  readonly children = new Children(this.folder);
  readonly #started: Started[] = [];

  async redis(name: string, args: readonly string[], options: StartOptions): Promise<Started> {
    const folder = this.#folderOf(name);
    const argv = [program('redis-server'), '--save', '', '--dir', folder, '--repl-diskless-sync-delay', '0', ...args];
    return this.#start({ name, folder, conf: '', argv }, options);
  }

  /** One of ours as a drop-in, from the lines of its sentinel.conf. */
  async sentinel(name: string, lines: readonly string[], options: StartOptions): Promise<Started> {
    const { folder, conf } = this.#confOf(name, lines);
    return this.#start({ name, folder, conf, argv: [process.execPath, MAIN, 'sentinel', conf] }, options);
  }

  async stock(name: string, lines: readonly string[], options: StartOptions): Promise<Started> {
    const { folder, conf } = this.#confOf(name, lines);
    return this.#start({ name, folder, conf, argv: [program('redis-sentinel'), conf] }, options);
  }

  /** An agent: pointsman.yaml beside its sentinel.conf. */
  async agent(name: string, lines: readonly string[], yaml: readonly string[], options: StartOptions): Promise<Started> {
    const { folder, conf } = this.#confOf(name, lines);
    const path = join(folder, 'pointsman.yaml');
    writeFileSync(path, ['sentinel: { config: sentinel.conf }', 'log: { format: text }', ...yaml, ''].join('\n'));
    return this.#start({ name, folder, conf, argv: [process.execPath, MAIN, 'run', '--config', path] }, options);
  }

  async restart(process: Started, args: readonly string[] = process.argv, env?: NodeJS.ProcessEnv): Promise<void> {
    process.child = this.children.start(process.name, args, process.folder, env);
    await this.#answering(process);
  }

  logOf({ child }: Started): string {
    return readFileSync(child.logPath, 'utf8');
  }

  logs(lines = 12): string {
    return this.#started.map((each) => `── ${each.name}\n${this.logOf(each).trimEnd().split('\n').slice(-lines).join('\n')}`).join('\n');
  }

  async stop(): Promise<void> {
    await this.children.endAll();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #folderOf(name: string): string {
    const folder = join(this.folder, name);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  #confOf(name: string, lines: readonly string[]): { folder: string; conf: string } {
    const folder = this.#folderOf(name);
    const conf = join(folder, 'sentinel.conf');
    writeFileSync(conf, [`dir ${folder}`, ...lines, ''].join('\n'));
    return { folder, conf };
  }

  async #start(facts: Pick<Started, 'name' | 'folder' | 'conf' | 'argv'>, { access, wrap = [], env }: StartOptions): Promise<Started> {
    const argv = [...wrap, ...facts.argv];
    const started = { ...facts, argv, access, child: this.children.start(facts.name, argv, facts.folder, env) };
    this.#started.push(started);
    await this.#answering(started);
    return started;
  }

  async #answering(started: Started): Promise<void> {
    await waitFor(() => `${started.name} answering\n${started.child.lastWords()}`, START_LIMIT_MS, async () => {
      started.child.assertRunning();
      return (await tell(started, 'PING')) === 'PONG';
    });
  }
}

const ONCE = { lazyConnect: true, retryStrategy: null, protocol: 2, enableReadyCheck: false } as const;

/** A connected client, or the reason why there is none. */
export async function open(access: Access): Promise<Redis | string> {
  const client = new Redis({ ...access, ...ONCE, connectTimeout: 5_000, commandTimeout: 5_000 });
  let reason = 'closed';
  client.on('error', (fault: Error) => (reason = fault.message));
  try {
    await client.connect();
    return client;
  } catch (fault) {
    client.disconnect();
    return fault instanceof Error && fault.message !== 'Connection is closed.' ? fault.message : reason;
  }
}

/** One command: its reply, or the text of the error. */
export async function tell({ access }: { readonly access: Access }, ...argv: string[]): Promise<unknown> {
  const client = await open(access);
  if (typeof client === 'string') return client;
  try {
    return await client.call(argv[0] ?? '', ...argv.slice(1));
  } catch (fault) {
    return fault instanceof Error ? fault.message : String(fault);
  } finally {
    client.disconnect();
  }
}

/** The flat map of SENTINEL MASTER and its kin; empty for an error. */
export function fieldsOf(reply: unknown): ReadonlyMap<string, string> {
  const words = Array.isArray(reply) ? reply.map(String) : [];
  return new Map(words.flatMap((word, at) => (at % 2 === 0 ? [[word, words[at + 1] ?? ''] as const] : [])));
}

export type Fields = ReadonlyMap<string, string>;

export const masterOf = async (sentinel: Started, name = MASTER_NAME): Promise<Fields> =>
  fieldsOf(await tell(sentinel, 'SENTINEL', 'MASTER', name));

export async function addressOf(sentinel: Started, name = MASTER_NAME): Promise<string> {
  const reply = await tell(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name);
  return Array.isArray(reply) ? reply.join(':') : String(reply);
}

/** Every sentinel knows all replicas, up, and all peers, up. */
export async function whyNotReady(sentinels: readonly Started[], replicas: number): Promise<string | null> {
  const peers = sentinels.length - 1;
  for (const sentinel of sentinels) {
    const [master, nodes, others] = await Promise.all([
      masterOf(sentinel), tell(sentinel, 'SENTINEL', 'REPLICAS', MASTER_NAME), tell(sentinel, 'SENTINEL', 'SENTINELS', MASTER_NAME),
    ]);
    const all = (reply: unknown): Fields[] => (Array.isArray(reply) ? reply.map(fieldsOf) : []);
    const wellNodes = all(nodes).filter((node) => node.get('flags') === 'slave' && node.get('master-link-status') === 'ok').length;
    const wellPeers = all(others).filter((peer) => peer.get('flags') === 'sentinel').length;
    if (master.get('flags') !== 'master' || wellNodes !== replicas || wellPeers !== peers) {
      return `${sentinel.name}: master ${master.get('flags')}, ${wellNodes}/${replicas} replicas, ${wellPeers}/${peers} peers`;
    }
  }
  return null;
}

export async function ready(bench: Bench, sentinels: readonly Started[], replicas: number, limitMs = 30_000): Promise<void> {
  let why: string | null = null;
  await waitFor(() => `${why ?? ''}\n${bench.logs()}`, limitMs, async () => (why = await whyNotReady(sentinels, replicas)) === null);
}

/** An IPv4 address of this machine that is not loopback. */
export function outsideAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const found = all.find(({ internal, family }) => !internal && family === 'IPv4');
  if (found === undefined) throw new Error('this test needs an IPv4 address besides loopback');
  return found.address;
}

/** Fast periods on ours and on stock sentinels from 7.0 on. */
export async function hurry(sentinels: readonly Started[]): Promise<void> {
  for (const sentinel of sentinels) await tell(sentinel, 'SENTINEL', 'DEBUG', 'INFO-PERIOD', '1000', 'PUBLISH-PERIOD', '500');
}
