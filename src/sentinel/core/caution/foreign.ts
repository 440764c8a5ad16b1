/**
 * Foreign instances: the address of a replica of ours is the home of a node that lives under another master.
 *
 * Divergence D71: such a node is never re-pointed, never a candidate and not part of the Route; stock seizes it, which joins two
 * groups and wipes one (an IP address that a cluster gave to another pod is enough). It takes proof: the node says that its link
 * to a master that is none of ours is up, has another history than our master, and our master does not list it; or another
 * monitored master has it under the same run id. Once foreign it stays so until something shows that it is ours again.
 */
import { formatAddress } from '../../wire/address.js';
import { parseInfo } from '../../wire/info.js';
import { sameHost } from '../hosts.js';
import { replicationIdOf } from '../replication-id.js';
import type { Master, NodeAddress, Replica, SentinelState } from '../state.js';
import type { Turn } from '../turn.js';
import { announce } from '../turn.js';

export function isForeign(master: Readonly<Master>, replica: Readonly<Replica>): boolean {
  return master.caution.foreign.has(replica.key);
}

/** After every INFO of a replica. */
export function judgeForeign(turn: Turn, master: Master, replica: Replica): void {
  const { state } = turn;
  const { foreign } = master.caution;
  if (foreign.has(replica.key)) {
    if (!isBack(state, master, replica)) return;
    foreign.delete(replica.key);
    announce(turn, 'warning', '-foreign-replica', replica);
    return;
  }
  const owner = foreignMasterOf(state, master, replica) ?? claimantOf(state, master, replica);
  if (owner === null) return;
  foreign.set(replica.key, owner);
  announce(turn, 'warning', '+foreign-replica', replica, `belongs to ${owner}`);
}

/** By its own word, and against that of our living master. */
function foreignMasterOf(state: SentinelState, master: Master, replica: Replica): string | null {
  const { masterHost, masterPort } = replica;
  if (replica.roleReported !== 'replica' || masterHost === null || !replica.masterLinkUp) return null;
  if (isOurs(state, master, masterHost, masterPort)) return null;
  // While our master is gone or changing nobody can contradict, so nothing is concluded.
  const isCalm = master.roleReported === 'master' && master.sdownSinceMs === null && master.failover === null && master.silent === null;
  if (!isCalm || isListed(state, master, replica)) return null;
  const [ours, its] = [replicationIdOf(master.infoText), replicationIdOf(replica.infoText)];
  return ours === null || its === null || ours === its ? null : formatAddress({ host: masterHost, port: masterPort });
}

/** Another monitored master has the node, as itself or as a replica that follows it. */
function claimantOf(state: SentinelState, master: Master, replica: Replica): string | null {
  if (replica.runId === '') return null;
  for (const other of state.masters.values()) {
    if (other === master || other.sdownSinceMs !== null || other.roleReported !== 'master') continue;
    const owner = formatAddress({ host: other.address.host, port: other.address.port });
    const isItself = other.runId === replica.runId && replica.roleReported === 'master';
    if (isItself && !pointsAt(state, master, replica.address)) return owner;
    if (isOurs(state, master, other.address.host, other.address.port)) continue;
    for (const twin of other.replicas.values()) {
      if (twin.runId === replica.runId && twin.masterLinkUp && pointsAt(state, twin, other.address)) return owner;
    }
  }
  return null;
}

function isBack(state: SentinelState, master: Master, replica: Replica): boolean {
  const { masterHost, masterPort, roleReported } = replica;
  if (isOwnerOurs(state, master, replica) && claimantOf(state, master, replica) === null) return true;
  if (roleReported === 'master') return pointsAt(state, master, replica.address);
  if (masterHost !== null && isOurs(state, master, masterHost, masterPort)) return true;
  const its = replicationIdOf(replica.infoText);
  return its !== null && its === replicationIdOf(master.infoText);
}

/** The node whose it was is one of our own by now: an operator took both out of the group and only one back, or a third was forgotten. */
function isOwnerOurs(state: SentinelState, master: Master, replica: Replica): boolean {
  const owner = master.caution.foreign.get(replica.key);
  const isNamed = ({ address: { host, ip, port } }: Master | Replica): boolean => [host, ip].some((each) => formatAddress({ host: each, port }) === owner);
  return [...master.replicas.values()].some((node) => node !== replica && pointsAt(state, node, master.address) && isNamed(node));
}

/** Whether a node that calls itself a replica follows this address. */
function pointsAt(state: SentinelState, node: Master | Replica, address: NodeAddress): boolean {
  const { masterHost, masterPort } = node;
  return node.roleReported === 'replica' && masterHost !== null && masterPort === address.port && sameHost(state, address, masterHost);
}

/** Any address that this group has or had: chains of replicas, and replicas that still follow the master before, are ours. */
function isOurs(state: SentinelState, master: Master, host: string, port: number): boolean {
  const addresses = [master, ...master.replicas.values()].map((node) => node.address);
  if (master.published.previous !== null) addresses.push(master.published.previous);
  return addresses.some((address) => address.port === port && sameHost(state, address, host));
}

function isListed(state: SentinelState, master: Master, { address }: Replica): boolean {
  if (master.infoText === null) return true;
  return parseInfo(master.infoText).replicas.some(({ host, port }) => port === address.port && sameHost(state, address, host));
}
