/**
 * The text of INFO as facts about one instance.
 *
 * Mirrors sentinelRefreshInstanceInfo: lines end in CRLF, names match by prefix and case, a later line wins, and what a
 * replica says about its master counts only behind its `role:slave` line. What the caller does with it is refresh.ts's
 * matter; fields beyond stock (loading, offsets, keys ...) serve the planned moves and the health view.
 */
import type { Address } from './address.js';
import { atoi, strtoll, strtoull } from './c-numbers.js';

/** null everywhere means: the text does not say. */
export interface InfoReport {
  readonly runId: string | null;
  readonly role: 'master' | 'replica' | null;
  /** From `slaveN` lines, in order, duplicates kept; meaningful only for an instance held as master. */
  readonly replicas: readonly Address[];
  /** `slaveN` lines whose address cannot be one. */
  readonly skipped: readonly string[];
  /** -1 when the link has never been up. */
  readonly masterLinkDownSeconds: number | null;
  readonly masterHost: string | null;
  readonly masterPort: number | null;
  readonly masterLinkStatus: 'up' | 'down' | null;
  readonly replicaPriority: number | null;
  readonly replicaReplOffset: number | null;
  readonly replicaAnnounced: boolean | null;
  readonly masterReplOffset: number | null;
  readonly readOnly: boolean | null;
  readonly loading: boolean | null;
  readonly masterSyncInProgress: boolean | null;
  readonly syncFull: number | null;
  /** Keys of all databases; null without a Keyspace section. */
  readonly keys: number | null;
  readonly masterFailoverState: string | null;
  readonly version: string | null;
}

type Draft = { -readonly [Field in keyof InfoReport]: InfoReport[Field] } & { replicas: Address[]; skipped: string[] };
type Reader = (draft: Draft, value: string) => void;

const RUN_ID_LENGTH = 40;
const LINK_DOWN_SECONDS = 'master_link_down_since_seconds';

/** Lines that count wherever they stand, by the text up to and with their colon. */
const ANYWHERE: Readonly<Record<string, Reader>> = {
  'run_id:': (draft, value) => {
    if (value.length >= RUN_ID_LENGTH) draft.runId = value.slice(0, RUN_ID_LENGTH);
  },
  'role:': (draft, value) => {
    if (value.startsWith('master')) draft.role = 'master';
    else if (value.startsWith('slave')) draft.role = 'replica';
  },
  'master_repl_offset:': (draft, value) => (draft.masterReplOffset = strtoull(value)),
  'slave_read_only:': (draft, value) => (draft.readOnly = atoi(value) !== 0),
  'loading:': (draft, value) => (draft.loading = atoi(value) !== 0),
  'master_sync_in_progress:': (draft, value) => (draft.masterSyncInProgress = atoi(value) !== 0),
  'sync_full:': (draft, value) => (draft.syncFull = strtoull(value)),
  'master_failover_state:': (draft, value) => (draft.masterFailoverState = value),
  'redis_version:': (draft, value) => (draft.version = value),
};

/** Lines that count only behind `role:slave`. */
const AS_REPLICA: Readonly<Record<string, Reader>> = {
  'master_host:': (draft, value) => (draft.masterHost = value),
  'master_port:': (draft, value) => (draft.masterPort = atoi(value)),
  'master_link_status:': (draft, value) => (draft.masterLinkStatus = value.toLowerCase() === 'up' ? 'up' : 'down'),
  'slave_priority:': (draft, value) => (draft.replicaPriority = atoi(value)),
  'slave_repl_offset:': (draft, value) => (draft.replicaReplOffset = strtoull(value)),
  'replica_announced:': (draft, value) => (draft.replicaAnnounced = atoi(value) !== 0),
};

/** Reads the text of an INFO reply. Never fails: a line that makes no sense says nothing. */
export function parseInfo(text: string): InfoReport {
  const draft = emptyDraft();
  for (const line of text.split('\r\n')) {
    if (/^slave\d/.test(line)) readReplicaLine(draft, line);
    else if (line.startsWith(LINK_DOWN_SECONDS)) readLinkDown(draft, line);
    else if (line === '# Keyspace') draft.keys ??= 0;
    else readField(draft, line);
  }
  return draft;
}

function readField(draft: Draft, line: string): void {
  const name = line.slice(0, line.indexOf(':') + 1);
  const value = line.slice(name.length);
  if (Object.hasOwn(ANYWHERE, name)) ANYWHERE[name]?.(draft, value);
  else if (draft.role === 'replica' && Object.hasOwn(AS_REPLICA, name)) AS_REPLICA[name]?.(draft, value);
  else if (/^db\d+:$/.test(name)) draft.keys = (draft.keys ?? 0) + (strtoull(/^keys=(\d+)/.exec(value)?.[1] ?? '') ?? 0);
}

function readLinkDown(draft: Draft, line: string): void {
  // One character stands between name and number, and the number needs at least one of its own.
  if (line.length >= LINK_DOWN_SECONDS.length + 2) draft.masterLinkDownSeconds = strtoll(line.slice(LINK_DOWN_SECONDS.length + 1));
}

/** New form `slave0:ip=10.0.0.2,port=6379,state=online,...`; old form `slave0:10.0.0.2,6379,online`. */
function readReplicaLine(draft: Draft, line: string): void {
  const address = line.includes('ip=') ? newForm(line) : oldForm(line);
  if (address === null) return;
  const { host, port } = address;
  if (host === '' || port < 0 || port > 65535) draft.skipped.push(line);
  else draft.replicas.push(address);
}

function newForm(line: string): Address | null {
  const field = (key: string): string | undefined => {
    const at = line.indexOf(key);
    return at < 0 ? undefined : line.slice(at + key.length).split(',', 1)[0];
  };
  const host = field('ip=');
  const port = field('port=');
  return host === undefined || port === undefined ? null : { host, port: atoi(port) };
}

function oldForm(line: string): Address | null {
  const [host, port, state] = line.slice(line.indexOf(':') + 1).split(',');
  if (!line.includes(':') || host === undefined || port === undefined || state === undefined) return null;
  return { host, port: atoi(port) };
}

function emptyDraft(): Draft {
  return {
    runId: null,
    role: null,
    replicas: [],
    skipped: [],
    masterLinkDownSeconds: null,
    masterHost: null,
    masterPort: null,
    masterLinkStatus: null,
    replicaPriority: null,
    replicaReplOffset: null,
    replicaAnnounced: null,
    masterReplOffset: null,
    readOnly: null,
    loading: null,
    masterSyncInProgress: null,
    syncFull: null,
    keys: null,
    masterFailoverState: null,
    version: null,
  };
}
