/**
 * SENTINEL SILENT-FAILOVER <master> <ip:port> prepare|done|abort, and <master> status (silent-failover.md, section 1).
 *
 * Checks come first and change nothing; the reply to an accepted prepare, done or abort follows when its election, or what comes
 * after it, has gone one way or the other.
 */
import { array, error } from '../../wire/resp-value.js';
import type { RespValue } from '../../wire/resp-value.js';
import { parseAddress } from '../../wire/address.js';
import { startElection } from '../failover.js';
import { makeAddress, sameNode } from '../hosts.js';
import { askStatus } from '../silent/ask-status.js';
import { replicaAt, readiness } from '../silent/consensus.js';
import { whoIsAboutToCopy } from '../silent/debts.js';
import { fieldList } from '../silent/ending.js';
import { majorityOf, rankOf } from '../silent/prepared.js';
import { silentSettings } from '../silent/settings.js';
import { whyTargetNotReady } from '../silent/target-readiness.js';
import { hasOlderUnansweredVote, hasUnansweredVote, heldUntilMs, isFreshlyBorn } from '../silent/votes.js';
import { untoldPeers } from '../silent/watch.js';
import { requestInfo } from '../monitor.js';
import type { ElectionPurpose, Master, NodeAddress, Peer } from '../state.js';
import { isDisconnected } from '../state.js';
import { IN_TILT } from '../tilt.js';
import type { Turn } from '../turn.js';
import { nameOf, touch } from '../turn.js';

/** How long a prepare waits for peers to say whether they know the extension. */
const AWARE_PATIENCE_MS = 1_000;

const NO_FRESH_REPORT = 'ERR Slave status is not ready: original or target did not report in time';
const UNKNOWN_PHASE = 'ERR Unknown phase, expected prepare, done, abort or status';

/** Null: the reply comes later. */
export function silentFailover(turn: Turn, client: number, args: readonly string[]): RespValue | null {
  const [name = '', second = '', third] = args;
  if (args.length < 2 || args.length > 3) return error("ERR wrong number of arguments for 'sentinel|silent-failover' command");
  const master = turn.state.masters.get(name);
  if (args.length === 2) {
    if (second.toLowerCase() !== 'status') return error(UNKNOWN_PHASE);
    return master === undefined ? error('ERR No such master with that name') : statusOf(turn, master);
  }
  if (master === undefined) return error('ERR No such master with that name');
  const phase = (third ?? '').toLowerCase();
  if (phase !== 'prepare' && phase !== 'done' && phase !== 'abort') return error(UNKNOWN_PHASE);
  const parsed = parseAddress(second);
  const target = parsed === null ? null : makeAddress(turn, parsed.host, parsed.port);
  if (target === null) return error('ERR Invalid target, expected ip:port');
  if (turn.state.tiltSinceMs !== null) return error(IN_TILT);
  touch(turn, name);
  if (phase === 'prepare') return prepare(turn, master, client, target);
  return conclude(turn, master, client, target, phase);
}

function prepare(turn: Turn, master: Master, client: number, target: NodeAddress): RespValue | null {
  const refusal = whyNotNow(turn, master, target) ?? whyUnknownTarget(master, target);
  if (refusal !== null) return error(refusal);
  if (master.silent?.effective === true) return { kind: 'simple', text: 'OK' };
  for (const peer of master.peers.values()) probe(turn, peer);
  requestInfo(turn, master);
  master.prepareRequest = { client, target, sinceMs: turn.now, targetAskedMs: null };
  return null;
}

function probe(turn: Turn, peer: Peer): void {
  if (peer.link.silentAware === null && !isDisconnected(peer)) askStatus(turn, peer);
}

export function prepareDueMs(master: Master): number {
  return master.prepareRequest === null ? Infinity : master.prepareRequest.sinceMs + AWARE_PATIENCE_MS;
}

/** A prepare goes on when every reachable peer has said whether it can follow, or the patience is over. */
export function resumePrepare(turn: Turn, master: Master): void {
  const request = master.prepareRequest;
  if (request === null) return;
  const unknown = [...master.peers.values()].some((peer) => isReachable(peer) && peer.link.silentAware === null);
  const old = !hasFreshReports(turn, master, request);
  if ((unknown || old) && turn.now < request.sinceMs + AWARE_PATIENCE_MS) return;
  master.prepareRequest = null;
  const refusal = whyNotPrepare(turn, master, request.target) ?? (old ? NO_FRESH_REPORT : null) ?? whyPeersCannot(master);
  if (refusal !== null) turn.effects.push({ kind: 'reply', client: request.client, value: error(refusal) });
  else startElection(turn, master, { purpose: 'prepare', target: request.target, client: request.client });
}

/**
 * Reports that are older than the question don't count: a full resync may have begun since. The original's comes first: a resync
 * that it has counted then shows in the target's, one that it counts later is a taint.
 */
function hasFreshReports(turn: Turn, master: Master, request: NonNullable<Master['prepareRequest']>): boolean {
  const target = replicaAt(master, request.target);
  if (target === undefined || master.infoRefreshMs === null || master.infoRefreshMs < request.sinceMs) return false;
  if (request.targetAskedMs === null) {
    request.targetAskedMs = turn.now;
    requestInfo(turn, target);
  }
  return target.infoRefreshMs !== null && target.infoRefreshMs >= request.targetAskedMs;
}

const isReachable = (peer: Peer): boolean => peer.sdownSinceMs === null && !isDisconnected(peer);

function whyPeersCannot(master: Master): string | null {
  if (silentSettings(master).allowMixed) return null;
  const stock = [...master.peers.values()].find((peer) => isReachable(peer) && peer.link.silentAware !== true);
  return stock === undefined ? null : `ERR Sentinel ${stock.address.ip}:${stock.address.port} does not support silent failover`;
}

function whyNotPrepare(turn: Turn, master: Master, target: NodeAddress): string | null {
  const unfit = whyNotNow(turn, master, target) ?? whyNotTarget(turn, master, target) ?? whyTaintedSoon(turn, master);
  return unfit ?? whyNoQuorum(turn, master) ?? whyListChanges(turn, master);
}

function whyNotNow(turn: Turn, master: Master, target: NodeAddress): string | null {
  const { state, now } = turn;
  // Also while it is not effective here: somebody may find it so by what we said of it, and be the only one to send clients there.
  if (master.silent !== null && !sameNode(master.silent.targetAddress, target)) return 'ERR Failover is already in progress';
  const other = [...state.masters.values()].some((each) => each !== master && (each.silent !== null || each.prepareRequest !== null));
  if (other || master.failover !== null || master.prepareRequest !== null) return 'ERR Failover is already in progress';
  const mayBeAtWork = hasUnansweredVote(state, master, state.myId, now) || hasOlderUnansweredVote(master, state.myId, 1, now);
  if (mayBeAtWork && master.silent === null) return 'ERR Failover is already in progress';
  return null;
}

function whyTaintedSoon({ now }: Turn, master: Master): string | null {
  const debtor = master.silent === null ? whoIsAboutToCopy(master, now) : null;
  return debtor === null ? null : `ERR Slave status is not ready: ${debtor} is about to copy the master`;
}

function whyUnknownTarget(master: Master, target: NodeAddress): string | null {
  if (sameNode(master.address, target)) return 'ERR Slave status is not ready: it is the master itself';
  return replicaAt(master, target) === undefined ? 'ERR Slave status is not ready: it is no replica of this master' : null;
}

function whyNotTarget(turn: Turn, master: Master, target: NodeAddress): string | null {
  const replica = replicaAt(master, target);
  if (replica === undefined) return whyUnknownTarget(master, target);
  const reason = whyTargetNotReady(turn.state, master, replica, turn.now);
  return reason === null ? null : `ERR Slave status is not ready: ${reason}`;
}

/** What CKQUORUM would say. */
function whyNoQuorum({ state, now }: Turn, master: Master): string | null {
  const usable = 1 + [...master.peers.values()].filter((peer) => peer.sdownSinceMs === null).length;
  const needed = Math.max(master.quorum, majorityOf(master));
  if (usable < needed) return `NOQUORUM ${usable} usable sentinels, ${needed} are needed`;
  return isFreshlyBorn(state, master, now) && master.configEpoch > 0 ? 'NOQUORUM this sentinel is too young' : null;
}

function whyListChanges({ state, now }: Turn, master: Master): string | null {
  return now - master.peersChangedMs < 3 * state.tunables.publishPeriodMs ? 'ERR Sentinel list is changing, try again' : null;
}

function conclude(turn: Turn, master: Master, client: number, target: NodeAddress, purpose: ElectionPurpose & ('done' | 'abort')): RespValue | null {
  const { silent } = master;
  if (silent === null) return error('ERR No silent failover in progress for this master');
  if (!sameNode(silent.targetAddress, target)) return error(`ERR Silent failover target is ${silent.target}`);
  const refusal = purpose === 'done' ? whyNotDone(turn, master, target) : whyNotAbort(turn, master);
  if (refusal !== null) return error(refusal);
  startElection(turn, master, { purpose, target: null, client });
  return null;
}

function whyNotDone(turn: Turn, master: Master, target: NodeAddress): string | null {
  const { silent } = master;
  if (master.failover !== null || turn.now < heldUntilMs(master)) return 'ERR Failover is already in progress';
  if (silent !== null && silent.taint !== null) return `ERR Silent failover is tainted: ${silent.taint}`;
  if (silent?.effective !== true) {
    const { ready, known } = readiness(master);
    return `NOQUORUM only ${ready} of ${known} sentinels are ready`;
  }
  const untold = untoldPeers(master)[0];
  if (untold !== undefined) return `NOQUORUM sentinel ${untold.address.ip}:${untold.address.port} has not told yet whether the window is intact`;
  return whyNotTarget(turn, master, target) ?? whyNoQuorum(turn, master) ?? whyListChanges(turn, master);
}

function whyNotAbort(turn: Turn, master: Master): string | null {
  if (master.failover !== null && master.failover.purpose !== 'prepare') return 'ERR Failover is already in progress';
  // A vote below D was the prepare's own: nothing answers that but the state that is to end.
  const votedForTheEnd = master.leaderEpoch >= (master.silent?.doneEpoch ?? 0);
  if (votedForTheEnd && hasUnansweredVote(turn.state, master, turn.state.myId, turn.now)) return 'ERR Failover is already in progress';
  if (turn.now < heldUntilMs(master)) return 'ERR Failover is already in progress';
  if (master.sdownSinceMs !== null) return 'ERR Failover is already in progress';
  return whyNoQuorum(turn, master);
}

function statusOf(turn: Turn, master: Master): RespValue {
  const { silent } = master;
  const { ready, known } = readiness(master);
  const { timeoutMs } = silentSettings(master);
  const pairs: [string, string][] = [
    ['state', silent === null ? 'none' : silent.effective ? 'prepared' : 'reserved'],
    ['effective', silent?.effective === true ? '1' : '0'],
    ['target', silent?.target ?? ''],
    ['initiator', silent?.initiator === true ? '1' : '0'],
    ['prepare-epoch', String(silent === null ? 0 : silent.doneEpoch - 1)],
    ['done-epoch', String(silent?.doneEpoch ?? 0)],
    ['since-ms', String(silent === null ? 0 : turn.now - silent.sinceMs)],
    ['deadline-ms', String(silent === null || timeoutMs === 0 ? 0 : Math.max(0, silent.sinceMs + timeoutMs - turn.now))],
    ['peers-ready', String(silent === null ? 0 : ready)],
    ['peers-known', String(known)],
    ['tainted', silent?.taint ?? ''],
    ['resync-debts', [...master.debts.keys()].join(',')],
    ['resync-paid', [...master.paid].map(([key, epoch]) => `${key}@${epoch}`).join(',')],
    ['rank', String(rankOf(master, turn.state.myId))],
    ['auto-revert', silentSettings(master).autoRevert ? 'yes' : 'no'],
    ['original-run-id', silent?.originalRunId ?? ''],
    ['original-sync-full', silent?.originalSyncFull == null ? '' : String(silent.originalSyncFull)],
    ['target-run-id', silent?.targetRunId ?? ''],
    ['not-ready', [...master.peers.values()].filter((peer) => silent !== null && peer.silentHeard === null).map(nameOf).join(',')],
  ];
  return array(fieldList(pairs));
}

