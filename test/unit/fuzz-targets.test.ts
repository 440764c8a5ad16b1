/** Every reader survives rubbish; `npm run fuzz` does the same for longer. */
import fc from 'fast-check';
import { expect, test } from '@jest/globals';
import { TARGETS } from '../fuzz/targets.js';

const RUNS = 300;

test.each(TARGETS.map((target) => [target.name, target] as const))('%s', (_name, target) => {
  fc.assert(fc.property(target.inputs, (input) => target.check(input)), { numRuns: RUNS });
});

test('some of the rubbish is nearly right: what is drawn is not refused at the first byte every time', () => {
  const [requests] = TARGETS;
  const texts = fc.sample(requests?.inputs ?? fc.constant(['']), { numRuns: 200, seed: 1 }) as [string][];
  expect(texts.filter(([text]) => /\*\d+\r\n\$\d+\r\n/.test(text)).length).toBeGreaterThan(5);
});
