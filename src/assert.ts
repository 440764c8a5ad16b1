/**
 * Assertions: the program's own mistakes, never the world's.
 *
 * A failed assertion means the code is wrong. Only main.ts catches it: it dumps the state and exits 70.
 */

/** A bug in pointsman itself. Never thrown for bad input, a refused command or a broken network. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** Throws {@link AssertionError} with `message` unless `condition` holds. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Ends a switch over a tagged union: compiles only when every kind has been handled. */
export function assertNever(value: never): never {
  throw new AssertionError(`unexpected value ${JSON.stringify(value)}`);
}

/** Unwraps a value that the surrounding logic guarantees to be there. */
export function must<T>(value: T | null | undefined, message: string): T {
  assert(value !== null && value !== undefined, message);
  return value;
}
