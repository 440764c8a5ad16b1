/**
 * Applying a hello: new peers, moved peers, higher epochs, and configurations that beat ours (section 5.4).
 *
 * The higher configEpoch wins, whoever says it. Mirrors sentinelProcessHelloMessage in sentinel.c.
 */
import type { Millis } from '../../time.js';
import type { Hello } from '../wire/hello.js';
import { parseHello } from '../wire/hello.js';
import { noteView } from './caution/differing.js';
import { adoptEpoch } from './election.js';
import { makeAddress, sameHost, sameNode } from './hosts.js';
import { LIMITS } from './limits.js';
import { closeLink, createPeer, instancesOf, releaseLink } from './instance.js';
import { announcedPort, sayHello } from './monitor.js';
import { replicationIdOf } from './replication-id.js';
import type { Master, NodeAddress, Peer, SentinelState } from './state.js';
import { currentMasterAddress } from './state.js';
import { considerSilentHello } from './silent/consensus.js';
import { announceMove, endSilentState, settleClient } from './silent/ending.js';
import { advertisedAddress } from './silent/prepared.js';
import { announceSwitch, switchAddress } from './switch-master.js';
import type { Turn } from './turn.js';
import { announce, log, persist, touch } from './turn.js';

/**
 * Takes a hello from any path. Not a hello, or of a master we don't know: ignored without a word, as in stock.
 *
 * Divergence D47: our own hello is ignored on the PUBLISH path, too; stock then takes itself for a peer.
 */
export function applyHello(turn: Turn, payload: string): void {
  const hello = parseHello(payload);
  const master = hello === null ? undefined : turn.state.masters.get(hello.masterName);
  if (hello === null || master === undefined || hello.runId === turn.state.myId) return;
  // A configuration can't be younger than the epoch it was made in; a message that says so must not leave us behind it.
  const epoch = Math.max(hello.currentEpoch, hello.configEpoch);
  if (epoch > LIMITS.maxEpoch) return;
  touch(turn, master.name);

  const peer = recognisePeer(turn, master, hello);
  adoptEpoch(turn, master, epoch);
  if (peer === null) return;
  if (master.configEpoch < hello.configEpoch) adoptConfiguration(turn, master, peer, hello);
  considerSilentHello(turn, master, peer, hello);
  confirm(turn, master, peer, hello);
  peer.lastHelloMs = turn.now;
}

function recognisePeer(turn: Turn, master: Master, hello: Hello): Peer | null {
  const address = makeAddress(turn, hello.sentinel.host, hello.sentinel.port);
  if (address === null) return null;
  if (isOwnAddress(turn.state, master, address)) {
    log(turn, 'debug', `A sentinel ${hello.runId} of ${master.name} announces our own address ${address.ip}:${address.port}: not taken as a peer`);
    return null;
  }
  const known = master.peers.get(hello.runId);
  if (known !== undefined && sameNode(known.address, address)) return known;

  if (known !== undefined) {
    forgetPeer(turn, master, known);
    announce(turn, 'notice', '+sentinel-address-switch', master, `ip ${hello.sentinel.host} port ${hello.sentinel.port} for ${hello.runId}`);
  }
  ousterOf(turn, hello.runId, address);
  const peer = createPeer(turn.state, master, hello.runId, address, turn.now);
  if (known === undefined) announce(turn, 'notice', '+sentinel', peer);
  else moveTwins(turn, master, peer);
  persist(turn);
  return peer;
}

/**
 * Divergence D81: whoever announces our own address is ourselves under an id that we have lost with our state file, and no second
 * voter. Stock takes it as a peer that is always up, and counts its own vote twice.
 */
function isOwnAddress(state: SentinelState, master: Master, address: NodeAddress): boolean {
  if (address.port !== announcedPort(state)) return false;
  const { announceIp } = state.settings;
  if (announceIp !== null) return announceIp === address.ip || announceIp === address.host;
  // The connection that brings hellos may be up before the one for commands.
  for (const { link } of instancesOf(master)) if (link.command?.localIp === address.ip || link.pubsub?.localIp === address.ip) return true;
  return false;
}

function forgetPeer(turn: Turn, master: Master, peer: Peer): void {
  releaseLink(turn, peer);
  master.peers.delete(peer.runId);
  master.peersChangedMs = turn.now;
}

/**
 * Another run id at this address is a predecessor that will not come back: it must not count as a voter anywhere.
 *
 * Divergence D72: it is looked for under every master, and also when a peer moved there; stock looks under the master of the hello
 * alone, and only for new peers, so that a dead run id still raises the majority of the others.
 */
function ousterOf(turn: Turn, runId: string, address: NodeAddress): void {
  const isSquatter = (peer: Peer): boolean => peer.runId !== runId && sameNode(peer.address, address);
  for (const master of turn.state.masters.values()) {
    for (const squatter of [...master.peers.values()].filter(isSquatter)) {
      announce(turn, 'notice', '+sentinel-invalid-addr', squatter);
      forgetPeer(turn, master, squatter);
      touch(turn, master.name);
    }
  }
}

/** The same peer under other masters moved too; it is one process. */
function moveTwins(turn: Turn, master: Master, peer: Peer): void {
  let moved = 0;
  for (const other of turn.state.masters.values()) {
    const twin = other === master ? undefined : other.peers.get(peer.runId);
    if (twin === undefined) continue;
    twin.address = peer.address;
    closeLink(turn, twin.link);
    touch(turn, other.name);
    moved++;
  }
  if (moved > 0) announce(turn, 'notice', '+sentinel-address-update', peer, `${moved} additional matching instances`);
}

function adoptConfiguration(turn: Turn, master: Master, peer: Peer, hello: Hello): void {
  const { host, port } = hello.master;
  const target = makeAddress(turn, host, port);
  // Divergence D46: nothing is announced and no epoch is taken for an address that can't be used; stock does both.
  if (target === null) return;
  const current = currentMasterAddress(master);
  master.configEpoch = hello.configEpoch;
  if (!master.published.confirmed) master.published.confirmedBy.clear();
  persist(turn);
  const before = advertisedAddress(master);
  if (port === current.port && sameHost(turn.state, current, host)) {
    dropOutdatedFailover(turn, master);
    const ended = endSilentState(turn, master, current, 'another sentinel re-asserted the original');
    if (ended === null) return;
    notePublished(turn, master, peer, before, 'aborted');
    announceMove(turn, master, before, current);
    master.failoverStartMs = 0 as Millis;
    return;
  }
  announce(turn, 'warning', '+config-update-from', peer);
  settleClient(turn, master, 'NOQUORUM another sentinel was elected');
  const ended = endSilentState(turn, master, target, 'another replica was promoted');
  notePublished(turn, master, peer, ended?.kind === 'done' ? current : before, 'failover');
  if (ended?.kind === 'abort' && ended.advertised !== null) announceMove(turn, master, before, target);
  else announceSwitch(turn, master, host, port);
  switchAddress(turn, master, target);
  // Its leader waits for that before it cuts the clients of the node that it held.
  sayHello(turn, peer);
}

/** A failover under an epoch that the group has passed can't make a valid configuration any more (I2). */
function dropOutdatedFailover(turn: Turn, master: Master): void {
  const { failover } = master;
  const promoting = failover !== null && failover.state !== 'reconf_slaves' && failover.state !== 'update_config';
  if (!promoting || failover.epoch > master.configEpoch) return;
  settleClient(turn, master, 'NOQUORUM another sentinel was elected');
  master.failover = null;
}

function notePublished(turn: Turn, master: Master, teller: Peer, before: NodeAddress, phase: 'failover' | 'aborted'): void {
  // Our vote knows who made it, the teller may only pass it on. But one for ourselves was not enough, or it would be our configuration.
  const leader = master.leaderEpoch === master.configEpoch && master.leader !== turn.state.myId ? master.leader : null;
  master.published.leaderId = leader ?? teller.runId;
  master.published.role = 'observer';
  master.published.previous = before;
  master.published.previousRunId = master.runId;
  master.published.previousReplicationId = replicationIdOf(master.infoText);
  master.published.sinceMs = turn.now;
  master.published.phase = phase;
}

/** Counts peers that name the same configuration as we do, until a majority has confirmed what the state file said. */
function confirm(turn: Turn, master: Master, peer: Peer, hello: Hello): void {
  const { published } = master;
  if (hello.configEpoch !== master.configEpoch) return;
  const current = currentMasterAddress(master);
  const agrees = hello.master.port === current.port && sameHost(turn.state, current, hello.master.host);
  noteView(turn, master, peer, hello, agrees);
  if (published.confirmed || !agrees) return;
  published.confirmedBy.add(peer.runId);
  const voters = master.peers.size + 1;
  if (1 + published.confirmedBy.size >= Math.floor(voters / 2) + 1) published.confirmed = true;
}

/** Whether a pub/sub payload is an echo of our own hello (it carries our run id). */
export function isOwnEcho(myId: string, payload: string): boolean {
  return payload.includes(myId);
}
