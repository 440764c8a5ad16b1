/**
 * SENTINEL FAILOVER <master> COORDINATED [ip:port]: a planned move without a window (silent-failover.md, section 8).
 *
 * The reply comes when the election is decided; what follows is told by the events of an ordinary failover.
 */
import { error } from '../../wire/resp-value.js';
import type { RespValue } from '../../wire/resp-value.js';
import { parseAddress } from '../../wire/address.js';
import { maxPauseMs, whyNotCoordinated } from '../coordinated.js';
import { startElection } from '../failover.js';
import { makeAddress } from '../hosts.js';
import { selectReplica, whyNotEligible } from '../promotion.js';
import { replicaAt } from '../silent/consensus.js';
import { hasUnansweredVote } from '../silent/votes.js';
import type { Master, NodeAddress } from '../state.js';
import { IN_TILT } from '../tilt.js';
import type { Turn } from '../turn.js';
import { announce, log, touch } from '../turn.js';

/** Null: the reply comes later. */
export function coordinatedFailover(turn: Turn, client: number, args: readonly string[]): RespValue | null {
  const [name = '', , targetText] = args;
  const master = turn.state.masters.get(name);
  if (master === undefined) return error('ERR No such master with that name');
  const parsed = targetText === undefined ? null : parseAddress(targetText);
  const target = parsed === null ? null : makeAddress(turn, parsed.host, parsed.port);
  if (targetText !== undefined && target === null) return error('ERR Invalid target, expected ip:port');
  const refusal = whyNot(turn, master, target);
  if (refusal !== null) return error(refusal);
  log(turn, 'notice', `Executing user requested coordinated FAILOVER of '${master.name}'`);
  touch(turn, master.name);
  startElection(turn, master, { purpose: 'coordinated', target, client });
  announce(turn, 'warning', '+try-failover', master);
  return null;
}

/**
 * Somebody for whom we voted may hold the master's writes, until the replica has them and again until it leads. There is one pause per server:
 * the end of his would end ours.
 */
function mayBeHeld({ state, now }: Turn, master: Master): boolean {
  return now - master.lastVoteMs <= 2 * maxPauseMs(master) && hasUnansweredVote(state, master, state.myId, now);
}

function whyNot(turn: Turn, master: Master, target: NodeAddress | null): string | null {
  if (turn.state.tiltSinceMs !== null) return IN_TILT;
  if (master.silent !== null) return 'ERR Failover is already in progress';
  if (master.failover !== null || mayBeHeld(turn, master)) return 'INPROG Failover already in progress';
  const obstacle = whyNotCoordinated(master);
  if (obstacle !== null) return `NOGOODPRIMARY ${obstacle}`;
  if (target === null) return selectReplica(turn.state, master, turn.now) === null ? 'NOGOODSLAVE No suitable replica to promote' : null;
  const replica = replicaAt(master, target);
  const reason = replica === undefined ? 'it is no replica of this master' : whyNotEligible(turn.state, master, replica, turn.now);
  return reason === null ? null : `NOGOODSLAVE No suitable replica to promote: ${reason}`;
}
