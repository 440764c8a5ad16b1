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
  lastAvailableMs: Millis;
  /** When the oldest unanswered PING was sent; null when an acceptable answer came. */
  actPingMs: Millis | null;
  lastPingMs: Millis;
  lastPongMs: Millis;
  pubsubActivityMs: Millis;
  lastReconnectMs: Millis;
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
}

export type FailoverStateName =
  | 'wait_start'
  | 'select_slave'
  | 'send_slaveof_noone'
  | 'wait_promotion'
  | 'reconf_slaves'
  | 'update_config';

export interface Failover {
  state: FailoverStateName;
  stateSinceMs: Millis;
  /** Won or lost under this epoch. */
  readonly epoch: Epoch;
  /** SENTINEL FAILOVER: no election. */
  readonly forced: boolean;
  /** Key of the replica being promoted, from select_slave on. */
  promoted: string | null;
  /** When ROLE of the promoted replica was last asked. */
  lastPollMs: Millis;
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
  /** When the next pass over this master is due; derived from the rest (pass.ts). */
  nextPassMs: Millis;
  /** Facts behind the Route (route/project.ts). */
  readonly published: PublishedView;
  /** Settings of ours in the state file that this version keeps without using: key → rest of the line. */
  readonly extraSettings: Map<string, string>;
}

/** What the Route needs beyond topology: provenance of the current primary. */
export interface PublishedView {
  /** The file's word was confirmed since the start: by a quorum of peers' hellos, or, alone in the group, by the master's INFO. */
  confirmed: boolean;
  /** Peers whose hello named the same master and configEpoch since the start. */
  readonly confirmedBy: Set<RunId>;
  /** False while no majority of the group answers for `isolationAfterMs`, or in TILT. */
  trusted: boolean;
  role: 'leader' | 'observer';
  /** The primary before this one; null until a change was seen. */
  previous: NodeAddress | null;
  sinceMs: Millis;
  /** `failover` from the promotion until every living replica follows the new master. */
  phase: 'steady' | 'failover';
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
