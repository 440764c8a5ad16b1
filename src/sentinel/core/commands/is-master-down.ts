/**
 * SENTINEL IS-MASTER-DOWN-BY-ADDR: a peer asks what we think of a master, and perhaps for our vote (4.4).
 *
 * The master is found by its held address over all names, the first match wins. In TILT the answer is "not down", but a
 * vote is given all the same. castVote puts the vote behind the barrier, so that the reply never outruns the disk.
 */
import { array, bulk, integer } from '../../wire/resp-value.js';
import type { Vote } from '../election.js';
import { castVote } from '../election.js';
import { makeAddress, sameNode } from '../hosts.js';
import { silentTarget } from '../silent/prepared.js';
import type { Master, NodeAddress } from '../state.js';
import type { Turn } from '../turn.js';
import { touch } from '../turn.js';
import { strictInteger } from './integer.js';
import type { Outcome } from './outcome.js';
import { refuse, reply } from './outcome.js';

const NO_VOTE: Vote = { leader: null, leaderEpoch: 0 };

export function isMasterDown(turn: Turn, [host = '', portText = '', epochText = '', candidate = '*']: readonly string[]): Outcome {
  const port = strictInteger(portText);
  // Divergence D20: stock casts a negative epoch to an unsigned one near 2^64, which every peer then adopts for ever.
  const epoch = strictInteger(epochText, 0);
  if (port === null || epoch === null) return refuse('ERR value is not an integer or out of range');

  const address = makeAddress(turn, host, port);
  const master = address === null ? undefined : [...turn.state.masters.values()].find((each) => sameNode(each.address, address));
  const seenDown = master === undefined ? address !== null && isTargetDown(turn, address) : master.sdownSinceMs !== null;
  const down = turn.state.tiltSinceMs === null && seenDown;
  const vote = master === undefined || candidate === '*' ? NO_VOTE : giveVote(turn, master, epoch, candidate);
  return reply(array([integer(down ? 1 : 0), bulk(vote.leader ?? '*'), integer(vote.leaderEpoch)]));
}

/** The target of a silent failover: an opinion, never a vote (silent-failover.md, section 5). */
function isTargetDown(turn: Turn, address: NodeAddress): boolean {
  return [...turn.state.masters.values()].some((master) => {
    const target = silentTarget(master);
    return target !== undefined && target.sdownSinceMs !== null && sameNode(target.address, address);
  });
}

function giveVote(turn: Turn, master: Master, epoch: number, candidate: string): Vote {
  const vote = castVote(turn, master, epoch, candidate);
  touch(turn, master.name);
  return vote;
}
