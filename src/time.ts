/**
 * Time as a value: milliseconds since the Unix epoch, read once per input and handed to the core as `now`.
 *
 * The core never asks a clock. Its clock may jump (TILT depends on that), so differences can be negative.
 */

declare const millisBrand: unique symbol;

/** Milliseconds since the Unix epoch (an instant). Durations are plain numbers named `…Ms`. */
export type Millis = number & { readonly [millisBrand]: true };

/** Brands a number as an instant; used at the gates only (clock, tests, simulator). */
export function millis(value: number): Millis {
  return value as Millis;
}

/** `at` shifted by a duration in milliseconds. */
export function addMs(at: Millis, durationMs: number): Millis {
  return (at + durationMs) as Millis;
}
