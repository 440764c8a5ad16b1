/**
 * Logging: pino as NDJSON, or the same records as one line of text each.
 *
 * Text: `2026-11-29T12:00:00.123Z info  sentinel +sdown master mymaster 127.0.0.1 6379`: time, level, part, message, then the other
 * fields as key=value. Writes are synchronous, so that the last line before a crash is there. Secrets never get out: fields
 * with a secret's name are replaced at any depth, passwords inside URLs in the finished line.
 */
import { pino, stdSerializers, stdTimeFunctions } from 'pino';
import type { DestinationStream } from 'pino';
import type { LogFormat, LogLevel } from './config/config.js';

interface LogMethod {
  (message: string): void;
  (fields: object, message?: string): void;
}

/** What every part of the program logs through. `part` in the bindings of a child is the word after the level in text form. */
export interface Log {
  level: string;
  readonly trace: LogMethod;
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
  readonly fatal: LogMethod;
  child(bindings: Readonly<Record<string, unknown>>): Log;
}

export interface LogOptions {
  readonly level: LogLevel | 'silent';
  readonly format: LogFormat;
  /** A file descriptor, a path (appended to), or a stream of lines; default 2, stderr. */
  readonly destination?: number | string | DestinationStream;
  /** Gets each record as a line of NDJSON, too. */
  readonly copyTo?: { write(record: string): void };
}

const families = new WeakMap<object, Log[]>();

/** Changes the level of a root log and of every part's; children of pino keep the one they were born with. */
export function setLogLevel(root: Log, level: LogOptions['level']): void {
  for (const each of families.get(root) ?? [root]) each.level = level;
}

/** The root log. A destination that can't be written to loses lines and never stops the program. */
export function createLog({ level, format, destination = 2, copyTo }: LogOptions): Log {
  const sink = typeof destination === 'object' ? destination : openSink(destination);
  const stream: DestinationStream = {
    write(line) {
      sink.write(format === 'json' ? line : formatTextLine(line));
      copyTo?.write(line);
    },
  };
  const root = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redactFields },
      hooks: { streamWrite: hideUrlPasswords },
    },
    stream,
  );
  // Children inherit this from the root's prototype chain; the formatter for bindings they would not.
  const child = root.child;
  const family: Log[] = [root];
  root.child = function childWithoutSecrets(this: typeof root, bindings: object) {
    const born = child.call(this, redactFields(bindings));
    family.push(born);
    return born;
  } as typeof child;
  families.set(root, family);
  return root;
}

function openSink(destination: number | string): DestinationStream {
  const sink = pino.destination({ dest: destination, sync: true, append: true, mkdir: false });
  // A full disk or a reader that went away (EPIPE) is no reason to stop watching masters; there is nowhere left to report it.
  sink.on('error', () => undefined);
  return sink;
}

const SECRET_NAME = /^(.*[_-])?(pass|password|passwd|auth-?pass|requirepass|masterauth|token|secret|authorization|private-?key)$/i;
const SECRET_CAMEL = /(Pass|Password|Token|Secret)$/;
const DEEPEST = 6;

/** A copy of `value` in which every field with a secret's name reads `[redacted]`; a name ending in `File` is no secret. */
export function redact(value: unknown, depth = 0): unknown {
  if (value instanceof Error) return redact({ ...stdSerializers.err(value) }, depth);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > DEEPEST) return '[too deep]';
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  if (value instanceof Date || ArrayBuffer.isView(value)) return value;
  return redactFields(value, depth);
}

function redactFields(fields: object, depth = 0): Record<string, unknown> {
  const clean = (key: string, item: unknown): unknown => (isSecret(key, item) ? '[redacted]' : redact(item, depth + 1));
  return Object.fromEntries(Object.entries(fields).map(([key, item]) => [key, clean(key, item)]));
}

function isSecret(key: string, value: unknown): boolean {
  return value !== null && value !== undefined && (SECRET_NAME.test(key) || SECRET_CAMEL.test(key));
}

/** `redis://user:secret@host` → `redis://user:[redacted]@host`, wherever it stands in a line. */
export function hideUrlPasswords(line: string): string {
  return line.replace(/([a-z][a-z0-9+.-]*:\/\/[^/\s:@"]*):[^/\s@"]+@/gi, '$1:[redacted]@');
}

/** One NDJSON record → one line of text. What is no record passes as it is. */
export function formatTextLine(line: string): string {
  const record = parseRecord(line);
  if (record === null) return line;
  const { time, level, part, msg, err, ...fields } = record;
  const words = [String(time), String(level).padEnd(5)];
  if (typeof part === 'string') words.push(part);
  if (typeof msg === 'string') words.push(escapeControls(msg));
  for (const [key, value] of Object.entries(fields)) words.push(`${key}=${formatField(value)}`);
  if (typeof err === 'object' && err !== null) words.push(...errorFields(err as Record<string, unknown>));
  return `${words.join(' ')}\n`;
}

function parseRecord(line: string): Record<string, unknown> | null {
  try {
    const record: unknown = JSON.parse(line);
    return typeof record === 'object' && record !== null ? (record as Record<string, unknown>) : null;
  } catch {
    // Not ours: whoever wrote a bare line into the stream gets it through unchanged.
    return null;
  }
}

function errorFields(error: Record<string, unknown>): string[] {
  const fields = [`error=${formatField(error['message'])}`];
  if (error['code'] !== undefined) fields.push(`code=${formatField(error['code'])}`);
  return fields;
}

/** Words stay bare; everything else is JSON, which also keeps line feeds of foreign text out of the log. */
function formatField(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=\p{Cc}]+$/u.test(value)) return value;
  return value === undefined ? 'undefined' : JSON.stringify(value);
}

/** Control characters would let a script's output or a peer's name forge lines or paint the terminal. */
function escapeControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
