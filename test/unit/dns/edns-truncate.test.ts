import { expect, test } from '@jest/globals';
import { udpLimit } from '../../../src/dns/edns.js';
import { fitAnswer } from '../../../src/dns/truncate.js';

test.each([[null, 512], [0, 512], [511, 512], [512, 512], [513, 513], [1232, 1232], [1233, 1232], [65535, 1232]])(
  'asked %p: %i bytes', (asked, limit) => {
  expect(udpLimit(asked === null ? null : { udpBytes: asked, version: 0, dnssecOk: false })).toBe(limit);
});

test.each([
  ['all fits', 512, 40, 400, 72, 'whole'],
  ['one byte too much: Additional goes', 512, 40, 400, 73, 'withoutAdditional'],
  ['the answer alone just fits', 512, 40, 472, 1, 'withoutAdditional'],
  ['the answer does not', 512, 40, 473, 0, 'truncated'],
] as const)('%s', (_name, limit, base, required, additional, expected) =>
  expect(fitAnswer(limit, base, required, additional)).toBe(expected));
