import { describe, expect, test } from '@jest/globals';
import { parseInfo } from '../../../../src/sentinel/wire/info.js';
import type { InfoReport } from '../../../../src/sentinel/wire/info.js';

const text = (...lines: readonly string[]): string => lines.map((line) => `${line}\r\n`).join('');
const RUN_ID = 'a1'.repeat(20);

const MASTER = text(
  ...['# Server', 'redis_version:7.0.15', `run_id:${RUN_ID}`, '', '# Persistence', 'loading:0', 'async_loading:1', ''],
  ...['# Stats', 'sync_full:2', '', '# Replication', 'role:master', 'connected_slaves:2'],
  ...['slave0:ip=10.0.0.2,port=6380,state=online,offset=14,lag=0', 'slave1:ip=fd00::3,port=6381,state=wait_bgsave,offset=0,lag=1'],
  ...['master_failover_state:no-failover', 'master_repl_offset:9000', '', '# Keyspace'],
  ...['db0:keys=10,expires=1,avg_ttl=0', 'db12:keys=5,expires=0,avg_ttl=0'],
);

const REPLICA = text(
  ...['# Replication', 'role:slave', 'master_host:10.0.0.1', 'master_port:6379', 'master_link_status:down', 'master_sync_in_progress:1'],
  ...['slave_repl_offset:77', 'master_link_down_since_seconds:12', 'slave_priority:50', 'slave_read_only:1', 'replica_announced:0'],
  ...['master_repl_offset:78', '# Keyspace'],
);

const NOTHING: Partial<InfoReport> = {
  ...{ runId: null, role: null, replicas: [], skipped: [], masterLinkDownSeconds: null, masterHost: null, masterPort: null },
  ...{ masterLinkStatus: null, replicaPriority: null, replicaReplOffset: null, replicaAnnounced: null, masterReplOffset: null },
  ...{ readOnly: null, loading: null, masterSyncInProgress: null, syncFull: null, keys: null, masterFailoverState: null, version: null },
};

const ROWS: readonly (readonly [name: string, info: string, expected: Partial<InfoReport>])[] = [
  ['nothing', '', NOTHING],
  ['noise', text('hello', ':', 'role', '__proto__:x', 'constructor:1', 'role:sentinel'), NOTHING],
  ['a master', MASTER, {
    ...{ role: 'master', runId: RUN_ID, version: '7.0.15', loading: false, syncFull: 2, masterReplOffset: 9000, keys: 15, skipped: [] },
    replicas: [{ host: '10.0.0.2', port: 6380 }, { host: 'fd00::3', port: 6381 }],
    masterFailoverState: 'no-failover',
  }],
  ['a replica', REPLICA, {
    ...{ role: 'replica', masterHost: '10.0.0.1', masterPort: 6379, masterLinkStatus: 'down', masterLinkDownSeconds: 12 },
    ...{ replicaPriority: 50, replicaReplOffset: 77, replicaAnnounced: false, readOnly: true, masterSyncInProgress: true },
    ...{ masterReplOffset: 78, keys: 0 },
  }],
  ['lines end in CRLF only', REPLICA.replaceAll('\r\n', '\n'), NOTHING],
  ['what stands before role:slave does not count', text('master_host:h', 'slave_priority:1', 'role:slave', 'master_port:1'), {
    ...{ role: 'replica', masterHost: null, replicaPriority: null, masterPort: 1 },
  }],
  ['a master says nothing about a master', text('role:master', 'master_host:h', 'master_link_status:up'), {
    ...{ role: 'master', masterHost: null, masterLinkStatus: null },
  }],
  ['the last role decides what follows it', text('role:slave', 'master_host:a', 'role:master', 'master_host:b'), {
    ...{ role: 'master', masterHost: 'a' },
  }],
  ['roles match by prefix and by case', text('role:slaves'), { role: 'replica' }],
  ['not in capitals', text('ROLE:master', 'role:Master'), { role: null }],
  ['link up in any case', text('role:slave', 'master_link_status:UP'), { masterLinkStatus: 'up' }],
  ['a link word that is neither', text('role:slave', 'master_link_status:broken'), { masterLinkStatus: 'down' }],
  ['link never up', text('master_link_down_since_seconds:-1'), { masterLinkDownSeconds: -1 }],
  ['link down without a number', text('master_link_down_since_seconds:'), { masterLinkDownSeconds: null }],
  ['a short run id', text(`run_id:${RUN_ID.slice(1)}`), { runId: null }],
  ['a long run id', text(`run_id:${RUN_ID}ff`), { runId: RUN_ID }],
  ['the later run id', text(`run_id:${RUN_ID}`, `run_id:${'b'.repeat(40)}`), { runId: 'b'.repeat(40) }],
  ['old form', text('slave0:10.0.0.2,6380,online', 'slave1:::1,6381,online'), {
    replicas: [{ host: '10.0.0.2', port: 6380 }, { host: '::1', port: 6381 }],
  }],
  ['old form cut short', text('slave0:10.0.0.2,6380', 'slave1:10.0.0.2', 'slave2', 'slaves:1,2,3'), { replicas: [], skipped: [] }],
  ['new form in any order', text('slave7:state=online,port=1,x=y,ip=a'), { replicas: [{ host: 'a', port: 1 }] }],
  ['new form without a port', text('slave0:ip=10.0.0.2,state=online'), { replicas: [], skipped: [] }],
  ['port 0 and a garbled one', text('slave0:ip=a,port=0,', 'slave1:ip=b,port=x'), {
    replicas: [{ host: 'a', port: 0 }, { host: 'b', port: 0 }],
  }],
  ['addresses that are none', text('slave0:ip=a,port=65536,', 'slave1:ip=,port=1', 'slave2:ip=a,port=-1'), {
    replicas: [],
    skipped: ['slave0:ip=a,port=65536,', 'slave1:ip=,port=1', 'slave2:ip=a,port=-1'],
  }],
  ['a sick priority', text('role:slave', 'slave_priority:x'), { replicaPriority: 0 }],
  ['an offset beyond 2^53', text('role:slave', 'slave_repl_offset:18446744073709551615'), { replicaReplOffset: null }],
  ['a Keyspace section without databases', text('# Keyspace'), { keys: 0 }],
  ['databases with garbage', text('# Keyspace', 'db0:expires=1', 'db1:keys=2', 'dbx:keys=9'), { keys: 2 }],
];

describe('parseInfo', () => {
  test.each(ROWS)('%s', (_name, info, expected) => {
    expect(parseInfo(info)).toMatchObject(expected);
  });
});
