import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatHello, parseHello } from '../../../../src/sentinel/wire/hello.js';
import type { Hello } from '../../../../src/sentinel/wire/hello.js';

const ID = 'f'.repeat(40);
const STOCK: Hello = {
  sentinel: { host: '10.0.0.9', port: 26379 },
  runId: ID,
  currentEpoch: 7,
  masterName: 'cache',
  master: { host: 'fd00::1', port: 6379 },
  configEpoch: 5,
  silent: null,
};
const SILENT: Hello = { ...STOCK, silent: { doneEpoch: 8, target: { host: '10.0.0.2', port: 6380 } } };
const stockLine = `10.0.0.9,26379,${ID},7,cache,fd00::1,6379,5`;

const ROWS: readonly (readonly [name: string, payload: string, hello: Hello | null])[] = [
  ['stock', stockLine, STOCK],
  ['silent', `${stockLine},8,10.0.0.2,6380`, SILENT],
  ['garbage is 0, blanks and signs are C\'s', `h,x,id, +7z,m,h,,-0`, {
    ...{ sentinel: { host: 'h', port: 0 }, runId: 'id', currentEpoch: 7, masterName: 'm', master: { host: 'h', port: 0 }, configEpoch: 0 },
    silent: null,
  }],
  ['empty fields', ',,,,,,,', {
    ...{ sentinel: { host: '', port: 0 }, runId: '', currentEpoch: 0, masterName: '', master: { host: '', port: 0 }, configEpoch: 0 },
    silent: null,
  }],
  ['nothing', '', null],
  ['7 fields', stockLine.slice(0, stockLine.lastIndexOf(',')), null],
  ['9 fields', `${stockLine},8`, null],
  ['10 fields', `${stockLine},8,10.0.0.2`, null],
  ['12 fields', `${stockLine},8,10.0.0.2,6380,`, null],
  ['many fields', ','.repeat(100_000), null],
  ['poisoned current epoch', `10.0.0.9,26379,${ID},18446744073709551615,cache,10.0.0.1,6379,5`, null],
  ['negative current epoch', `10.0.0.9,26379,${ID},-1,cache,10.0.0.1,6379,5`, null],
  ['poisoned config epoch', `10.0.0.9,26379,${ID},7,cache,10.0.0.1,6379,9007199254740992`, null],
  ['poisoned done epoch', `${stockLine},99999999999999999999,10.0.0.2,6380`, null],
  ['sentinel port', `10.0.0.9,65536,${ID},7,cache,10.0.0.1,6379,5`, null],
  ['master port', `10.0.0.9,26379,${ID},7,cache,10.0.0.1,-1,5`, null],
  ['target port', `${stockLine},8,10.0.0.2,70000`, null],
];

describe('parseHello', () => {
  test.each(ROWS)('%s', (_name, payload, hello) => {
    expect(parseHello(payload)).toEqual(hello);
  });

  test('reads what formatHello writes', () => {
    const word = fc.string({ unit: 'binary' }).map((text) => text.replaceAll(',', ''));
    const address = fc.record({ host: word, port: fc.nat({ max: 65535 }) });
    const epoch = fc.maxSafeInteger().map(Math.abs);
    const silent = fc.option(fc.record({ doneEpoch: epoch, target: address }));
    const names = { runId: word, masterName: word };
    const hello = fc.record({ sentinel: address, ...names, currentEpoch: epoch, master: address, configEpoch: epoch, silent });
    fc.assert(fc.property(hello, (value) => expect(parseHello(formatHello(value))).toEqual(value)));
  });
});

test('formatHello writes exactly the stock fields outside the silent state', () => {
  expect(formatHello(STOCK)).toBe(stockLine);
  expect(formatHello(SILENT)).toBe(`${stockLine},8,10.0.0.2,6380`);
});
