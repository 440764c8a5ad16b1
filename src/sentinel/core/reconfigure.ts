/**
 * Telling a node whom to follow: always the same transaction, judged only by what the node reports later (3.7).
 *
 * Mirrors sentinelSendSlaveOf in sentinel.c.
 */
import { isForeign } from './caution/foreign.js';
import type { Millis } from '../../time.js';
import { commandName, send } from './instance.js';
import { LIMITS } from './limits.js';
import type { Failover, Instance, NodeAddress, Replica } from './state.js';
import { announcedHost } from './state.js';
import type { Turn } from './turn.js';
import { masterOf } from './turn.js';

/**
 * REPLICAOF `target`, or NO ONE for null; false when there is no connection to send it on, or the node is not ours to move.
 * `keepClients`: those that are on the node were sent there by the configuration that is being made.
 */
export function sendReplicaOf(turn: Turn, instance: Instance, target: NodeAddress | null, keepClients = false): boolean {
  const { state } = turn;
  const master = masterOf(state, instance);
  if (instance.kind === 'replica' && master !== undefined && isForeign(master, instance)) return false;
  const host = target === null ? 'NO' : announcedHost(state.settings, target);
  const port = target === null ? 'ONE' : String(target.port);
  const name = (word: string): string => commandName(state, instance, word);
  const transaction = [
    [name('MULTI')],
    [name('SLAVEOF'), host, port],
    [name('CONFIG'), 'REWRITE'],
    // Clients must not stay on a node whose role changes. Ours and other sentinels' links are cut too and come back.
    ...(keepClients ? [] : ['normal', 'pubsub'].map((type) => [name('CLIENT'), 'KILL', 'TYPE', type])),
    [name('EXEC')],
  ];
  return transaction.every((argv) => send(turn, instance, argv));
}

/** A node that says what it is on this connection, and not long ago: what it said before a cut may be from before a failover that we missed. */
function isFreshlyHeard({ link, infoAskedMs }: Readonly<Replica>, now: Millis): boolean {
  return link.command !== null && infoAskedMs >= link.command.sinceMs && now - infoAskedMs <= 2 * LIMITS.fastInfoPeriodMs;
}

export function saysReplica(replica: Readonly<Replica>, now: Millis): boolean {
  return replica.roleReported === 'replica' && isFreshlyHeard(replica, now);
}

export function saysMaster(replica: Readonly<Replica>, now: Millis): boolean {
  return replica.roleReported === 'master' && isFreshlyHeard(replica, now);
}

/**
 * Tells the one that this failover chose to lead; false as for sendReplicaOf.
 *
 * Divergence D98: the target of a silent failover keeps its clients. They came in the window, by the very address that stays; stock's
 * transaction would cut all of them, to find the same node again.
 */
export function orderToLead(turn: Turn, failover: Failover, replica: Replica): boolean {
  const silent = masterOf(turn.state, replica)?.silent ?? null;
  if (!sendReplicaOf(turn, replica, null, silent?.effective === true && silent.target === replica.key)) return false;
  failover.orderedOn = replica.link.command?.id ?? null;
  return true;
}

/**
 * The order to lead once more, when its connection is gone and the replica reports on a new one that it follows: nobody got it.
 * Not when writes were held for it and flow again, since the replica may lack them.
 *
 * Divergence D92: stock waits for the failover-timeout and begins anew.
 */
export function repeatLostOrder(turn: Turn, failover: Failover, replica: Replica): void {
  const { command } = replica.link;
  if (command === null || command.id === failover.orderedOn || !saysReplica(replica, turn.now)) return;
  if (failover.lastPauseMs !== 0 && turn.now >= failover.heldUntilMs - failover.lastPauseLengthMs / 4) return;
  orderToLead(turn, failover, replica);
}
