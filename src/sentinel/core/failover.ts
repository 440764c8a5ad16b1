/**
 * The failover of one master, a function per state (4.5 to 4.8).
 *
 * wait_start → select_slave → send_slaveof_noone → wait_promotion → reconf_slaves → update_config. Up to wait_promotion it may
 * be aborted; afterwards it can only end. Mirrors sentinelStartFailoverIfNeeded and sentinelFailoverStateMachine.
 */
import { assert, assertNever, must } from '../../assert.js';
import type { Millis } from '../../time.js';
import { addMs } from '../../time.js';
import { nextBelow } from '../../prng.js';
import {
  demoteOriginal, demotionDueMs, hold, holdDueMs, isCoordinatedByDefault, liftPause, maxPauseMs, owesDemotion, releaseAfterFailure, whyNotCoordinated,
} from './coordinated.js';
import { adoptEpoch, countVotes } from './election.js';
import { awaitsReports, choiceDueMs } from './fresh-reports.js';
import { sameNode } from './hosts.js';
import { isForeign } from './caution/foreign.js';
import { replicationIdOf } from './replication-id.js';
import { retryWithWaiverMs, selectDespiteAge } from './caution/waiver.js';
import { commandName, send } from './instance.js';
import { LIMITS } from './limits.js';
import { forceHello, NEVER, requestInfo } from './monitor.js';
import { selectReplica, whyNotEligible } from './promotion.js';
import { orderToLead, repeatLostOrder, saysMaster, saysReplica, sendReplicaOf } from './reconfigure.js';
import { settleClient } from './silent/ending.js';
import { awaitTarget, concludeMove, decideAsLeader, holdAndCatchUp, moveDueMs, reassertOriginal } from './silent/moves.js';
import { lowestElectionEpoch } from './silent/votes.js';
import type { ElectionPurpose, Epoch, Failover, FailoverStateName, Master, NodeAddress, Replica, SentinelState } from './state.js';
import { isDisconnected, promotedReplica, refOf } from './state.js';
import { switchToPromoted } from './switch-master.js';
import type { Turn } from './turn.js';
import { announce, log, persist } from './turn.js';

/** The earliest automatic start: 2 x failover-timeout after the last one, own or voted for. */
function automaticStartMs(master: Master): Millis {
  return master.failoverStartMs === 0 ? (0 as Millis) : addMs(master.failoverStartMs, 2 * master.failoverTimeoutMs);
}

export function failoverDueMs(state: SentinelState, master: Master): Millis {
  const { failover } = master;
  if (failover === null) {
    if (master.odownSinceMs === null) return NEVER;
    return Math.max(automaticStartMs(master), master.candidacy?.atMs ?? 0) as Millis;
  }
  switch (failover.state) {
    case 'wait_start':
      return addMs(master.failoverStartMs, Math.min(state.tunables.electionTimeoutMs, master.failoverTimeoutMs) + 1);
    case 'send_slaveof_noone':
      return canHold(master, failover) ? holdDueMs(master, failover) : addMs(failover.stateSinceMs, master.failoverTimeoutMs + 1);
    case 'wait_promotion':
      return Math.min(failover.lastPollMs + LIMITS.promotionPollMs, failover.stateSinceMs + master.failoverTimeoutMs + 1) as Millis;
    case 'reconf_slaves':
      return reconfigurationDueMs(state, master, failover);
    case 'silent_hold':
    case 'silent_promote':
    case 'silent_reassert':
      return moveDueMs(master, failover);
    case 'select_slave':
      return choiceDueMs(state, failover);
    case 'update_config':
      return 0 as Millis;
    default:
      return assertNever(failover.state);
  }
}

/** Starts an automatic failover when ODOWN stands and nothing holds it back. True when it started (the ask is then forced). */
export function startFailoverIfNeeded(turn: Turn, master: Master): boolean {
  const { state, now } = turn;
  if (master.odownSinceMs === null || master.failover !== null) return false;
  const startMs = automaticStartMs(master);
  if (now < startMs) {
    if (master.failoverDelayLoggedMs !== master.failoverStartMs) {
      master.failoverDelayLoggedMs = master.failoverStartMs;
      log(turn, 'notice', `Next failover delay: I will not start a failover before ${startMs - now} ms have passed (master ${master.name})`);
    }
    return false;
  }
  // Divergence D42: agents wake at their deadlines, not on desynchronised ticks, so the candidacy itself is desynchronised.
  master.candidacy ??= planCandidacy(turn, master, nextBelow(state.prng, master.peers.size === 0 ? 1 : LIMITS.candidacyDesyncMs));
  if (now < master.candidacy.atMs) return false;
  startFailover(turn, master, false);
  return true;
}

/** Reserves the epoch of a candidacy that comes in `delayMs`: it is on disk by then, and the questions need not wait for it. */
function planCandidacy(turn: Turn, master: Master, delayMs: number): { atMs: Millis; epoch: number } {
  return { atMs: addMs(turn.now, delayMs), epoch: raiseEpoch(turn, master, lowestElectionEpoch(master, 'failover')) };
}

function raiseEpoch(turn: Turn, master: Master, lowest: Epoch): Epoch {
  adoptEpoch(turn, master, Math.max(turn.state.currentEpoch + 1, lowest));
  return turn.state.currentEpoch;
}

/** Opens a failover under a new epoch. `forced`: SENTINEL FAILOVER, which needs no election. */
export function startFailover(turn: Turn, master: Master, forced: boolean): void {
  const coordinated = forced && isCoordinatedByDefault(master);
  open(turn, master, { purpose: 'failover', target: null, client: null, forced, coordinated });
  announce(turn, 'warning', '+try-failover', master);
}

/** What a planned move's election is held for, and who waits for it. */
export interface PlannedElection {
  readonly purpose: ElectionPurpose;
  readonly target: NodeAddress | null;
  readonly client: number | null;
}

/** Opens the election of a planned move; the peers are asked in the same turn. */
export function startElection(turn: Turn, master: Master, planned: PlannedElection): void {
  open(turn, master, { ...planned, forced: false, coordinated: planned.purpose === 'coordinated' });
}

type Opening = PlannedElection & { readonly forced: boolean; readonly coordinated: boolean };

function open(turn: Turn, master: Master, { purpose, target, client, forced, coordinated }: Opening): void {
  const { state, now } = turn;
  const reserved = master.candidacy?.epoch ?? 0;
  // A reserved epoch that somebody has spoken in since, or that our vote is gone in, is no use any more.
  const lowest = lowestElectionEpoch(master, purpose);
  const usable = reserved === state.currentEpoch && reserved > master.leaderEpoch && reserved >= lowest;
  const epoch = usable ? reserved : raiseEpoch(turn, master, lowest);
  master.candidacy = null;
  master.failover = {
    state: 'wait_start',
    stateSinceMs: now,
    epoch,
    forced,
    purpose,
    target,
    client,
    lastPauseMs: 0 as Millis,
    pauseTaken: false,
    heldUntilMs: 0 as Millis,
    lastPauseLengthMs: 0,
    pauseRefused: null,
    heldOffset: null,
    coordinated,
    promoted: null,
    lastPollMs: 0 as Millis,
    orderedOn: null,
    originalTold: false,
  };
  master.failoverStartMs = addMs(now, nextBelow(state.prng, LIMITS.startDesyncMs));
}

/** Advances the failover as far as this turn allows. */
export function advanceFailover(turn: Turn, master: Master): void {
  for (;;) {
    const { failover } = master;
    if (failover === null) return;
    const before = failover.state;
    advanceOnce(turn, master, failover);
    if (master.failover === null || master.failover.state === before) return;
  }
}

function advanceOnce(turn: Turn, master: Master, failover: Failover): void {
  switch (failover.state) {
    case 'wait_start':
      return waitForElection(turn, master, failover);
    case 'select_slave':
      return choosePromoted(turn, master, failover);
    case 'send_slaveof_noone':
      return promote(turn, master, failover);
    case 'wait_promotion':
      return awaitPromotion(turn, master, failover);
    case 'reconf_slaves':
      return reconfigureReplicas(turn, master, failover);
    case 'update_config':
      return switchToPromoted(turn, master);
    case 'silent_hold':
      return holdAndCatchUp(turn, master, failover);
    case 'silent_promote':
      return awaitTarget(turn, master, failover);
    case 'silent_reassert':
      return reassertOriginal(turn, master, failover);
    default:
      return assertNever(failover.state);
  }
}

function enter(turn: Turn, failover: Failover, state: FailoverStateName): void {
  failover.state = state;
  failover.stateSinceMs = turn.now;
}

function abort(turn: Turn, master: Master, event: string): void {
  if (master.failover !== null) releaseAfterFailure(turn, master, master.failover, promotedReplica(master));
  if (master.failover?.state === 'wait_start') master.givenUpEpoch = master.failover.epoch;
  settleClient(turn, master, 'NOQUORUM not elected');
  announce(turn, 'warning', event, master);
  master.failover = null;
}

function waitForElection(turn: Turn, master: Master, failover: Failover): void {
  const { state, now } = turn;
  // Forced or not, our own vote is cast: nobody else shall get it in this epoch.
  const tally = countVotes(turn, master, failover.epoch);
  const won = failover.forced || (tally.kind === 'won' && tally.leader === state.myId && state.currentEpoch === failover.epoch);
  if (won) {
    announce(turn, 'warning', '+elected-leader', master);
    if (isSilentMatter(master, failover) && decideAsLeader(turn, master, failover)) return;
    if (state.simulate.crashAfterElection) return crash(turn, 'after election');
    enter(turn, failover, 'select_slave');
    announce(turn, 'warning', '+failover-state-select-slave', master);
    return;
  }
  if (tally.kind === 'split' && failover.purpose === 'failover') return retryAfterSplit(turn, master);
  // Nobody waits in vain for a planned one: whoever wanted it may ask again, and as long as it is open it takes votes from others.
  const isLost = failover.purpose !== 'failover' && (tally.kind === 'split' || state.currentEpoch > failover.epoch);
  if (isLost || now > master.failoverStartMs + Math.min(state.tunables.electionTimeoutMs, master.failoverTimeoutMs)) {
    abort(turn, master, '-failover-abort-not-elected');
    if (failover.purpose !== 'failover') master.failoverStartMs = 0 as Millis;
  }
}

/**
 * Divergence D43: a vote that nobody can win any more is given up at once, and repeated after a short random wait.
 * Stock waits for the election timeout and then for 2 x failover-timeout.
 */
/** Elections of a silent move, and any election while one is prepared, end in silent/moves.ts. */
function isSilentMatter(master: Master, { purpose }: Failover): boolean {
  return master.silent !== null || (purpose !== 'failover' && purpose !== 'coordinated');
}

function retryAfterSplit(turn: Turn, master: Master): void {
  abort(turn, master, '-failover-abort-not-elected');
  master.failoverStartMs = 0 as Millis;
  const spreadMs = LIMITS.splitVoteRetryMs * (master.peers.size + 1);
  master.candidacy = planCandidacy(turn, master, LIMITS.splitVoteRetryMs + nextBelow(turn.state.prng, spreadMs));
}

function choosePromoted(turn: Turn, master: Master, failover: Failover): void {
  if (awaitsReports(turn.state, master, failover, turn.now)) return;
  const chosen = wantedTarget(turn, master, failover) ?? selectReplica(turn.state, master, turn.now) ?? selectDespiteAge(turn, master);
  settleClient(turn, master, chosen === null ? 'NOGOODSLAVE No suitable replica to promote' : null);
  if (chosen === null) {
    for (const replica of master.replicas.values()) {
      const reason = whyNotEligible(turn.state, master, replica, turn.now) ?? 'unknown';
      log(turn, 'warning', `Replica ${replica.key} of ${master.name} is not promoted: ${reason}`);
    }
    abort(turn, master, '-failover-abort-no-good-slave');
    const retryMs = retryWithWaiverMs(turn, master);
    if (retryMs !== null) master.failoverStartMs = Math.max(1, retryMs - 2 * master.failoverTimeoutMs) as Millis;
    return;
  }
  announce(turn, 'warning', '+selected-slave', chosen);
  failover.promoted = chosen.key;
  enter(turn, failover, 'send_slaveof_noone');
  announce(turn, 'notice', '+failover-state-send-slaveof-noone', chosen);
}

/** The replica that a coordinated failover was asked for, if it still may be promoted. */
function wantedTarget(turn: Turn, master: Master, { target }: Failover): Replica | undefined {
  if (target === null) return undefined;
  const replica = [...master.replicas.values()].find((each) => sameNode(each.address, target));
  return replica !== undefined && whyNotEligible(turn.state, master, replica, turn.now) === null ? replica : undefined;
}

/** Writes are held first; one who asked for COORDINATED wants nothing else, the plain command goes on without. */
function canHold(master: Master, failover: Failover): boolean {
  const promoted = promotedReplica(master);
  if (!failover.coordinated || promoted === undefined || isDisconnected(promoted)) return false;
  return failover.purpose === 'coordinated' || whyNotCoordinated(master) === null;
}

function promote(turn: Turn, master: Master, failover: Failover): void {
  const promoted = must(promotedReplica(master), 'a failover in send_slaveof_noone has no promoted replica');
  const expired = turn.now > failover.stateSinceMs + master.failoverTimeoutMs;
  if (canHold(master, failover)) {
    const held = hold(turn, master, failover, promoted);
    if (held === 'gaveUp') return abort(turn, master, '-failover-abort-slave-timeout');
    if (held === 'holding') return;
  }
  if (isDisconnected(promoted) || !orderToLead(turn, failover, promoted)) {
    if (expired) abort(turn, master, '-failover-abort-slave-timeout');
    return;
  }
  if (failover.coordinated) liftPause(turn, promoted);
  announce(turn, 'notice', '+failover-state-wait-promotion', promoted);
  enter(turn, failover, 'wait_promotion');
  failover.lastPollMs = 0 as Millis;
}

/** Divergence D44: promotion is proved by asking ROLE at once and every 50 ms; stock waits for the next INFO. */
function awaitPromotion(turn: Turn, master: Master, failover: Failover): void {
  const holdsWrites = failover.lastPauseMs !== 0;
  const patienceMs = holdsWrites ? Math.min(maxPauseMs(master), master.failoverTimeoutMs) : master.failoverTimeoutMs;
  if (turn.now > failover.stateSinceMs + patienceMs) return abort(turn, master, '-failover-abort-slave-timeout');
  const promoted = promotedReplica(master);
  if (promoted === undefined || turn.now < failover.lastPollMs + LIMITS.promotionPollMs) return;
  failover.lastPollMs = turn.now;
  repeatLostOrder(turn, failover, promoted);
  send(turn, promoted, [commandName(turn.state, promoted, 'ROLE')], { kind: 'role', instance: refOf(promoted) });
}

/** ROLE is refused (an ACL of stock's documentation doesn't list it): INFO tells the same, a little later. */
export function applyRoleRefusal(turn: Turn, replica: Replica): void {
  requestInfo(turn, replica);
}

/** Whether this report is the proof that the failover of `master` waits for. */
export function isAwaitedPromotion(master: Master, replica: Replica): boolean {
  return master.failover?.state === 'wait_promotion' && master.failover.promoted === replica.key;
}

/** The promoted replica says it is a master: from here on there is a new configuration (3.6, promotion observed). */
export function observePromotion(turn: Turn, master: Master, promoted: Replica): void {
  const failover = must(master.failover, 'a promotion was observed without a failover');
  assert(failover.epoch > master.configEpoch, 'a failover ended under an epoch that its master had passed');
  // With a silent window before it, every other node owes a full resync: the plain reconfiguration would not be enough.
  if (master.silent !== null) return concludeMove(turn, master, failover, promoted.address, 'another node was promoted');
  master.configEpoch = failover.epoch;
  enter(turn, failover, 'reconf_slaves');
  master.published.role = 'leader';
  master.published.previous = master.address;
  master.published.leaderId = turn.state.myId;
  master.published.previousRunId = master.runId;
  master.published.previousReplicationId = replicationIdOf(master.infoText);
  master.published.sinceMs = turn.now;
  master.published.phase = 'failover';
  master.published.confirmed = true;
  persist(turn);
  announce(turn, 'warning', '+promoted-slave', promoted);
  if (turn.state.simulate.crashAfterPromotion) return crash(turn, 'after promotion');
  announce(turn, 'warning', '+failover-state-reconf-slaves', master);
  forceHello(turn, master);
}

function crash(turn: Turn, when: string): void {
  log(turn, 'warning', `Simulated crash ${when} as asked for by SENTINEL SIMULATE-FAILURE`);
  turn.effects.push({ kind: 'exit', code: 99 });
}

function reconfigurationDueMs(state: SentinelState, master: Master, failover: Failover): Millis {
  let due = failover.stateSinceMs + master.failoverTimeoutMs + 1;
  if (owesDemotion(failover)) due = Math.min(due, demotionDueMs(master, failover));
  for (const replica of master.replicas.values()) {
    if (replica.reconf === 'sent') due = Math.min(due, replica.reconfSentMs + state.tunables.replicaReconfTimeoutMs + 1);
  }
  return due as Millis;
}

/**
 * Sends the others to the promoted one, parallel-syncs at a time.
 *
 * Divergence D96: only who has just said that it is a replica. Stock sends on every connection: a leader that was cut off with the one it
 * promoted makes the master that the others have elected meanwhile a replica.
 */
function reconfigureReplicas(turn: Turn, master: Master, failover: Failover): void {
  const promoted = promotedReplica(master);
  if (promoted === undefined) return;
  demoteOriginal(turn, master, failover, promoted);
  // Clients wait for the original alone.
  if (owesDemotion(failover)) return;
  const others = [...master.replicas.values()].filter((replica) => replica !== promoted && !isForeign(master, replica));

  for (const replica of others) {
    if (replica.reconf !== 'sent' || turn.now <= replica.reconfSentMs + turn.state.tunables.replicaReconfTimeoutMs) continue;
    announce(turn, 'notice', '-slave-reconf-sent-timeout', replica);
    replica.reconf = 'done';
  }
  let inProgress = others.filter((replica) => replica.reconf === 'sent' || replica.reconf === 'inprog').length;
  for (const replica of others) {
    if (inProgress >= master.parallelSyncs) break;
    if (replica.reconf !== 'none' || !saysReplica(replica, turn.now) || !sendReplicaOf(turn, replica, promoted.address)) continue;
    replica.reconf = 'sent';
    replica.reconfSentMs = turn.now;
    announce(turn, 'notice', '+slave-reconf-sent', replica);
    inProgress++;
  }
  detectEnd(turn, master, failover, promoted, others);
}

/**
 * All reachable replicas follow, or the time is up. Nobody waits for one that says it is a master.
 *
 * Divergence D45: a promoted replica that goes down here ends the failover, so that the next one can begin; stock hangs in it for ever.
 */
function detectEnd(turn: Turn, master: Master, failover: Failover, promoted: Replica, others: readonly Replica[]): void {
  const pending = others.some((replica) => replica.reconf !== 'done' && replica.sdownSinceMs === null && !saysMaster(replica, turn.now));
  const expired = turn.now > failover.stateSinceMs + master.failoverTimeoutMs;
  if (pending && !expired && promoted.sdownSinceMs === null) return;

  if (expired && pending) announce(turn, 'warning', '+failover-end-for-timeout', master);
  announce(turn, 'warning', '+failover-end', master);
  enter(turn, failover, 'update_config');
  if (!expired) return;
  for (const replica of others) {
    if (replica.reconf === 'done' || replica.reconf === 'sent' || !saysReplica(replica, turn.now)) continue;
    if (!sendReplicaOf(turn, replica, promoted.address)) continue;
    announce(turn, 'notice', '+slave-reconf-sent-be', replica);
    replica.reconf = 'sent';
  }
}
