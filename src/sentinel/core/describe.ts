/**
 * The state as text: for a crash dump, USR1 and the simulator's traces. Secrets are masked.
 */
import type { Instance, Master, SentinelState } from './state.js';
import { isDisconnected } from './state.js';
import { nameOf } from './turn.js';

export function describe(state: Readonly<SentinelState>): string {
  const tilt = state.tiltSinceMs === null ? '' : ' TILT';
  return [`sentinel ${state.myId} epoch=${state.currentEpoch}${tilt}`, ...[...state.masters.values()].flatMap(describeMaster)].join('\n');
}

function describeMaster(master: Master): string[] {
  const { failover } = master;
  const doing = failover === null ? '' : ` failover=${failover.state}@${failover.epoch}${failover.forced ? ' forced' : ''} promoted=${failover.promoted ?? '-'}`;
  const vote = `vote=${master.leader?.slice(0, 8) ?? '-'}@${master.leaderEpoch}`;
  const flags = `${master.odownSinceMs === null ? '' : ' odown'}${master.published.confirmed ? '' : ' unconfirmed'}${master.published.trusted ? '' : ' untrusted'}`;
  return [
    `  ${describeNode(master)} configEpoch=${master.configEpoch} quorum=${master.quorum} ${vote}${flags}${doing}`,
    ...[...master.replicas.values()].map((replica) => `    ${describeNode(replica)} follows=${replica.masterHost ?? '?'}:${replica.masterPort} reconf=${replica.reconf}`),
    ...[...master.peers.values()].map((peer) => `    ${describeNode(peer)} masterDown=${peer.masterDown} voted=${peer.leader?.slice(0, 8) ?? '-'}@${peer.leaderEpoch}`),
  ];
}

function describeNode(instance: Readonly<Instance>): string {
  const role = instance.kind === 'sentinel' ? '' : ` says=${instance.roleReported ?? '-'}`;
  const at = `${instance.address.ip || instance.address.host}:${instance.address.port}`;
  return `${instance.kind} ${nameOf(instance)} at ${at}${role}${instance.sdownSinceMs === null ? '' : ' sdown'}${isDisconnected(instance) ? ' disconnected' : ''}`;
}
