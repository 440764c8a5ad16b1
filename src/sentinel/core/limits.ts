/**
 * The numbers that drive a sentinel: those an operator may change at run time (SENTINEL DEBUG) and the fixed ones.
 *
 * Mirrors the constants at the head of sentinel.c. All durations are milliseconds. The tunables are one set per process and
 * never persisted.
 */

/** What SENTINEL DEBUG shows and sets. */
export interface Tunables {
  infoPeriodMs: number;
  pingPeriodMs: number;
  askPeriodMs: number;
  publishPeriodMs: number;
  defaultDownAfterMs: number;
  defaultFailoverTimeoutMs: number;
  tiltTriggerMs: number;
  tiltPeriodMs: number;
  replicaReconfTimeoutMs: number;
  minLinkReconnectPeriodMs: number;
  electionTimeoutMs: number;
  scriptMaxRuntimeMs: number;
  scriptRetryDelayMs: number;
}

export function defaultTunables(): Tunables {
  return {
    infoPeriodMs: 10_000,
    pingPeriodMs: 1_000,
    askPeriodMs: 1_000,
    publishPeriodMs: 2_000,
    defaultDownAfterMs: 30_000,
    defaultFailoverTimeoutMs: 180_000,
    tiltTriggerMs: 2_000,
    tiltPeriodMs: 30_000,
    replicaReconfTimeoutMs: 10_000,
    minLinkReconnectPeriodMs: 15_000,
    electionTimeoutMs: 10_000,
    scriptMaxRuntimeMs: 60_000,
    scriptRetryDelayMs: 30_000,
  };
}

export const LIMITS = {
  defaultPort: 26_379,
  helloChannel: '__sentinel__:hello',
  /** Unanswered commands per link and user of the link before INFO, PING and PUBLISH pause. */
  maxPendingCommands: 100,
  /** failover_start_time is moved into the future by a random 0..999. */
  startDesyncMs: 1_000,
  /** INFO period of a replica whose master is failing over, or whose link to the master is down. */
  fastInfoPeriodMs: 1_000,
  defaultParallelSyncs: 1,
  defaultReplicaPriority: 100,
  /** A candidate waits a random part of this before it asks for votes, so that agents that saw one death at one moment don't split the vote. */
  candidacyDesyncMs: 100,
  /** After a vote that nobody can win any more, the next candidacy follows after this plus a random part of it. */
  splitVoteRetryMs: 60,
  /** While a peer does not agree yet, a fresh SDOWN is put to it again this often during the first ask period. */
  eagerAskMs: 100,
  /** Promotion is proved by asking ROLE this often. */
  promotionPollMs: 50,
  /** Epochs beyond this are refused: nobody gets there by elections, and counting on from it must stay exact (2^53 is the end). */
  maxEpoch: 2 ** 52,
  /** A connection that was cut is opened again after this: who cuts all of a node's cuts them twice within some 50 ms. */
  reconnectDelayMs: 100,
  /** So long behind a switch its leader is still at work on the nodes and opens their connections again at once. */
  afterSwitchMs: 1_000,
  /** So long behind a switch its leader alone deals with the master of before. */
  leaderActsMs: 50,
  /** The longest CLIENT PAUSE that any sentinel sends. */
  longestHoldMs: 30_000,
  /** The core wants to be woken at least this often, so that a jump of the clock is seen (TILT). */
  maxSleepMs: 500,
} as const;
