/**
 * Agent mode: what this host's own Consul agent must be told about this host's own Redis nodes, and in which order. Pure.
 *
 * No transaction spans hosts, so the loser goes first: check before tags where a node loses its role, tags before check where it
 * wins one. Registering again never changes the status of a check that is there, hence the separate steps.
 */
import type { LocalRegistration, LocalService } from './client.js';
import { OWNER_META, checkId, serviceId } from './naming.js';
import { PRIMARY_TAGS, REPLICA_TAGS } from './wish.js';
import type { WantedNode, Wish } from './wish.js';

export type LocalStep =
  | { readonly kind: 'register'; readonly registration: LocalRegistration }
  | { readonly kind: 'check'; readonly id: string; readonly isPassing: boolean; readonly note: string }
  | { readonly kind: 'deregister'; readonly id: string };

/** What the local agent has now. */
export interface LocalState {
  readonly services: readonly LocalService[];
  /** Check ID → status. */
  readonly checks: ReadonlyMap<string, string>;
}

/** The steps from what is there to the wish; `nodes` are those of the wish that live on this host. */
export function planLocal(wish: Wish, nodes: readonly WantedNode[], state: LocalState): LocalStep[] {
  const replicas = nodes.filter(({ role }) => role === 'replica');
  const primaries = nodes.filter(({ role }) => role === 'primary');
  const losing = [...replicas.map((node) => mainEntry(wish, node)), ...primaries.map((node) => replicaEntry(wish, node))];
  const winning = [...primaries.map((node) => mainEntry(wish, node)), ...replicas.map((node) => replicaEntry(wish, node))];
  const wanted = new Set([...losing, ...winning].map(({ registration }) => registration.id));
  const gone = state.services.filter((service) => isOursLocally(service, wish) && !wanted.has(service.id.toLowerCase()));
  return [
    ...gone.map(({ id }): LocalStep => ({ kind: 'deregister', id })),
    ...[...losing, ...winning].flatMap((entry) => stepsOf(wish, entry, state)),
  ];
}

interface LocalEntry {
  readonly registration: LocalRegistration;
  readonly isPassing: boolean;
  readonly note: string;
}

/** Registered by an agent in this mode for this master: what an address that left this host leaves behind. */
function isOursLocally(service: LocalService, { names }: Wish): boolean {
  return service.meta[OWNER_META] === names.label && (service.service === names.service || service.service === names.replicaService);
}

function mainEntry(wish: Wish, node: WantedNode): LocalEntry {
  const isPrimary = node.role === 'primary';
  const meta = { epoch: String(wish.fence.epoch), phase: wish.phase };
  return entryOf(wish, wish.names.service, node, isPrimary ? PRIMARY_TAGS : REPLICA_TAGS, meta, isPrimary, node.role);
}

function replicaEntry(wish: Wish, node: WantedNode): LocalEntry {
  const note = node.role === 'primary' ? 'primary' : node.healthy ? 'healthy replica' : 'unhealthy replica';
  return entryOf(wish, wish.names.replicaService, node, REPLICA_TAGS, {}, node.healthy, note);
}

function entryOf(
  { names }: Wish, service: string, { address }: WantedNode, tags: readonly string[], meta: Record<string, string>,
  isPassing: boolean, note: string,
): LocalEntry {
  const id = serviceId(service, address);
  const registration = {
    id, service, tags, address: address.host, port: address.port, meta: { [OWNER_META]: names.label, ...meta },
    checkId: checkId(id), checkName: `pointsman: ${service}`,
  };
  return { registration, isPassing, note };
}

function stepsOf(wish: Wish, { registration, isPassing, note }: LocalEntry, { services, checks }: LocalState): LocalStep[] {
  const known = services.find(({ id }) => id.toLowerCase() === registration.id);
  const status = known === undefined ? undefined : checks.get(registration.checkId);
  const isThere = status !== undefined && isRegistered(wish, registration, known);
  const register: LocalStep[] = isThere ? [] : [{ kind: 'register', registration }];
  const isRight = (status ?? 'critical') === (isPassing ? 'passing' : 'critical');
  const check: LocalStep[] = isRight ? [] : [{ kind: 'check', id: registration.checkId, isPassing, note }];
  return isPassing ? [...register, ...check] : [...check, ...register];
}

/** As in catalog mode: the epoch of an entry that did not change otherwise is left, but for the primary's. */
function isRegistered({ fence, phase }: Wish, wanted: LocalRegistration, known: LocalService | undefined): boolean {
  if (known === undefined || known.service !== wanted.service) return false;
  if (known.address !== wanted.address || known.port !== wanted.port) return false;
  if (known.tags.length !== wanted.tags.length || !wanted.tags.every((tag) => known.tags.includes(tag))) return false;
  if (known.meta[OWNER_META] !== wanted.meta[OWNER_META]) return false;
  if (wanted.meta['epoch'] === undefined) return true;
  if (wanted.tags.includes('primary')) return known.meta['epoch'] === String(fence.epoch) && known.meta['phase'] === phase;
  return known.meta['phase'] === phase || known.meta['phase'] === 'steady';
}
