/**
 * Small questions about the silent state that the rest of the core asks: who is the target, who is ready, where do clients go.
 */
import { sameNode } from '../hosts.js';
import type { Master, NodeAddress, Peer, Replica } from '../state.js';
import { currentMasterAddress } from '../state.js';

/** The target as a replica; undefined once it is the master, or forgotten. */
export function silentTarget(master: Readonly<Master>): Replica | undefined {
  return master.silent === null ? undefined : master.replicas.get(master.silent.target);
}

/** Where clients are sent: the target while prepared and effective, else the master (one projection for every output). */
export function advertisedAddress(master: Readonly<Master>): NodeAddress {
  return master.silent?.effective === true ? master.silent.targetAddress : currentMasterAddress(master);
}

/** Heard with the same target and a done-epoch at least ours. */
export function isReady(master: Readonly<Master>, peer: Readonly<Peer>): boolean {
  const { silent } = master;
  const heard = peer.silentHeard;
  return silent !== null && heard !== null && heard.doneEpoch >= silent.doneEpoch && sameNode(heard.target, silent.targetAddress);
}

export function readyCount(master: Readonly<Master>): number {
  return 1 + [...master.peers.values()].filter((peer) => isReady(master, peer)).length;
}

export function majorityOf(master: Readonly<Master>): number {
  return Math.floor((master.peers.size + 1) / 2) + 1;
}

/** A peer that answers and knows the extension, but hasn't named the state yet. */
export function isBehind(master: Readonly<Master>, peer: Readonly<Peer>): boolean {
  return peer.sdownSinceMs === null && peer.link.silentAware !== false && !isReady(master, peer);
}

/** 0-based place of this sentinel among those of the group, by run id; staggers what any of them may do. */
export function rankOf(master: Readonly<Master>, myId: string): number {
  return [...master.peers.keys()].filter((runId) => runId < myId).length;
}
