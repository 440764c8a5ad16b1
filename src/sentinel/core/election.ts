/**
 * Elections: asking the peers, voting, counting.
 *
 * One vote per master and epoch; the epoch counter is global. A vote is on disk before it is spoken (I4).
 * Mirrors sentinelAskMasterStateToOtherSentinels, sentinelVoteLeader and sentinelGetLeader in sentinel.c.
 */
import type { Millis } from '../../time.js';
import { addMs } from '../../time.js';
import { nextBelow } from '../../prng.js';
import type { RespValue } from '../wire/resp-value.js';
import { commandName, send } from './instance.js';
import { LIMITS } from './limits.js';
import { NEVER } from './monitor.js';
import { isReady } from './silent/prepared.js';
import { countsReadyOnly, keepOlderVote, whyNoVote } from './silent/votes.js';
import type { Epoch, Master, Peer, RunId, SentinelState } from './state.js';
import { announcedHost, isDisconnected, refOf } from './state.js';
import type { Turn } from './turn.js';
import { announceText, log, persist } from './turn.js';

export interface Vote {
  readonly leader: RunId | null;
  readonly leaderEpoch: Epoch;
}

/** Adopts a higher epoch that somebody spoke of. */
export function adoptEpoch(turn: Turn, master: Master, epoch: Epoch): void {
  if (epoch <= turn.state.currentEpoch) return;
  turn.state.currentEpoch = epoch;
  persist(turn);
  announceText(turn, 'warning', '+new-epoch', String(epoch), master);
}

/**
 * Votes for `candidate` in `requestedEpoch`, unless this master's vote of that epoch or a later one is gone; returns the
 * vote that stands. Does not ask whether we see the master down, nor whether we know the candidate (4.4).
 */
export function castVote(turn: Turn, master: Master, requestedEpoch: Epoch, candidate: RunId): Vote {
  const { state } = turn;
  if (requestedEpoch > LIMITS.maxEpoch) return { leader: master.leader, leaderEpoch: master.leaderEpoch };
  adoptEpoch(turn, master, requestedEpoch);
  if (whyNoVote(state, master, candidate, turn.now) !== null) return { leader: master.leader, leaderEpoch: master.leaderEpoch };
  if (master.leaderEpoch < requestedEpoch && state.currentEpoch <= requestedEpoch) {
    keepOlderVote(state, master, candidate, turn.now);
    master.leader = candidate;
    master.leaderEpoch = state.currentEpoch;
    persist(turn);
    announceText(turn, 'warning', '+vote-for-leader', `${candidate} ${master.leaderEpoch}`, master);
    // Voting for another holds our own candidacy back for 2 x failover-timeout: two failovers at once help nobody.
    master.lastVoteMs = turn.now;
    if (candidate !== state.myId) master.failoverStartMs = addMs(turn.now, nextBelow(state.prng, LIMITS.startDesyncMs));
  }
  return { leader: master.leader, leaderEpoch: master.leaderEpoch };
}

/**
 * When a peer is asked next whether it sees the master down, too.
 *
 * Divergence D41: during the first ask period of an SDOWN, a peer that does not agree yet is asked every 100 ms: it saw the
 * same death some milliseconds later, and stock's next question would come a second too late.
 */
function askDueMs(state: SentinelState, master: Master, peer: Peer): Millis {
  if (isDisconnected(peer)) return NEVER;
  const { askPeriodMs } = state.tunables;
  if (holdsPlannedElection(master)) return addMs(peer.lastAskMs, askPeriodMs);
  if (master.sdownSinceMs === null) return NEVER;
  const eager = master.failover === null && !peer.masterDown && peer.lastAskMs < master.sdownSinceMs + askPeriodMs;
  if (eager) return (peer.lastAskMs < master.sdownSinceMs ? 0 : peer.lastAskMs + LIMITS.eagerAskMs) as Millis;
  return Math.max(peer.lastMasterDownReplyMs, peer.lastAskMs) + askPeriodMs as Millis;
}

/** Planned elections need no SDOWN: the peers are asked for their votes all the same (silent-failover.md, section 3). */
function holdsPlannedElection(master: Master): boolean {
  return master.failover !== null && master.failover.purpose !== 'failover' && master.failover.state === 'wait_start';
}

function opinionExpiresMs(state: SentinelState, peer: Peer): Millis {
  if (!peer.masterDown && peer.leader === null) return NEVER;
  return addMs(peer.lastMasterDownReplyMs, 5 * state.tunables.askPeriodMs + 1);
}

export function electionDueMs(state: SentinelState, master: Master): Millis {
  let due = NEVER;
  for (const peer of master.peers.values()) due = Math.min(due, askDueMs(state, master, peer), opinionExpiresMs(state, peer)) as Millis;
  return due;
}

/** Forgets opinions without a valid reply for 5 ask periods; asks those who are due, or all when `forced`. */
export function askPeers(turn: Turn, master: Master, forced: boolean): void {
  const { state, now } = turn;
  for (const peer of master.peers.values()) {
    if (now >= opinionExpiresMs(state, peer)) {
      peer.masterDown = false;
      peer.leader = null;
    }
    const hasReason = master.sdownSinceMs !== null || holdsPlannedElection(master);
    const wanted = forced ? hasReason && !isDisconnected(peer) : now >= askDueMs(state, master, peer);
    if (!wanted) continue;
    peer.lastAskMs = now;
    const candidate = master.failover === null ? '*' : state.myId;
    const { port } = master.address;
    const question = ['is-master-down-by-addr', announcedHost(state.settings, master.address), String(port), String(state.currentEpoch), candidate];
    send(turn, peer, [commandName(state, peer, 'SENTINEL'), ...question], { kind: 'masterDown', instance: refOf(peer), askedMs: now });
  }
}

/**
 * Takes a peer's answer: (down?, vote or `*`, epoch of the vote). Anything of another shape is ignored (4.3). An opinion that was asked
 * for before the present SDOWN is about an earlier one, or about another node.
 */
export function applyMasterDownReply(turn: Turn, peer: Peer, reply: RespValue, askedMs: Millis): void {
  if (reply.kind !== 'array' || reply.items.length !== 3) return;
  const [down, leader, epoch] = reply.items;
  if (down?.kind !== 'integer' || leader?.kind !== 'bulk' || epoch?.kind !== 'integer') return;
  peer.lastMasterDownReplyMs = turn.now;
  peer.masterDown = down.value === 1 && askedMs >= (turn.state.masters.get(peer.master)?.sdownSinceMs ?? Infinity);
  if (leader.text === '*') return;
  if (peer.leaderEpoch !== epoch.value) log(turn, 'notice', `${peer.runId} voted for ${leader.text} ${epoch.value}`);
  peer.leader = leader.text;
  peer.leaderEpoch = epoch.value;
}

/** Where an election stands for the one who asks. */
export type Tally =
  | { readonly kind: 'open' }
  | { readonly kind: 'won'; readonly leader: RunId }
  /** Every peer that can still vote has voted, and nobody has enough: waiting is pointless. */
  | { readonly kind: 'split' };

/** Counts the votes of the current epoch; ours goes to the peers' favourite if it is still free, else to ourselves (4.6). */
export function countVotes(turn: Turn, master: Master, failoverEpoch: Epoch): Tally {
  const { state } = turn;
  const votes = new Map<RunId, number>();
  let undecided = 0;
  const readyOnly = countsReadyOnly(master);
  for (const peer of master.peers.values()) {
    if (readyOnly && !isReady(master, peer)) continue;
    if (peer.leader !== null && peer.leaderEpoch === state.currentEpoch) votes.set(peer.leader, (votes.get(peer.leader) ?? 0) + 1);
    else if (peer.sdownSinceMs === null) undecided++;
  }
  const ours = castVote(turn, master, failoverEpoch, favouriteOf(votes) ?? state.myId);
  if (ours.leader !== null && ours.leaderEpoch === failoverEpoch) votes.set(ours.leader, (votes.get(ours.leader) ?? 0) + 1);

  const voters = master.peers.size + 1;
  const majority = Math.floor(voters / 2) + 1;
  // The quorum is about who says that a master is down. Ready sentinels may be fewer than it for ever (stock peers).
  const needed = readyOnly ? majority : Math.max(majority, master.quorum);
  const favourite = favouriteOf(votes);
  const most = favourite === null ? 0 : (votes.get(favourite) ?? 0);
  if (favourite !== null && most >= needed) return { kind: 'won', leader: favourite };
  return votes.size > 1 && most + undecided < needed ? { kind: 'split' } : { kind: 'open' };
}

function favouriteOf(votes: ReadonlyMap<RunId, number>): RunId | null {
  let best: RunId | null = null;
  for (const [candidate, count] of votes) if (best === null || count > (votes.get(best) ?? 0)) best = candidate;
  return best;
}
