/**
 * What the two modes have in common: a wish in, a read-back result out.
 */
import { AgentError } from '../../errors.js';
import { formatAddress } from '../../sentinel/wire/address.js';
import type { Published } from '../publisher.js';
import type { Fence, Snapshot } from './entry.js';
import type { MasterNames } from './naming.js';
import type { Wish } from './wish.js';

export interface ApplyOptions {
  /** The leader of a failover writes its change at once; the others wait a moment and look first. */
  readonly isLeader: boolean;
  /** Whether this agent writes what the order does not decide. */
  readonly isKeeper: boolean;
  /** An operator's word: a higher order in the key counts for nothing. */
  readonly force: boolean;
  readonly signal: AbortSignal;
}

export interface Writer {
  /** Makes Consul agree with the wish and reads it back; leaves a higher order alone and says so in `order`. */
  apply(wish: Wish, options: ApplyOptions): Promise<Published>;
  /** Whether what a watcher saw calls for another {@link apply}. */
  needsLook(wish: Wish, snapshot: Snapshot, isKeeper: boolean): boolean;
  /** Takes away what this master's agents made, unless the key holds an order above `lastOrder`. */
  forget(names: MasterNames, lastOrder: number, signal: AbortSignal): Promise<void>;
}

/** How long an agent that did not lead the failover waits before it looks again and writes. */
export function lookFirstMs(random: () => number): number {
  return 50 + 200 * random();
}

/** Attempts within one `apply`: a conflict or an uncertain write is followed by a fresh look. */
export const MAX_ROUNDS = 6;

/** The key names another primary at our own order: two truths, which only the keeper may settle. */
export function contradiction({ names, fence }: Wish, found: Fence): AgentError {
  const said = `${formatAddress(found)} at order ${found.order}`;
  return new AgentError('PUBLISH_FAILED', `consul key ${names.key} says ${said}, we say ${formatAddress(fence)}`, { master: names.master });
}

/** Somebody was always faster. */
export function outrun({ key, master }: MasterNames, rounds: number): AgentError {
  return new AgentError('PUBLISH_FAILED', `consul key ${key} changed under each of ${rounds} writes`, { master });
}
