/**
 * A RESP reply or request as a value, independent of the protocol version that carries it.
 *
 * `map` and `push` exist in RESP3 only; the encoder flattens them for a RESP2 client (map → flat array, push → array).
 */
export type RespValue =
  | { readonly kind: 'simple'; readonly text: string }
  /** `text` without the leading `-`, e.g. `ERR unknown command`. */
  | { readonly kind: 'error'; readonly text: string }
  | { readonly kind: 'integer'; readonly value: number }
  | { readonly kind: 'bulk'; readonly text: string }
  /** `$-1` in RESP2, `_` in RESP3. */
  | { readonly kind: 'null' }
  /** `*-1` in RESP2, `_` in RESP3. */
  | { readonly kind: 'nullArray' }
  | { readonly kind: 'array'; readonly items: readonly RespValue[] }
  | { readonly kind: 'set'; readonly items: readonly RespValue[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [RespValue, RespValue])[] }
  | { readonly kind: 'push'; readonly items: readonly RespValue[] };

export const OK: RespValue = { kind: 'simple', text: 'OK' };
export const NULL: RespValue = { kind: 'null' };
export const NULL_ARRAY: RespValue = { kind: 'nullArray' };

export const simple = (text: string): RespValue => ({ kind: 'simple', text });
export const error = (text: string): RespValue => ({ kind: 'error', text });
export const integer = (value: number): RespValue => ({ kind: 'integer', value });
export const bulk = (text: string): RespValue => ({ kind: 'bulk', text });
export const array = (items: readonly RespValue[]): RespValue => ({ kind: 'array', items });
export const map = (entries: readonly (readonly [RespValue, RespValue])[]): RespValue => ({ kind: 'map', entries });
export const bulks = (texts: readonly string[]): RespValue => array(texts.map(bulk));
/** A map of bulk strings from an ordered list of pairs: the shape of SENTINEL MASTER and its kin. */
export const bulkMap = (pairs: readonly (readonly [string, string])[]): RespValue =>
  map(pairs.map(([key, value]) => [bulk(key), bulk(value)] as const));
