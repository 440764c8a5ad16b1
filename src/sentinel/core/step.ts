/**
 * The single entry of the core: one input in, effects out, the state changed in place.
 *
 * Every turn: the TILT check, the input, then a pass over each master that the input touched or whose deadline has come.
 * Mirrors sentinelTimer and the reply callbacks of sentinel.c as one function.
 */
import { assertNever } from '../../assert.js';
import type { Millis } from '../../time.js';
import { addMs } from '../../time.js';
import { applyHoldReply } from './coordinated.js';
import { executeCommand } from './commands/index.js';
import type { Effect } from './effect.js';
import { applyMasterDownReply } from './election.js';
import { applyHello, isOwnEcho } from './gossip.js';
import { applyResolved } from './hosts.js';
import { addressee, closeLink, forgetConnection } from './instance.js';
import type { Input } from './input.js';
import { LIMITS } from './limits.js';
import { applyPingReply, applyPublishReply, delayReconnect } from './monitor.js';
import { passDueMs, passOver } from './pass.js';
import { applyInfo, applyRole } from './refresh.js';
import type { Instance, SentinelState } from './state.js';
import { applyResynced } from './silent/debts.js';
import { applyPauseReply } from './silent/moves.js';
import { applyStatusReply } from './silent/peer-status.js';
import { applyTargetDownReply } from './silent/watch.js';
import { checkTilt, tiltEndsMs } from './tilt.js';
import type { Turn } from './turn.js';
import { announce, announceText, log, touch } from './turn.js';

/** Applies one input at `now` and returns what is to be done, in order. */
export function step(state: SentinelState, input: Input, now: Millis): Effect[] {
  const turn: Turn = { state, now, effects: [] };
  state.touched.clear();
  checkTilt(turn);
  apply(turn, input);
  for (const master of [...state.masters.values()]) {
    if (!state.touched.has(master.name) && now < master.nextPassMs) continue;
    state.touched.add(master.name);
    passOver(turn, master);
    master.nextPassMs = passDueMs(state, master, now);
  }
  return turn.effects;
}

/** When the core wants a `wake` at the latest. */
export function nextDeadline(state: SentinelState): Millis {
  const maxSleepMs = Math.min(LIMITS.maxSleepMs, Math.max(1, Math.floor(state.tunables.tiltTriggerMs / 2)));
  let due: number = Math.min(addMs(state.previousMs, maxSleepMs), tiltEndsMs(state));
  for (const master of state.masters.values()) due = Math.min(due, master.nextPassMs);
  // Integers and strictly in the future: half a ping period of an odd down-after must not become a busy loop.
  return Math.max(Math.ceil(due), state.previousMs + 1) as Millis;
}

function apply(turn: Turn, input: Input): void {
  switch (input.kind) {
    case 'start':
      return start(turn);
    case 'wake':
      return;
    case 'connectionUp':
      return connectionUp(turn, input.connection, input.localIp);
    case 'connectionDown':
      return connectionDown(turn, input.connection, input.reason);
    case 'reply':
      return applyReply(turn, input);
    case 'message':
      return applyMessage(turn, input.connection, input.payload);
    case 'hello':
      return applyHello(turn, input.payload);
    case 'command':
      return executeCommand(turn, input.client, input.argv, input.facts);
    case 'resolved':
      return applyResolved(turn, input.host, input.ip);
    case 'scriptFailed':
      return announceText(turn, 'warning', '-script-error', `${input.path} ${input.signal} ${input.exitCode}`, null);
    case 'scriptTimeout':
      return announceText(turn, 'warning', '-script-timeout', `${input.path} ${input.pid}`, null);
    default:
      return assertNever(input);
  }
}

function start(turn: Turn): void {
  log(turn, 'notice', `Sentinel ID is ${turn.state.myId}`);
  for (const master of turn.state.masters.values()) announce(turn, 'warning', '+monitor', master, `quorum ${master.quorum}`);
}

function connectionUp(turn: Turn, id: number, localIp: string): void {
  const end = turn.state.connections.get(id);
  const connection = end?.link[end.channel] ?? null;
  if (end !== undefined) end.link.unreachable = false;
  if (connection !== null) connection.localIp = localIp;
  for (const owner of end?.link.owners ?? []) touch(turn, owner.master);
}

function connectionDown(turn: Turn, id: number, reason: string): void {
  const end = turn.state.connections.get(id);
  const connection = end?.link[end.channel] ?? null;
  if (end === undefined || connection === null) return;
  forgetConnection(turn.state, connection);
  const wasUp = connection.localIp !== null;
  if (!wasUp) end.link.unreachable = true;
  for (const owner of end.link.owners) {
    touch(turn, owner.master);
    const instance = addressee(turn.state, { kind: 'ping', instance: owner });
    if (instance === undefined) continue;
    const event = end.channel === 'command' ? '-cmd-link-reconnection' : '-pubsub-link-reconnection';
    announce(turn, 'debug', event, instance, `#${reason}`);
    if (wasUp) delayReconnect(turn, instance, end.channel, connection.sinceMs);
  }
}

function applyReply(turn: Turn, input: Extract<Input, { kind: 'reply' }>): void {
  const end = turn.state.connections.get(input.connection);
  if (end === undefined) return;
  if (end.channel === 'command') {
    end.link.pending = Math.max(0, end.link.pending - 1);
    if (end.link.outdated > 0) {
      end.link.outdated--;
      return;
    }
  }
  const instance = addressee(turn.state, input.tag);
  // The record may be gone, or live on with another link: then the answer is about somebody else.
  if (instance === undefined || instance.link !== end.link) return;
  touch(turn, instance.kind === 'master' ? instance.name : instance.master);
  dispatchReply(turn, instance, input);
}

function dispatchReply(turn: Turn, instance: Instance, { tag, reply }: Extract<Input, { kind: 'reply' }>): void {
  switch (tag.kind) {
    case 'ignored':
      return;
    case 'ping':
      return applyPingReply(turn, instance, reply);
    case 'publish':
      return applyPublishReply(turn, instance, reply);
    case 'info':
      if (instance.kind !== 'sentinel' && reply.kind === 'bulk') applyInfo(turn, instance, reply.text, tag.askedMs);
      return;
    case 'role':
      if (instance.kind !== 'sentinel') applyRole(turn, instance, reply);
      return;
    case 'masterDown':
      if (instance.kind === 'sentinel') applyMasterDownReply(turn, instance, reply, tag.askedMs);
      return;
    case 'silentAware':
      if (instance.kind === 'sentinel') applyStatusReply(turn, instance, reply);
      return;
    case 'targetDown':
      if (instance.kind === 'sentinel') applyTargetDownReply(turn, instance, reply, tag.askedMs);
      return;
    case 'resynced':
      if (instance.kind === 'replica') applyResynced(turn, instance, reply, tag.sentMs);
      return;
    case 'paused':
      if (instance.kind !== 'master') return;
      applyHoldReply(turn, instance, reply, tag);
      applyPauseReply(turn, instance, reply);
      return;
    case 'subscribe':
      // Refused (NOAUTH, NOPERM, renamed): the node shows as disconnected and is tried again a ping period later (3.2).
      if (reply.kind === 'error') closeLink(turn, instance.link, 'pubsub');
      return;
    default:
      return assertNever(tag);
  }
}

function applyMessage(turn: Turn, connection: number, payload: string): void {
  const end = turn.state.connections.get(connection);
  if (end === undefined) return;
  end.link.pubsubActivityMs = turn.now;
  if (!isOwnEcho(turn.state.myId, payload)) applyHello(turn, payload);
}
