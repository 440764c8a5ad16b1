/**
 * An output that tells clients other addresses than the agent itself uses (route.address-map).
 */
import type { AddressMapping } from '../route/address-map.js';
import { mapRoute } from '../route/address-map.js';
import type { Route } from '../route/route.js';
import { sameRoute } from '../route/route.js';
import type { Published, Publisher } from './publisher.js';

export class MappedPublisher implements Publisher {
  readonly name: string;
  readonly wantsUntrusted: boolean;
  readonly differs: (a: Route, b: Route) => boolean;
  readonly #inner: Publisher;
  readonly #mappings: readonly AddressMapping[];

  constructor(inner: Publisher, mappings: readonly AddressMapping[]) {
    this.name = inner.name;
    this.wantsUntrusted = inner.wantsUntrusted;
    this.#inner = inner;
    this.#mappings = mappings;
    this.differs = (a, b) => inner.differs?.(mapRoute(a, mappings), mapRoute(b, mappings)) ?? !sameRoute(a, b);
  }

  get deadlineMs(): number {
    return this.#inner.deadlineMs;
  }

  apply(route: Route, signal: AbortSignal): Promise<Published> {
    return this.#inner.apply(mapRoute(route, this.#mappings), signal);
  }

  forceNext(master: string): void {
    this.#inner.forceNext?.(master);
  }

  forget(master: string): Promise<void> {
    return this.#inner.forget(master);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
