// The same answers as inet_pton for what people write.
import { expect, test } from '@jest/globals';
import { isIP } from 'node:net';
import { ipFamily } from '../../../../src/sentinel/wire/ip.js';

test.each([
  '1.2.3.4', '0.0.0.0', '255.255.255.255', '256.1.1.1', '01.2.3.4', '1.2.3', '1.2.3.4.5', '1.2.3.', '', ' 1.2.3.4', '::', '::1', '1::', 'fe80::1%eth0',
  '::ffff:1.2.3.4', '1.2.3.4::', '::1.2.3.4:1', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:8::', '1::2::3', ':1', '1:', '12345::',
  '1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:7:1.2.3.4', 'redis', 'g::1',
])('%j', (text) => {
  expect(ipFamily(text)).toBe(isIP(text));
});
