/**
 * Settings from outside the file: `POINTSMAN_DNS_TTL=2s` is `dns.ttl`, flags come as `dns.ttl` itself. Flag > environment > file.
 *
 * The names are derived from the schema, so a new setting is overridable without a line here. Lists are `a,b`, maps
 * `key=value,key=value`; lists of blocks (hooks, vip) live in the file only. A value goes through the same reader as the file's.
 */
import { z } from 'zod';
import { closest } from './fault.js';
import { ROOT, bare, leafShapes } from './schema.js';
import type { LeafShape } from './schema.js';

/** One setting that comes from outside the file. */
export interface Override {
  readonly path: readonly string[];
  /** Where from, as a fault names it: `env POINTSMAN_DNS_TTL`, `flag`. */
  readonly origin: string;
  readonly raw: unknown;
}

interface Leaf {
  readonly path: readonly string[];
  readonly shape: LeafShape;
}

/** Variables with our prefix that are no settings: read by the command line, or handed to hook scripts. */
const NO_SETTINGS: readonly string[] = [
  'CONFIG', 'DAEMONIZED', 'IDENTITY', 'SENTINELS', 'MASTER', 'ROLE', 'PHASE', 'EPOCH', 'FROM', 'TO', 'REASON', 'PLANNED',
].map((name) => `POINTSMAN_${name}`);

/** `['dns', 'negative-ttl']` → `POINTSMAN_DNS_NEGATIVE_TTL`. */
export function variableOf(path: readonly string[]): string {
  return `POINTSMAN_${path.join('_').replace(/[.-]/g, '_').toUpperCase()}`;
}

function leavesOf(schema: z.ZodType, path: readonly string[]): readonly Leaf[] {
  const inner = bare(schema);
  if (inner instanceof z.ZodObject) {
    return Object.entries(inner.shape).flatMap(([key, child]) => leavesOf(child as z.ZodType, [...path, key]));
  }
  const shape = leafShapes.get(inner);
  return shape === undefined ? [] : [{ path, shape }];
}

/** Every setting that can be given outside the file, by its dotted path. */
export const LEAVES: readonly Leaf[] = leavesOf(ROOT, []);

/** The settings in `env`, and the names with our prefix that are none. An empty variable counts as not set. */
export function environmentOverrides(env: Readonly<Record<string, string | undefined>>): {
  overrides: Override[];
  unknown: { name: string; message: string }[];
} {
  const byName = new Map(LEAVES.map((leaf) => [variableOf(leaf.path), leaf]));
  const overrides: Override[] = [];
  const unknown: { name: string; message: string }[] = [];
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('POINTSMAN_') || text === undefined || text === '' || NO_SETTINGS.includes(name)) continue;
    const leaf = byName.get(name);
    const near = closest(name, [...byName.keys()]);
    if (leaf !== undefined) overrides.push({ path: leaf.path, origin: `env ${name}`, raw: rawOf(text, leaf.shape) });
    else unknown.push({ name, message: `unknown variable, ignored${near === null ? '' : `; did you mean "${near}"?`}` });
  }
  return { overrides, unknown };
}

/** Flags by dotted path, e.g. `{ 'dns.ttl': '2s' }`; a path that does not exist is an unknown key to the schema. */
export function flagOverrides(flags: Readonly<Record<string, string>>): Override[] {
  return Object.entries(flags).map(([dotted, text]) => {
    const leaf = LEAVES.find((candidate) => candidate.path.join('.') === dotted);
    return { path: dotted.split('.'), origin: 'flag', raw: leaf === undefined ? text : rawOf(text, leaf.shape) };
  });
}

/** Text → what yaml would have made of it; text that does not fit stays text, and the setting's reader refuses it by name. */
function rawOf(text: string, shape: LeafShape): unknown {
  const items = text.split(',').map((item) => item.trim()).filter((item) => item !== '');
  switch (shape) {
    case 'flag': return /^(true|yes|on|1)$/i.test(text) ? true : /^(false|no|off|0)$/i.test(text) ? false : text;
    case 'number': return /^\d+$/.test(text) ? Number(text) : text;
    case 'list': return items;
    case 'map': return items.every((item) => item.includes('=')) ? Object.fromEntries(items.map((item) => splitOnce(item))) : text;
    default: return text;
  }
}

function splitOnce(item: string): [string, string] {
  const at = item.indexOf('=');
  return [item.slice(0, at).trim(), item.slice(at + 1).trim()];
}

/** `raw` with the overrides laid over it, later ones winning; `raw` itself is left alone. */
export function applyOverrides(raw: unknown, overrides: readonly Override[]): unknown {
  return overrides.reduce<unknown>((tree, { path, raw: value }) => withValue(tree, path, value), raw);
}

function withValue(tree: unknown, path: readonly string[], value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  // A list or a word where a block belongs is the file's fault and is reported as such; an override does not hide it.
  if (tree !== null && tree !== undefined && (typeof tree !== 'object' || Array.isArray(tree))) return tree;
  const block = (tree ?? {}) as Readonly<Record<string, unknown>>;
  return { ...block, [key]: withValue(block[key], rest, value) };
}
