/**
 * Whether this sentinel may still speak for the group, and how far a switch has come: the facts behind the Route.
 *
 * A sentinel that hears no majority of its peers, or whose clock jumped (TILT), freezes its outputs (publishing.md, rule 4).
 * After a start the state file's word counts only once a majority, or for a lone sentinel the master itself, has confirmed it.
 */
import type { Millis } from '../../time.js';
import { isForeign } from './caution/foreign.js';
import { silentForMs } from './down.js';
import { sameHost } from './hosts.js';
import { NEVER } from './monitor.js';
import type { Master, SentinelState } from './state.js';
import { currentMasterAddress } from './state.js';
import type { Turn } from './turn.js';

function isolationMs(state: SentinelState, master: Master): number {
  return state.settings.isolationAfterMs ?? master.downAfterMs;
}

function hearsMajority(state: SentinelState, master: Master, now: Millis): boolean {
  const limitMs = isolationMs(state, master);
  let heard = 1;
  for (const peer of master.peers.values()) if (silentForMs(peer, now) <= limitMs) heard++;
  return heard >= Math.floor((master.peers.size + 1) / 2) + 1;
}

export function trustDueMs(state: SentinelState, master: Master, now: Millis): Millis {
  if (!master.published.trusted || state.tiltSinceMs !== null) return NEVER;
  const limitMs = isolationMs(state, master);
  let due = Infinity;
  for (const peer of master.peers.values()) {
    const silentMs = silentForMs(peer, now);
    if (silentMs > 0 && silentMs <= limitMs) due = Math.min(due, now - silentMs + limitMs + 1);
  }
  return due as Millis;
}

export function judgeTrust(turn: Turn, master: Master): void {
  const { state, now } = turn;
  const { published } = master;
  published.trusted = state.tiltSinceMs === null && hearsMajority(state, master, now);
  if (!published.confirmed && master.peers.size === 0) {
    published.confirmed = master.infoRefreshMs !== null && master.roleReported === 'master';
  }
  if (published.phase !== 'steady' && isSettled(state, master)) published.phase = 'steady';
}

function isSettled(state: SentinelState, master: Master): boolean {
  if (master.failover !== null) return false;
  const current = currentMasterAddress(master);
  for (const replica of master.replicas.values()) {
    if (replica.sdownSinceMs !== null || isForeign(master, replica)) continue;
    const follows = replica.masterHost !== null && replica.masterPort === current.port && sameHost(state, current, replica.masterHost);
    if (!follows || !replica.masterLinkUp) return false;
  }
  return true;
}
