/**
 * What peers answer to SENTINEL SILENT-FAILOVER <master> STATUS: whether they know the extension, what they saw of a window (4.7), and
 * which debts they have paid (4.5). Hellos carry none of it.
 */
import type { RespValue } from '../../wire/resp-value.js';
import type { Peer } from '../state.js';
import type { Turn } from '../turn.js';
import { applyPaid } from './debts.js';
import { applyWindow } from './watch.js';

/** A field of a status; '' when it is not there. */
export type StatusField = (name: string) => string;

/** Does a peer know the extension? An unknown subcommand says no; anything it can only say knowing it says yes. */
export function applyStatusReply(turn: Turn, peer: Peer, reply: RespValue): void {
  if (reply.kind !== 'error') peer.link.silentAware = true;
  else if (/unknown subcommand|wrong number/i.test(reply.text)) peer.link.silentAware = false;
  else if (reply.text.startsWith('ERR')) peer.link.silentAware = true;
  const master = turn.state.masters.get(peer.master);
  if (reply.kind !== 'array' || master === undefined) return;
  const field = fieldsOf(reply.items);
  applyWindow(turn, master, peer, field);
  applyPaid(turn, master, field);
}

function fieldsOf(words: readonly RespValue[]): StatusField {
  const text = (value: RespValue | undefined): string => (value?.kind === 'bulk' ? value.text : '');
  return (name) => text(words[words.findIndex((value, at) => at % 2 === 0 && text(value) === name) + 1]);
}
