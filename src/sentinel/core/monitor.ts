/**
 * Monitoring: when to reconnect, PING, INFO and say hello, and what a reply to PING proves.
 *
 * Every schedule is a function `…DueMs` that names the instant of the next action; the pass acts when it has come, and
 * `nextDeadline` is the minimum of all. Mirrors sentinelReconnectInstance, sentinelSendPeriodicCommands, sentinelPingReplyCallback.
 */
import type { Millis } from '../../time.js';
import { addMs } from '../../time.js';
import { isIpAddress } from '../wire/ip.js';
import type { SilentHello } from '../wire/hello.js';
import { formatHello } from '../wire/hello.js';
import type { RespValue } from '../wire/resp-value.js';
import { isToBeSeenAgain } from './former-master.js';
import { commandName, openConnection, send, sendOn } from './instance.js';
import { LIMITS } from './limits.js';
import type { ChannelKind, Instance, Link, Master, Replica, SentinelState } from './state.js';
import { announcedHost, currentMasterAddress, isDisconnected, refOf } from './state.js';
import type { Turn } from './turn.js';
import { masterOf } from './turn.js';

/** An instant that never comes. */
export const NEVER = Number.POSITIVE_INFINITY as Millis;

/**
 * Reconnects at most once per ping period (3.2).
 *
 * Divergence D90: each of the two connections on its own. Stock counts them together: a transaction that cuts both costs the
 * command connection a second if the other's end is seen a millisecond earlier, and with a short down-after that is an SDOWN.
 */
export function reconnectDueMs(state: SentinelState, instance: Instance): Millis {
  if (!isDisconnected(instance) || instance.address.port === 0) return NEVER;
  // Without an IP there is nothing to connect to, but a name to ask for again.
  if (instance.address.ip === '' && !state.settings.resolveHostnames) return NEVER;
  const { link } = instance;
  const tried = [link.command === null ? link.lastCommandTryMs : NEVER, lacksPubsub(instance) ? link.lastPubsubTryMs : NEVER];
  return addMs(Math.min(...tried) as Millis, state.tunables.pingPeriodMs);
}

/**
 * A connection that had been up for a while was cut: it is opened again in a moment, not at once, by whoever does not lead a move on the node.
 *
 * Divergence D99: stock opens it at once the first time, and after a second the next time. A move cuts all connections of a node twice
 * within some 50 ms, while clients look for the new master.
 */
export function delayReconnect(turn: Turn, instance: Instance, channel: ChannelKind, sinceMs: Millis): void {
  const { link } = instance;
  const { pingPeriodMs: periodMs } = turn.state.tunables;
  const delayMs = Math.min(LIMITS.reconnectDelayMs, instance.downAfterMs / 4, periodMs);
  const isLeader = leadsMove(turn, instance);
  const livedMs = turn.now - sinceMs;
  if (livedMs >= (isLeader ? delayMs : periodMs)) {
    const triedMs = addMs(turn.now, (isLeader ? 0 : delayMs) - periodMs);
    if (channel === 'command') link.lastCommandTryMs = triedMs;
    else link.lastPubsubTryMs = triedMs;
  }
  // Its silence counts from now, not from its last answer; with one connection left it can still say that it lives.
  if (channel === 'command') link.actPingMs ??= turn.now;
  else ping(turn, instance);
}

/** It has a failover of the node's master in hand, or has ended one a moment ago. */
function leadsMove({ state, now }: Turn, instance: Instance): boolean {
  const master = masterOf(state, instance);
  if (master === undefined || instance.kind === 'sentinel') return false;
  const { failover, published } = master;
  if (failover !== null) return failover.state !== 'wait_start';
  return published.role === 'leader' && now < published.sinceMs + LIMITS.afterSwitchMs;
}

const lacksPubsub = (instance: Instance): boolean => instance.kind !== 'sentinel' && instance.link.pubsub === null;

/** Whether a connection may be tried now; notes that it is. */
function mayTry(turn: Turn, link: Link, field: 'lastCommandTryMs' | 'lastPubsubTryMs'): boolean {
  if (turn.now < link[field] + turn.state.tunables.pingPeriodMs) return false;
  link[field] = turn.now;
  return true;
}

export function reconnect(turn: Turn, instance: Instance): void {
  if (turn.now < reconnectDueMs(turn.state, instance)) return;
  const { link, address } = instance;
  if (turn.state.settings.resolveHostnames && !isIpAddress(address.host)) turn.effects.push({ kind: 'resolve', host: address.host });
  if (address.ip === '') {
    link.lastCommandTryMs = link.lastPubsubTryMs = turn.now;
    return;
  }
  if (link.command === null && mayTry(turn, link, 'lastCommandTryMs')) {
    link.pending = 0;
    openConnection(turn, instance, 'command');
    // What was asked on the old connection will not be answered on this one.
    forgetUnanswered(instance);
    ping(turn, instance);
    // A node that was known may be another one now, or have lost its data (D74): not a matter for the next INFO period.
    if (instance.kind !== 'sentinel' && instance.runId !== '') requestInfo(turn, instance);
  }
  if (lacksPubsub(instance) && mayTry(turn, link, 'lastPubsubTryMs')) {
    link.pubsubActivityMs = turn.now;
    openConnection(turn, instance, 'pubsub');
    const argv = [commandName(turn.state, instance, 'SUBSCRIBE'), LIMITS.helloChannel];
    sendOn(turn, instance, 'pubsub', argv, { kind: 'subscribe', instance: refOf(instance) });
  }
}

function forgetUnanswered(instance: Instance): void {
  instance.lastPublishSentMs = 0 as Millis;
  if (instance.kind !== 'sentinel') instance.infoSentMs = 0 as Millis;
}

/** A paused master blocks PUBLISH, and everything that queues behind it: hellos go by its replicas and the peers (section 3). */
function isOriginalOfMove(instance: Instance): boolean {
  return instance.kind === 'master' && (instance.silent !== null || (instance.failover?.lastPauseMs ?? 0) !== 0);
}

function isThrottled(instance: Instance): boolean {
  return isDisconnected(instance) || instance.link.pending >= LIMITS.maxPendingCommands * Math.max(1, instance.link.owners.length);
}

/** min(down-after, PING-PERIOD). */
function pingPeriodMs(state: SentinelState, instance: Instance): number {
  return Math.min(instance.downAfterMs, state.tunables.pingPeriodMs);
}

export function pingDueMs(state: SentinelState, instance: Instance): Millis {
  if (isThrottled(instance)) return NEVER;
  const periodMs = pingPeriodMs(state, instance);
  return Math.max(instance.link.lastPongMs + periodMs, instance.link.lastPingMs + periodMs / 2) as Millis;
}

/** INFO every INFO-PERIOD; every second for a replica in trouble or whose master is failing over. */
export function infoPeriodMs(state: SentinelState, instance: Master | Replica): number {
  const master = masterOf(state, instance);
  const isMoving = master !== undefined && (master.silent !== null || master.debts.size > 0);
  if (isMoving) return Math.min(LIMITS.fastInfoPeriodMs, state.tunables.infoPeriodMs);
  if (instance.kind === 'master' && instance.caution.reborn !== null) return Math.min(LIMITS.fastInfoPeriodMs, state.tunables.infoPeriodMs);
  if (instance.kind === 'master' || master === undefined) return state.tunables.infoPeriodMs;
  if (isToBeSeenAgain(master, instance)) return LIMITS.leaderActsMs;
  // Divergence D52: also right after a link broke, when it is down for 0 s and stock still waits its 10 s.
  const linkDown = instance.roleReported === 'replica' && !instance.masterLinkUp;
  const changing = master.odownSinceMs !== null || master.failover !== null || master.debts.size > 0;
  const urgent = changing || linkDown || instance.masterLinkDownMs !== 0;
  return urgent ? LIMITS.fastInfoPeriodMs : state.tunables.infoPeriodMs;
}

/** Divergence D40: an unanswered INFO or PUBLISH is sent again after a ping period, not on every tick. */
function retryMs(state: SentinelState, periodMs: number): number {
  return Math.min(periodMs, state.tunables.pingPeriodMs);
}

export function infoDueMs(state: SentinelState, instance: Instance): Millis {
  if (instance.kind === 'sentinel' || isThrottled(instance)) return NEVER;
  const periodMs = infoPeriodMs(state, instance);
  const dueMs = instance.infoRefreshMs === null ? 0 : instance.infoRefreshMs + periodMs;
  return Math.max(dueMs, instance.infoSentMs + retryMs(state, periodMs)) as Millis;
}

export function publishDueMs(state: SentinelState, instance: Instance): Millis {
  if (isThrottled(instance) || isOriginalOfMove(instance)) return NEVER;
  const periodMs = state.tunables.publishPeriodMs;
  const heldMs = instance.kind === 'replica' ? instance.heldUntilMs : 0;
  return Math.max(heldMs, instance.lastPublishMs + periodMs, instance.lastPublishSentMs + retryMs(state, periodMs)) as Millis;
}

/** INFO, PING and PUBLISH, each when due, in stock's order. */
export function sendPeriodicCommands(turn: Turn, instance: Instance): void {
  const { state, now } = turn;
  if (instance.kind !== 'sentinel' && now >= infoDueMs(state, instance)) requestInfo(turn, instance);
  if (now >= pingDueMs(state, instance)) ping(turn, instance);
  if (now >= publishDueMs(state, instance)) sayHello(turn, instance);
}

export function requestInfo(turn: Turn, instance: Master | Replica): void {
  instance.infoSentMs = turn.now;
  send(turn, instance, [commandName(turn.state, instance, 'INFO')], { kind: 'info', instance: refOf(instance), askedMs: turn.now });
}

export function ping(turn: Turn, instance: Instance): void {
  if (!send(turn, instance, [commandName(turn.state, instance, 'PING')], { kind: 'ping', instance: refOf(instance) })) return;
  instance.link.lastPingMs = turn.now;
  instance.link.actPingMs ??= turn.now;
}

/** PUBLISH of our hello for this instance's master (sentinelSendHello). */
export function sayHello(turn: Turn, instance: Instance): void {
  const { state, now } = turn;
  const master = masterOf(state, instance);
  const localIp = state.settings.announceIp ?? instance.link.command?.localIp ?? null;
  instance.lastPublishSentMs = now;
  if (master === undefined || localIp === null) return;
  const current = currentMasterAddress(master);
  const payload = formatHello({
    sentinel: { host: localIp, port: announcedPort(state) },
    runId: state.myId,
    currentEpoch: state.currentEpoch,
    masterName: master.name,
    master: { host: announcedHost(state.settings, current), port: current.port },
    configEpoch: master.configEpoch,
    silent: silentFields(state, master),
  });
  const argv = [commandName(state, instance, 'PUBLISH'), LIMITS.helloChannel, payload];
  send(turn, instance, argv, { kind: 'publish', instance: refOf(instance) });
}

/** The three fields beyond stock's eight, while prepared. */
function silentFields(state: SentinelState, master: Master): SilentHello | null {
  if (master.silent === null) return null;
  const { doneEpoch, targetAddress } = master.silent;
  return { doneEpoch, target: { host: announcedHost(state.settings, targetAddress) || targetAddress.host, port: targetAddress.port } };
}

/** The port that our hellos carry. */
export function announcedPort(state: SentinelState): number {
  const { announcePort, tlsReplication, tlsPort, port } = state.settings;
  if (announcePort !== 0) return announcePort;
  return tlsReplication && tlsPort !== 0 ? tlsPort : port;
}

/** Everybody of this master hears the new configuration at once (sentinelForceHelloUpdateForMaster). */
export function forceHello(turn: Turn, master: Master): void {
  const sentMs = addMs(turn.now, -turn.state.tunables.publishPeriodMs - 1);
  for (const instance of [master, ...master.replicas.values(), ...master.peers.values()]) {
    if (instance.lastPublishMs > sentMs) instance.lastPublishMs = sentMs;
    instance.lastPublishSentMs = sentMs;
  }
}

/** What a reply to PING proves (3.4): PONG, LOADING and MASTERDOWN are signs of life, BUSY asks for SCRIPT KILL once. */
export function applyPingReply(turn: Turn, instance: Instance, reply: RespValue): void {
  const { link } = instance;
  if (reply.kind === 'simple' || reply.kind === 'error') {
    const { text } = reply;
    if (/^(?:PONG|LOADING|MASTERDOWN)/.test(text)) {
      link.lastAvailableMs = turn.now;
      link.actPingMs = null;
      if (instance.kind !== 'sentinel' && text.startsWith('PONG')) instance.rebootSinceMs = null;
    } else if (text.startsWith('BUSY') && instance.sdownSinceMs !== null && !instance.scriptKillSent) {
      instance.scriptKillSent = send(turn, instance, [commandName(turn.state, instance, 'SCRIPT'), 'KILL']);
    }
  }
  link.lastPongMs = turn.now;
}

/** An accepted hello is not repeated before the next period; a refused one is (3.3). */
export function applyPublishReply(turn: Turn, instance: Instance, reply: RespValue): void {
  if (reply.kind !== 'error') instance.lastPublishMs = turn.now;
}
