/**
 * Whether this sentinel may still speak for the group, and how far a switch has come: the facts behind the Route.
 *
 * A sentinel that hears no majority of its peers freezes its outputs (publishing.md, rule 4). So does one whose clock jumped or that
 * slept (TILT), but only until a majority has told its configuration since: a pause of two seconds must not leave clients at a
 * demoted master for the thirty seconds of TILT, while this sentinel itself has long learnt better.
 * After a start the state file's word counts only once a majority, or for a lone sentinel the master itself, has confirmed it.
 */
import type { Millis } from '../../time.js';
import { isForeign } from './caution/foreign.js';
import { silentForMs } from './down.js';
import { sameHost } from './hosts.js';
import { NEVER } from './monitor.js';
import type { Master, Peer, SentinelState } from './state.js';
import { currentMasterAddress } from './state.js';
import type { Turn } from './turn.js';

/** What arrives this soon after a jump was said before it, and waited in a socket. */
const BACKLOG_MS = 500;

function isolationMs(state: SentinelState, master: Master): number {
  return state.settings.isolationAfterMs ?? master.downAfterMs;
}

function hearsMajority(state: SentinelState, master: Master, now: Millis): boolean {
  let heard = 1;
  for (const peer of master.peers.values()) if (isHeard(state, master, peer, now)) heard++;
  // Nobody can tell a lone sentinel what it has slept through.
  if (state.tiltSinceMs !== null && master.peers.size === 0) return false;
  return heard >= Math.floor((master.peers.size + 1) / 2) + 1;
}

function isHeard(state: SentinelState, master: Master, peer: Peer, now: Millis): boolean {
  if (silentForMs(peer, now) > isolationMs(state, master)) return false;
  const { tiltSinceMs } = state;
  return tiltSinceMs === null || (peer.lastHelloMs >= tiltSinceMs + BACKLOG_MS && peer.lastHelloMs <= now);
}

export function trustDueMs(state: SentinelState, master: Master, now: Millis): Millis {
  if (!master.published.trusted) return NEVER;
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
  published.trusted = hearsMajority(state, master, now);
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
