/**
 * What a checker may watch. It answers with the reason why the world is wrong, or null; the world stops at the first reason.
 */
import type { Address } from '../../../src/sentinel/wire/address.js';
import type { Effect, Input, Master } from '../../../src/sentinel/index.js';
import type { LoadedConf } from '../../../src/sentinel/wire/sentinel-conf.js';
import type { Route } from '../../../src/route/route.js';
import type { RespValue } from '../../../src/sentinel/wire/resp-value.js';
import type { Machine } from '../network.js';
import type { RedisNode } from '../redis-node.js';
import type { SentinelHost } from '../sentinel-host.js';

export type Verdict = string | null;

export interface Checker {
  /** The invariant it stands for. */
  readonly name: string;
  stepped?(host: SentinelHost, input: Input, effects: readonly Effect[]): Verdict;
  carriedOut?(host: SentinelHost, effect: Effect): Verdict;
  replied?(host: SentinelHost, argv: readonly string[], value: RespValue): Verdict;
  routed?(host: SentinelHost, master: string, route: Route | null): Verdict;
  saved?(host: SentinelHost, conf: LoadedConf): Verdict;
  started?(host: SentinelHost, conf: LoadedConf): Verdict;
  replicaOf?(node: RedisNode, target: Address | null): Verdict;
  /** A node executed a write; `local`: as a writable replica. */
  wrote?(node: RedisNode, value: number, local: boolean): Verdict;
  /** The client of a write has its answer. */
  acknowledged?(value: number): Verdict;
  /** A replica became a master by a command, or by a transaction as a whole. */
  promoted?(node: RedisNode, by: Machine | null): Verdict;
  /** A full resync replaced all data of a node. */
  replaced?(node: RedisNode): Verdict;
  /** A sentinel lost its memory of a master by REMOVE; `group` null: of everything, with its disk. */
  forgot?(host: SentinelHost, group: string | null): void;
  /** Everything has come right; the life is over. */
  converged?(): Verdict;
}

/** Maps a node's `ip:port` to the name of its master's group. */
export type GroupOf = (ip: string) => string | null;

/**
 * Whether what a sentinel says of a master at this instant was decided before it was told to REMOVE that one, and only waited for its disk:
 * it is true, no file knows of it, and it binds nobody, since the operator wanted it forgotten.
 */
export type IsPast = (host: SentinelHost, group: string) => boolean;

/** A vote as an answer to is-master-down-by-addr tells it. */
export interface SpokenVote {
  readonly group: string;
  readonly leader: string;
  readonly epoch: number;
}

/** Reads the vote out of a question and its answer; null when none was given. */
export function spokenVote(groupOf: GroupOf, argv: readonly string[], value: RespValue): SpokenVote | null {
  if (argv[1]?.toLowerCase() !== 'is-master-down-by-addr' || value.kind !== 'array') return null;
  const [, leader, epoch] = value.items;
  const group = groupOf(argv[2] ?? '');
  if (group === null || leader?.kind !== 'bulk' || leader.text === '*' || epoch?.kind !== 'integer') return null;
  return { group, leader: leader.text, epoch: epoch.value };
}

/** The masters of a host in a fixed order. */
export function mastersOf(host: SentinelHost): Iterable<Master> {
  return host.state?.masters.values() ?? [];
}

/** The master's name in an event about a master: `master <name> <ip> <port> …`, or `<name> …` for `+switch-master`. */
export function masterInEvent(effect: Extract<Effect, { kind: 'event' }>): string {
  const words = effect.payload.split(' ');
  return (effect.name === '+switch-master' ? words[0] : words[1]) ?? '';
}

/** Group and node key of an event about a replica: `slave <key> <ip> <port> @ <master> …`. */
export function replicaInEvent(effect: Extract<Effect, { kind: 'event' }>): { readonly group: string; readonly key: string } {
  const words = effect.payload.split(' ');
  return { group: words[5] ?? '', key: words[1] ?? '' };
}
