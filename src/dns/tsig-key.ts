/**
 * A TSIG key: the one place that holds the secret, and never shows it.
 *
 * An HMAC over some parts is all that the rest of the program can ask for.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { knownName } from './name.js';
import type { TsigKey } from './tsig.js';

/** The key of that name, hmac-sha256. */
export function tsigKey(name: string, secret: Buffer): TsigKey {
  return {
    name: knownName(name),
    mac: (parts) => {
      const hmac = createHmac('sha256', secret);
      for (const part of parts) hmac.update(part);
      return hmac.digest();
    },
    isEqual: (a, b) => a.length === b.length && timingSafeEqual(a, b),
  };
}
