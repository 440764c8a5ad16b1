/**
 * Which words may begin a line of a configuration file, besides `sentinel`.
 *
 * A drop-in has to take any file that the server takes, so all of its directives are known here, whether or not they mean
 * something to a sentinel. Others get a warning and stay untouched: a newer server may know them.
 */

/** Directives with exactly one argument. */
const ONE_ARGUMENT = `
  acl-pubsub-default aclfile acllog-max-len active-defrag-cycle-max active-defrag-cycle-min active-defrag-ignore-bytes
  active-defrag-max-scan-fields active-defrag-threshold-lower active-defrag-threshold-upper active-expire-effort activedefrag
  activerehashing always-show-logo aof-disable-auto-gc aof-load-truncated aof-rewrite-incremental-fsync aof-timestamp-enabled
  aof-use-rdb-preamble aof_rewrite_cpulist appenddirname appendfilename appendfsync appendonly auto-aof-rewrite-min-size
  auto-aof-rewrite-percentage bgsave_cpulist bind-source-addr bio_cpulist busy-reply-threshold client-query-buffer-limit
  cluster-allow-pubsubshard-when-down cluster-allow-reads-when-down cluster-allow-replica-migration cluster-announce-bus-port
  cluster-announce-hostname cluster-announce-human-nodename cluster-announce-ip cluster-announce-port cluster-announce-tls-port
  cluster-config-file cluster-enabled cluster-link-sendbuf-limit cluster-migration-barrier cluster-node-timeout cluster-port
  cluster-preferred-endpoint-type cluster-replica-no-failover cluster-replica-validity-factor cluster-require-full-coverage
  cluster-slave-no-failover cluster-slave-validity-factor crash-log-enabled crash-memcheck-enabled daemonize databases dbfilename
  dir disable-thp dynamic-hz enable-debug-command enable-module-command enable-protected-configs extended-redis-compatibility
  gopher-enabled hash-max-listpack-entries hash-max-listpack-value hash-max-ziplist-entries hash-max-ziplist-value
  hide-user-data-from-log hll-sparse-max-bytes hz ignore-warnings io-threads io-threads-do-reads jemalloc-bg-thread
  latency-monitor-threshold latency-tracking lazyfree-lazy-eviction lazyfree-lazy-expire lazyfree-lazy-server-del
  lazyfree-lazy-user-del lazyfree-lazy-user-flush lfu-decay-time lfu-log-factor list-compress-depth list-max-listpack-size
  list-max-ziplist-entries list-max-ziplist-size list-max-ziplist-value locale-collate log-format log-timestamp-format logfile
  loglevel lua-time-limit masterauth masteruser max-new-connections-per-cycle max-new-tls-connections-per-cycle maxclients
  maxmemory maxmemory-clients maxmemory-eviction-tenacity maxmemory-policy maxmemory-samples min-replicas-max-lag
  min-replicas-to-write min-slaves-max-lag min-slaves-to-write no-appendfsync-on-rewrite notify-keyspace-events oom-score-adj
  pidfile port primaryauth primaryuser proc-title-template propagation-error-behavior protected-mode proto-max-bulk-len
  rdb-del-sync-files rdb-save-incremental-fsync rdb-version-check rdbchecksum rdbcompression repl-backlog-size repl-backlog-ttl
  repl-disable-tcp-nodelay repl-diskless-load repl-diskless-sync repl-diskless-sync-delay repl-diskless-sync-max-replicas
  repl-mptcp repl-ping-replica-period repl-ping-slave-period repl-timeout replica-announce-ip replica-announce-port
  replica-announced replica-ignore-disk-write-errors replica-ignore-maxmemory replica-lazy-flush replica-priority
  replica-read-only replica-serve-stale-data requirepass sanitize-dump-payload server_cpulist set-max-intset-entries
  set-max-listpack-entries set-max-listpack-value set-proc-title shutdown-on-sigint shutdown-on-sigterm shutdown-timeout
  slave-announce-ip slave-announce-port slave-ignore-maxmemory slave-lazy-flush slave-priority slave-read-only
  slave-serve-stale-data slowlog-log-slower-than slowlog-max-len socket-mark-id stop-writes-on-bgsave-error
  stream-node-max-bytes stream-node-max-entries supervised syslog-enabled syslog-facility syslog-ident tcp-backlog
  tcp-keepalive timeout tls-auth-clients tls-ca-cert-dir tls-ca-cert-file tls-cert-file tls-ciphers tls-ciphersuites
  tls-client-cert-file tls-client-key-file tls-client-key-file-pass tls-cluster tls-dh-params-file tls-key-file
  tls-key-file-pass tls-port tls-prefer-server-ciphers tls-protocols tls-replication tls-session-cache-size
  tls-session-cache-timeout tls-session-caching tracking-table-max-keys unixsocket unixsocketgroup unixsocketperm
  zset-max-listpack-entries zset-max-listpack-value zset-max-ziplist-entries zset-max-ziplist-value`;

/** Directives with any number of arguments, none included. */
const ANY_ARGUMENTS =
  'bind client-output-buffer-limit latency-tracking-info-percentiles oom-score-adj-values primaryof replicaof save slaveof';

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));
const oneArgument = words(ONE_ARGUMENT);
const anyArguments = words(ANY_ARGUMENTS);

/** What the server thinks of a directive (lower case) with `count` arguments: null is fine, `unknown` not its fault, else the refusal. */
export function whyNotDirective(name: string, count: number): string | null {
  if (oneArgument.has(name)) return count === 1 ? null : 'wrong number of arguments';
  if (anyArguments.has(name)) return null;
  switch (name) {
    case 'include':
      return count === 1 ? null : 'Bad directive or wrong number of arguments';
    case 'rename-command':
      return count === 2 ? null : 'Bad directive or wrong number of arguments';
    case 'user':
    case 'loadmodule':
      return count >= 1 ? null : 'Bad directive or wrong number of arguments';
    default:
      return 'unknown';
  }
}
