/**
 * A silent state ends by a configuration that is new to it: its configEpoch is D or higher, or the master is another node.
 *
 * The target as the master means done, anything else abort. Whoever was told to go to the target is told where to go now.
 */
import { sameNode } from '../hosts.js';
import type { Master, NodeAddress } from '../state.js';
import { announcedHost } from '../state.js';
import type { Turn } from '../turn.js';
import { announce, announceText } from '../turn.js';
import { bulk, error, OK } from '../../wire/resp-value.js';
import { createDebts } from './debts.js';

/** What a new configuration means for clients: the address they were sent to before it. */
export interface Ended {
  readonly kind: 'done' | 'abort';
  readonly advertised: NodeAddress | null;
}

/**
 * Ends the state of `master`, whose configuration is now (`configEpoch`, `address`), if that configuration ends it. Call it
 * after configEpoch was raised and before the address is switched. Null when there was no state, or it goes on.
 */
export function endSilentState(turn: Turn, master: Master, address: NodeAddress, reason: string): Ended | null {
  const { silent } = master;
  if (silent === null) return null;
  const sameMaster = sameNode(address, master.address);
  if (sameMaster && master.configEpoch < silent.doneEpoch) return null;

  const kind = sameNode(address, silent.targetAddress) ? 'done' : 'abort';
  createDebts(turn, master, address, kind);
  master.silent = null;
  master.silentEndedEpoch = master.configEpoch;
  master.link.pubsubActivityMs = turn.now;
  for (const peer of master.peers.values()) peer.silentHeard = null;
  if (silent.client !== null) {
    turn.effects.push({ kind: 'reply', client: silent.client, value: error(`NOQUORUM the reservation ended: ${reason}`) });
  }
  if (silent.effective) turn.state.silentCounters[kind]++;
  if (kind === 'done') announce(turn, 'warning', '+silent-failover-done', master);
  else announce(turn, 'warning', '-silent-failover-abort', master, reason);
  return { kind, advertised: silent.effective ? silent.targetAddress : null };
}

/** `+switch-master <name> <from> <to>`, unless the two are one: clients are never sent from a node to itself. */
export function announceMove(turn: Turn, master: Master, from: NodeAddress, to: NodeAddress): void {
  if (sameNode(from, to)) return;
  const text = (address: NodeAddress): string => `${announcedHost(turn.state.settings, address)} ${address.port}`;
  announceText(turn, 'warning', '+switch-master', `${master.name} ${text(from)} ${text(to)}`, master);
}

/** Replies to whoever waits for a failover's command. */
export function settleClient(turn: Turn, master: Master, refusal: string | null): void {
  const { failover } = master;
  if (failover === null || failover.client === null) return;
  turn.effects.push({ kind: 'reply', client: failover.client, value: refusal === null ? OK : error(refusal) });
  failover.client = null;
}

/** A field/value list, as `status` answers. */
export const fieldList = (pairs: readonly (readonly [string, string])[]) => pairs.flatMap(([name, value]) => [bulk(name), bulk(value)]);
