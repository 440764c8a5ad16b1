/**
 * Birth and connections of instances: records with stock's initial values, links, commands on them.
 *
 * Mirrors createSentinelRedisInstance, createInstanceLink, sentinelTryConnectionSharing, instanceLinkCloseConnection.
 */
import { must } from '../../assert.js';
import type { Millis } from '../../time.js';
import { formatAddress } from '../wire/address.js';
import { newCaution } from './caution/caution.js';
import type { ReplyTag } from './input.js';
import { LIMITS } from './limits.js';
import type { ChannelKind, Connection, Instance, InstanceRef, Link, Master, NodeAddress, Peer, PublishedView, Replica, RunId } from './state.js';
import { announcedHost, lookUp, refOf } from './state.js';
import type { SentinelState } from './state.js';
import type { Turn } from './turn.js';
import { masterOf } from './turn.js';

const NEVER_CONNECTED = 0 as Millis;

function createLink(owner: InstanceRef, now: Millis): Link {
  return {
    owners: [owner],
    command: null,
    pubsub: null,
    pending: 0,
    outdated: 0,
    lastAvailableMs: now,
    actPingMs: now,
    lastPingMs: NEVER_CONNECTED,
    lastPongMs: now,
    pubsubActivityMs: now,
    unreachable: false,
    lastCommandTryMs: NEVER_CONNECTED,
    lastPubsubTryMs: NEVER_CONNECTED,
    silentAware: null,
  };
}

/** What it takes to monitor a master; everything else starts at stock's defaults. */
export interface MasterSeed {
  readonly name: string;
  readonly address: NodeAddress;
  readonly quorum: number;
}

/**
 * Adds a master to the state. The caller has checked that the name is free.
 *
 * Like the other records it is written out whole. The passes read little else, and of an object that is spread into another, engines
 * lose the shape: reading one of its fields then means looking up a name in a table.
 */
export function createMaster(state: SentinelState, seed: MasterSeed, now: Millis): Master {
  const { tunables } = state;
  const master: Master = {
    kind: 'master',
    name: seed.name,
    address: seed.address,
    runId: '',
    link: createLink({ kind: 'master', master: seed.name }, now),
    downAfterMs: tunables.defaultDownAfterMs,
    sdownSinceMs: null,
    lastSdownMs: null,
    lastPublishMs: now,
    lastPublishSentMs: NEVER_CONNECTED,
    scriptKillSent: false,
    infoRefreshMs: null,
    infoAskedMs: NEVER_CONNECTED,
    infoSentMs: NEVER_CONNECTED,
    infoText: null,
    roleReported: 'master',
    roleReportedMs: now,
    replicaConfChangeMs: now,
    rebootSinceMs: null,
    masterHost: null,
    masterPort: 0,
    masterLinkUp: false,
    masterLinkDownMs: 0,
    masterReplOffset: null,
    syncFull: null,
    readOnly: null,
    syncInProgress: false,
    quorum: seed.quorum,
    parallelSyncs: LIMITS.defaultParallelSyncs,
    failoverTimeoutMs: tunables.defaultFailoverTimeoutMs,
    masterRebootDownAfterMs: 0,
    authUser: null,
    authPass: null,
    notificationScript: null,
    clientReconfigScript: null,
    renamedCommands: new Map(),
    replicas: new Map(),
    peers: new Map(),
    configEpoch: 0,
    leader: null,
    leaderEpoch: 0,
    odownSinceMs: null,
    lastOdownMs: null,
    failover: null,
    failoverStartMs: 0 as Millis,
    failoverDelayLoggedMs: 0 as Millis,
    candidacy: null,
    silent: null,
    silentEndedEpoch: 0,
    windowDoneEpoch: 0,
    lastVoteMs: 0 as Millis,
    olderVotes: new Map(),
    givenUpEpoch: 0,
    debts: new Map(),
    paid: new Map(),
    prepareRequest: null,
    caution: newCaution(),
    peersChangedMs: now,
    nextPassMs: now,
    published: newPublishedView(now),
    extraSettings: new Map(),
  };
  state.masters.set(master.name, master);
  state.touched.add(master.name);
  return master;
}

function newPublishedView(now: Millis): PublishedView {
  return {
    confirmed: false,
    confirmedBy: new Set(),
    trusted: true,
    role: 'observer',
    previous: null,
    leaderId: null,
    previousRunId: '',
    previousReplicationId: null,
    sinceMs: now,
    phase: 'steady',
  };
}

/** Adds a replica; null when that address is known already. */
export function createReplica(state: SentinelState, master: Master, address: NodeAddress, now: Millis): Replica | null {
  const key = formatAddress({ host: announcedHost(state.settings, address) || address.host, port: address.port });
  if (master.replicas.has(key)) return null;
  const replica: Replica = {
    kind: 'replica',
    key,
    master: master.name,
    address,
    runId: '',
    link: createLink({ kind: 'replica', master: master.name, key }, now),
    downAfterMs: master.downAfterMs,
    sdownSinceMs: null,
    lastSdownMs: null,
    lastPublishMs: now,
    lastPublishSentMs: NEVER_CONNECTED,
    scriptKillSent: false,
    infoRefreshMs: null,
    infoAskedMs: NEVER_CONNECTED,
    infoSentMs: NEVER_CONNECTED,
    infoText: null,
    roleReported: 'replica',
    roleReportedMs: now,
    replicaConfChangeMs: now,
    rebootSinceMs: null,
    masterHost: null,
    masterPort: 0,
    masterLinkUp: false,
    masterLinkDownMs: 0,
    masterReplOffset: null,
    syncFull: null,
    readOnly: null,
    syncInProgress: false,
    priority: LIMITS.defaultReplicaPriority,
    replOffset: 0,
    announced: true,
    reconf: 'none',
    reconfSentMs: now,
    heldUntilMs: 0 as Millis,
  };
  master.replicas.set(key, replica);
  return replica;
}

/** Adds a peer, sharing the link of the same peer under another master where there is one. The caller has checked the run id. */
export function createPeer(state: SentinelState, master: Master, runId: RunId, address: NodeAddress, now: Millis): Peer {
  const ref: InstanceRef = { kind: 'sentinel', master: master.name, runId };
  const peer: Peer = {
    kind: 'sentinel',
    master: master.name,
    address,
    runId,
    link: createLink(ref, now),
    downAfterMs: master.downAfterMs,
    sdownSinceMs: null,
    lastSdownMs: null,
    lastPublishMs: now,
    lastPublishSentMs: NEVER_CONNECTED,
    scriptKillSent: false,
    lastHelloMs: now,
    masterDown: false,
    lastMasterDownReplyMs: now,
    lastAskMs: NEVER_CONNECTED,
    leader: null,
    leaderEpoch: 0,
    heardConfigEpoch: 0,
    silentHeard: null,
    lastAnswerMs: NEVER_CONNECTED,
    windowToldEpoch: 0,
    lastWindowAskMs: NEVER_CONNECTED,
    lastDebtAskMs: NEVER_CONNECTED,
    targetDown: false,
    lastTargetAskMs: NEVER_CONNECTED,
    lastTargetReplyMs: NEVER_CONNECTED,
  };
  master.peers.set(runId, peer);
  master.peersChangedMs = now;
  for (const other of state.masters.values()) {
    const twin = other === master ? undefined : other.peers.get(runId);
    if (twin === undefined) continue;
    peer.link = twin.link;
    peer.link.owners.push(ref);
    break;
  }
  return peer;
}

/** Takes an instance off its link; the last owner closes the connections. */
export function releaseLink(turn: Turn, instance: Instance): void {
  const { link } = instance;
  const ref = refOf(instance);
  const at = link.owners.findIndex((owner) => sameRef(owner, ref));
  if (at >= 0) link.owners.splice(at, 1);
  if (link.owners.length === 0) closeLink(turn, link);
}

function sameRef(a: InstanceRef, b: InstanceRef): boolean {
  return a.kind === b.kind && a.master === b.master && nameInRef(a) === nameInRef(b);
}

function nameInRef(ref: InstanceRef): string {
  return ref.kind === 'replica' ? ref.key : ref.kind === 'sentinel' ? ref.runId : ref.master;
}

/** Closes one end, or both. act_ping is kept: a dead instance stays suspicious across reconnects. */
export function closeLink(turn: Turn, link: Link, channel?: ChannelKind): void {
  for (const end of ['command', 'pubsub'] as const) {
    const connection = link[end];
    if (connection === null || (channel !== undefined && channel !== end)) continue;
    turn.effects.push({ kind: 'close', connection: connection.id });
    forgetConnection(turn.state, connection);
  }
}

/**
 * Closes both ends, to be opened again in the next pass: what stood against a connection has changed.
 *
 * Divergence D93: stock waits for the rest of the second in which it tried last, and a master that was refused for long may be
 * failed over meanwhile, with the right password in the settings.
 */
export function restartLink(turn: Turn, link: Link): void {
  closeLink(turn, link);
  link.lastCommandTryMs = link.lastPubsubTryMs = 0 as Millis;
}

/** The connections to one node, between two records of it. */
export interface Ends {
  readonly address: NodeAddress;
  readonly command: Connection;
  readonly pubsub: Connection | null;
  readonly pending: number;
}

/** Takes the connections off an instance that has a command connection; they must be handed over or closed. */
export function takeEnds(instance: Master | Replica): Ends {
  const { link, address } = instance;
  const ends = { address, command: must(link.command, 'the ends of a connected instance'), pubsub: link.pubsub, pending: link.pending };
  link.command = link.pubsub = null;
  link.pending = link.outdated = 0;
  return ends;
}

/** Gives connections to a record that has none. What is still unanswered on them was asked for another record, and is heard by none. */
export function handOver(state: SentinelState, { link }: Master | Replica, { command, pubsub, pending }: Ends): void {
  link.command = command;
  link.pubsub = pubsub;
  link.pending = link.outdated = pending;
  state.connections.set(command.id, { link, channel: 'command' });
  if (pubsub !== null) state.connections.set(pubsub.id, { link, channel: 'pubsub' });
}

export function closeEnds(turn: Turn, { command, pubsub }: Ends): void {
  for (const connection of pubsub === null ? [command] : [command, pubsub]) {
    turn.effects.push({ kind: 'close', connection: connection.id });
    turn.state.connections.delete(connection.id);
  }
}

/** The outside already lost the connection. */
export function forgetConnection(state: SentinelState, connection: Connection): void {
  const owner = must(state.connections.get(connection.id), 'a link holds a connection that the state does not know');
  owner.link[owner.channel] = null;
  if (owner.channel === 'command') owner.link.pending = owner.link.outdated = 0;
  state.connections.delete(connection.id);
}

/** Starts one end of a link: connect, AUTH where credentials are set, CLIENT SETNAME (sentinelReconnectInstance). */
export function openConnection(turn: Turn, instance: Instance, channel: ChannelKind): Connection {
  const { state, now, effects } = turn;
  const id = state.nextConnectionId++;
  const connection: Connection = { id, sinceMs: now, localIp: null };
  instance.link[channel] = connection;
  state.connections.set(id, { link: instance.link, channel });
  effects.push({ kind: 'connect', connection: id, channel, host: instance.address.ip, port: instance.address.port });

  const auth = credentialsFor(state, instance);
  if (auth !== null) sendOn(turn, instance, channel, [commandName(state, instance, 'AUTH'), ...auth], IGNORED);
  const suffix = channel === 'command' ? 'cmd' : 'pubsub';
  sendOn(turn, instance, channel, [commandName(state, instance, 'CLIENT'), 'SETNAME', `sentinel-${state.myId.slice(0, 8)}-${suffix}`], IGNORED);
  return connection;
}

/** Arguments of AUTH for a link (sentinelSendAuthIfNeeded); null = none. */
function credentialsFor(state: SentinelState, instance: Instance): readonly string[] | null {
  if (instance.kind === 'sentinel') {
    const { sentinelUser, sentinelPass, requirePass } = state.settings;
    if (sentinelPass !== null) return sentinelUser === null ? [sentinelPass] : [sentinelUser, sentinelPass];
    return requirePass === null ? null : [requirePass];
  }
  const master = masterOf(state, instance);
  if (master === undefined || master.authPass === null) return null;
  return master.authUser === null ? [master.authPass] : [master.authUser, master.authPass];
}

/** A command's name on the servers of this instance's master (rename-command). */
export function commandName(state: SentinelState, instance: Instance, name: string): string {
  return masterOf(state, instance)?.renamedCommands.get(name) ?? name;
}

export const IGNORED: ReplyTag = { kind: 'ignored' };

/** Queues a command on the command connection; false when there is none. */
export function send(turn: Turn, instance: Instance, argv: readonly string[], tag: ReplyTag = IGNORED): boolean {
  return sendOn(turn, instance, 'command', argv, tag);
}

export function sendOn(turn: Turn, instance: Instance, channel: ChannelKind, argv: readonly string[], tag: ReplyTag): boolean {
  const connection = instance.link[channel];
  if (connection === null) return false;
  if (channel === 'command') instance.link.pending++;
  turn.effects.push({ kind: 'send', connection: connection.id, argv, tag });
  return true;
}

/** The instance behind a tag, if it exists and the reply came over the connection that it has now. */
export function addressee(state: SentinelState, tag: ReplyTag): Instance | undefined {
  return tag.kind === 'ignored' ? undefined : lookUp(state, tag.instance);
}

/** All instances of a master: itself, its replicas, its peers. */
export function* instancesOf(master: Master): Generator<Instance> {
  yield master;
  yield* master.replicas.values();
  yield* master.peers.values();
}
