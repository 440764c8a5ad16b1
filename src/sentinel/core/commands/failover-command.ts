/**
 * SENTINEL FAILOVER: start one now, without ODOWN, election or the pause between two failovers (4.11).
 *
 * Refused while one runs, and where no replica could be promoted at this moment. Note the codes without `ERR`.
 */
import { OK } from '../../wire/resp-value.js';
import { startFailover } from '../failover.js';
import { selectReplica } from '../promotion.js';
import { log, touch } from '../turn.js';
import { forMaster, refuse, reply } from './outcome.js';

export const failover = forMaster((turn, master) => {
  // The COORDINATED form answers later and is taken out before the table is asked (coordinated-command.ts).
  if (master.silent !== null) return refuse('ERR Failover is already in progress');
  if (master.failover !== null) return refuse('INPROG Failover already in progress');
  if (selectReplica(turn.state, master, turn.now) === null) return refuse('NOGOODSLAVE No suitable replica to promote');
  log(turn, 'notice', `Executing user requested FAILOVER of '${master.name}'`);
  startFailover(turn, master, true);
  touch(turn, master.name);
  return reply(OK);
});
