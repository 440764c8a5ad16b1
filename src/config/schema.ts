/**
 * The schema of pointsman.yaml: which keys exist, what kind of value each takes, and its default.
 *
 * Keys are kebab-case as in sentinel.conf and unknown ones are faults: a misspelled setting that is silently ignored costs
 * somebody a night. Every leaf carries its shape (word, list, map …), so that the environment and flags can be read by the
 * same rules (overrides.ts).
 */
import { z } from 'zod';
import type { HookPhase } from './config.js';
import { show } from './fault.js';
import * as read from './values.js';
import type { Reader } from './values.js';

/** How the text of an environment variable turns into a raw value: as it is, true/false, a number, `a,b`, `k=v,k=v`. */
export type LeafShape = 'word' | 'flag' | 'number' | 'list' | 'map' | 'entries';

/** The shape of every leaf below {@link ROOT}; a schema that is not here is a block of settings. */
export const leafShapes = new WeakMap<z.ZodType, LeafShape>();

type Complain = { addIssue(issue: { code: 'custom'; message: string; path?: PropertyKey[]; input: unknown }): void };

function leaf<T>(shape: LeafShape, readRaw: (raw: unknown, context: Complain) => T) {
  const schema = z.unknown().optional().transform((raw, context) => readRaw(raw, context));
  leafShapes.set(schema, shape);
  return schema;
}

/** Reads one raw value; a misfit becomes an issue under `path` below the leaf. */
function take<T>(reader: Reader<T>, raw: unknown, context: Complain, path: PropertyKey[] = []): T {
  const reading = reader(raw);
  if (reading.kind === 'value') return reading.value;
  context.addIssue({ code: 'custom', message: reading.message, path, input: raw });
  return z.NEVER;
}

const missing = (context: Complain, what: string): never => {
  context.addIssue({ code: 'custom', message: `missing, expected ${what}`, input: undefined });
  return z.NEVER;
};

/** A setting that must be there. */
const required = <T>(shape: LeafShape, reader: Reader<T>, what: string) =>
  leaf<T>(shape, (raw, context) => (raw === undefined ? missing(context, what) : take(reader, raw, context)));

/** A setting with a default; `fallback` is the typed value. */
const setting = <T, D>(shape: LeafShape, reader: Reader<T>, fallback: D) =>
  leaf<T | D>(shape, (raw, context) => (raw === undefined ? fallback : take(reader, raw, context)));

/** `first` reads the first item where it has a rule of its own. */
function takeList<T>(reader: Reader<T>, raw: unknown, context: Complain, first = reader): T[] {
  if (Array.isArray(raw)) return raw.map((item, index) => take(index === 0 ? first : reader, item, context, [index]));
  context.addIssue({ code: 'custom', message: `bad value ${show(raw)}, expected a list`, input: raw });
  return z.NEVER;
}

const list = <T>(reader: Reader<T>, fallback: readonly NoInfer<T>[]) =>
  leaf<readonly T[]>('list', (raw, context) => (raw === undefined ? fallback : takeList(reader, raw, context)));

function takeFullList<T>(reader: Reader<T>, raw: unknown, context: Complain, what: string, first?: Reader<T>): readonly T[] {
  if (!Array.isArray(raw) || raw.length > 0) return takeList(reader, raw, context, first);
  context.addIssue({ code: 'custom', message: `empty list, expected ${what}`, input: raw });
  return z.NEVER;
}

const requiredList = <T>(reader: Reader<T>, what: string, first?: Reader<T>) =>
  leaf<readonly T[]>('list', (raw, context) =>
    (raw === undefined ? missing(context, what) : takeFullList(reader, raw, context, what, first)));

const atLeastOne = <T>(reader: Reader<T>, fallback: readonly NoInfer<T>[], what: string) =>
  leaf<readonly T[]>('list', (raw, context) => (raw === undefined ? fallback : takeFullList(reader, raw, context, what)));

function takeEntries(raw: unknown, context: Complain): Readonly<Record<string, unknown>> {
  if (typeof raw === 'object' && raw !== null && !Array.isArray(raw)) return raw as Record<string, unknown>;
  context.addIssue({ code: 'custom', message: `bad value ${show(raw)}, expected a map of keys to values`, input: raw });
  return {};
}

/** A map whose keys the user chooses. */
const map = <T>(keys: Reader<string>, values: Reader<T>) =>
  leaf<readonly (readonly [string, T])[]>('map', (raw, context) =>
    Object.entries(raw === undefined ? {} : takeEntries(raw, context)).map(([key, item]) =>
      [take(keys, key, context, [key]), take(values, item, context, [key])] as const));

/** `from: to` for every master, and `master: { from: to }` for one. */
const addressMap = leaf<readonly { master: string | null; from: string; to: string }[]>('map', (raw, context) => {
  if (raw === undefined) return [];
  return Object.entries(takeEntries(raw, context)).flatMap(([key, item]) => {
    const nested = typeof item === 'object' && item !== null && !Array.isArray(item);
    const pairs = nested ? Object.entries(item) : [[key, item] as const];
    return pairs.map(([from, to]) => {
      const path = nested ? [key, from] : [key];
      const address = (text: unknown): string => take(read.nodeAddressText, text, context, path);
      return { master: nested ? key : null, from: address(from), to: address(to) };
    });
  });
});

/** One address or a list of them, or nothing for a name server whose address another zone knows. */
const nameServerAddresses: Reader<readonly string[]> = (raw) => {
  const items: readonly unknown[] = raw === null ? [] : Array.isArray(raw) ? raw : [raw];
  const readings = items.map((item) => read.ip(item));
  const bad = readings.find((reading) => reading.kind === 'misfit');
  return bad ?? { kind: 'value', value: readings.flatMap((reading) => (reading.kind === 'value' ? [reading.value] : [])) };
};

const EMPTY = 'empty, leave the key out to switch it off';

const block = <S extends z.core.$ZodShape>(shape: S) =>
  z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'invalid_type') return undefined;
      return issue.input === null ? EMPTY : `bad value ${show(issue.input)}, expected a block of settings`;
    },
  });

function entries<S extends z.ZodType>(item: S) {
  const schema = z.array(item, {
    error: (issue) => (issue.input === null ? EMPTY : `bad value ${show(issue.input)}, expected a list`),
  });
  leafShapes.set(schema, 'entries');
  return schema;
}

const ROUTE = block({
  'allow-loopback': setting('flag', read.flag, false),
  'isolation-after': setting('word', read.positiveDuration, null),
  'address-map': addressMap,
});

const TSIG = block({
  name: required('word', read.domain, 'the name of the key'),
  algorithm: setting('word', read.oneOf('hmac-sha256'), 'hmac-sha256' as const),
  'secret-file': required('word', read.path, 'the path of a file'),
});

const TRANSFER = block({
  allow: requiredList(read.ipPrefix, 'the addresses of the secondaries'),
  notify: list(read.ipAndPort, []),
  tsig: TSIG.optional(),
});

const RATE_LIMIT = block({
  'responses-per-second': required('number', read.integer(1, 1_000_000), 'how many replies one network gets per second'),
  slip: setting('number', read.integer(0, 10), 2),
  exempt: list(read.ipPrefix, []),
});

const DNS = block({
  listen: atLeastOne(read.listenAddress, [{ host: '0.0.0.0', port: 5353 }, { host: '::', port: 5353 }], 'an address to listen on'),
  zone: setting('word', read.zone, 'redis.internal.'),
  ttl: setting('word', read.wholeSeconds, 1),
  'negative-ttl': setting('word', read.wholeSeconds, 1),
  ns: map(read.domain, nameServerAddresses),
  'when-isolated': setting('word', read.oneOf('serve-last', 'servfail'), 'serve-last' as const),
  'replica-fallback': setting('flag', read.flag, true),
  labels: map(read.text, read.label),
  transfer: TRANSFER.optional(),
  'rate-limit': RATE_LIMIT.optional(),
  workers: setting('number', read.integer(0, 64), 0),
});

const CONSUL = block({
  address: setting('word', read.httpUrl, null),
  mode: setting('word', read.oneOf('catalog', 'agent'), 'catalog' as const),
  service: setting('word', read.text, '{master}'),
  'kv-prefix': setting('word', read.text, 'pointsman'),
  'token-file': setting('word', read.path, null),
  'ca-file': setting('word', read.path, null),
  'cert-file': setting('word', read.path, null),
  'key-file': setting('word', read.path, null),
  'tls-server-name': setting('word', read.text, null),
  namespace: setting('word', read.text, null),
  datacenter: setting('word', read.text, null),
});

const HOOK = block({
  name: required('word', read.label, 'a name for status and journal'),
  command: requiredList(read.text, 'a program and its arguments', read.absolutePath),
  on: list<HookPhase>(read.oneOf('failover', 'prepared', 'aborted', 'steady', 'pre'), ['failover', 'prepared', 'aborted']),
  masters: list(read.text, []),
  timeout: setting('word', read.positiveDuration, 60_000),
  user: setting('word', read.text, null),
  capabilities: setting('word', read.oneOf('drop', 'keep'), 'drop' as const),
  limits: map(read.text, read.integer(0, Number.MAX_SAFE_INTEGER)),
});

const VIP = block({
  master: required('word', read.text, "a master's name"),
  address: required('word', read.ipPrefix, 'ip/prefix'),
  interface: required('word', read.text, 'the name of a network interface'),
  'when-isolated': setting('word', read.oneOf('release', 'keep'), 'release' as const),
  label: setting('word', read.text, null),
  dad: setting('flag', read.flag, false),
});

/** The whole file. */
export const ROOT = block({
  sentinel: block({
    config: required('word', read.path, 'the path of a sentinel.conf'),
    identity: setting('word', read.identity, null),
  }).optional(),
  route: ROUTE.optional(),
  dns: DNS.optional(),
  consul: CONSUL.optional(),
  hooks: entries(HOOK).optional(),
  vip: entries(VIP).optional(),
  admin: block({ listen: setting('word', read.listenAddress, { host: '127.0.0.1', port: 9126 }) }).optional(),
  journal: block({
    path: setting('word', read.path, '/var/lib/pointsman/journal.ndjson'),
    'max-size': setting('word', read.size, 10 * 1024 * 1024),
    keep: setting('number', read.integer(0, 1000), 5),
  }).optional(),
  log: block({
    level: setting('word', read.oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal'), 'info' as const),
    format: setting('word', read.oneOf('json', 'text'), 'json' as const),
  }).optional(),
});

/** The checked file, still with its own keys. */
export type CheckedFile = z.output<typeof ROOT>;

/** The keys of the block at `path`, or null when there is no block there. */
export function keysAt(path: readonly PropertyKey[]): readonly string[] | null {
  let schema: z.ZodType | undefined = ROOT;
  for (const key of path) {
    const inner: z.ZodType | undefined = schema === undefined ? undefined : bare(schema);
    if (inner instanceof z.ZodArray) schema = inner.element as z.ZodType;
    else schema = inner instanceof z.ZodObject ? (inner.shape as Record<string, z.ZodType>)[String(key)] : undefined;
  }
  const found = schema === undefined ? undefined : bare(schema);
  return found instanceof z.ZodObject ? Object.keys(found.shape) : null;
}

/** A schema without its `.optional()`. */
export function bare(schema: z.ZodType): z.ZodType {
  return schema instanceof z.ZodOptional ? (schema.unwrap() as z.ZodType) : schema;
}

/** What is wrong between settings that are each sound: looked at in the raw file, so that it is reported beside other faults. */
export function crossFaults(raw: unknown): readonly { path: PropertyKey[]; message: string }[] {
  return [...twins(raw, 'hooks', 'name'), ...twins(raw, 'vip', 'address'), ...homelessNameServers(raw)];
}

function twins(raw: unknown, section: string, key: string): { path: PropertyKey[]; message: string }[] {
  const items = childOf(raw, section);
  const seen = new Set<unknown>();
  return (Array.isArray(items) ? (items as unknown[]) : []).flatMap((item, index) => {
    const text = childOf(item, key);
    if (typeof text !== 'string') return [];
    if (seen.has(text.toLowerCase())) return [{ path: [section, index, key], message: `${show(text)} is there twice` }];
    seen.add(text.toLowerCase());
    return [];
  });
}

function homelessNameServers(raw: unknown): { path: PropertyKey[]; message: string }[] {
  const zone = read.zone(childOf(childOf(raw, 'dns'), 'zone') ?? 'redis.internal.');
  const servers = childOf(childOf(raw, 'dns'), 'ns');
  if (zone.kind === 'misfit' || typeof servers !== 'object' || servers === null) return [];
  return Object.entries(servers).flatMap(([name, addresses]) => {
    const owner = read.domain(name);
    const inside = owner.kind === 'value' && (owner.value === zone.value || owner.value.endsWith(`.${zone.value}`));
    const homeless = addresses === null || (Array.isArray(addresses) && addresses.length === 0);
    const message = `name server ${show(name)} is inside the zone and needs an address`;
    return inside && homeless ? [{ path: ['dns', 'ns', name], message }] : [];
  });
}

function childOf(raw: unknown, key: string): unknown {
  return typeof raw === 'object' && raw !== null && Object.hasOwn(raw, key) ? (raw as Record<string, unknown>)[key] : undefined;
}
