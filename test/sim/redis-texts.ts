/**
 * What a modelled node says about itself: INFO and ROLE, as a server of version 7 prints them.
 */
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import { array, bulk, bulks, integer } from '../../src/sentinel/wire/resp-value.js';
import type { RedisNode } from './redis-node.js';

export function infoText(node: RedisNode): string {
  const { log } = node;
  return [
    '# Server',
    'redis_version:7.0.15',
    `run_id:${node.runId}`,
    `tcp_port:${node.machine.port}`,
    '# Persistence',
    `loading:${node.isLoading ? 1 : 0}`,
    '# Stats',
    `sync_full:${node.syncFull}`,
    `sync_partial_ok:${node.syncPartialOk}`,
    `sync_partial_err:${node.syncPartialErr}`,
    '# Replication',
    `role:${node.master === null ? 'master' : 'slave'}`,
    ...(node.master === null ? [] : replicaLines(node)),
    ...node.replicaLines(),
    'master_failover_state:no-failover',
    `master_replid:${log.replid}`,
    `master_replid2:${log.replid2 === '' ? '0'.repeat(40) : log.replid2}`,
    `master_repl_offset:${log.offset}`,
    // The first offset that is not shared any more, as the server counts.
    `second_repl_offset:${log.secondOffset < 0 ? -1 : log.secondOffset + 1}`,
    '# Keyspace',
    ...(log.values.length === 0 ? [] : [`db0:keys=${log.values.length},expires=0,avg_ttl=0`]),
    '',
  ].join('\r\n');
}

function replicaLines(node: RedisNode): string[] {
  const { master, linkUp, linkDownSinceMs } = node;
  const downSeconds = linkDownSinceMs === null ? -1 : Math.floor((node.nowMs() - linkDownSinceMs) / 1000);
  return [
    `master_host:${master?.host ?? ''}`,
    `master_port:${master?.port ?? 0}`,
    `master_link_status:${linkUp ? 'up' : 'down'}`,
    `master_sync_in_progress:${node.isSyncing ? 1 : 0}`,
    `slave_repl_offset:${node.log.offset}`,
    ...(linkUp ? [] : [`master_link_down_since_seconds:${downSeconds}`]),
    `slave_priority:${node.priority}`,
    `slave_read_only:${node.isReadOnly ? 1 : 0}`,
    'replica_announced:1',
  ];
}

export function roleReply(node: RedisNode): RespValue {
  const { master, log } = node;
  if (master === null) return array([bulk('master'), integer(log.offset), array(node.replicaAddresses().map((at) => bulks([...at])))]);
  const state = node.linkUp ? 'connected' : node.isSyncing ? 'sync' : 'connect';
  return array([bulk('slave'), bulk(master.host), integer(master.port), bulk(state), integer(node.linkUp ? log.offset : -1)]);
}
