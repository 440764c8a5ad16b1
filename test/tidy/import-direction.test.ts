/**
 * Imports point one way: values below, IO above, and nobody imports the agent (docs: "Layout" in the design).
 *
 * The arrows are data (layers.json): the first layer whose files match owns a file; `may` and `never` name layers, files
 * or packages, `mayTypes` what may be imported for its types alone.
 */
import { describe, expect, test } from '@jest/globals';
import { dirname, join } from 'node:path';
import { importsOf, read, typescriptBelow } from './sources.js';

interface Layer {
  readonly name: string;
  readonly files: readonly string[];
  readonly may: readonly string[];
  readonly mayTypes?: readonly string[];
  readonly never?: readonly string[];
}
const { layers } = JSON.parse(read('test/tidy/layers.json')) as { layers: readonly Layer[] };

function matches(path: string, glob: string): boolean {
  const escaped = glob.replace(/[.+^${}()|[\]\\]/g, '\\$&');
  const source = escaped.replace(/\*\*\/|\*\*|\*/g, (star) => ({ '**/': '(?:.*/)?', '**': '.*' })[star] ?? '[^/]*');
  return new RegExp(`^${source}$`).test(path);
}

const layerOf = (path: string): Layer | undefined => layers.find((layer) => layer.files.some((glob) => matches(path, glob)));

/** The sentence that says what is wrong with one import, or null. Paths count from src/. */
function whyForbidden(path: string, from: string, typesOnly: boolean): string | null {
  const own = layerOf(path);
  if (!own) return `${path} belongs to no layer: add it to layers.json and say what it may import`;
  const target = from.startsWith('.') ? join(dirname(path), from).replace(/\.js$/, '.ts') : from;
  const targetLayer = from.startsWith('.') ? layerOf(target)?.name : undefined;
  const isNamed = (words: readonly string[] = []): boolean =>
    words.some((word) => word === targetLayer || (word !== '*' && matches(target, word)) || (word === '*' && targetLayer === undefined));
  const everything = own.may.includes('*') && targetLayer !== undefined;
  const allowed = (everything || isNamed(own.may) || (typesOnly && isNamed(own.mayTypes))) && !isNamed(own.never);
  return allowed ? null : `${path} (${own.name}) must not import ${target}${typesOnly ? ' even for types' : ''}`;
}

const violations = (path: string, text: string): string[] =>
  importsOf(text).flatMap((each) => whyForbidden(path, each.from, each.typesOnly) ?? []);

describe('the rule itself', () => {
  test.each([
    ['sentinel/core/tick.ts', `import { readFileSync } from 'node:fs';`],
    ['sentinel/core/tick.ts', `import { link } from '../runtime/link.js';`],
    ['sentinel/core/tick.ts', `const late = await import('ioredis');`],
    ['sentinel/runtime/link.ts', `import { sameRoute } from '../../route/route.js';`],
    ['route/project.ts', `import { Sentinel } from '../sentinel/index.js';`],
    ['route/project.ts', `import { readFile } from 'node:fs/promises';`],
    ['dns/zone.ts', `import { createSocket } from 'node:dgram';`],
    ['dns/udp-server.ts', `import { Sentinel } from '../sentinel/index.js';`],
    ['publishers/hooks/run.ts', `export { kv } from '../consul/kv.js';`],
    ['publishers/reconciler.ts', `import type { State } from '../sentinel/core/state.js';`],
    ['publishers/hooks/run.ts', `import { buildZone } from '../../dns/zone.js';`],
    ['agent.ts', `import { run } from './cli/run.js';`],
    ['cli/run.ts', `import '../main.js';`],
    ['utils/text.ts', `import { assert } from '../assert.js';`],
  ])('%s refuses %s', (path, text) => {
    expect(violations(path, text)).toHaveLength(1);
  });

  test.each([
    ['sentinel/core/tick.ts', `import { assert } from '../../assert.js'; import { parse } from '../wire/info.js';`],
    ['route/project.ts', `import { mastersOf } from '../sentinel/core/state.js';`],
    ['route/project.ts', `import { type State, type Peer } from '../sentinel/index.js';`],
    ['publishers/dns-publisher.ts', `import { buildZone } from '../dns/zone.js';`],
    ['dns/udp-server.ts', `import { createSocket } from 'node:dgram'; import { answer } from './answer.js';`],
    ['cli/run.ts', `import { Agent } from '../agent.js'; import { Command } from 'commander';`],
  ])('%s accepts %s', (path, text) => {
    expect(violations(path, text)).toEqual([]);
  });
});

test('every import of src points the right way', () => {
  const files = typescriptBelow('src');
  expect(files.length).toBeGreaterThan(5);
  const orphans = files.map((path) => path.slice('src/'.length)).filter((path) => !layerOf(path));
  expect(orphans).toEqual([]);
  expect(files.flatMap((path) => violations(path.slice('src/'.length), read(path)))).toEqual([]);
});
