import fc from 'fast-check';
import { expect, test } from '@jest/globals';
import { knownName } from '../../../src/dns/name.js';
import { NameTable } from '../../../src/dns/name-table.js';

test('behaves like a map, and old versions stay as they were', () => {
  const edit = fc.record({ key: fc.integer({ min: 0, max: 200 }), value: fc.option(fc.integer(), { nil: null }) });
  fc.assert(fc.property(fc.array(edit, { maxLength: 300 }), (edits) => {
    let table = NameTable.empty<number>();
    const model = new Map<number, number>();
    const half = edits.length >> 1;
    let [oldTable, oldModel] = [table, new Map(model)];
    edits.forEach(({ key, value }, index) => {
      if (index === half) [oldTable, oldModel] = [table, new Map(model)];
      const name = knownName(`key-${key}`);
      table = value === null ? table.without(name) : table.with(name, value);
      if (value === null) model.delete(key);
      else model.set(key, value);
    });
    for (const [seen, expected] of [[table, model], [oldTable, oldModel]] as const) {
      for (let key = 0; key <= 200; key++) expect(seen.get(knownName(`key-${key}`))).toBe(expected.get(key) ?? null);
      expect([...seen.entries()]).toHaveLength(expected.size);
    }
  }), { numRuns: 60, seed: 3 });
});

test('finds in the middle of a message, without case, and shares what did not change', () => {
  const table = NameTable.of<object>([[knownName('cache').subarray(0, -1), { n: 1 }], [knownName('other').subarray(0, -1), { n: 2 }]]);
  const message = Buffer.from('xx\x05CaChE\x05redis');
  expect(table.find(message, 2, 8)).toEqual({ n: 1 });
  expect(table.find(message, 2, 7)).toBeNull();
  const changed = table.with(knownName('third'), { n: 3 });
  expect(changed.find(message, 2, 8)).toBe(table.find(message, 2, 8));
});

test('names with one hash live side by side', () => {
  // Two names that collide under FNV-1a with the fold of this table, found by search.
  const names = collidingNames();
  let table = NameTable.empty<number>();
  names.forEach((name, index) => (table = table.with(name, index)));
  names.forEach((name, index) => expect(table.get(name)).toBe(index));
  expect(table.without(names[0] as Buffer).get(names[1] as Buffer)).toBe(1);
  expect(table.without(names[0] as Buffer).get(names[0] as Buffer)).toBeNull();
});

function collidingNames(): Buffer[] {
  const seen = new Map<number, string>();
  for (let index = 0; ; index++) {
    const text = `\x06${index.toString(36).padStart(6, '0')}`;
    let hash = 0x811c9dc5;
    for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    const other = seen.get(hash);
    if (other !== undefined) return [Buffer.from(other, 'latin1'), Buffer.from(text, 'latin1')];
    seen.set(hash, text);
  }
}
