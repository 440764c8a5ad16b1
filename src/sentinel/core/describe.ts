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
  const vote = `vote=${short(master.leader)}@${master.leaderEpoch}`;
  const { odownSinceMs, published } = master;
  const flags = words([odownSinceMs !== null, 'odown'], [!published.confirmed, 'unconfirmed'], [!published.trusted, 'untrusted']);
  return [
    `  ${describeNode(master)} configEpoch=${master.configEpoch} quorum=${master.quorum} ${vote}${flags}${describeMove(master)}`,
    ...[...master.replicas.values()].map((replica) => {
      const follows = `${replica.masterHost ?? '?'}:${replica.masterPort}`;
      return `    ${describeNode(replica)} follows=${follows} reconf=${replica.reconf}`;
    }),
    ...[...master.peers.values()].map((peer) => {
      return `    ${describeNode(peer)} masterDown=${peer.masterDown} voted=${short(peer.leader)}@${peer.leaderEpoch}`;
    }),
  ];
}

function describeMove({ failover, silent, debts }: Master): string {
  const forced = failover?.forced === true ? ' forced' : '';
  const doing = failover === null ? '' : ` failover=${failover.state}@${failover.epoch}${forced} promoted=${failover.promoted ?? '-'}`;
  const prepared = silent === null ? '' : ` silent=${silent.target} D=${silent.doneEpoch}${silent.effective ? ' effective' : ''}`;
  return `${doing}${prepared}${debts.size === 0 ? '' : ` debts=${[...debts.keys()].join(',')}`}`;
}

const short = (runId: string | null): string => runId?.slice(0, 8) ?? '-';
const words = (...marks: readonly (readonly [boolean, string])[]): string => marks.map(([set, word]) => (set ? ` ${word}` : '')).join('');

function describeNode(instance: Readonly<Instance>): string {
  const role = instance.kind === 'sentinel' ? '' : ` says=${instance.roleReported ?? '-'}`;
  const at = `${instance.address.ip || instance.address.host}:${instance.address.port}`;
  const flags = words([instance.sdownSinceMs !== null, 'sdown'], [isDisconnected(instance), 'disconnected']);
  return `${instance.kind} ${nameOf(instance)} at ${at}${role}${flags}`;
}
