/**
 * One question to a Redis node or a sentinel, over a connection of its own: what a script would do with redis-cli.
 */
import { connect } from 'node:net';
import { AgentError, messageOf } from '../errors.js';
import { formatAddress } from '../sentinel/wire/address.js';
import type { Address } from '../sentinel/wire/address.js';
import { RespReplyDecoder } from '../sentinel/wire/resp-decoder.js';
import { encodeCommand } from '../sentinel/wire/resp-encoder.js';
import type { RespValue } from '../sentinel/wire/resp-value.js';

const DEADLINE_MS = 2000;

/** Where a node listens: an address, or the path of a Unix socket, which is there whatever becomes of the network. */
export type Door = Address | { readonly path: string };

/** The reply, errors included. Rejects with AgentError LINK_FAILED when there is none in time. */
export function askRedis(door: Door, argv: readonly string[], deadlineMs = DEADLINE_MS): Promise<RespValue> {
  return new Promise((resolve, reject) => {
    const decoder = new RespReplyDecoder();
    const socket = connect('path' in door ? { path: door.path } : { host: door.host, port: door.port, noDelay: true });
    const fail = (reason: string, cause?: unknown): void => {
      socket.destroy();
      const name = 'path' in door ? door.path : formatAddress(door);
      reject(new AgentError('LINK_FAILED', `${name} ${argv.slice(0, 2).join(' ')}: ${reason}`, { argv }, { cause }));
    };
    const late = setTimeout(() => fail(`no answer in ${deadlineMs} ms`), deadlineMs);
    socket.once('connect', () => socket.write(encodeCommand(argv)));
    socket.on('error', (error) => fail(error.message, error));
    socket.once('close', () => {
      clearTimeout(late);
      // Does nothing when the answer or the error came first.
      fail('connection closed');
    });
    socket.on('data', (chunk) => {
      try {
        const [reply] = decoder.push(chunk);
        if (reply === undefined) return;
        resolve(reply);
        socket.destroy();
      } catch (error) {
        fail(messageOf(error), error);
      }
    });
  });
}

/** Texts of a flat array of strings and integers; empty for any other reply. */
export function textsOf(reply: RespValue): string[] {
  if (reply.kind !== 'array') return [];
  return reply.items.map((item) => ('text' in item ? item.text : item.kind === 'integer' ? String(item.value) : ''));
}

/** A reply of alternating names and values (SENTINEL MASTER and its kin). */
export function fieldsOf(reply: RespValue): ReadonlyMap<string, string> {
  const texts = textsOf(reply);
  return new Map(texts.flatMap((text, index) => (index % 2 === 0 ? [[text, texts[index + 1] ?? ''] as const] : [])));
}
