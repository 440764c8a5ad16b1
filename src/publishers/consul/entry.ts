/**
 * What is there: answers of Consul, read without trust into a snapshot of one master.
 *
 * Pure. Whatever has another shape than the API documents is skipped or counts as absent, never a crash: a store that several
 * programs write to holds anything sooner or later.
 */
import { OWNER_META } from './naming.js';

/** The value of a master's key: who is primary, by which order, says who. Clients may read it. */
export interface Fence {
  readonly host: string;
  readonly port: number;
  readonly epoch: number;
  readonly order: number;
  /** Id of the agent that wrote it. */
  readonly writer: string;
  /** Since when, ISO 8601, by the writer's clock. */
  readonly since: string;
}

/** The key as read. `index` 0 = absent; `fence` null = absent, or not ours to read (`unreadable`). */
export interface KeyState {
  readonly fence: Fence | null;
  readonly index: number;
  readonly unreadable: boolean;
}

/** One service instance with its node and its checks. */
export interface Entry {
  readonly node: string;
  readonly nodeAddress: string;
  readonly nodeMeta: Readonly<Record<string, string>>;
  readonly id: string;
  readonly service: string;
  readonly tags: readonly string[];
  readonly address: string;
  readonly port: number;
  readonly meta: Readonly<Record<string, string>>;
  readonly checks: readonly EntryCheck[];
}

export interface EntryCheck {
  readonly id: string;
  readonly status: string;
  /** Empty: a check of the whole node. */
  readonly serviceId: string;
}

/** Everything that Consul says about one master. */
export interface Snapshot {
  readonly key: KeyState;
  /** Under the master's own service, ours and foreign ones. */
  readonly entries: readonly Entry[];
  /** Under `-replica`. */
  readonly replicaEntries: readonly Entry[];
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
const fields = (value: unknown): Fields => (isFields(value) ? value : {});
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const whole = (value: unknown): number => (typeof value === 'number' && Number.isSafeInteger(value) ? value : 0);
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

function textMap(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(fields(value)).flatMap(([key, item]) => (typeof item === 'string' ? [[key, item]] : [])));
}

/** The answer of GET /v1/health/service/<name>. */
export function parseEntries(body: unknown): Entry[] {
  return list(body).flatMap((item) => {
    const { Node: node, Service: service, Checks: checks } = fields(item);
    if (!isFields(node) || !isFields(service)) return [];
    return [{
      node: text(node['Node']), nodeAddress: text(node['Address']), nodeMeta: textMap(node['Meta']),
      id: text(service['ID']), service: text(service['Service']), tags: list(service['Tags']).map(text),
      address: text(service['Address']), port: whole(service['Port']), meta: textMap(service['Meta']),
      checks: list(checks).map(fields).map((check) => ({
        id: text(check['CheckID']), status: text(check['Status']), serviceId: text(check['ServiceID']),
      })),
    }];
  });
}

/** The item of GET /v1/kv/<key> with its value decoded; undefined = 404. */
export function parseKey(item: unknown): KeyState {
  if (!isFields(item)) return { fence: null, index: 0, unreadable: false };
  const fence = parseFence(text(item['Value']));
  return { fence, index: whole(item['ModifyIndex']), unreadable: fence === null };
}

/** Reads {@link formatFence}'s text; null when it is something else. */
export function parseFence(value: string): Fence | null {
  let read: unknown;
  try {
    read = JSON.parse(value);
  } catch {
    // Somebody else's text under our key: it carries no order.
    return null;
  }
  const { host, port, epoch, order, writer, since } = fields(read);
  if (typeof host !== 'string' || host === '' || !Number.isSafeInteger(port) || !Number.isSafeInteger(order)) return null;
  return { host, port: whole(port), epoch: whole(epoch), order: whole(order), writer: text(writer), since: text(since) };
}

/** The key's value as it is written: JSON on one line. */
export function formatFence({ host, port, epoch, order, writer, since }: Fence): string {
  return JSON.stringify({ host, port, epoch, order, writer, since });
}

/** Whether an entry sits on a node that this master's agents made. */
export function isOurs(entry: Entry, label: string): boolean {
  return entry.nodeMeta[OWNER_META] === label;
}

/** Whether clients that ask for healthy entries get this one: no check that is not passing. */
export function isHealthy(entry: Entry): boolean {
  return entry.checks.every((check) => check.status === 'passing' || check.status === 'warning');
}
