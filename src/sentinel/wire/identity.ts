/**
 * As which server the sentinel presents itself: product and version.
 *
 * Clients, exporters and people choose by it what they may say and how they read the answer. It decides what is listed and
 * how things are worded; nothing is refused because of it: what only another product or version knows works all the same.
 */

export type Product = 'redis' | 'valkey';

/** A product and its version, e.g. Redis 7.2.4. */
export interface ServerIdentity {
  readonly product: Product;
  /** `major.minor.patch` */
  readonly version: string;
}

/** Unless something else is asked for. */
export const DEFAULT_IDENTITY: ServerIdentity = { product: 'redis', version: '7.2.4' };

/** The Redis that Valkey says it is compatible with, whatever its own version. */
const REDIS_IN_VALKEY = '7.2.4';

/** Reads `redis-7.0.15` or `valkey-8.0.1`; null for anything else. The oldest that can be told apart is Redis 7.0, Valkey 8.0. */
export function parseIdentity(text: string): ServerIdentity | null {
  const [, product, version = ''] = /^(redis|valkey)-(\d{1,3}\.\d{1,3}\.\d{1,3})$/.exec(text) ?? [];
  if (product !== 'redis' && product !== 'valkey') return null;
  return isFrom(version, product === 'redis' ? '7.0.0' : '8.0.0') ? { product, version } : null;
}

/** The version in `redis_version`. */
export function redisVersionOf({ product, version }: ServerIdentity): string {
  return product === 'redis' ? version : REDIS_IN_VALKEY;
}

/** Where a command comes from: a product, or pointsman itself, whose own ones no server's list shows. */
export type Origin = Product | 'pointsman';

/** Whether the server that we present has what came with version `since` of `origin`. */
export function isIn(identity: ServerIdentity, since: string, origin: Origin = 'redis'): boolean {
  if (origin === 'pointsman') return false;
  if (origin === 'redis') return isFrom(redisVersionOf(identity), since);
  return identity.product === 'valkey' && isFrom(identity.version, since);
}

/** `Redis 7.2.4` as start-up messages say it; Valkey leaves its name out. */
export function bannerOf({ product, version }: ServerIdentity): string {
  return product === 'redis' ? `Redis ${version}` : `Version ${version}`;
}

function isFrom(version: string, since: string): boolean {
  const [a, b] = [version, since].map((text) => text.split('.').map(Number));
  const differing = [0, 1, 2].find((index) => a?.[index] !== b?.[index]);
  return differing === undefined || (a?.[differing] ?? 0) > (b?.[differing] ?? 0);
}
