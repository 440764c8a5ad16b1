/**
 * A zone, and a change of it, as plain values that pass from one process to another.
 *
 * Only facts are passed; answers are compiled where they are given. A change costs what its master costs, not the zone.
 */
import type { ZoneSettings } from './zone-settings.js';
import { blockFor, dropBlock, placeBlock, restoreZone } from './zone.js';
import type { BlockFacts, MasterBlock, Zone } from './zone.js';

export interface ZoneImage {
  readonly settings: ZoneSettings;
  readonly serial: number;
  readonly blocks: readonly BlockFacts[];
}

/** What is new about one master; `block` null: it is gone. */
export interface ZoneChange {
  readonly serial: number;
  readonly master: string;
  readonly block: BlockFacts | null;
}

export function imageOf(zone: Zone): ZoneImage {
  const blocks = [...zone.blockOf.keys()].flatMap((master) => factsOf(blockFor(zone, master)) ?? []);
  return { settings: zone.settings, serial: zone.serial, blocks };
}

export function zoneOf({ settings, serial, blocks }: ZoneImage): Zone {
  return restoreZone(settings, serial, blocks);
}

/** What there is to tell of `master` after the zone became this one. */
export function changeOf(zone: Zone, master: string): ZoneChange {
  return { serial: zone.serial, master, block: factsOf(blockFor(zone, master)) };
}

export function withChange(zone: Zone, { serial, master, block }: ZoneChange): Zone {
  return block === null ? dropBlock(zone, serial, master) : placeBlock(zone, serial, block);
}

function factsOf(block: MasterBlock | null): BlockFacts | null {
  if (block === null) return null;
  const { master, order, muted, content, retired } = block;
  return { master, order, muted, content, retired };
}
