/**
 * pointsman.yaml as the rest of the program sees it: typed, complete, every default filled in.
 *
 * A block that is absent from the file is off: null, or an empty list. Durations are milliseconds (`…Ms`) or whole seconds
 * (`…Seconds`); paths are absolute or as given when there is no file.
 */
import type { Address } from '../sentinel/wire/address.js';
import type { ServerIdentity } from '../sentinel/wire/identity.js';

export interface PointsmanConfig {
  readonly sentinel: SentinelSection | null;
  readonly route: RouteSection;
  readonly dns: DnsSection | null;
  readonly consul: ConsulSection | null;
  readonly hooks: readonly HookSection[];
  readonly vip: readonly VipSection[];
  readonly admin: AdminSection | null;
  readonly journal: JournalSection | null;
  readonly log: LogSection;
}

export interface SentinelSection {
  /** The sentinel.conf that is read and rewritten in place. */
  readonly config: string;
  /** As which server clients see it; null: the default. */
  readonly identity: ServerIdentity | null;
}

export interface RouteSection {
  readonly allowLoopback: boolean;
  /** null: the master's own down-after-milliseconds. */
  readonly isolationAfterMs: number | null;
  readonly addressMap: readonly AddressMapping[];
}

/** Clients get `to` where the agent itself uses `from`. Both `host:port`, IPv6 in brackets. */
export interface AddressMapping {
  /** null: for every master. */
  readonly master: string | null;
  readonly from: string;
  readonly to: string;
}

export interface DnsSection {
  readonly listen: readonly Address[];
  /** Lower case, ends in a dot. */
  readonly zone: string;
  readonly ttlSeconds: number;
  readonly negativeTtlSeconds: number;
  /** Empty: `ns.<zone>` with this agent's own address. */
  readonly ns: readonly NameServer[];
  readonly whenIsolated: 'serve-last' | 'servfail';
  /** Whether `replica.M` answers with the primary when no replica is healthy. */
  readonly replicaFallback: boolean;
  /** A master's name → the label it gets instead of the one made from its name. */
  readonly labels: Readonly<Record<string, string>>;
  readonly transfer: TransferSection | null;
  /** Of UDP replies; null = none. */
  readonly rateLimit: RateLimitSection | null;
  /** Processes that answer UDP; 0 = the agent itself. */
  readonly workers: number;
}

export interface NameServer {
  readonly name: string;
  /** Empty only for a name outside the zone. */
  readonly addresses: readonly string[];
}

export interface RateLimitSection {
  /** To one network (IPv4 /24, IPv6 /56). */
  readonly responsesPerSecond: number;
  /** Each how many-eth reply beyond the limit goes out truncated; 0 = none. */
  readonly slip: number;
  /** `ip/prefix` of those that are never limited. */
  readonly exempt: readonly string[];
}

export interface TransferSection {
  /** `ip/prefix` of the secondaries that may transfer. */
  readonly allow: readonly string[];
  /** IP addresses. */
  readonly notify: readonly Address[];
  /** With a key, transfers and NOTIFY are signed, and unsigned requests for the zone refused. */
  readonly tsig: TsigSection | null;
}

export interface TsigSection {
  readonly name: string;
  readonly algorithm: 'hmac-sha256';
  readonly secretFile: string;
  /** What the file holds, base64; never printed. */
  readonly secret: string;
}

export interface ConsulSection {
  readonly address: string;
  readonly mode: 'catalog' | 'agent';
  /** `{master}` is replaced by the master's name. */
  readonly service: string;
  readonly kvPrefix: string;
  /** From CONSUL_HTTP_TOKEN only; never printed. */
  readonly token: string | null;
  readonly tokenFile: string | null;
  readonly caFile: string | null;
  readonly certFile: string | null;
  readonly keyFile: string | null;
  readonly tlsServerName: string | null;
  readonly namespace: string | null;
  readonly datacenter: string | null;
}

export type HookPhase = 'failover' | 'prepared' | 'aborted' | 'steady' | 'pre';

export interface HookSection {
  readonly name: string;
  /** argv; the first is an absolute path. */
  readonly command: readonly string[];
  readonly on: readonly HookPhase[];
  /** Empty: for every master. */
  readonly masters: readonly string[];
  readonly timeoutMs: number;
  readonly user: string | null;
  readonly capabilities: 'drop' | 'keep';
  /** Resource limits by prlimit's names, e.g. `nofile: 64`. */
  readonly limits: Readonly<Record<string, number>>;
}

export interface VipSection {
  readonly master: string;
  /** `ip/prefix`. */
  readonly address: string;
  readonly interface: string;
  readonly whenIsolated: 'release' | 'keep';
  readonly label: string | null;
  readonly dad: boolean;
}

export interface AdminSection {
  readonly listen: Address;
}

export interface JournalSection {
  readonly path: string;
  readonly maxBytes: number;
  /** Rotated files that are kept beside the current one. */
  readonly keep: number;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';
export type LogFormat = 'json' | 'text';

export interface LogSection {
  readonly level: LogLevel;
  readonly format: LogFormat;
}
