/**
 * The preflight's judgement: everything that stands in the way, at once. Pure; nothing is asked here, nothing changed.
 *
 * A finding that stops is a move that would fail or hurt; a warning is something that the operator should have seen before.
 */
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress, sameAddress } from '../sentinel/wire/address.js';
import { compareVersions, numberIn } from './fields.js';
import type { Mode } from './plan.js';

export interface Finding {
  readonly level: 'stop' | 'warn';
  /** What it is about: an address, or the group's name. */
  readonly about: string;
  readonly text: string;
}

export interface NodeFacts {
  readonly address: Address;
  readonly info: ReadonlyMap<string, string>;
  readonly config: ReadonlyMap<string, string>;
}

export interface OutputFacts {
  readonly name: string;
  readonly state: string;
  readonly error: string;
}

export interface SentinelFacts {
  readonly address: Address;
  /** Why it could not be asked; null = it could. */
  readonly fault: string | null;
  readonly master: ReadonlyMap<string, string>;
  /** SILENT-FAILOVER status; null: it does not know the extension. */
  readonly status: ReadonlyMap<string, string> | null;
  readonly tilt: boolean;
  /** Null: it has no SENTINEL OUTPUTS. */
  readonly outputs: readonly OutputFacts[] | null;
  /** Connections at its port that are no sentinels'. */
  readonly clients: number;
}

export interface GroupFacts {
  readonly master: string;
  readonly mode: Mode;
  readonly waitSync: boolean;
  /** The reply to CKQUORUM; empty = enough. */
  readonly noQuorum: string;
  readonly sentinels: readonly SentinelFacts[];
  readonly original: NodeFacts;
  readonly target: NodeFacts | null;
  readonly targetAddress: Address;
  readonly others: readonly NodeFacts[];
  readonly unreachableNodes: readonly Address[];
  /** Bytes per second that the original has written to its replicas lately. */
  readonly bytesPerSecond: number;
  readonly backlogBytes: number;
  /** Names of ACL users of the original that the target lacks or has otherwise. */
  readonly differingUsers: readonly string[];
}

const MAX_LAG_BYTES = 1024 * 1024;
const OLDEST_WITH_PAUSE = '6.2.0';
/** A backlog above this is not set without being asked for. */
export const MOST_BACKLOG_BYTES = 1024 * 1024 * 1024;

const stop = (about: string, text: string): Finding => ({ level: 'stop', about, text });
const warn = (about: string, text: string): Finding => ({ level: 'warn', about, text });

export function judgePreflight(facts: GroupFacts): Finding[] {
  const nodes = facts.target === null
    ? [stop(formatAddress(facts.targetAddress), `is no replica of ${facts.master}, or can't be reached`)]
    : [...judgeTarget(facts, facts.target), ...judgeCapacity(facts, facts.target)];
  return [...judgeSentinels(facts), ...judgeOriginal(facts), ...nodes, ...judgeOthers(facts)];
}

function judgeSentinels(facts: GroupFacts): Finding[] {
  const found = facts.noQuorum === '' ? [] : [stop(facts.master, `the sentinels have no quorum: ${facts.noQuorum}`)];
  const masters = new Set(facts.sentinels.filter(({ fault }) => fault === null).map(({ master }) => `${master.get('ip')}:${master.get('port')}`));
  const prepared = facts.sentinels.some(({ status }) => (status?.get('state') ?? 'none') !== 'none');
  if (masters.size > 1 && !prepared) found.push(stop(facts.master, `the sentinels disagree about the master: ${[...masters].join(', ')}`));
  return [...found, ...facts.sentinels.flatMap((sentinel) => judgeSentinel(facts, sentinel)), ...judgeFollowing(facts)];
}

function judgeSentinel({ mode }: GroupFacts, { address, fault, status, tilt, master, outputs }: SentinelFacts): Finding[] {
  const name = formatAddress(address);
  if (fault !== null) return [warn(name, `this sentinel can't be reached (${fault}): it is not told to leave replicas alone, and its outputs are not waited for`)];
  const found: Finding[] = [];
  if (status === null) {
    const text = 'does not support silent failover: replace it, or use --mode coordinated';
    found.push(mode === 'silent' ? stop(name, text) : warn(name, 'is a stock sentinel: what it tells its clients is not waited for'));
  }
  if (tilt) found.push(stop(name, 'is in TILT: its clock or its machine stalled; wait until it has ended'));
  if (/failover_in_progress/.test(master.get('flags') ?? '')) found.push(stop(name, 'a failover is in progress'));
  if (/s_down|o_down/.test(master.get('flags') ?? '')) found.push(stop(name, 'takes the master for down'));
  const state = status?.get('state') ?? 'none';
  if (state !== 'none') found.push(stop(name, `a silent failover to ${status?.get('target') ?? ''} is ${state}: finish or abort it first`));
  const debts = status?.get('resync-debts') ?? '';
  if (debts !== '') found.push(stop(name, `nodes still owe a full copy from an earlier move: ${debts}`));
  for (const output of outputs ?? []) {
    if (output.state === 'published') continue;
    found.push(stop(name, `output ${output.name} is ${output.state}${output.error === '' ? '' : `: ${output.error}`}`));
  }
  return found;
}

/** Who asks a sentinel checks ROLE, mostly: such clients refuse the target until done. */
function judgeFollowing({ mode, sentinels, master }: GroupFacts): Finding[] {
  const clients = sentinels.reduce((sum, each) => sum + each.clients, 0);
  if (mode !== 'silent' || clients === 0) return [];
  const text = `${clients} connections at the sentinels' ports: clients that ask a sentinel and then check ROLE (ioredis, Jedis, Lettuce) do not follow before done`;
  return [warn(master, text)];
}

function judgeOriginal(facts: GroupFacts): Finding[] {
  const { original, mode } = facts;
  const name = formatAddress(original.address);
  const found: Finding[] = [];
  const version = original.info.get('redis_version') ?? '0';
  if (original.info.get('role') !== 'master') found.push(stop(name, 'does not say that it is a master'));
  if (compareVersions(version, OLDEST_WITH_PAUSE) < 0) found.push(stop(name, `is Redis ${version}, older than ${OLDEST_WITH_PAUSE}: it can't hold writes`));
  const needed = numberIn(original.config, 'min-replicas-to-write');
  if (mode === 'silent' && needed > 1) {
    found.push(stop(name, `min-replicas-to-write is ${needed}, but in the window the target is its only replica: it would refuse writes`));
  }
  if (original.config.get('replica-read-only') === 'no') {
    found.push(warn(name, 'replica-read-only is no: after the move a client that is pinned to it goes on writing there, and nobody sees those writes'));
  }
  return found;
}

function judgeTarget(facts: GroupFacts, { address, info, config }: NodeFacts): Finding[] {
  const name = formatAddress(address);
  const found: Finding[] = [];
  if (sameAddress(address, facts.original.address)) return [stop(name, 'is the master already')];
  if (info.get('role') !== 'slave') return [stop(name, 'does not say that it is a replica')];
  const followed = { host: info.get('master_host') ?? '', port: numberIn(info, 'master_port') };
  if (!sameAddress(followed, facts.original.address)) found.push(stop(name, `follows ${formatAddress(followed)}, not the master`));
  if (numberIn(info, 'slave_priority', 100) === 0) found.push(stop(name, 'its replica-priority is 0: it may never be promoted'));
  if (!facts.waitSync) found.push(...judgeSync(facts, name, info));
  const needed = numberIn(config, 'min-replicas-to-write');
  const left = facts.others.length + 1;
  if (facts.mode === 'silent' && needed > 0) {
    found.push(stop(name, `min-replicas-to-write is ${needed}: as the new master it would refuse writes while the other nodes copy it; set it to 0 for the move`));
  } else if (needed > left) found.push(stop(name, `min-replicas-to-write is ${needed}, it will have ${left} replicas`));
  return found;
}

function judgeSync({ original }: GroupFacts, name: string, info: ReadonlyMap<string, string>): Finding[] {
  if (info.get('master_sync_in_progress') === '1') return [stop(name, 'is still copying the master: wait, or give --wait-sync')];
  if (info.get('master_link_status') !== 'up') return [stop(name, 'its replication link is down: wait, or give --wait-sync')];
  const lag = numberIn(original.info, 'master_repl_offset') - numberIn(info, 'slave_repl_offset');
  return lag > MAX_LAG_BYTES ? [stop(name, `lags ${lag} bytes behind the master: wait, or give --wait-sync`)] : [];
}

function judgeCapacity(facts: GroupFacts, target: NodeFacts): Finding[] {
  const { original, mode, backlogBytes, bytesPerSecond, differingUsers } = facts;
  const name = formatAddress(target.address);
  const found: Finding[] = [];
  const [ours, theirs] = [original, target].map(({ config }) => numberIn(config, 'maxmemory')) as [number, number];
  const used = numberIn(original.info, 'used_memory');
  if (theirs !== 0 && used > theirs) found.push(stop(name, `its maxmemory is ${theirs} bytes, the master uses ${used}`));
  else if (theirs !== 0 && (ours === 0 || theirs < ours)) found.push(stop(name, `its maxmemory is ${theirs} bytes, smaller than the master's (${ours || 'unlimited'})`));
  const [from, to] = [original, target].map(({ info }) => info.get('redis_version') ?? '0') as [string, string];
  if (compareVersions(to, from) < 0) found.push(stop(name, `is Redis ${to}, older than the master's ${from}: it may not understand its data`));
  for (const setting of ['maxmemory-policy', 'appendonly', 'save', 'databases']) {
    const [a, b] = [original, target].map(({ config }) => config.get(setting) ?? '') as [string, string];
    if (a !== b) found.push(warn(name, `${setting} is ${JSON.stringify(b)}, the master's is ${JSON.stringify(a)}`));
  }
  if (differingUsers.length > 0) found.push(warn(name, `ACL users differ from the master's: ${differingUsers.join(', ')}`));
  if (mode === 'silent' && backlogBytes > MOST_BACKLOG_BYTES) {
    const text = `the master writes ${bytesPerSecond} bytes/s: a window would need a backlog of ${backlogBytes} bytes; move at a quieter time or by --mode coordinated`;
    found.push(stop(formatAddress(original.address), text));
  }
  return found;
}

function judgeOthers({ others, original, targetAddress, unreachableNodes, mode }: GroupFacts): Finding[] {
  const found = unreachableNodes.map((address) => warn(formatAddress(address), "this replica can't be reached: it is left out, and has to be looked at afterwards"));
  if (mode !== 'silent') return found;
  for (const { address, info } of others) {
    const name = formatAddress(address);
    const followed = { host: info.get('master_host') ?? '', port: numberIn(info, 'master_port') };
    if (!sameAddress(followed, original.address) && !sameAddress(followed, targetAddress)) found.push(stop(name, `follows ${formatAddress(followed)}, not the master`));
    else if (info.get('master_link_status') !== 'up') found.push(stop(name, 'its replication link is down'));
  }
  return found;
}
