/**
 * docs/configuration.md lists every key of pointsman.yaml, and no other.
 */
import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { keysAt } from '../../src/config/schema.js';
import { ROOT } from './sources.js';

/** Leaves below `path`, spelled as the page does: `hooks[].name`. */
function leavesBelow(path: readonly string[]): string[] {
  return (keysAt(path) ?? []).flatMap((key) => {
    const inner = [...path, key];
    return keysAt(inner) === null && keysAt([...inner, '0']) === null ? [inner.join('.')] : leavesBelow(keysAt(inner) === null ? [...inner, '0'] : inner);
  });
}

test('every key is on the page, and every key of the page exists', () => {
  const page = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8');
  const listed = [...page.matchAll(/^\| `([a-z]+(?:\[\])?\.[^`]+)` \|/gm)].map((match) => match[1] ?? '');
  const known = leavesBelow([]).map((path) => path.replace('.0.', '[].'));
  expect(known.length).toBeGreaterThan(40);
  expect(listed.sort()).toEqual(known.sort());
});
