/**
 * Resync debts: after a silent window every other node owes one forced full copy of the new master (4.5).
 *
 * Writes made on a writable replica are in no replication stream. A node that shares history with it would be granted a partial
 * resync and lack them for ever, while every health field looks fine. REPLICAOF NO ONE in the middle of the transaction
 * changes the node's replication id, so that a partial one can't be granted.
 */
import type { Millis } from '../../../time.js';
import { addMs } from '../../../time.js';
import { formatAddress } from '../../wire/address.js';
import type { RespValue } from '../../wire/resp-value.js';
import { isForeign } from '../caution/foreign.js';
import { sameHost, sameNode } from '../hosts.js';
import { commandName, send } from '../instance.js';
import { NEVER, requestInfo } from '../monitor.js';
import { saysReplica, sendReplicaOf } from '../reconfigure.js';
import { isOtherHistory, replicationIdOf } from '../replication-id.js';
import type { DataNode, Epoch, Master, NodeAddress, Peer, Replica, ResyncDebt } from '../state.js';
import { announcedHost, isDisconnected, refOf } from '../state.js';
import type { SentinelState } from '../state.js';
import type { Turn } from '../turn.js';
import { announce, log, persist } from '../turn.js';
import { rankOf } from './prepared.js';
import { askStatus } from './ask-status.js';
import type { StatusField } from './peer-status.js';
import { silentSettings } from './settings.js';

/** A forced resync that shows no effect is sent again after this. */
const REPEAT_MS = 10_000;
/**
 * A copy has ended: whoever had it made sees that within an INFO period of a second and is asked every second. So long, times its rank,
 * waits whoever else would have another one made.
 */
const WORD_MS = 5_000;
/** Peers are asked what they have paid so long after their reports. */
const AFTER_INFO_MS = 100;

const IN_PROGRESS = /^master_sync_in_progress:1/m;

/** Notes who owes what under the configuration (`address`) that ends a silent state. */
export function createDebts(turn: Turn, master: Master, address: NodeAddress, kind: 'done' | 'abort'): void {
  if (!silentSettings(master).fullResync || master.silent === null) return;
  noteBelow(turn.state, master);
  const { targetAddress, below } = master.silent;
  const creditor = [...master.replicas.values(), master].find((node) => sameNode(node.address, address));
  const epoch = master.configEpoch;
  // Who copied the target has the window's writes as the target has, in no stream: once it leads, all others lack them just as after a done.
  const hasWindow = kind === 'done' || below.has(nodeKey(turn.state, address));
  // After a done, or a failover to the target: everybody else. After an abort the target has foreign writes, and who may have copied it.
  const replicas = [...master.replicas.values()].filter((replica) => !isForeign(master, replica) && (hasWindow || below.has(replica.key)));
  const debtors = [hasWindow ? master.address : targetAddress, ...replicas.map((replica) => replica.address)];
  master.windowDoneEpoch = hasWindow ? epoch : 0;
  // Older debts that are not paid yet stay: an abort asks less of the others than a done before it. Nobody was asked about them in the window.
  for (const debt of master.debts.values()) debt.sinceMs = turn.now;
  for (const debtor of debtors) {
    if (sameNode(debtor, address)) continue;
    master.debts.set(nodeKey(turn.state, debtor), {
      ...newDebt(epoch, turn.now),
      creditor: creditor?.runId ?? '',
      formerMaster: debtor === master.address,
      readOnly: kind === 'abort' && sameNode(debtor, targetAddress),
    });
  }
}

/**
 * A node that still owes its copy becomes the master (`address`), for want of a better one: it lacks the last window's writes, and whoever has
 * them shares its history, so that a partial resync would leave him what no other node has. So all others owe a copy of it. Call it under the
 * new configEpoch, before the switch.
 */
export function oweToDebtor(turn: Turn, master: Master, address: NodeAddress): void {
  const { debts, configEpoch } = master;
  if (!debts.delete(nodeKey(turn.state, address))) return;
  for (const node of [master, ...master.replicas.values()]) {
    if (sameNode(node.address, address) || (node.kind === 'replica' && isForeign(master, node))) continue;
    const key = nodeKey(turn.state, node.address);
    const older = debts.get(key);
    // The end of a window has just made it.
    if (older?.epoch === configEpoch) continue;
    debts.set(key, { ...newDebt(configEpoch, turn.now), readOnly: older?.readOnly === true });
  }
  master.windowDoneEpoch = configEpoch;
}

function nodeKey(state: SentinelState, address: NodeAddress): string {
  return formatAddress({ host: announcedHost(state.settings, address) || address.host, port: address.port });
}

export function newDebt(epoch: Epoch, now: Millis): ResyncDebt {
  const never = 0 as Millis;
  return {
    ...{ epoch, creditor: '', sinceMs: now, sentMs: never, executedMs: never, awayMs: never, othersPaidMs: never, movedMs: never },
    ...{ formerMaster: false, foundLate: false, readOnly: false },
  };
}

/**
 * The master lists a replica that we did not know when its window ended: it followed the target, where no sentinel sees it, and goes on in
 * the stream that lacks the window's writes. Or it is new, and its own report will say that it has copied all.
 */
export function oweWhoIsFound(turn: Turn, master: Master, replica: Replica): void {
  if (master.windowDoneEpoch === 0 || master.windowDoneEpoch !== master.configEpoch) return;
  master.debts.set(replica.key, { ...newDebt(master.configEpoch, turn.now), creditor: master.runId, foundLate: true });
}

/**
 * Notes who follows the target of a window, or somebody that does: it copies what is there, or may, and nothing that it says later tells. A
 * peer that knows nothing of the window re-points it meanwhile. A report from before an order of ours tells whom it followed then.
 */
export function noteBelow(state: SentinelState, master: Master): void {
  const { silent, replicas, debts } = master;
  if (silent === null) return;
  const own = nodeKey(state, master.address);
  const addressOf = (key: string): NodeAddress | [] => (key === own ? master : replicas.get(key))?.address ?? [];
  const orderedMs = ({ key }: Replica): number => Math.max(debts.get(key)?.sentMs ?? 0, debts.get(key)?.movedMs ?? 0);
  for (let before = -1; before < silent.below.size; ) {
    before = silent.below.size;
    const above = [silent.targetAddress, ...[...silent.below].flatMap(addressOf)];
    // By hand, or a move that was cut off, the original itself.
    if (above.some((address) => follows(state, address, master))) silent.below.add(own);
    for (const replica of replicas.values()) {
      if (replica.key === silent.target || replica.infoAskedMs < orderedMs(replica)) continue;
      if (above.some((address) => follows(state, address, replica))) silent.below.add(replica.key);
    }
  }
}

/** An operator has the master, or all its replicas, forgotten: only who is found again (below) will be asked for what it owes, and he should know. */
export function forgetDebts(turn: Turn, master: Master): void {
  if (master.debts.size === 0) return;
  log(turn, 'warning', `${[...master.debts.keys()].join(', ')} still owe a full copy of ${master.name}: this sentinel forgets that`);
  master.debts.clear();
}

/** A copy that was asked of another process says nothing: the debt starts again when the master restarted, or is another node. */
function rebase(turn: Turn, master: Master, debt: ResyncDebt): void {
  if (debt.creditor === '') debt.creditor = master.runId;
  if (debt.creditor !== master.runId) Object.assign(debt, { creditor: master.runId, sentMs: 0, executedMs: 0, awayMs: 0, sinceMs: turn.now });
}

/** Of a configuration that this sentinel made. What is left of an older one may have been paid by its leader. */
function isOurs(master: Master, debt: ResyncDebt): boolean {
  return master.published.role === 'leader' && debt.epoch === master.configEpoch;
}

/**
 * The leader pays; when it has not been heard for 2 hello periods, the others by run id. Somebody does in the end, even if the
 * leader is content: only what a sentinel has paid, or was told by the one that has, is paid for it.
 */
function payerFromMs(state: SentinelState, master: Master, debt: ResyncDebt): Millis {
  if (isOurs(master, debt)) return debt.sinceMs;
  const { leaderId } = master.published;
  const leader = leaderId === null ? undefined : master.peers.get(leaderId);
  const heardMs = Math.max(debt.sinceMs, leader?.lastHelloMs ?? 0) as Millis;
  const rank = rankOf(master, state.myId);
  const takeoverMs = heardMs + state.tunables.publishPeriodMs * (3 + 2 * rank);
  // As long as somebody copies, the others wait for their turn. Who has just had its copy is no debtor any more.
  const movedMs = Math.max(debt.sinceMs, debt.othersPaidMs, ...[...master.debts.values()].map(({ awayMs }) => awayMs));
  return Math.min(takeoverMs, movedMs + master.failoverTimeoutMs * (1 + rank)) as Millis;
}

/**
 * Not before this. One that follows and whose link is not up is copying: that is never started twice. When the link is up, somebody else's
 * word that this was the copy gets time to arrive: it may have taken longer than the patience with the leader.
 */
function payableMs(state: SentinelState, master: Master, replica: Replica, debt: ResyncDebt): Millis {
  if (isAway(state, master, replica)) return NEVER;
  const payerMs = payerFromMs(state, master, debt);
  const isLeader = isOurs(master, debt);
  const repeatMs = debt.sentMs === 0 ? 0 : debt.sentMs + REPEAT_MS;
  const wordMs = debt.awayMs === 0 ? 0 : debt.awayMs + WORD_MS * (isLeader ? 1 : 2 + rankOf(master, state.myId));
  return Math.max(payerMs, repeatMs, wordMs) as Millis;
}

/** It follows our master, and its link is not up: it copies, or waits for that. */
function isAway(state: SentinelState, master: Master, replica: Replica): boolean {
  return follows(state, master.address, replica) && !replica.masterLinkUp;
}

/**
 * Makes a node in debt follow the master, for whoever has found that it does not (refresh.ts): by its forced resync when it is ours to send
 * and its turn has come, else with what it has. False when nothing was sent.
 */
export function followInDebt(turn: Turn, master: Master, replica: Replica, debt: ResyncDebt): boolean {
  if (turn.now < payableMs(turn.state, master, replica, debt)) return false;
  if (hasPlace(turn.state, master, debt, turn.now)) return sendForcedResync(turn, master, replica, debt);
  if (!sendReplicaOf(turn, replica, master.address)) return false;
  debt.movedMs = turn.now;
  return true;
}

/**
 * Whether the node, by its own word of a moment ago, follows our master or the one before. A node that leads, or follows somebody
 * else, may do so by a configuration that we have not heard of, being cut off since the end of the window: then it is for whoever converts
 * and fixes with patience (refresh.ts). So nothing is sent on a connection that is not up yet, to be delivered nobody knows when.
 */
function isUnderUs(state: SentinelState, master: Master, replica: Replica, now: Millis): boolean {
  if (!saysReplica(replica, now)) return false;
  const { previous } = master.published;
  return follows(state, master.address, replica) || (previous !== null && follows(state, previous, replica));
}

/** Other nodes that are of no use because of a copy, or will be in a moment, whoever sent them: they count for parallel-syncs. */
function copiesBeside(state: SentinelState, master: Master, beside: ResyncDebt, now: Millis): number {
  let copies = 0;
  for (const [key, debt] of master.debts) {
    const replica = master.replicas.get(key);
    if (debt !== beside && replica !== undefined && isCopying(state, master, replica, debt, now)) copies++;
  }
  return copies;
}

/** A node that died in a copy, or for failover-timeout shows no sign of one, holds nobody up. Nor does an order without effect. */
function isCopying(state: SentinelState, master: Master, replica: Replica, debt: ResyncDebt, now: Millis): boolean {
  if (replica.sdownSinceMs !== null) return false;
  if (isAway(state, master, replica)) {
    return IN_PROGRESS.test(replica.infoText ?? '') || now - (debt.sentMs === 0 ? debt.sinceMs : debt.sentMs) < master.failoverTimeoutMs;
  }
  if (debt.sentMs !== 0) return now - debt.sentMs < REPEAT_MS;
  return debt.formerMaster && replica.link.command !== null && now - debt.sinceMs < master.failoverTimeoutMs;
}

/**
 * Who was told to copy and has not been seen to begin: the master will count that copy any moment, and would taint a window that opens now.
 */
export function whoIsAboutToCopy(master: Master, now: Millis): string | null {
  for (const [key, debt] of master.debts) {
    const replica = master.replicas.get(key);
    if (replica === undefined || replica.sdownSinceMs !== null || now - debt.sentMs >= REPEAT_MS) continue;
    const hasBegun = debt.executedMs !== 0 && replica.infoAskedMs > debt.executedMs && IN_PROGRESS.test(replica.infoText ?? '');
    if (!hasBegun) return key;
  }
  return null;
}

/**
 * Not beside a failover. Nor in a window: a full copy from the original would taint it, and the end makes new debts. Nor before the master
 * has said which process it is: a copy of another one would have to be taken again.
 */
function mayPay(master: Master): boolean {
  return master.debts.size > 0 && master.failover === null && master.silent === null && master.runId !== '';
}

/** The former master waits for nobody, the others for it, too: a group should not be without its replicas. */
function hasPlace(state: SentinelState, master: Master, debt: ResyncDebt, now: Millis): boolean {
  return debt.formerMaster || copiesBeside(state, master, debt, now) < master.parallelSyncs;
}

/**
 * Who waits for its turn and still follows the former master would lose it with that one's copy, and copy from it first, for nothing. So it
 * follows the new master meanwhile, with what it has: the debt stands.
 */
function moveDueMs(state: SentinelState, master: Master, replica: Replica, debt: ResyncDebt): Millis {
  if (follows(state, master.address, replica)) return NEVER;
  const payerMs = payableMs(state, master, replica, debt);
  return debt.movedMs === 0 ? payerMs : Math.max(payerMs, debt.movedMs + REPEAT_MS) as Millis;
}

function move(turn: Turn, master: Master, replica: Replica, debt: ResyncDebt): void {
  if (turn.now < moveDueMs(turn.state, master, replica, debt) || !followInDebt(turn, master, replica, debt)) return;
  announce(turn, 'notice', '+fix-slave-config', replica);
}

export function debtsDueMs(state: SentinelState, master: Master, now: Millis): Millis {
  if (!mayPay(master)) return NEVER;
  let due: number = NEVER;
  for (const [key, debt] of master.debts) {
    const replica = master.replicas.get(key);
    if (replica === undefined || !isUnderUs(state, master, replica, now)) continue;
    due = Math.min(due, hasPlace(state, master, debt, now) ? payableMs(state, master, replica, debt) : moveDueMs(state, master, replica, debt));
  }
  for (const peer of payers(master)) due = Math.min(due, payerAskDueMs(state, master, peer));
  return due as Millis;
}

/** Sends what is due, the former master first, the others as parallel-syncs allows; forgets what is paid. */
export function payDebts(turn: Turn, master: Master): void {
  if (master.debts.size > 0) askWhoItIs(turn, master);
  if (!mayPay(master)) return;
  for (const [key, debt] of [...master.debts]) {
    const replica = master.replicas.get(key);
    if (replica === undefined) {
      master.debts.delete(key);
      continue;
    }
    rebase(turn, master, debt);
    if (isAway(turn.state, master, replica)) debt.awayMs = turn.now;
    if (isPaid(turn, master, replica, debt)) {
      master.paid.set(key, debt.epoch);
      settle(turn, master, replica);
      continue;
    }
    if (!isUnderUs(turn.state, master, replica, turn.now)) continue;
    if (!hasPlace(turn.state, master, debt, turn.now)) move(turn, master, replica, debt);
    else if (turn.now >= payableMs(turn.state, master, replica, debt)) sendForcedResync(turn, master, replica, debt);
  }
  for (const peer of payers(master)) {
    if (turn.now < payerAskDueMs(turn.state, master, peer)) continue;
    peer.lastDebtAskMs = turn.now;
    askStatus(turn, peer);
  }
}

/** The last report is of the node before, and its successor's would come an INFO period later: the debtors lose their master meanwhile. */
function askWhoItIs(turn: Turn, master: Master): void {
  if (master.runId === '' && master.infoSentMs === 0 && master.link.command !== null) requestInfo(turn, master);
}

function settle(turn: Turn, master: Master, replica: Replica): void {
  master.debts.delete(replica.key);
  for (const debt of master.debts.values()) debt.othersPaidMs = turn.now;
  announce(turn, 'notice', '+slave-reconf-done', replica);
  persist(turn);
}

/**
 * Whoever sent the transaction knows from its reply that the node's history was broken: when its link is up after that, the copy
 * was a full one. Nobody else can see that: not in what the node says, and the master's count of copies may be another node's. Of one that
 * was found late its word is all there is.
 */
function isPaid({ state }: Turn, master: Master, replica: Replica, debt: ResyncDebt): boolean {
  const hasCopied = debt.executedMs !== 0 || (debt.foundLate && !isOtherHistory(replicationIdOf(master.infoText), replicationIdOf(replica.infoText)));
  if (!hasCopied || replica.infoRefreshMs === null || replica.infoRefreshMs <= debt.executedMs) return false;
  return follows(state, master.address, replica) && replica.masterLinkUp && hasNoSecondHistory(replica);
}

/** Whoever does not pay all of it asks those who may: the copy of this sentinel's own making is known without that. */
function payers(master: Master): Peer[] {
  if ([...master.debts.values()].every((debt) => debt.executedMs !== 0)) return [];
  return [...master.peers.values()].filter((peer) => peer.link.silentAware !== false && peer.sdownSinceMs === null && !isDisconnected(peer));
}

/** Nothing is seen paid before the payer's next INFO. */
function payerAskDueMs(state: SentinelState, master: Master, peer: Peer): Millis {
  const sinceMs = Math.min(...[...master.debts.values()].map((debt) => debt.sinceMs)) as Millis;
  return addMs(Math.max(peer.lastDebtAskMs, addMs(sinceMs, AFTER_INFO_MS)) as Millis, state.tunables.askPeriodMs);
}

/** A peer's status: what it has paid under the configuration that made our debt, or a later one, is paid. */
export function applyPaid(turn: Turn, master: Master, field: StatusField): void {
  for (const word of field('resync-paid').split(',')) {
    const at = word.lastIndexOf('@');
    const key = word.slice(0, at);
    const debt = master.debts.get(key);
    const replica = master.replicas.get(key);
    if (debt === undefined || replica === undefined || debt.epoch === 0 || Number(word.slice(at + 1)) < debt.epoch) continue;
    settle(turn, master, replica);
  }
}

/** What the node says to EXEC. */
export function applyResynced(turn: Turn, replica: Replica, reply: RespValue, sentMs: Millis): void {
  const debt = turn.state.masters.get(replica.master)?.debts.get(replica.key);
  if (debt !== undefined && debt.sentMs === sentMs && reply.kind === 'array') debt.executedMs = turn.now;
}

/** A full copy leaves no second replication id behind, a partial one under a new id does. */
function hasNoSecondHistory(replica: Replica): boolean {
  const offset = /^second_repl_offset:(-?\d+)/m.exec(replica.infoText ?? '')?.[1];
  return offset === undefined || offset === '-1';
}

function follows(state: SentinelState, address: NodeAddress, replica: DataNode): boolean {
  // A master's report names nobody to follow; what is remembered then is from before.
  if (replica.roleReported !== 'replica' || replica.masterHost === null) return false;
  return replica.masterPort === address.port && sameHost(state, address, replica.masterHost);
}

/** One MULTI: follow, leave (a new replication id), follow; clients cut; a pause of the move lifted. */
function sendForcedResync(turn: Turn, master: Master, replica: Replica, debt: ResyncDebt): boolean {
  if (replica.link.command === null) return false;
  const { state } = turn;
  const name = (word: string): string => commandName(state, replica, word);
  const follow = [name('SLAVEOF'), announcedHost(state.settings, master.address), String(master.address.port)];
  const transaction = [
    [name('MULTI')],
    ...(debt.readOnly ? [[name('CONFIG'), 'SET', 'replica-read-only', 'yes']] : []),
    follow,
    [name('SLAVEOF'), 'NO', 'ONE'],
    follow,
    [name('CONFIG'), 'REWRITE'],
    [name('CLIENT'), 'KILL', 'TYPE', 'normal'],
    [name('CLIENT'), 'KILL', 'TYPE', 'pubsub'],
    [name('EXEC')],
    [name('CLIENT'), 'UNPAUSE'],
  ];
  const executed = { kind: 'resynced', instance: refOf(replica), sentMs: turn.now } as const;
  if (!transaction.every((argv) => send(turn, replica, argv, argv[0] === name('EXEC') ? executed : undefined))) return false;
  debt.sentMs = turn.now;
  debt.executedMs = 0 as Millis;
  announce(turn, 'notice', '+slave-reconf-sent', replica);
  return true;
}
