/** Asking a peer SENTINEL SILENT-FAILOVER <master> STATUS (peer-status.ts takes the reply). */
import { commandName, send } from '../instance.js';
import type { Peer } from '../state.js';
import { refOf } from '../state.js';
import type { Turn } from '../turn.js';

export function askStatus(turn: Turn, peer: Peer): void {
  const argv = [commandName(turn.state, peer, 'SENTINEL'), 'SILENT-FAILOVER', peer.master, 'STATUS'];
  send(turn, peer, argv, { kind: 'silentAware', instance: refOf(peer) });
}
