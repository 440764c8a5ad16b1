/**
 * The zone transfers of one publisher: who may have its zone, when it may be given out, and who is told that it has changed.
 *
 * Closed while a master is muted (isolated with `servfail`): secondaries would go on serving what we are not sure of. Closed for a
 * while after the start, until each master is ready: a zone without a name says NXDOMAIN where we ourselves say SERVFAIL. Only for a
 * while: a group that is dead for good must not keep the failovers of all others from the secondaries.
 */
import type { Address } from '../sentinel/wire/address.js';
import type { Millis } from '../time.js';
import { addressRange } from './address-range.js';
import { Deliveries } from './deliveries.js';
import type { TransferGate } from './guarded-answer.js';
import type { DnsLog } from './limited-log.js';
import { NotifySender } from './notify-sender.js';
import type { NotifyOptions } from './notify-sender.js';
import type { TsigKey } from './tsig.js';
import type { Zone } from './zone.js';

/** How long after the start a master that is not ready keeps the zone back. */
export const READY_GRACE_MS = 60_000;

export interface TransferSettings {
  /** `ip/prefix` of those that may transfer. */
  readonly allow: readonly string[];
  readonly notify: readonly Address[];
  readonly key: TsigKey | null;
  /** Our own address as secondaries know it, see {@link NotifyOptions}. */
  readonly sources: NotifyOptions['sources'];
}

export class TransferService {
  readonly gate: TransferGate;
  readonly #zone: () => Zone;
  readonly #clock: () => Millis;
  readonly #sender: NotifySender;
  #isOpen = false;
  #toldSerial: number | null = null;
  #grace: NodeJS.Timeout | null = null;

  /** `zone` is asked at each change; `clock` is the wall clock, which signatures need. */
  constructor(settings: TransferSettings, zone: () => Zone, clock: () => Millis, log: DnsLog) {
    const startedAt = clock();
    this.#zone = zone;
    this.#clock = clock;
    this.gate = {
      key: settings.key,
      allow: settings.allow.map(addressRange),
      deliveries: new Deliveries(),
      whyClosed: (now, at) => whyNotTransferable(now, at - startedAt),
      clock,
    };
    this.#sender = new NotifySender({ targets: settings.notify, sources: settings.sources, key: settings.key, clock, log });
  }

  /** The listeners answer from this zone now: whoever is told will find it. May be called again. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#grace = setTimeout(() => this.changed(), READY_GRACE_MS + 1).unref();
    this.changed();
  }

  /** The zone may be another one: secondaries are told where its serial is new to them, or where it may be had again. */
  changed(): void {
    if (!this.#isOpen) return;
    const zone = this.#zone();
    if (this.gate.whyClosed(zone, this.#clock()) !== null) {
      this.#toldSerial = null;
      return;
    }
    if (zone.serial === this.#toldSerial) return;
    this.#toldSerial = zone.serial;
    this.#sender.announce(zone);
  }

  close(): void {
    this.#isOpen = false;
    if (this.#grace !== null) clearTimeout(this.#grace);
    this.#sender.close();
  }
}

/** Why a zone is not given to anybody; `ageMs`: since the start. Null = it may be transferred. */
export function whyNotTransferable({ silence }: Zone, ageMs: number): string | null {
  if (silence.muted > 0) return 'isolated';
  return silence.unready > 0 && ageMs < READY_GRACE_MS ? 'not ready' : null;
}
