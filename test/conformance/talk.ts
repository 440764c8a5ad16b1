/**
 * One connection to a RESP port, and replies as text that two servers can be compared by: shape and words stay, what differs
 * from one moment or process to the next is masked.
 */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { assertNever } from '../../src/assert.js';
import { RespReplyDecoder } from '../../src/sentinel/wire/resp-decoder.js';
import { encodeCommand } from '../../src/sentinel/wire/resp-encoder.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';

const LIMIT_MS = 10_000;

/** One command at a time, one reply each. */
export class Talk {
  readonly #socket: Socket;
  readonly #decoder = new RespReplyDecoder();
  readonly #replies: RespValue[] = [];
  #wake: () => void = () => undefined;
  #closed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk) => {
      this.#replies.push(...this.#decoder.push(chunk));
      this.#wake();
    });
    socket.on('close', () => {
      this.#closed = true;
      this.#wake();
    });
    // A reset shows as closed.
    socket.on('error', () => undefined);
  }

  static async open(port: number): Promise<Talk> {
    const socket = connect(port, '127.0.0.1');
    const talk = new Talk(socket);
    await once(socket, 'connect');
    return talk;
  }

  /** The next reply; null when the connection is closed instead. */
  async next(): Promise<RespValue | null> {
    const deadline = performance.now() + LIMIT_MS;
    while (this.#replies.length === 0 && !this.#closed) {
      const late = performance.now() > deadline;
      if (late) throw new Error(`no reply in ${LIMIT_MS} ms`);
      await new Promise<void>((done) => {
        const limit = setTimeout(done, LIMIT_MS);
        this.#wake = () => {
          clearTimeout(limit);
          done();
        };
      });
    }
    return this.#replies.shift() ?? null;
  }

  ask(...argv: readonly string[]): Promise<RespValue | null> {
    this.#socket.write(encodeCommand(argv));
    return this.next();
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** A reply in lines, indented by depth; the kind of each value shows. */
export function show(value: RespValue | null, indent = ''): string {
  if (value === null) return 'closed';
  const items = (sign: string, list: readonly RespValue[]): string =>
    [`${sign}${list.length}`, ...list.map((item) => `${indent}  ${show(item, `${indent}  `)}`)].join('\n');
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
      return 'null';
    case 'nullArray':
      return 'null array';
    case 'array':
      return items('*', value.items);
    case 'set':
      return items('~', value.items);
    case 'push':
      return items('>', value.items);
    case 'map':
      return [
        `%${value.entries.length}`,
        ...value.entries.map(([key, item]) => `${indent}  ${show(key)} = ${show(item, `${indent}  `)}`),
      ].join('\n');
    default:
      return assertNever(value);
  }
}

const AGES = [
  'last-ping-sent', 'last-ok-ping-reply', 'last-ping-reply', 'info-refresh', 'role-reported-time', 's-down-time', 'last-hello-message',
  'link-pending-commands', 'slave-repl-offset', 'age-seconds', 'entry-id', 'timestamp-created', 'timestamp-last-updated',
].join('|');

/** Without what no two processes share: ids, ages, counters, ports of clients. */
export function mask(text: string): string {
  return text
    .replace(/\b[0-9a-f]{40}\b/g, '<id>')
    .replace(new RegExp(`"(${AGES})"( = |\\n\\s*)"?[\\d.]+"?`, 'g'), '"$1"$2<n>')
    // A link that new credentials have cut comes back when it comes back.
    .replaceAll(',disconnected"', '"')
    .replace(/\b((?:l?addr)=[\d.]+):\d+/g, '$1:<port>')
    .replace(/\b(id|fd|age|idle|qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|oll|omem|tot-mem)=-?\d+/g, '$1=<n>');
}

/** The kind and the keys of a reply, for texts that each server words itself: nothing inside strings counts. */
export function shapeOf(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/^(\s*)\+.+$/gm, '$1+').replace(/\d+/g, '0');
}

/** All that comes back for `bytes`: until the server closes, or a PING sent behind them is answered. */
export async function converse(port: number, chunks: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  let closed = false;
  socket.on('data', (chunk) => (received += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  socket.on('close', () => (closed = true));
  socket.on('end', () => (closed = true));
  await once(socket, 'connect');
  for (const chunk of chunks) {
    socket.write(Buffer.from(chunk, 'latin1'));
    // Separate segments, as the decoder must not care.
    await new Promise((done) => void setTimeout(done, 15));
  }
  socket.write('*2\r\n$4\r\nPING\r\n$7\r\nthe-end\r\n');
  const deadline = performance.now() + 2000;
  const isDone = (): boolean => closed || received.endsWith('the-end\r\n') || performance.now() > deadline;
  while (!isDone()) await new Promise((done) => void setTimeout(done, 5));
  socket.destroy();
  const ending = received.endsWith('$7\r\nthe-end\r\n') ? 'open' : closed ? 'closed' : 'silent';
  return `${JSON.stringify(received.replace(/\$7\r\nthe-end\r\n$/, ''))} ${ending}`;
}
