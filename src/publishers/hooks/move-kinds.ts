/**
 * What kind of move a Route stands for, per master: its phase where that says it, else what was seen before.
 *
 * A Route is level-triggered: a failover may be `steady` again, or a prepared move given up, before a script could be called for it.
 * The call is still one for a failover or an abort.
 */
import type { Route } from '../../route/route.js';
import { sameAddress } from '../../sentinel/wire/address.js';
import type { Address } from '../../sentinel/wire/address.js';
import type { CallKind } from './call.js';

interface Seen {
  readonly kind: CallKind;
  readonly to: Address;
  /** Where clients were before the prepared move that this one is or follows; null outside of one. */
  readonly original: Address | null;
  /** Prepared by an operator, and so are its end and its abort; a failover to somewhere else is not. */
  readonly planned: boolean;
}

export class MoveKinds {
  readonly #seen = new Map<string, Seen>();
  /** The last primary outside of a prepared move. */
  readonly #homes = new Map<string, Address>();

  /** The kind of move that brings clients to `to`, the primary of `route`, and whether somebody planned it. */
  of(route: Route, to: Address): Pick<Seen, 'kind' | 'planned'> {
    const { master } = route;
    const before = this.#seen.get(master);
    const kind = kindOf(route, to, before);
    if (kind !== 'prepared') this.#homes.set(master, to);
    const original = kind === 'prepared' ? (this.#homes.get(master) ?? route.previous) : null;
    const planned = kind === 'prepared' || kind === 'aborted' || (before?.planned === true && sameAddress(before.to, to));
    this.#seen.set(master, { kind, to, original, planned });
    return { kind, planned };
  }

  forget(master: string): void {
    this.#seen.delete(master);
    this.#homes.delete(master);
  }
}

function kindOf(route: Route, to: Address, before: Seen | undefined): CallKind {
  if (route.phase !== 'steady') return route.phase;
  if (before === undefined) return 'failover';
  if (sameAddress(before.to, to)) return before.kind === 'prepared' ? 'failover' : before.kind;
  return before.original !== null && sameAddress(before.original, to) ? 'aborted' : 'failover';
}
