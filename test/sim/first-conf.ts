/**
 * The sentinel.conf with which a sentinel of the simulator starts: as an operator writes it, or as it looks once everybody
 * has met everybody.
 */
import type { GroupOptions, WorldOptions } from './options.js';

export function firstConf(options: WorldOptions, ids: readonly string[], own: number): string {
  const lines = ['port 26379', ...(options.introduced ? [`sentinel myid ${ids[own]}`] : [])];
  options.groups.forEach((group, index) => lines.push(...groupLines(options, group, index, ids, own)));
  return lines.map((line) => `${line}\n`).join('');
}

/** What an operator sets after MONITOR, as SET takes it. */
export function settingsOf(options: WorldOptions, group: GroupOptions): string[] {
  const { stockPeers = 0, silentTimeoutMs = 0 } = options.planned ?? {};
  return [
    'quorum', String(group.quorum), 'down-after-milliseconds', String(group.downAfterMs), 'failover-timeout', String(group.failoverTimeoutMs),
    'parallel-syncs', String(group.parallelSyncs),
    ...(stockPeers > 0 ? ['silent-failover-allow-mixed', 'yes'] : []),
    ...(silentTimeoutMs > 0 ? ['silent-failover-timeout', String(silentTimeoutMs)] : []),
  ];
}

function groupLines(options: WorldOptions, group: GroupOptions, index: number, ids: readonly string[], own: number): string[] {
  const { name } = group;
  const lines = [
    `sentinel monitor ${name} 10.1.${index}.1 6379 ${group.quorum}`,
    `sentinel down-after-milliseconds ${name} ${group.downAfterMs}`,
    `sentinel failover-timeout ${name} ${group.failoverTimeoutMs}`,
    `sentinel parallel-syncs ${name} ${group.parallelSyncs}`,
  ];
  const { stockPeers = 0, silentTimeoutMs = 0 } = options.planned ?? {};
  if (stockPeers > 0) lines.push(`sentinel silent-failover-allow-mixed ${name} yes`);
  if (silentTimeoutMs > 0) lines.push(`sentinel silent-failover-timeout ${name} ${silentTimeoutMs}`);
  if (!options.introduced) return lines;
  for (let replica = 2; replica <= group.replicas + 1; replica++) {
    lines.push(`sentinel known-replica ${name} 10.1.${index}.${replica} 6379`);
  }
  ids.forEach((id, peer) => {
    if (peer !== own) lines.push(`sentinel known-sentinel ${name} 10.0.0.${peer + 1} 26379 ${id}`);
  });
  return lines;
}
