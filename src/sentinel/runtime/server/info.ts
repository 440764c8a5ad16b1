/**
 * INFO: what monitoring reads. Five sections in a fixed order; the last one is the core's.
 *
 * Mirrors infoCommand of sentinel mode (7.2). Fields about keys, memory and persistence are left out, as in the server; what cannot
 * happen here stands as 0 where exporters look for it.
 */
import { arch, release, type } from 'node:os';
import { redisVersionOf } from '../../wire/identity.js';
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
    ['process_id', process.pid],
    ['process_supervised', 'no'],
    ['run_id', options.processRunId],
    ['tcp_port', options.port],
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

function statFields({ stats, meter, pubsub }: ServerContext): Fields {
  return [
    ['total_connections_received', stats.connections],
    ['total_commands_processed', stats.commands],
    ['instantaneous_ops_per_sec', Math.round(meter.rates.commands)],
    ['total_net_input_bytes', stats.inputBytes],
    ['total_net_output_bytes', stats.outputBytes],
    ['instantaneous_input_kbps', (meter.rates.inputBytes / 1024).toFixed(2)],
    ['instantaneous_output_kbps', (meter.rates.outputBytes / 1024).toFixed(2)],
    ['rejected_connections', stats.rejected],
    ['evicted_clients', 0],
    ['pubsub_channels', pubsub.channelCount],
    ['pubsub_patterns', pubsub.patternCount],
    ['pubsubshard_channels', 0],
    ['total_error_replies', stats.errors],
    ['unexpected_error_replies', 0],
    ['total_reads_processed', stats.reads],
    ['total_writes_processed', stats.writes],
    ['client_output_buffer_limit_disconnections', stats.slowSubscribers],
    ['acl_access_denied_auth', stats.deniedAuth],
    ['acl_access_denied_cmd', stats.deniedCommand],
    ['acl_access_denied_key', 0],
    ['acl_access_denied_channel', stats.deniedChannel],
  ];
}

function cpuFields(): Fields {
  const { user, system } = process.cpuUsage();
  const seconds = (microseconds: number): string => (microseconds / 1e6).toFixed(6);
  return [
    ['used_cpu_sys', seconds(system)],
    ['used_cpu_user', seconds(user)],
    ['used_cpu_sys_children', seconds(0)],
    ['used_cpu_user_children', seconds(0)],
  ];
}
