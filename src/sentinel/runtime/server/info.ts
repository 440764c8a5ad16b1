/**
 * INFO: what monitoring reads. Five sections in a fixed order; the last one is the core's.
 *
 * Mirrors infoCommand of sentinel mode (7.0, with what 7.2 added for those who present it). What cannot happen here stands as 0, as
 * in the server.
 */
import { arch, release, type } from 'node:os';
import { isIn, redisVersionOf } from '../../wire/identity.js';
import type { RespValue } from '../../wire/resp-value.js';
import { bulk } from '../../wire/resp-value.js';
import type { PlainHandler, ServerContext } from './context.js';

const SECTIONS = ['server', 'clients', 'stats', 'cpu', 'sentinel'] as const;
type Section = (typeof SECTIONS)[number];
type Fields = readonly (readonly [string, string | number])[];

/** INFO [section ...] */
export const info: PlainHandler = (context, _client, argv): RespValue => {
  const wanted = new Set(argv.slice(1).map((word) => word.toLowerCase()));
  const everything = wanted.size === 0 || ['all', 'everything', 'default'].some((word) => wanted.has(word));
  const sections = SECTIONS.filter((section) => everything || wanted.has(section));
  return bulk(sections.map((section) => render(context, section)).join('\r\n'));
};

function render(context: ServerContext, section: Section): string {
  switch (section) {
    case 'server':
      return format('Server', serverFields(context));
    case 'clients':
      return format('Clients', clientFields(context));
    case 'stats':
      return format('Stats', statFields(context));
    case 'cpu':
      return format('CPU', cpuFields());
    case 'sentinel':
      return context.gate.infoSentinel();
  }
}

function format(title: string, fields: Fields): string {
  return [`# ${title}`, ...fields.map(([key, value]) => `${key}:${value}`), ''].join('\r\n');
}

function serverFields({ options, startedAtMs }: ServerContext): Fields {
  const uptimeSeconds = Math.floor((performance.now() - startedAtMs) / 1000);
  const nowMs = Date.now();
  const { identity } = options;
  const valkey = identity.product === 'valkey';
  return [
    ['redis_version', redisVersionOf(identity)],
    ...(valkey ? ([['server_name', 'valkey'], ['valkey_version', identity.version]] as const) : []),
    ['redis_git_sha1', '00000000'],
    ['redis_git_dirty', 0],
    ['redis_build_id', '0'],
    [valkey ? 'server_mode' : 'redis_mode', 'sentinel'],
    ['os', `${type()} ${release()} ${arch() === 'x64' ? 'x86_64' : arch()}`],
    ['arch_bits', 64],
    ['monotonic_clock', 'POSIX clock_gettime'],
    ['multiplexing_api', 'epoll'],
    ['atomicvar_api', 'c11-builtin'],
    ['gcc_version', '0.0.0'],
    ['process_id', process.pid],
    ['process_supervised', 'no'],
    ['run_id', options.processRunId],
    ['tcp_port', options.port === 0 ? (options.tls?.port ?? 0) : options.port],
    ['server_time_usec', nowMs * 1000],
    ['uptime_in_seconds', uptimeSeconds],
    ['uptime_in_days', Math.floor(uptimeSeconds / 86_400)],
    ['hz', 10],
    ['configured_hz', 10],
    ['lru_clock', Math.floor(nowMs / 1000) & 0xffffff],
    ['executable', process.execPath],
    ['config_file', options.configFile ?? ''],
    ['io_threads_active', 0],
  ];
}

function clientFields({ clients, options }: ServerContext): Fields {
  const all = [...clients.values()];
  return [
    ['connected_clients', all.length],
    ['cluster_connections', 0],
    ['maxclients', options.maxClients],
    ['client_recent_max_input_buffer', 0],
    ['client_recent_max_output_buffer', Math.max(0, ...all.map((client) => client.unreadBytes))],
    ['blocked_clients', 0],
    ['tracking_clients', all.filter((client) => client.tracking.on).length],
    ['clients_in_timeout_table', 0],
  ];
}

function statFields({ options, stats, meter, pubsub }: ServerContext): Fields {
  return [
    ['total_connections_received', stats.connections],
    ['total_commands_processed', stats.commands],
    ['instantaneous_ops_per_sec', Math.round(meter.rates.commands)],
    ['total_net_input_bytes', stats.inputBytes],
    ['total_net_output_bytes', stats.outputBytes],
    ...zero('total_net_repl_input_bytes total_net_repl_output_bytes'),
    ['instantaneous_input_kbps', (meter.rates.inputBytes / 1024).toFixed(2)],
    ['instantaneous_output_kbps', (meter.rates.outputBytes / 1024).toFixed(2)],
    ...zero('instantaneous_input_repl_kbps instantaneous_output_repl_kbps', '0.00'),
    ['rejected_connections', stats.rejected],
    ...zero('sync_full sync_partial_ok sync_partial_err expired_keys'),
    ...zero('expired_stale_perc', '0.00'),
    ...zero('expired_time_cap_reached_count expire_cycle_cpu_milliseconds evicted_keys evicted_clients total_eviction_exceeded_time'),
    ...zero('current_eviction_exceeded_time keyspace_hits keyspace_misses'),
    ['pubsub_channels', pubsub.channelCount],
    ['pubsub_patterns', pubsub.patternCount],
    ...zero('pubsubshard_channels latest_fork_usec total_forks migrate_cached_sockets slave_expires_tracked_keys'),
    ...zero('active_defrag_hits active_defrag_misses active_defrag_key_hits active_defrag_key_misses total_active_defrag_time'),
    ...zero('current_active_defrag_time tracking_total_keys tracking_total_items tracking_total_prefixes unexpected_error_replies'),
    ['total_error_replies', stats.errors],
    ...zero('dump_payload_sanitizations'),
    ['total_reads_processed', stats.reads],
    ['total_writes_processed', stats.writes],
    ...zero('io_threaded_reads_processed io_threaded_writes_processed'),
    ...(isIn(options.identity, '7.2.0') ? zero('client_query_buffer_limit_disconnections') : []),
    ...(isIn(options.identity, '7.2.0') ? [['client_output_buffer_limit_disconnections', stats.slowSubscribers] as const] : []),
    ...zero('reply_buffer_shrinks reply_buffer_expands'),
    ...(isIn(options.identity, '7.2.0') ? refusalFields(stats) : []),
  ];
}

const refusalFields = (stats: ServerContext['stats']): Fields => [
  ['acl_access_denied_auth', stats.deniedAuth],
  ['acl_access_denied_cmd', stats.deniedCommand],
  ['acl_access_denied_key', 0],
  ['acl_access_denied_channel', stats.deniedChannel],
];

/** What a sentinel of ours never has, but exporters look for. */
const zero = (names: string, value: string | number = 0): Fields => names.split(' ').map((name) => [name, value]);

function cpuFields(): Fields {
  const { user, system } = process.cpuUsage();
  const seconds = (microseconds: number): string => (microseconds / 1e6).toFixed(6);
  return [
    ['used_cpu_sys', seconds(system)],
    ['used_cpu_user', seconds(user)],
    ['used_cpu_sys_children', seconds(0)],
    ['used_cpu_user_children', seconds(0)],
    ['used_cpu_sys_main_thread', seconds(system)],
    ['used_cpu_user_main_thread', seconds(user)],
  ];
}
