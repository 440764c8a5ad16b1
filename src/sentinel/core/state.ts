/**
 * The whole knowledge of one sentinel: masters, their replicas and peers, links, votes, epochs.
 *
 * One record per instance, as in sentinel.c's sentinelRedisInstance, cut into three types with what they share. Everything
 * here is plain data owned by `step`; the rest of the program gets read-only views.
 *
 * Invariants (checked by invariants.ts and the simulator):
 *  I1 one configuration per (master, configEpoch);
 *  I2 configEpoch, currentEpoch and vote epochs never fall, also across restarts;
 *  I3 at most one leader per (master, epoch);
 *  I4 one vote per master and epoch, and it survives a restart;
 *  I5 only nodes of a master ever get REPLICAOF for it.
 */
import type { Millis } from '../../time.js';
import type { Prng } from '../../prng.js';
import type { Tunables } from './limits.js';
import type { ServerIdentity } from '../wire/identity.js';
import type { Caution } from './caution/caution.js';

/** 40 hexadecimal digits as a rule; peers may send anything. */
export type RunId = string;
/** A configuration or election epoch, an integer that only grows. */
export type Epoch = number;
/** One attempt to connect; never reused, so that a late answer of an old connection is recognised. */
export type ConnectionId = number;

/** Where an instance is: the host as it was given, the IP it stands for ('' while unresolved). */
export interface NodeAddress {
  readonly host: string;
  readonly ip: string;
  readonly port: number;
}

export interface Connection {
  readonly id: ConnectionId;
  readonly sinceMs: Millis;
  /** This end's IP once TCP is up; goes into hellos. */
  localIp: string | null;
}

/** Connections to one process and what they tell of its health. Sentinel peers share one link over all masters. */
export interface Link {
  /** Users of the link: 1, or the number of masters under which the same peer is known. */
  readonly owners: InstanceRef[];
  command: Connection | null;
  /** Masters and replicas only. */
  pubsub: Connection | null;
  /** Commands sent and not answered on the command connection. */
  pending: number;
  /** How many of them were asked on behalf of a record that is gone (switch-master.ts): the next so many replies are nobody's. */
  outdated: number;
  lastAvailableMs: Millis;
  /** When the oldest unanswered PING was sent; null when an acceptable answer came. */
  actPingMs: Millis | null;
  lastPingMs: Millis;
  lastPongMs: Millis;
  pubsubActivityMs: Millis;
  /** The last attempt to connect failed. */
  unreachable: boolean;
  /** Last attempts to connect. */
  lastCommandTryMs: Millis;
  lastPubsubTryMs: Millis;
  /** Peers: whether it knows SILENT-FAILOVER; null = not asked yet, or no clear answer. */
  silentAware: boolean | null;
}

export type InstanceRef =
  | { readonly kind: 'master'; readonly master: string }
  | { readonly kind: 'replica'; readonly master: string; readonly key: string }
  | { readonly kind: 'sentinel'; readonly master: string; readonly runId: RunId };

interface InstanceBase {
  address: NodeAddress;
  runId: RunId;
  link: Link;
  downAfterMs: number;
  /** Since when this sentinel alone takes the instance for dead; null = it does not. */
  sdownSinceMs: Millis | null;
  /** Start of the last SDOWN, kept after it ended ("no down for X" counts from here; null = never, or a switch cleared it). */
  lastSdownMs: Millis | null;
  /** Last hello that the instance took from us, and the last one tried. */
  lastPublishMs: Millis;
  lastPublishSentMs: Millis;
  /** SCRIPT KILL was sent in this SDOWN. */
  scriptKillSent: boolean;
}

/** What INFO and ROLE said, for masters and replicas. */
export interface DataNode extends InstanceBase {
  /** When INFO was last read; null = never. */
  infoRefreshMs: Millis | null;
  /** When that INFO was asked for: what it says was true then or later. */
  infoAskedMs: Millis;
  infoSentMs: Millis;
  infoText: string | null;
  /** null: INFO without a role line. */
  roleReported: 'master' | 'replica' | null;
  roleReportedMs: Millis;
  replicaConfChangeMs: Millis;
  rebootSinceMs: Millis | null;
  /** What the node says whom it follows (role replica). */
  masterHost: string | null;
  masterPort: number;
  masterLinkUp: boolean;
  masterLinkDownMs: number;
  /** Facts for planned moves; null until an INFO said so. */
  masterReplOffset: number | null;
  syncFull: number | null;
  readOnly: boolean | null;
  syncInProgress: boolean;
}

export type ReconfStage = 'none' | 'sent' | 'inprog' | 'done';

export interface Replica extends DataNode {
  readonly kind: 'replica';
  /** `host:port` as shown: the table key and the name in events. */
  readonly key: string;
  readonly master: string;
  priority: number;
  replOffset: number;
  announced: boolean;
  reconf: ReconfStage;
  reconfSentMs: Millis;
  /** It was the master, and may be held by CLIENT PAUSE until then unless it says that it follows: what waits behind a PUBLISH would wait, too. */
  heldUntilMs: Millis;
}

export interface Peer extends InstanceBase {
  readonly kind: 'sentinel';
  readonly master: string;
  lastHelloMs: Millis;
  /** Its last answer to "is the master down?". */
  masterDown: boolean;
  lastMasterDownReplyMs: Millis;
  lastAskMs: Millis;
  /** Whom it last said it votes for, and in which epoch. */
  leader: RunId | null;
  leaderEpoch: Epoch;
  /** The highest configEpoch of this master that it has named in a hello. */
  heardConfigEpoch: Epoch;
  /** Its last hello, where that carried a silent state. */
  silentHeard: { readonly doneEpoch: Epoch; readonly target: NodeAddress } | null;
  /** When a stock hello of it was last answered with ours. */
  lastAnswerMs: Millis;
  /** Its last answer about the target of a silent failover, and when. */
  targetDown: boolean;
  /** The done-epoch for which this peer has told us whether the window is intact. */
  windowToldEpoch: Epoch;
  lastWindowAskMs: Millis;
  /** When it was last asked which debts it has paid. */
  lastDebtAskMs: Millis;
  lastTargetAskMs: Millis;
  lastTargetReplyMs: Millis;
}

/** What an election is held for; only a failover needs ODOWN. */
export type ElectionPurpose = 'failover' | 'coordinated' | 'prepare' | 'done' | 'abort';

export type FailoverStateName =
  | 'wait_start'
  | 'select_slave'
  | 'send_slaveof_noone'
  | 'wait_promotion'
  | 'reconf_slaves'
  | 'update_config'
  | SilentMoveState;

/** Steps of a planned move that stock doesn't know (silent/moves.ts). */
export type SilentMoveState = 'silent_hold' | 'silent_promote' | 'silent_reassert';

export interface Failover {
  state: FailoverStateName;
  stateSinceMs: Millis;
  /** Won or lost under this epoch. */
  readonly epoch: Epoch;
  /** SENTINEL FAILOVER: no election. */
  readonly forced: boolean;
  /** After the election of a planned move the leader decides by what it sees; this is what was asked for. */
  readonly purpose: ElectionPurpose;
  /** The target that a prepare is held for. */
  readonly target: NodeAddress | null;
  /** Who waits for a reply to the command that began this. */
  client: number | null;
  /** Planned moves: when CLIENT PAUSE was last sent, whether it was taken, and the original's offset read under it. */
  lastPauseMs: Millis;
  pauseTaken: boolean;
  /** Until then the original is surely held, by pauses that followed each other without a gap; and how long the last one was. */
  heldUntilMs: Millis;
  lastPauseLengthMs: number;
  pauseRefused: string | null;
  heldOffset: number | null;
  /** Writes on the original are held until the replica has them (coordinated.ts). */
  coordinated: boolean;
  /** Key of the replica being promoted, from select_slave on. */
  promoted: string | null;
  /** When ROLE of the promoted replica was last asked. */
  lastPollMs: Millis;
  /** The connection that the order to lead went out on. */
  orderedOn: ConnectionId | null;
  /** The original was told whom to follow, or can't be (coordinated.ts). */
  originalTold: boolean;
}

export interface Master extends DataNode {
  readonly kind: 'master';
  readonly name: string;
  quorum: number;
  parallelSyncs: number;
  failoverTimeoutMs: number;
  masterRebootDownAfterMs: number;
  authUser: string | null;
  authPass: string | null;
  notificationScript: string | null;
  clientReconfigScript: string | null;
  /** Upper-case original name → name on the server. */
  readonly renamedCommands: Map<string, string>;
  readonly replicas: Map<string, Replica>;
  readonly peers: Map<RunId, Peer>;
  configEpoch: Epoch;
  /** The last vote given for this master; the leader is forgotten at a restart, the epoch is not. */
  leader: RunId | null;
  leaderEpoch: Epoch;
  odownSinceMs: Millis | null;
  lastOdownMs: Millis | null;
  failover: Failover | null;
  /** Start of the last failover, own or voted for; 0 = none. The next automatic one waits 2 x failoverTimeoutMs from here. */
  failoverStartMs: Millis;
  /** The failoverStartMs for which the delay was already logged. */
  failoverDelayLoggedMs: Millis;
  /** The next candidacy, once ODOWN or a split vote calls for one: its random instant, and the epoch reserved for it. */
  candidacy: { readonly atMs: Millis; readonly epoch: Epoch } | null;
  /** A planned move of which clients know, or are about to (silent/). */
  silent: SilentState | null;
  /** The configEpoch that ended the last silent state; candidates that haven't named it get no vote. */
  silentEndedEpoch: Epoch;
  /** The configuration by which the last window was done, if copies are owed for it; 0 = none since the start. */
  windowDoneEpoch: Epoch;
  /** When the last vote was given to somebody else. */
  lastVoteMs: Millis;
  /** Votes for others that nothing had answered when the next one was given. */
  readonly olderVotes: Map<RunId, { readonly epoch: Epoch; readonly castMs: Millis }>;
  /** The epoch of our latest election that was given up, lost or before anything was done under it; 0 = none since the start. */
  givenUpEpoch: Epoch;
  /** Nodes that must be resynchronised in full, by replica key. */
  readonly debts: Map<string, ResyncDebt>;
  /** Debts that this sentinel has paid and seen paid since its start: replica key → `epoch` of the debt. Peers ask for it. */
  readonly paid: Map<string, Epoch>;
  /** A SILENT-FAILOVER prepare that waits for fresh reports of original and target, and to learn whether every peer can follow. */
  prepareRequest: { readonly client: number; readonly target: NodeAddress; readonly sinceMs: Millis; targetAskedMs: Millis | null } | null;
  /** What makes us act with more care than stock (caution/). */
  readonly caution: Caution;
  /** When the set of known peers last changed. */
  peersChangedMs: Millis;
  /** When the next pass over this master is due; derived from the rest (pass.ts). */
  nextPassMs: Millis;
  /** Facts behind the Route (route/project.ts). */
  readonly published: PublishedView;
  /** Settings of ours in the state file that this version keeps without using: key → rest of the line. */
  readonly extraSettings: Map<string, string>;
}

/**
 * The silent state of one master: clients are sent (when effective) to the target, while the original still is the master.
 *
 * Topology never pretends: `master.address` is the original, the target a replica, until the real switch.
 */
export interface SilentState {
  /** Key of the target among the replicas. */
  readonly target: string;
  readonly targetAddress: NodeAddress;
  /** The target's run id at prepare; a target with another one has restarted. */
  targetRunId: RunId;
  /** D: the configuration that ends the state has this epoch or a higher one. */
  doneEpoch: Epoch;
  /** Whether the prepare was won here. */
  initiator: boolean;
  /** A majority is ready: clients go to the target. */
  effective: boolean;
  sinceMs: Millis;
  /** When D last rose, or the state began. */
  renewedMs: Millis;
  /** Renewals that this sentinel began since then without everybody becoming ready; each makes the next one wait longer. */
  renewals: number;
  /** Last reminder that the state waits for its end. */
  lastWarnedMs: Millis;
  /** No further election of our own accord before this. */
  nextTryMs: Millis;
  /** Baseline of the taint check. */
  originalRunId: RunId;
  originalSyncFull: number | null;
  /** When this sentinel took the baseline; null = not yet, or by the process before. */
  baselineMs: Millis | null;
  /** Whether the target has reported since the baseline. */
  targetSeen: boolean;
  /** We began it, and both reports came at once: whatever happened to the window since, we have seen ourselves. */
  sawAll: boolean;
  /** Why the target can't be trusted to hold the window's writes; null = it can. */
  taint: string | null;
  /** REPLICAOF NO ONE may have been sent to the target. */
  donePending: boolean;
  /** Keys of replicas that were seen below the target since the state began: they may have copied it. */
  readonly below: Set<string>;
  /** Since when the target says that it is a master. */
  promotedSinceMs: Millis | null;
  /** The client of the prepare, until it is effective or time is up. */
  client: number | null;
  /** When that client began to wait. */
  clientSinceMs: Millis;
}

/** One node's duty to take a full copy from the master (silent-failover.md, 4.5). */
export interface ResyncDebt {
  /** The configuration that ended the window, as this sentinel saw it; 0 = not known any more. */
  readonly epoch: Epoch;
  /** The process that the node must copy ('' = not known). */
  creditor: RunId;
  /** When the forced resync was last sent by us, and when the node said that it was executed (0 = not, or not yet). */
  sentMs: Millis;
  executedMs: Millis;
  /** When it was last seen to follow with its link not up (0 = never): it was copying then. */
  awayMs: Millis;
  /** When another node's debt was last seen paid (0 = never): somebody is at work. */
  othersPaidMs: Millis;
  /** When we last told it to follow the new master until its turn comes (0 = never). */
  movedMs: Millis;
  sinceMs: Millis;
  /** It was the master before: it goes first, and at once. */
  readonly formerMaster: boolean;
  /** Listed by the new master and not known before: it may have copied all by itself. */
  readonly foundLate: boolean;
  /** The former target of an abort: made read-only again in the same transaction. */
  readonly readOnly: boolean;
}

/** What the Route needs beyond topology: provenance of the current primary. */
export interface PublishedView {
  /** The file's word was confirmed since the start: by a quorum of peers' hellos, or, alone in the group, by the master's INFO. */
  confirmed: boolean;
  /** Peers whose hello named the same master and configEpoch since the start. */
  readonly confirmedBy: Set<RunId>;
  /** False while no majority of the group answers for `isolationAfterMs`; in TILT until a majority has sent its hello since. */
  trusted: boolean;
  role: 'leader' | 'observer';
  /** The primary before this one; null until a change was seen. */
  previous: NodeAddress | null;
  /** Which sentinel made this configuration, as far as we know; it pays the debts. */
  leaderId: RunId | null;
  /** Run id of that node as it was when it was the primary. */
  previousRunId: RunId;
  /** The replication id that it reported then; null = not known. */
  previousReplicationId: string | null;
  sinceMs: Millis;
  /** `failover` from the promotion until every living replica follows the new master. */
  phase: 'steady' | 'failover' | 'aborted';
}

export type Instance = Master | Replica | Peer;

/** The process-wide settings of sentinel.conf and SENTINEL CONFIG. */
export interface Settings {
  port: number;
  tlsPort: number;
  tlsReplication: boolean;
  announceIp: string | null;
  announcePort: number;
  resolveHostnames: boolean;
  announceHostnames: boolean;
  sentinelUser: string | null;
  sentinelPass: string | null;
  /** Own requirepass: what peers are authenticated with when sentinelPass is unset. */
  requirePass: string | null;
  denyScriptsReconfig: boolean;
  /** Silence of the majority that makes a Route untrusted; null = the master's down-after. */
  isolationAfterMs: number | null;
  logLevel: LogLevelName;
  /** As which server replies are worded. */
  identity: ServerIdentity;
}

export type LogLevelName = 'debug' | 'verbose' | 'notice' | 'warning' | 'nothing';

export interface SentinelState {
  readonly myId: RunId;
  currentEpoch: Epoch;
  readonly masters: Map<string, Master>;
  readonly settings: Settings;
  readonly tunables: Tunables;
  tiltSinceMs: Millis | null;
  /** The previous reading of the clock. */
  previousMs: Millis;
  readonly prng: Prng;
  /** Of this process: silent failovers that became effective, and how they ended. */
  readonly silentCounters: { prepare: number; done: number; abort: number };
  /** The file had no id of ours: a lost disk, or a new sentinel. */
  readonly bornMs: Millis | null;
  readonly simulate: { crashAfterElection: boolean; crashAfterPromotion: boolean };
  /** Which link and which end each living connection is. */
  readonly connections: Map<ConnectionId, { readonly link: Link; readonly channel: ChannelKind }>;
  nextConnectionId: ConnectionId;
  /** Last known IP of each host name; kept when a later look-up fails. */
  readonly hostIps: Map<string, string>;
  /** Masters that the current step has to look at; after it, those it has looked at (or removed). Emptied by the next step. */
  readonly touched: Set<string>;
}

export type ChannelKind = 'command' | 'pubsub';

/** Whether the instance lacks a connection that it should have: the `disconnected` of SENTINEL MASTER. */
export function isDisconnected(instance: Readonly<Instance>): boolean {
  return instance.link.command === null || (instance.kind !== 'sentinel' && instance.link.pubsub === null);
}

/** The address other processes get to see: the host name when host names are announced, else the IP. */
export function announcedHost(settings: Readonly<Settings>, address: NodeAddress): string {
  return settings.announceHostnames ? address.host : address.ip;
}

export function refOf(instance: Readonly<Instance>): InstanceRef {
  switch (instance.kind) {
    case 'master':
      return { kind: 'master', master: instance.name };
    case 'replica':
      return { kind: 'replica', master: instance.master, key: instance.key };
    case 'sentinel':
      return { kind: 'sentinel', master: instance.master, runId: instance.runId };
  }
}

/** The record behind a reference, if it still exists. */
export function lookUp(state: Readonly<SentinelState>, ref: InstanceRef): Instance | undefined {
  const master = state.masters.get(ref.master);
  switch (ref.kind) {
    case 'master':
      return master;
    case 'replica':
      return master?.replicas.get(ref.key);
    case 'sentinel':
      return master?.peers.get(ref.runId);
  }
}

/** The replica being promoted, while a failover has one. */
export function promotedReplica(master: Readonly<Master>): Replica | undefined {
  const key = master.failover?.promoted ?? null;
  return key === null ? undefined : master.replicas.get(key);
}

/** The address this sentinel tells clients and peers: from promotion on the new one (sentinelGetCurrentMasterAddress). */
export function currentMasterAddress(master: Readonly<Master>): NodeAddress {
  const promoted = promotedReplica(master);
  const state = master.failover?.state;
  return promoted !== undefined && (state === 'reconf_slaves' || state === 'update_config') ? promoted.address : master.address;
}
