/**
 * What can go wrong, or come to an end by itself, while a silent failover is prepared (sections 4.7, 5 and 6).
 *
 * Taint: the window's writes may be lost. Observed promotion: somebody's done was cut off after NO ONE. Target down, deadline:
 * an abort election. All are repeated with a pause until a configuration ends the state.
 */
import { nextBelow } from '../../../prng.js';
import { addMs } from '../../../time.js';
import type { Millis } from '../../../time.js';
import type { RespValue } from '../../wire/resp-value.js';
import { startElection } from '../failover.js';
import { commandName, send } from '../instance.js';
import { NEVER, requestInfo } from '../monitor.js';
import type { ElectionPurpose, Master, Peer, Replica, SentinelState, SilentState } from '../state.js';
import { announcedHost, isDisconnected, refOf } from '../state.js';
import type { Turn } from '../turn.js';
import { announce, log, persist } from '../turn.js';
import { askStatus } from './ask-status.js';
import type { StatusField } from './peer-status.js';
import { isReady, rankOf, silentTarget } from './prepared.js';
import { silentSettings } from './settings.js';
import { heldUntilMs, isTargetPromoted } from './votes.js';

const PROMOTED_PROOF_MS = 1_000;
const WARN_PERIOD_MS = 60_000;
/** A baseline that comes later may hide a copy from before it; then the peers must say what they saw. */
const PROMPT_BASELINE_MS = 100;
const RESTARTED_ORIGINAL = 'the original restarted';
const RESTARTED_TARGET = 'the target restarted';
const FULL_RESYNC = 'the original gave a full resync, writes on the target may be lost';

/**
 * Looks at the last reports of original and target for a sign that the target lost writes. Once tainted, always tainted. In TILT, too: what
 * nodes report depends on no clock, and peers that ask what we saw take our answer for all there is.
 */
export function judgeTaint(turn: Turn, master: Master): void {
  const { silent } = master;
  if (silent === null || silent.taint !== null) return;
  noteBaseline(turn, master);
  const reason = whyTainted(master, silentTarget(master)) ?? whyTaintedFromTheBegin(turn, master, silentTarget(master));
  if (reason === null) return;
  silent.taint = reason;
  persist(turn);
  announce(turn, 'warning', '+silent-failover-tainted', master, reason);
}

/** An echo may come before the first INFO of a node, and an older report counts too few copies: the first one since is the baseline. */
function noteBaseline(turn: Turn, master: Master): void {
  const { silent } = master;
  if (silent === null) return;
  if (silent.originalRunId === '') silent.originalRunId = master.runId;
  if (silent.originalSyncFull === null && master.syncFull !== null && (master.infoRefreshMs ?? 0) > silent.sinceMs) {
    silent.originalSyncFull = master.syncFull;
    silent.baselineMs = turn.now;
    const target = silentTarget(master);
    if (target !== undefined) requestInfo(turn, target);
    persist(turn);
  }
  if (silent.targetRunId === '') silent.targetRunId = silentTarget(master)?.runId ?? '';
}

function whyTainted(master: Master, target: Replica | undefined): string | null {
  const { silent } = master;
  if (silent === null) return null;
  if (master.runId !== '' && master.runId !== silent.originalRunId) return RESTARTED_ORIGINAL;
  if (target !== undefined && target.runId !== '' && target.runId !== silent.targetRunId) return RESTARTED_TARGET;
  if (target?.syncInProgress === true) return 'the target is being resynchronised in full';
  if (master.syncFull !== null && silent.originalSyncFull !== null && master.syncFull > silent.originalSyncFull) {
    return FULL_RESYNC;
  }
  return null;
}

/** A copy that was under way at the baseline is in its count already; the target's next report shows it. */
function whyTaintedFromTheBegin(turn: Turn, master: Master, target: Replica | undefined): string | null {
  const { silent } = master;
  if (silent === null || silent.targetSeen || target === undefined || (target.infoRefreshMs ?? 0) <= (silent.baselineMs ?? Infinity)) return null;
  silent.targetSeen = true;
  // A clock that went back has shortened the wait.
  const isPrompt = turn.state.tiltSinceMs === null && turn.now - silent.sinceMs <= PROMPT_BASELINE_MS;
  silent.sawAll = silent.initiator && isPrompt;
  return target.masterLinkUp || target.roleReported === 'master' ? null : 'the target was not in step when the move began';
}

/** When this sentinel may act on its own, after others had their chance. */
function turnMs(state: SentinelState, master: Master, sinceMs: Millis, periodMs: number): Millis {
  const first = master.silent?.initiator === true ? 0 : 1 + rankOf(master, state.myId);
  return addMs(sinceMs, first * periodMs);
}

interface Wanted {
  readonly purpose: ElectionPurpose;
  readonly atMs: Millis;
}

/** The election that the state of things calls for, and when this sentinel may hold it. */
function wantedElection(state: SentinelState, master: Master): Wanted | null {
  const { silent } = master;
  const target = silentTarget(master);
  if (silent === null || master.failover !== null) return null;
  const { publishPeriodMs } = state.tunables;
  if (silent.promotedSinceMs !== null) {
    const purpose = silent.taint === null && isTargetPromoted(master) ? 'done' : 'abort';
    const proofMs = silent.donePending ? 0 : PROMOTED_PROOF_MS;
    return { purpose, atMs: turnMs(state, master, addMs(silent.promotedSinceMs, proofMs), 1_000) };
  }
  if (target !== undefined && target.sdownSinceMs !== null && master.sdownSinceMs === null && targetVotes(master) >= master.quorum) {
    return { purpose: 'abort', atMs: turnMs(state, master, target.sdownSinceMs, publishPeriodMs) };
  }
  const { timeoutMs } = silentSettings(master);
  if (timeoutMs > 0) return { purpose: 'abort', atMs: turnMs(state, master, addMs(silent.sinceMs, timeoutMs), publishPeriodMs) };
  return null;
}

function targetVotes(master: Master): number {
  return 1 + [...master.peers.values()].filter((peer) => peer.targetDown).length;
}

export function watchDueMs(state: SentinelState, master: Master): Millis {
  const { silent } = master;
  if (silent === null) return NEVER;
  const wanted = wantedElection(state, master);
  const electionMs = wanted === null ? NEVER : Math.max(wanted.atMs, silent.nextTryMs, heldUntilMs(master));
  return Math.min(electionMs, silent.lastWarnedMs + WARN_PERIOD_MS, targetAskDueMs(state, master), windowAskDueMs(state, master)) as Millis;
}

export function watchSilentState(turn: Turn, master: Master): void {
  const { silent } = master;
  if (silent === null) return;
  const target = silentTarget(master);
  const saysMaster = target !== undefined && target.roleReported === 'master' && target.sdownSinceMs === null;
  silent.promotedSinceMs = saysMaster ? (silent.promotedSinceMs ?? turn.now) : null;
  askAboutTarget(turn, master);
  askAboutWindow(turn, master);
  if (turn.now >= silent.lastWarnedMs + WARN_PERIOD_MS) {
    silent.lastWarnedMs = turn.now;
    log(turn, 'warning', `Silent failover of ${master.name} to ${silent.target} is prepared for ${turn.now - silent.sinceMs} ms and waits for done`);
  }
  const wanted = wantedElection(turn.state, master);
  if (wanted === null || turn.now < Math.max(wanted.atMs, silent.nextTryMs, heldUntilMs(master))) return;
  // An election that elects nobody is tried again after its timeout and a little more.
  const patienceMs = Math.min(turn.state.tunables.electionTimeoutMs, master.failoverTimeoutMs) + nextBelow(turn.state.prng, 1_000);
  silent.nextTryMs = addMs(turn.now, patienceMs);
  startElection(turn, master, { purpose: wanted.purpose, target: null, client: null });
}

/**
 * What a peer saw when its watch began, against what we saw later: its last reports may be from before a copy that our first ones show already,
 * and by the time it sees that itself we have its answer.
 */
function whyTaintedSince(silent: SilentState, field: StatusField): string {
  const [originalRunId, syncFull, targetRunId] = [field('original-run-id'), field('original-sync-full'), field('target-run-id')];
  silent.originalRunId ||= originalRunId;
  silent.targetRunId ||= targetRunId;
  if (originalRunId !== '' && originalRunId !== silent.originalRunId) return RESTARTED_ORIGINAL;
  if (targetRunId !== '' && targetRunId !== silent.targetRunId) return RESTARTED_TARGET;
  return syncFull !== '' && Number(syncFull) < (silent.originalSyncFull ?? 0) ? FULL_RESYNC : '';
}

/** Ready peers that have not told yet what they saw of the window: who heard of it from others may have no baseline from before. */
export function untoldPeers(master: Master): Peer[] {
  const { silent } = master;
  if (silent === null || silent.sawAll) return [];
  return [...master.peers.values()].filter((peer) => {
    return isReady(master, peer) && peer.sdownSinceMs === null && !isDisconnected(peer) && peer.windowToldEpoch < silent.doneEpoch;
  });
}

/** Who to ask: nobody before our own watch has begun, for what happens between an answer and that would be seen by none of us. */
function peersToAsk(master: Master): Peer[] {
  return master.silent?.targetSeen === true ? untoldPeers(master) : [];
}

function windowAskDueMs(state: SentinelState, master: Master): Millis {
  return Math.min(NEVER, ...peersToAsk(master).map((peer) => peer.lastWindowAskMs + state.tunables.askPeriodMs)) as Millis;
}

function askAboutWindow(turn: Turn, master: Master): void {
  for (const peer of peersToAsk(master)) {
    if (turn.now < peer.lastWindowAskMs + turn.state.tunables.askPeriodMs) continue;
    peer.lastWindowAskMs = turn.now;
    askStatus(turn, peer);
  }
}

/** A peer's status: a window that it saw tainted is tainted for us, too. Before our own baseline it is no answer yet: nothing to compare. */
export function applyWindow(turn: Turn, master: Master, peer: Peer, field: StatusField): void {
  if (master.silent === null) return;
  const { silent } = master;
  if (field('target') !== silent.target || Number(field('done-epoch')) < silent.doneEpoch) return;
  if (silent.originalSyncFull !== null) peer.windowToldEpoch = silent.doneEpoch;
  const reason = field('tainted') || whyTaintedSince(silent, field);
  if (reason === '' || silent.taint !== null) return;
  silent.taint = reason;
  persist(turn);
  announce(turn, 'warning', '+silent-failover-tainted', master, silent.taint);
}

function targetAskDueMs(state: SentinelState, master: Master): Millis {
  const target = silentTarget(master);
  if (target === undefined || target.sdownSinceMs === null) return NEVER;
  let due: number = NEVER;
  for (const peer of master.peers.values()) if (!isDisconnected(peer)) due = Math.min(due, peer.lastTargetAskMs + state.tunables.askPeriodMs);
  return due as Millis;
}

/** Opinion only: votes are always asked for the original's address. */
function askAboutTarget(turn: Turn, master: Master): void {
  const { state, now } = turn;
  const target = silentTarget(master);
  for (const peer of master.peers.values()) {
    const isStale = target === undefined || peer.lastTargetAskMs < (target.sdownSinceMs ?? Infinity) || now > peer.lastTargetReplyMs + 5 * state.tunables.askPeriodMs;
    if (isStale) peer.targetDown = false;
    if (target === undefined || target.sdownSinceMs === null || now < peer.lastTargetAskMs + state.tunables.askPeriodMs) continue;
    peer.lastTargetAskMs = now;
    const address = [announcedHost(state.settings, target.address), String(target.address.port)];
    const question = ['is-master-down-by-addr', ...address, String(state.currentEpoch), '*'];
    send(turn, peer, [commandName(state, peer, 'SENTINEL'), ...question], { kind: 'targetDown', instance: refOf(peer), askedMs: now });
  }
}

/** What was asked before the target went down, or about another target, is no opinion of it. */
export function applyTargetDownReply(turn: Turn, peer: Peer, reply: RespValue, askedMs: Millis): void {
  if (reply.kind !== 'array' || reply.items[0]?.kind !== 'integer') return;
  const master = turn.state.masters.get(peer.master);
  const downSinceMs = (master === undefined ? undefined : silentTarget(master))?.sdownSinceMs ?? Infinity;
  peer.targetDown = reply.items[0].value === 1 && askedMs >= downSinceMs;
  peer.lastTargetReplyMs = turn.now;
}
