/**
 * From the wish and what is there to the transactions that lead from one to the other. Pure.
 *
 * The key is the fence and part of every write: check-and-set with the index just read, so that no lower order ever passes and
 * two agents never write side by side. One transaction per change; where it would be too long, the first one holds the key, the
 * new primary and whoever claims to be one, and the rest is guarded by the key's new index (publishing.md, section 3).
 */
import { sameAddress } from '../../sentinel/wire/address.js';
import { isHealthy, isOurs } from './entry.js';
import type { Entry, Fence, Snapshot } from './entry.js';
import { checkId, serviceId } from './naming.js';
import { deleteNode, deleteService, nodeMeta, setCheck, setKey, setNode, setService } from './operation.js';
import type { Operation } from './operation.js';
import { PRIMARY_TAGS, REPLICA_TAGS } from './wish.js';
import type { WantedNode, Wish } from './wish.js';

/** Operations that one transaction may hold in Consul 1.8; later ones allow more. */
export const MAX_OPERATIONS = 64;

export type Plan =
  | { readonly kind: 'settled' }
  /** Somebody wrote a higher order: hands off. */
  | { readonly kind: 'newer'; readonly fence: Fence }
  /** The same order with another primary: only the keeper may settle that. */
  | { readonly kind: 'contradicted'; readonly fence: Fence }
  | Write;

export interface Write {
  readonly kind: 'write';
  /** `change`: a higher order than the key's; `repair`: the same order, but something is lost or differs. */
  readonly reason: 'change' | 'repair';
  /** With the key's check-and-set in front. */
  readonly first: readonly Operation[];
  /** Each to be sent with a guard on the key's new index in front. */
  readonly rest: readonly (readonly Operation[])[];
  /** Nodes that are touched, for the log. */
  readonly nodes: readonly string[];
}

export interface PlanOptions {
  /** Whether this agent writes what the order does not decide (publishing.md, rule 2). */
  readonly isKeeper: boolean;
  /** An operator's word: a higher order counts for nothing. */
  readonly force?: boolean;
  readonly maxOperations?: number;
}

/** What has to be done to one node; all of it in one transaction. */
interface Group {
  readonly node: string;
  /** Decides who is primary: belongs into the first transaction. */
  readonly urgent: boolean;
  readonly operations: readonly Operation[];
}

export function planWrite(wish: Wish, snapshot: Snapshot, options: PlanOptions): Plan {
  const { fence, index } = snapshot.key;
  const order = fence?.order ?? -1;
  const forced = options.force === true && order > wish.fence.order;
  if (fence !== null && order > wish.fence.order && !forced) return { kind: 'newer', fence };

  const contradicted = fence !== null && order === wish.fence.order && !sameAddress(fence, wish.fence);
  if (contradicted && !options.isKeeper) return { kind: 'contradicted', fence };

  const isChange = order !== wish.fence.order || contradicted;
  // At the same order others than the keeper only put right who is primary: two views of a replica's health must not fight.
  const groups = isChange || options.isKeeper ? allGroups(wish, snapshot) : primaryGroups(wish, snapshot);
  if (!isChange && groups.length === 0) return { kind: 'settled' };
  const parts = splitGroups(setKey(wish.names.key, wish.fence, index), groups, options.maxOperations ?? MAX_OPERATIONS);
  return { kind: 'write', reason: isChange ? 'change' : 'repair', ...parts, nodes: groups.map(({ node }) => node) };
}

/** Foreign entries under the master's service that look like a primary: they are not ours to change, so they are reported. */
export function foreignClaims(wish: Wish, snapshot: Snapshot): string[] {
  return snapshot.entries
    .filter((entry) => !isOurs(entry, wish.names.label) && isHealthy(entry))
    .map((entry) => `foreign entry ${entry.id} on node ${entry.node}`);
}

function allGroups(wish: Wish, snapshot: Snapshot): Group[] {
  const wanted = wish.nodes.map((node) => nodeGroup(wish, node, snapshot));
  const names = new Set(wish.nodes.map(({ node }) => node));
  const ours = [...snapshot.entries, ...snapshot.replicaEntries].filter((entry) => isOurs(entry, wish.names.label));
  const gone = new Set(ours.map(({ node }) => node).filter((node) => !names.has(node)));
  const deletions = [...gone].map((node): Group => ({
    node, urgent: snapshot.entries.some((entry) => entry.node === node && claimsPrimary(entry)), operations: [deleteNode(node)],
  }));
  return [...wanted, ...deletions].filter(({ operations }) => operations.length > 0);
}

/** The primary's own entries, and those of ours that claim its place. */
function primaryGroups(wish: Wish, snapshot: Snapshot): Group[] {
  const { names, nodes } = wish;
  const groups = nodes.filter(({ role }) => role === 'primary').map((node) => nodeGroup(wish, node, snapshot));
  const rivals = snapshot.entries.filter((entry) => isOurs(entry, names.label) && claimsPrimary(entry) && entry.node !== nodes[0]?.node);
  for (const { node, id, address, port, meta } of rivals) {
    const fields = { ID: id, Service: names.service, Tags: REPLICA_TAGS, Address: address, Port: port, Meta: meta };
    const operations = [setService(node, fields), setCheck(node, names.service, id, false, 'replica')];
    groups.push({ node, urgent: true, operations });
  }
  return groups.filter(({ operations }) => operations.length > 0);
}

function nodeGroup(wish: Wish, wanted: WantedNode, snapshot: Snapshot): Group {
  const { names } = wish;
  const { node, address, role } = wanted;
  const isPrimary = role === 'primary';
  const place = { Address: address.host, Port: address.port };
  const here = snapshot.entries.filter((entry) => entry.node === node);
  const replicasHere = snapshot.replicaEntries.filter((entry) => entry.node === node);
  const known = here[0] ?? replicasHere[0];
  const operations: Operation[] = isNodeRight(wish, wanted, known) ? [] : [setNode(names, wanted)];

  const id = serviceId(names.service, address);
  const entry = here.find((each) => each.id.toLowerCase() === id);
  const tags = isPrimary ? PRIMARY_TAGS : REPLICA_TAGS;
  if (!isServiceRight(wish, wanted, entry, tags)) {
    const meta = { epoch: String(wish.fence.epoch), phase: wish.phase };
    operations.push(setService(node, { ID: id, Service: names.service, Tags: tags, ...place, Meta: meta }));
  }
  if (!isCheckRight(entry, id, isPrimary)) operations.push(setCheck(node, names.service, id, isPrimary, role));

  const replicaId = serviceId(names.replicaService, address);
  const replicaEntry = replicasHere.find((each) => each.id.toLowerCase() === replicaId);
  if (!isAddressRight(replicaEntry, wanted) || !sameWords(replicaEntry?.tags, REPLICA_TAGS)) {
    operations.push(setService(node, { ID: replicaId, Service: names.replicaService, Tags: REPLICA_TAGS, ...place }));
  }
  const health = isPrimary ? 'primary' : wanted.healthy ? 'healthy replica' : 'unhealthy replica';
  if (!isCheckRight(replicaEntry, replicaId, wanted.healthy)) {
    operations.push(setCheck(node, names.replicaService, replicaId, wanted.healthy, health));
  }

  for (const stray of here) if (stray !== entry) operations.push(deleteService(node, stray.id, stray.service));
  for (const stray of replicasHere) if (stray !== replicaEntry) operations.push(deleteService(node, stray.id, stray.service));
  return { node, urgent: isPrimary || here.some(claimsPrimary), operations };
}

function isNodeRight(wish: Wish, { address }: WantedNode, known: Entry | undefined): boolean {
  if (known === undefined || known.nodeAddress !== address.host) return false;
  return Object.entries(nodeMeta(wish.names)).every(([key, value]) => known.nodeMeta[key] === value);
}

/**
 * The epoch is written on entries that change anyway: an entry of a node that did not move keeps the one it has, or every switch
 * would rewrite all. The primary's own is always the current one, and no `prepared` outlives its phase.
 */
function isServiceRight(wish: Wish, wanted: WantedNode, entry: Entry | undefined, tags: readonly string[]): boolean {
  if (entry === undefined || !isAddressRight(entry, wanted) || !sameWords(entry.tags, tags)) return false;
  const { epoch, phase } = entry.meta;
  if (wanted.role === 'primary') return epoch === String(wish.fence.epoch) && phase === wish.phase;
  return phase === wish.phase || phase === 'steady';
}

function isAddressRight(entry: Entry | undefined, { address }: WantedNode): boolean {
  return entry !== undefined && entry.address === address.host && entry.port === address.port;
}

function isCheckRight(entry: Entry | undefined, id: string, isPassing: boolean): boolean {
  const check = entry?.checks.find((each) => each.id === checkId(id));
  return check !== undefined && check.serviceId.toLowerCase() === id && check.status === (isPassing ? 'passing' : 'critical');
}

function sameWords(a: readonly string[] | undefined, b: readonly string[]): boolean {
  return a !== undefined && a.length === b.length && b.every((word) => a.includes(word));
}

function claimsPrimary(entry: Entry): boolean {
  return isHealthy(entry) || entry.tags.some((tag) => PRIMARY_TAGS.includes(tag));
}

function splitGroups(key: Operation, groups: readonly Group[], max: number): Pick<Write, 'first' | 'rest'> {
  const all = [key, ...groups.flatMap(({ operations }) => operations)];
  if (all.length <= max) return { first: all, rest: [] };
  const first = [key, ...groups.filter(({ urgent }) => urgent).flatMap(({ operations }) => operations)];
  const rest: Operation[][] = [];
  for (const { operations } of groups.filter(({ urgent }) => !urgent)) {
    const last = rest.at(-1);
    // One place is the guard's.
    if (last !== undefined && last.length + operations.length < max) last.push(...operations);
    else rest.push([...operations]);
  }
  return { first, rest };
}
