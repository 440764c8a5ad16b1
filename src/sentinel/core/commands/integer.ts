/**
 * Integers as a command's argument: the whole text or nothing, unlike the lenient readers of wire/c-numbers.ts.
 *
 * Mirrors string2ll in util.c: no blanks, no plus, no leading zero, no minus zero.
 * Divergence D24: numbers that the receiving field cannot hold are refused; stock cuts them to 32 bit without a word, so
 * that a quorum of 2^32 becomes 0 and every SDOWN an ODOWN.
 */

const INTEGER = /^(?:0|-?[1-9]\d{0,15})$/;

/** Highest value of stock's `int` fields: quorum and parallel-syncs. */
export const MAX_INT32 = 2 ** 31 - 1;

/** The integer that `text` is, if it lies in `low..high`; else null. */
export function strictInteger(text: string, low = -Number.MAX_SAFE_INTEGER, high = Number.MAX_SAFE_INTEGER): number | null {
  if (!INTEGER.test(text)) return null;
  const value = Number(text);
  return value >= low && value <= high ? value : null;
}
