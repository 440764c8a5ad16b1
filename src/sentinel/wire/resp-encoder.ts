/**
 * Values to RESP bytes: replies for a client of protocol 2 or 3, and commands to a server.
 *
 * What RESP2 cannot say is flattened (map, set, push → array; null by its shape), as addReplyMapLen and its kin do.
 */
import { assert, assertNever } from '../../assert.js';
import type { RespValue } from './resp-value.js';

/** The two protocol versions that HELLO negotiates. */
export type RespProtocol = 2 | 3;

/** The bytes of one reply. Texts are sent as UTF-8. */
export function encodeReply(value: RespValue, protocol: RespProtocol): Buffer {
  const parts: string[] = [];
  write(value, protocol, parts);
  return Buffer.from(parts.join(''), 'utf8');
}

/** The bytes of one command: a multibulk of `argv`. */
export function encodeCommand(argv: readonly string[]): Buffer {
  return Buffer.from(`*${argv.length}\r\n${argv.map(bulkText).join('')}`, 'utf8');
}

function write(value: RespValue, protocol: RespProtocol, parts: string[]): void {
  switch (value.kind) {
    case 'simple':
      parts.push('+', oneLine(value.text), '\r\n');
      return;
    case 'error':
      parts.push('-', oneLine(value.text), '\r\n');
      return;
    case 'integer':
      assert(Number.isSafeInteger(value.value), `integer reply ${value.value} is not a safe integer`);
      parts.push(`:${value.value}\r\n`);
      return;
    case 'bulk':
      parts.push(bulkText(value.text));
      return;
    case 'null':
      parts.push(protocol === 3 ? '_\r\n' : '$-1\r\n');
      return;
    case 'nullArray':
      parts.push(protocol === 3 ? '_\r\n' : '*-1\r\n');
      return;
    case 'array':
      return writeItems('*', value.items, protocol, parts);
    case 'set':
      return writeItems(protocol === 3 ? '~' : '*', value.items, protocol, parts);
    case 'push':
      return writeItems(protocol === 3 ? '>' : '*', value.items, protocol, parts);
    case 'map':
      if (protocol === 2) return writeItems('*', value.entries.flat(), protocol, parts);
      parts.push(`%${value.entries.length}\r\n`);
      for (const entry of value.entries.flat()) write(entry, protocol, parts);
      return;
    default:
      assertNever(value);
  }
}

function writeItems(sign: '*' | '~' | '>', items: readonly RespValue[], protocol: RespProtocol, parts: string[]): void {
  parts.push(`${sign}${items.length}\r\n`);
  for (const item of items) write(item, protocol, parts);
}

const bulkText = (text: string): string => `$${Buffer.byteLength(text, 'utf8')}\r\n${text}\r\n`;

// A line break inside a one-line reply would end it early and let its rest pass for a reply of its own.
const oneLine = (text: string): string => text.replace(/[\r\n]/g, ' ');
