/**
 * A server with a gate that the test plays, and a raw client that reads replies as text.
 */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { freePort } from '../../../../../src/demo/free-port.js';
import type { CommandGate, ServerOptions } from '../../../../../src/sentinel/runtime/server/server.js';
import { SentinelServer } from '../../../../../src/sentinel/runtime/server/server.js';
import { DEFAULT_IDENTITY } from '../../../../../src/sentinel/wire/identity.js';
import { RespError, RespReplyDecoder } from '../../../../../src/sentinel/wire/resp-decoder.js';
import { encodeCommand } from '../../../../../src/sentinel/wire/resp-encoder.js';
import type { RespValue } from '../../../../../src/sentinel/wire/resp-value.js';
import { bulk } from '../../../../../src/sentinel/wire/resp-value.js';

const LIMIT_MS = 30_000;

/** Polls until `holds`; rejects with `what` after five seconds. */
export async function waitFor(what: string, holds: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + LIMIT_MS;
  while (!holds()) {
    if (performance.now() > deadlineMs) throw new Error(`never: ${what}`);
    await new Promise((done) => void setTimeout(done, 2));
  }
}

/** A reply in one line: `+OK`, `-ERR x`, `:1`, `"x"`, `nil`, `[a, b]`, `{k: v}`, `~[..]`, `>[..]`. */
export function show(value: RespValue): string {
  const list = (items: readonly RespValue[]): string => `[${items.map(show).join(', ')}]`;
  switch (value.kind) {
    case 'simple':
      return `+${value.text}`;
    case 'error':
      return `-${value.text}`;
    case 'integer':
      return `:${value.value}`;
    case 'bulk':
      return JSON.stringify(value.text);
    case 'null':
      return 'nil';
    case 'nullArray':
      return 'nil[]';
    case 'array':
      return list(value.items);
    case 'set':
      return `~${list(value.items)}`;
    case 'push':
      return `>${list(value.items)}`;
    case 'map':
      return `{${value.entries.map(([key, item]) => `${show(key)}: ${show(item)}`).join(', ')}}`;
  }
}

/** One connection; replies in the order of arrival. */
export class RawClient {
  readonly replies: string[] = [];
  readonly values: RespValue[] = [];
  isClosed = false;
  readonly #decoder = new RespReplyDecoder();
  #taken = 0;

  constructor(readonly socket: Socket) {
    socket.on('data', (chunk) => this.#received(chunk));
    socket.on('close', () => (this.isClosed = true));
    // A reset shows as closed; nothing else is asked of it.
    socket.on('error', () => undefined);
  }

  static async connect(port: number, host = '127.0.0.1'): Promise<RawClient> {
    const socket = connect({ port, host });
    const client = new RawClient(socket);
    await once(socket, 'connect');
    return client;
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  /** The next `count` replies. */
  async next(count: number): Promise<string[]> {
    await waitFor(`${count} replies, got ${JSON.stringify(this.replies.slice(this.#taken))}`,
      () => this.replies.length >= this.#taken + count);
    const taken = this.replies.slice(this.#taken, this.#taken + count);
    this.#taken += count;
    return taken;
  }

  /** Says one command and returns its one reply. */
  async ask(...argv: readonly string[]): Promise<string> {
    this.send(encodeCommand(argv));
    return (await this.next(1))[0] ?? '';
  }

  /** {@link ask} for an inline command with blanks between its words. */
  say(line: string): Promise<string> {
    return this.ask(...line.split(' '));
  }

  #received(chunk: Buffer): void {
    try {
      this.#keep(this.#decoder.push(chunk));
    } catch (fault) {
      if (!(fault instanceof RespError)) throw fault;
      this.replies.push(`broken: ${fault.message}`);
    }
  }

  #keep(values: readonly RespValue[]): void {
    this.values.push(...values);
    this.replies.push(...values.map(show));
  }
}

/** Answers every command with its words after `delayMs`, or when told to. */
export class FakeGate implements CommandGate {
  server: SentinelServer | null = null;
  mode: 'atOnce' | 'later' | 'held' = 'atOnce';
  readonly held: { readonly client: number; readonly argv: readonly string[] }[] = [];

  execute(client: number, argv: readonly string[]): void {
    if (this.mode === 'held') this.held.push({ client, argv });
    else if (this.mode === 'atOnce') this.answer(client, argv);
    else setTimeout(() => this.answer(client, argv), 3);
  }

  answer(client: number, argv: readonly string[]): void {
    this.server?.reply(client, bulk(argv.join(' ')));
  }

  infoSentinel(): string {
    return '# Sentinel\r\nsentinel_masters:1\r\nsentinel_tilt:0\r\n';
  }
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: object;
  readonly message: string;
}

/** A running server. */
export interface Rig {
  readonly server: SentinelServer;
  readonly gate: FakeGate;
  readonly port: number;
  readonly log: readonly LogLine[];
  client(): Promise<RawClient>;
  close(): Promise<void>;
}

/** Options that a test starts from. */
export function optionsFor(port: number, log: LogLine[]): ServerOptions {
  const at = (level: LogLine['level']) => (fields: object, message: string) => void log.push({ level, fields, message });
  return {
    bind: ['127.0.0.1'], port, requirePass: null, users: [], protectedMode: false, maxClients: 100, tcpBacklog: 511, timeoutSeconds: 0,
    identity: DEFAULT_IDENTITY, processRunId: 'a'.repeat(40), log: { debug: at('debug'), info: at('info'), warn: at('warn'),
      error: at('error') },
  };
}

export async function startRig(changes: Partial<ServerOptions> = {}): Promise<Rig> {
  const port = changes.port ?? (await freePort());
  const log: LogLine[] = [];
  const gate = new FakeGate();
  const server = new SentinelServer({ ...optionsFor(port, log), ...changes }, gate);
  gate.server = server;
  await server.listen();
  const clients: RawClient[] = [];
  return {
    server, gate, port, log,
    client: async () => {
      const client = await RawClient.connect(port);
      clients.push(client);
      return client;
    },
    close: async () => {
      for (const client of clients) client.socket.destroy();
      await server.close();
    },
  };
}
