/**
 * How a silent state spreads, becomes effective and stays known: won by an election, echoed by hellos (section 3).
 *
 * The echo says "I know and keep to the rules"; it is not a vote. Clients are sent to the target only when a majority of all
 * known sentinels is ready, because every leader elected after that knows the target.
 */
import { addMs } from '../../../time.js';
import type { Millis } from '../../../time.js';
import { must } from '../../../assert.js';
import { error, OK } from '../../wire/resp-value.js';
import type { Hello, SilentHello } from '../../wire/hello.js';
import { startElection } from '../failover.js';
import { makeAddress, sameHost, sameNode } from '../hosts.js';
import { createReplica } from '../instance.js';
import { forceHello, NEVER, requestInfo, sayHello } from '../monitor.js';
import type { Epoch, Master, NodeAddress, Peer, Replica, SentinelState } from '../state.js';
import type { Turn } from '../turn.js';
import { announce, persist } from '../turn.js';
import { announceMove } from './ending.js';
import { isBehind, isReady, majorityOf, rankOf, readyCount, silentTarget } from './prepared.js';
import { bindingUntilMs, hasOlderUnansweredVote, hasUnansweredVote, isFreshlyBorn } from './votes.js';

/** One answer to a stock hello per peer and this time. */
const ANSWER_GAP_MS = 100;
/** Hello periods that a prepare may take to become effective before its client hears NOQUORUM. */
const EFFECTIVE_PERIODS = 3;
const MOST_DOUBLINGS = 5;

/** This sentinel won a prepare: the state begins, or goes on under a higher D. */
export function enterAsInitiator(turn: Turn, master: Master, target: NodeAddress, doneEpoch: Epoch, client: number | null): void {
  enter(turn, master, target, doneEpoch, true);
  const silent = must(master.silent, 'the silent state was entered');
  // A renewal has nobody of its own waiting; who waits since the prepare goes on waiting.
  if (client !== null) {
    silent.client = client;
    silent.clientSinceMs = turn.now;
  }
  judgeEffective(turn, master);
}

function enter(turn: Turn, master: Master, target: NodeAddress, doneEpoch: Epoch, initiator: boolean): void {
  const replica = replicaAt(master, target) ?? learnOf(turn, master, target);
  const { silent } = master;
  if (silent !== null && sameNode(silent.targetAddress, target)) {
    silent.doneEpoch = doneEpoch;
    silent.initiator = initiator;
    silent.renewedMs = turn.now;
  } else {
    if (silent !== null && silent.client !== null) {
      turn.effects.push({ kind: 'reply', client: silent.client, value: error('NOQUORUM another target was prepared') });
    }
    master.silent = {
      target: replica?.key ?? '',
      targetAddress: target,
      targetRunId: replica?.runId ?? '',
      doneEpoch,
      initiator,
      effective: false,
      sinceMs: turn.now,
      renewedMs: turn.now,
      renewals: 0,
      lastWarnedMs: turn.now,
      nextTryMs: 0 as Millis,
      originalRunId: master.runId,
      originalSyncFull: null,
      baselineMs: null,
      targetSeen: false,
      sawAll: false,
      taint: null,
      donePending: false,
      below: new Set(),
      promotedSinceMs: null,
      client: null,
      clientSinceMs: turn.now,
    };
  }
  // The baseline of the taint check: what the last INFO said may be from before a copy that is over by now.
  if (master.silent?.originalSyncFull === null) requestInfo(turn, master);
  // The votes of the prepare must not hold a failover back that the group may need the next moment.
  master.failoverStartMs = 0 as Millis;
  persist(turn);
  forceHello(turn, master);
}

/**
 * A peer of the same configuration names a replica that we do not know: we lost our disk, or it follows another replica by now, which no
 * INFO of the master shows. Without us it might have no majority to end the state.
 */
function learnOf(turn: Turn, master: Master, target: NodeAddress): Replica | undefined {
  const replica = createReplica(turn.state, master, target, turn.now) ?? undefined;
  if (replica !== undefined) announce(turn, 'notice', '+slave', replica);
  return replica;
}

export function replicaAt(master: Master, address: NodeAddress): Replica | undefined {
  return [...master.replicas.values()].find((replica) => sameNode(replica.address, address));
}

/** A hello of a peer, after its first eight fields were applied like any other's. */
export function considerSilentHello(turn: Turn, master: Master, peer: Peer, hello: Hello): void {
  peer.heardConfigEpoch = Math.max(peer.heardConfigEpoch, hello.configEpoch);
  if (hello.silent === null) {
    const wasReady = peer.silentHeard !== null;
    peer.silentHeard = null;
    if (master.silent !== null) answerStockHello(turn, master, peer, hello, wasReady);
    return;
  }
  peer.link.silentAware = true;
  const target = makeAddress(turn, hello.silent.target.host, hello.silent.target.port);
  if (target === null) return;
  peer.silentHeard = { doneEpoch: hello.silent.doneEpoch, target };
  if (mayEnter(turn, master, peer, hello, hello.silent, target)) {
    enter(turn, master, target, hello.silent.doneEpoch, false);
  }
  judgeEffective(turn, master);
}

/** All the conditions under which a state is believed from a hello (section 3). */
function mayEnter(turn: Turn, master: Master, peer: Peer, hello: Hello, heard: SilentHello, target: NodeAddress): boolean {
  const { silent } = master;
  const { state, now } = turn;
  if (hello.configEpoch !== master.configEpoch) return false;
  if (hello.master.port !== master.address.port || !sameHost(state, master.address, hello.master.host)) return false;
  if (heard.doneEpoch <= master.configEpoch) return false;
  if (silent !== null && heard.doneEpoch <= silent.doneEpoch) return false;
  if (silent !== null && silent.effective && !sameNode(silent.targetAddress, target)) return false;
  if (sameNode(target, master.address) || isFreshlyBorn(state, master, now)) return false;
  if (master.failover !== null && master.failover.purpose !== 'prepare') return false;
  if (hasUnansweredVote(state, master, peer.runId, now) && master.leaderEpoch !== heard.doneEpoch - 1) return false;
  if (hasOlderUnansweredVote(master, peer.runId, heard.doneEpoch, now)) return false;
  return heard.doneEpoch > master.leaderEpoch || heardByMajority(master, heard.doneEpoch, target);
}

function heardByMajority(master: Master, doneEpoch: Epoch, target: NodeAddress): boolean {
  const holders = [...master.peers.values()].filter((peer) => {
    const heard = peer.silentHeard;
    return heard !== null && heard.doneEpoch === doneEpoch && sameNode(heard.target, target);
  });
  return holders.length >= majorityOf(master);
}

/** It has not heard yet (or forgot): told directly, at most every 100 ms. Answers carry 11 fields and are never answered. */
function answerStockHello(turn: Turn, master: Master, peer: Peer, hello: Hello, wasReady: boolean): void {
  const knowsOriginal = hello.master.port === master.address.port && sameHost(turn.state, master.address, hello.master.host);
  if (!knowsOriginal || hello.configEpoch > master.configEpoch || (peer.link.silentAware === false && !wasReady)) return;
  if (turn.now < peer.lastAnswerMs + ANSWER_GAP_MS) return;
  peer.lastAnswerMs = turn.now;
  sayHello(turn, peer);
}

/** Effective when a majority of all known sentinels is ready; from here on clients go to the target. */
export function judgeEffective(turn: Turn, master: Master): void {
  const { silent } = master;
  if (silent === null) return;
  if (!silent.effective && readyCount(master) >= majorityOf(master)) {
    silent.effective = true;
    turn.state.silentCounters.prepare++;
    master.published.previous = master.address;
    master.published.sinceMs = turn.now;
    master.published.role = silent.initiator ? 'leader' : 'observer';
    persist(turn);
    announceMove(turn, master, master.address, silent.targetAddress);
    const { ip, host, port } = silent.targetAddress;
    announce(turn, 'warning', '+silent-failover-prepare', master, `${ip || host} ${port}`);
    forceHello(turn, master);
  }
  if (silent.effective && silent.client !== null) reply(turn, master, null);
}

function reply(turn: Turn, master: Master, refusal: string | null): void {
  const { silent } = master;
  if (silent === null || silent.client === null) return;
  turn.effects.push({ kind: 'reply', client: silent.client, value: refusal === null ? OK : error(refusal) });
  silent.client = null;
}

export function effectiveDueMs(state: SentinelState, master: Master): Millis {
  const { silent } = master;
  if (silent === null) return NEVER;
  const clientMs = silent.client === null ? NEVER : addMs(silent.clientSinceMs, EFFECTIVE_PERIODS * state.tunables.publishPeriodMs);
  return Math.min(clientMs, renewalDueMs(state, master)) as Millis;
}

/** The client's patience, and the renewal of a reservation that not everybody has heard of. */
export function watchEffective(turn: Turn, master: Master): void {
  const { silent } = master;
  if (silent === null) return;
  judgeEffective(turn, master);
  if (silent.client !== null && turn.now >= silent.clientSinceMs + EFFECTIVE_PERIODS * turn.state.tunables.publishPeriodMs) {
    reply(turn, master, `NOQUORUM only ${readyCount(master)} of ${master.peers.size + 1} sentinels are ready`);
  }
  if (!isIncomplete(master)) silent.renewals = 0;
  if (turn.now < renewalDueMs(turn.state, master)) return;
  silent.renewedMs = turn.now;
  silent.renewals++;
  startElection(turn, master, { purpose: 'prepare', target: silent.targetAddress, client: null });
}

/**
 * By the initiator after 2 hello periods without everybody being ready, by the others a period per rank later. Each renewal makes
 * everybody unready again until it is heard: where hellos are slow the next one waits twice as long, or renewals would never end
 * and no done would ever find a ready majority. None while the vote of a done or abort binds us: it would only spend an epoch.
 */
function renewalDueMs(state: SentinelState, master: Master): Millis {
  const { silent } = master;
  if (silent === null || master.failover !== null || silentTarget(master) === undefined || master.odownSinceMs !== null) return NEVER;
  if (!isIncomplete(master) || !holdsHighest(master)) return NEVER;
  const periods = (silent.initiator ? 2 : 3 + rankOf(master, state.myId)) * 2 ** Math.min(silent.renewals, MOST_DOUBLINGS);
  return Math.max(addMs(silent.renewedMs, periods * state.tunables.publishPeriodMs), bindingUntilMs(master)) as Millis;
}

const isIncomplete = (master: Master): boolean =>
  master.silent?.effective !== true || [...master.peers.values()].some((peer) => isBehind(master, peer));

function holdsHighest(master: Master): boolean {
  const own = master.silent?.doneEpoch ?? 0;
  return [...master.peers.values()].every((peer) => peer.silentHeard === null || peer.silentHeard.doneEpoch <= own);
}

/** For `status` and refusals: how many of the group are ready. */
export function readiness(master: Master): { ready: number; known: number } {
  const ready = 1 + [...master.peers.values()].filter((peer) => isReady(master, peer)).length;
  return { ready, known: master.peers.size + 1 };
}
