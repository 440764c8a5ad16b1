/**
 * When a vote must be withheld: the rules that keep a silent failover and everything else from electing past each other.
 *
 * silent-failover.md, section 3, rules (1), (2) and the rule after the end. Stock has no such rules; outside a silent state and
 * its end none applies.
 */
import type { Epoch, Master, RunId, SentinelState } from '../state.js';
import type { Millis } from '../../../time.js';
import { isReady, silentTarget } from './prepared.js';

/** Why `candidate` gets no vote for this master now; null = it may. */
export function whyNoVote(state: Readonly<SentinelState>, master: Readonly<Master>, candidate: RunId, now: Millis): string | null {
  if (candidate !== state.myId && isUninformed(master, candidate)) return 'it has not heard how the last silent failover ended';
  const { silent } = master;
  if (silent === null) return null;
  if (isFreshlyBorn(state, master, now)) return 'this sentinel lost its memory';
  const peer = master.peers.get(candidate);
  if (candidate !== state.myId && (peer === undefined || !isReady(master, peer))) return 'it is not ready';
  // Who asks again has given up what the earlier vote was for; nobody else could act on it.
  const isHeld = now < heldUntilMs(master) && (candidate === state.myId || candidate !== master.leader);
  if (isHeld) return 'the vote of a done or abort is still unanswered';
  return null;
}

function isUninformed(master: Readonly<Master>, candidate: RunId): boolean {
  return master.silentEndedEpoch > 0 && (master.peers.get(candidate)?.heardConfigEpoch ?? 0) < master.silentEndedEpoch;
}

/** A sentinel without its old file might vote twice; it takes no part for failover-timeout. */
export function isFreshlyBorn(state: Readonly<SentinelState>, master: Readonly<Master>, now: Millis): boolean {
  return state.bornMs !== null && now - state.bornMs < master.failoverTimeoutMs;
}

/**
 * Until when our vote of a done or abort (at an epoch >= D) binds us, if no configuration answers it; 0 = there is none.
 * A vote for ourselves in an election that we gave up binds nobody: only we could have acted on it.
 */
export function bindingUntilMs(master: Readonly<Master>): Millis {
  const { silent, leaderEpoch, configEpoch, lastVoteMs, givenUpEpoch } = master;
  const binds = silent !== null && leaderEpoch >= silent.doneEpoch && configEpoch < leaderEpoch && leaderEpoch !== givenUpEpoch;
  return (binds ? lastVoteMs + master.failoverTimeoutMs + 1 : 0) as Millis;
}

/** Until when we neither vote nor hold an election of our own: that would only spend an epoch that others need. */
export function heldUntilMs(master: Readonly<Master>): Millis {
  return seesTrouble(master) ? (0 as Millis) : bindingUntilMs(master);
}

/** Waiting is no help any more: the original or the target is down, or the target was promoted already. */
function seesTrouble(master: Readonly<Master>): boolean {
  const target = silentTarget(master);
  return master.sdownSinceMs !== null || target === undefined || target.sdownSinceMs !== null || isTargetPromoted(master);
}

/** The target says it is a master, and it is the process that it was at prepare. */
export function isTargetPromoted(master: Readonly<Master>): boolean {
  const target = silentTarget(master);
  return master.silent !== null && target !== undefined && target.roleReported === 'master' && target.runId === master.silent.targetRunId;
}

/** A vote of ours for another candidate that no configuration has answered: its leader may be at work. */
export function hasUnansweredVote(state: Readonly<SentinelState>, master: Readonly<Master>, except: RunId, now: Millis): boolean {
  const vote = { epoch: master.leaderEpoch, castMs: master.lastVoteMs };
  return isUnanswered(master, vote, now) && master.leader !== state.myId && master.leader !== except;
}

/**
 * The same of a vote that a later one of ours covers: its leader need not know of that one. A leader that says it has the state of
 * `doneEpoch` or a later one is at work no more.
 */
export function hasOlderUnansweredVote(master: Readonly<Master>, except: RunId, doneEpoch: Epoch, now: Millis): boolean {
  return [...master.olderVotes].some(([leader, vote]) => {
    const hasState = (master.peers.get(leader)?.silentHeard?.doneEpoch ?? 0) >= doneEpoch;
    return leader !== except && !hasState && isUnanswered(master, vote, now);
  });
}

/** To be called before a vote for `next` takes the place of the one that stands. */
export function keepOlderVote(state: Readonly<SentinelState>, master: Master, next: RunId, now: Millis): void {
  const { leader, leaderEpoch: epoch, lastVoteMs: castMs, olderVotes } = master;
  if (leader !== null && leader !== state.myId) olderVotes.set(leader, { epoch, castMs });
  olderVotes.delete(next);
  for (const [each, vote] of olderVotes) if (!isUnanswered(master, vote, now)) olderVotes.delete(each);
}

function isUnanswered(master: Readonly<Master>, { epoch, castMs }: { epoch: Epoch; castMs: Millis }, now: Millis): boolean {
  return epoch > master.configEpoch && now - castMs <= master.failoverTimeoutMs;
}

/** Whether votes are counted from ready sentinels alone: done, and abort once clients have moved. */
export function countsReadyOnly(master: Readonly<Master>): boolean {
  const { silent, failover } = master;
  if (silent === null || failover === null) return false;
  return failover.purpose === 'done' || (failover.purpose === 'abort' && silent.effective);
}

/** The epoch at which an election of this master must be held at least: D while prepared. */
export function lowestElectionEpoch(master: Readonly<Master>, purpose: string): Epoch {
  return master.silent === null || purpose === 'prepare' ? 0 : master.silent.doneEpoch;
}
