/**
 * Step 1: asks everybody everything and changes nothing. The answers become findings (findings.ts) and a plan.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../errors.js';
import type { Address } from '../../sentinel/wire/address.js';
import { sameAddress } from '../../sentinel/wire/address.js';
import { infoFields, numberIn, pairsOf } from '../fields.js';
import type { Finding, GroupFacts, NodeFacts } from '../findings.js';
import { judgePreflight, MOST_BACKLOG_BYTES } from '../findings.js';
import type { Group } from '../group.js';
import type { Links } from '../links.js';
import type { Mode, Plan } from '../plan.js';

export interface Request {
  readonly contacts: readonly Address[];
  readonly master: string;
  readonly target: Address;
  readonly mode: Mode;
  readonly barrier: boolean;
  readonly drainTimeoutMs: number;
  readonly onDrainTimeout: 'abort' | 'proceed';
  readonly publishTimeoutMs: number;
  readonly resyncTimeoutMs: number;
  readonly waitSyncMs: number;
}

export interface Preflight {
  readonly plan: Plan;
  readonly findings: readonly Finding[];
}

const SAMPLE_MS = 1_000;
/** What a window takes beside the drain: elections, outputs, TTL. */
const WINDOW_EXTRA_MS = 30_000;
const SMALLEST_BACKLOG_BYTES = 1024 * 1024;

/** Rejects with AgentError AGENT_UNREACHABLE when no sentinel or not the master can be asked. */
export async function preflight(links: Links, group: Group, request: Request): Promise<Preflight> {
  const members = await group.discover(request.contacts);
  // Outputs look again whether what they published is still there; the answer is read at the end.
  await group.allOutputs(members.sentinels, true);
  const original = await readNode(links, members.master);
  const reads = await Promise.all(members.replicas.map((address) => readNode(links, address).catch(() => null)));
  const replicas = reads.filter((each) => each !== null);
  const unreachable = members.replicas.filter((_, index) => reads[index] === null);
  const target = replicas.find(({ address }) => sameAddress(address, request.target)) ?? null;
  const isMaster = sameAddress(members.master, request.target);
  await sleep(SAMPLE_MS);
  const later = infoFields(await links.text(members.master, 'INFO', 'replication'));
  const written = numberIn(later, 'master_repl_offset') - numberIn(original.info, 'master_repl_offset');
  const bytesPerSecond = Math.max(0, Math.round(written / (SAMPLE_MS / 1000)));
  const windowSeconds = (request.drainTimeoutMs + WINDOW_EXTRA_MS) / 1000;
  const backlogBytes = Math.max(SMALLEST_BACKLOG_BYTES, Math.round(2 * bytesPerSecond * windowSeconds));
  const sentinels = await Promise.all(members.sentinels.map((address) => group.inspect(address)));
  const facts: GroupFacts = {
    master: request.master, mode: request.mode, waitSync: request.waitSyncMs > 0, sentinels, original,
    noQuorum: await whyNoQuorum(group, members.sentinels),
    target: isMaster ? original : target,
    targetAddress: request.target,
    others: replicas.filter((each) => each !== target),
    unreachableNodes: unreachable.filter((address) => !sameAddress(address, request.target)),
    bytesPerSecond, backlogBytes,
    differingUsers: target === null ? [] : await differingUsers(links, members.master, target.address),
  };
  const plan: Plan = {
    id: randomBytes(8).toString('hex'), master: request.master, mode: request.mode, barrier: request.barrier,
    original: members.master, target: request.target, others: facts.others.map(({ address }) => address), sentinels: members.sentinels,
    drainTimeoutMs: request.drainTimeoutMs, onDrainTimeout: request.onDrainTimeout, publishTimeoutMs: request.publishTimeoutMs,
    resyncTimeoutMs: request.resyncTimeoutMs, waitSyncMs: request.waitSyncMs, backlogBytes: Math.min(backlogBytes, MOST_BACKLOG_BYTES),
  };
  return { plan, findings: judgePreflight(facts) };
}

export async function readNode(links: Links, address: Address): Promise<NodeFacts> {
  const info = infoFields(await links.text(address, 'INFO'));
  const config = pairsOf(await links.ask(address, ['CONFIG', 'GET', '*']));
  return { address, info, config };
}

async function whyNoQuorum(group: Group, sentinels: readonly Address[]): Promise<string> {
  let reason = 'no sentinel answers';
  for (const sentinel of sentinels) {
    try {
      await group.links.ask(sentinel, ['SENTINEL', 'CKQUORUM', group.master]);
      return '';
    } catch (fault) {
      reason = messageOf(fault);
    }
  }
  return reason;
}

/** ACL users whose rules differ. Servers that don't tell (rights, age) differ in nothing. */
async function differingUsers(links: Links, from: Address, to: Address): Promise<string[]> {
  const [ours, theirs] = await Promise.all([from, to].map(async (address) => {
    const reply = await links.ask(address, ['ACL', 'LIST']).catch(() => []);
    return new Map((Array.isArray(reply) ? reply.map(String) : []).map((line) => [line.split(' ')[1] ?? '', line] as const));
  }));
  return [...(ours ?? [])].filter(([name, line]) => theirs?.get(name) !== line).map(([name]) => name);
}
