/**
 * Which versions of the zone each secondary got from this agent.
 *
 * Agents share no counter, so two of them may use one serial for different content. A difference is therefore given only from a
 * version that this agent itself delivered to that address; everybody else gets the whole zone (RFC 1995 4 allows it always).
 */
import type { Zone } from './zone.js';

/** A secondary that lags further than this is quicker with the whole zone. */
const VERSIONS_KEPT = 32;
const ADDRESSES_KEPT = 64;

export class Deliveries {
  readonly #byAddress = new Map<string, Zone[]>();

  /** `address` has received the whole of `zone`, or all that was new in it. */
  note(address: string, zone: Zone): void {
    const kept = (this.#byAddress.get(address) ?? []).filter(({ serial }) => serial !== zone.serial).slice(1 - VERSIONS_KEPT);
    // Put in anew, so that the first address of the map is the one that was silent longest.
    this.#byAddress.delete(address);
    this.#byAddress.set(address, [...kept, zone]);
    const [longestSilent] = this.#byAddress.keys();
    if (this.#byAddress.size > ADDRESSES_KEPT && longestSilent !== undefined) this.#byAddress.delete(longestSilent);
  }

  /** The version with this serial that `address` got from here; null when it got none, or long ago. */
  find(address: string, serial: number): Zone | null {
    return this.#byAddress.get(address)?.find((zone) => zone.serial === serial) ?? null;
  }
}
