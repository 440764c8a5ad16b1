/**
 * Numbers as C reads them: leading blanks, a sign, digits, and the rest ignored.
 *
 * Sentinel's texts (INFO, hello, sentinel.conf) are read with atoi and strtoull, so garbage means 0 and not a fault.
 * Values that a JavaScript number cannot hold exactly become null: an epoch that lost its last digits is worse than none.
 */

const LEADING_INTEGER = /^[ \t\n\v\f\r]*([+-]?\d+)/;

function leadingInteger(text: string): bigint {
  const digits = LEADING_INTEGER.exec(text)?.[1];
  if (digits === undefined) return 0n;
  // Beyond 40 digits every C type has long been saturated; a long text must not cost quadratic time.
  return BigInt(digits.slice(0, 40).replace('+', ''));
}

/** Most digits that a number surely holds exactly. */
const PLAIN_DIGITS = 15;

/** The value of a text of few digits and nothing else, as nearly all are; -1 for any other, which takes the long way with a BigInt. */
function plainInteger(text: string): number {
  if (text.length === 0 || text.length > PLAIN_DIGITS) return -1;
  let value = 0;
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return -1;
    value = 10 * value + digit;
  }
  return value;
}

const clamp = (value: bigint, low: bigint, high: bigint): bigint => (value < low ? low : value > high ? high : value);

/** A signed 32-bit integer like atoi (strtol cut to int): `12abc` is 12, `abc` is 0, 2^32 is 0. */
export function atoi(text: string): number {
  const plain = plainInteger(text);
  // The bits of a 32-bit integer, as asIntN below.
  if (plain >= 0) return plain | 0;
  return Number(BigInt.asIntN(32, clamp(leadingInteger(text), -(2n ** 63n), 2n ** 63n - 1n)));
}

/** A signed 64-bit integer like strtoll; null beyond ±(2^53 - 1). */
export function strtoll(text: string): number | null {
  const plain = plainInteger(text);
  if (plain >= 0) return plain;
  return safe(clamp(leadingInteger(text), -(2n ** 63n), 2n ** 63n - 1n));
}

/** An unsigned 64-bit integer like strtoull (`-1` is the highest value); null beyond 2^53 - 1. */
export function strtoull(text: string): number | null {
  const plain = plainInteger(text);
  if (plain >= 0) return plain;
  const value = leadingInteger(text);
  return safe(value < 0n ? BigInt.asUintN(64, value) : clamp(value, 0n, 2n ** 64n - 1n));
}

function safe(value: bigint): number | null {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : null;
}
