/**
 * SENTINEL FORGET <master> <ip:port | run id>: one replica or one sentinel goes, the others stay.
 *
 * Divergence D70: stock only has RESET, which forgets all of them and the failover with them. A node that is alive comes back by
 * the master's INFO or by its hello; what may not go is the replica that a failover or a planned move is about.
 */
import { parseAddress } from '../../wire/address.js';
import { releaseLink } from '../instance.js';
import type { Master, Peer, Replica } from '../state.js';
import type { Turn } from '../turn.js';
import { announce } from '../turn.js';
import { forMaster, refuse, savedOk } from './outcome.js';

export const forget = forMaster((turn, master, [name = '']) => {
  const found = find(master, name);
  if (found === undefined) return refuse('ERR No such replica or sentinel of this master');
  if (found.kind === 'replica' && isNeeded(master, found)) return refuse('ERR This replica is being promoted');
  remove(turn, master, found);
  return savedOk();
});

function find(master: Master, name: string): Replica | Peer | undefined {
  const address = parseAddress(name);
  for (const instance of [...master.replicas.values(), ...master.peers.values()]) {
    const { host, ip, port } = instance.address;
    if (instance.runId !== '' && instance.runId === name) return instance;
    if (address !== null && address.port === port && (address.host === ip || address.host.toLowerCase() === host.toLowerCase())) return instance;
  }
  return undefined;
}

const isNeeded = (master: Master, { key }: Replica): boolean => master.failover?.promoted === key || master.silent?.target === key;

function remove(turn: Turn, master: Master, instance: Replica | Peer): void {
  announce(turn, 'warning', instance.kind === 'replica' ? '-slave' : '-sentinel', instance);
  releaseLink(turn, instance);
  if (instance.kind === 'sentinel') {
    master.peers.delete(instance.runId);
    master.published.confirmedBy.delete(instance.runId);
    master.peersChangedMs = turn.now;
    return;
  }
  master.replicas.delete(instance.key);
  master.debts.delete(instance.key);
  master.paid.delete(instance.key);
  master.caution.foreign.delete(instance.key);
  master.caution.provisional.delete(instance.key);
}
