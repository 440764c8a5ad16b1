import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatAddress, precedes } from '../../../../src/sentinel/wire/address.js';

const hosts = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'129.:-a['), minLength: 1, maxLength: 3 }),
  fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.10', '::1', 'fe80::1', 'redis-a'),
);
const addresses = fc.record({ host: hosts, port: fc.constantFrom(0, 637, 6379, 26379) });

test('precedes: as the texts compare', () => {
  fc.assert(
    fc.property(addresses, addresses, (a, b) => {
      expect(precedes(a, b)).toBe(formatAddress(a) < formatAddress(b));
    }),
    { numRuns: 1_000 },
  );
});
