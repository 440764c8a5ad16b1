/**
 * The operations of PUT /v1/txn that this publisher uses, and how they are made. Pure.
 *
 * Traps of the API that these makers keep: node before service before check; a service delete needs ID and name; a service's
 * check carries the service's ID and name; no check has a Definition and none hangs on the node, so that consul-esm leaves the
 * external nodes alone.
 */
import { formatFence } from './entry.js';
import type { Fence } from './entry.js';
import { OWNER_META, checkId } from './naming.js';
import type { MasterNames } from './naming.js';
import type { WantedNode } from './wish.js';

export type Operation =
  | { readonly KV: KeyOperation }
  | { readonly Node: { readonly Verb: 'set' | 'delete'; readonly Node: NodeFields } }
  | { readonly Service: { readonly Verb: 'set' | 'delete'; readonly Node: string; readonly Service: ServiceFields } }
  | { readonly Check: { readonly Verb: 'set' | 'delete'; readonly Check: CheckFields } };

export interface KeyOperation {
  readonly Verb: 'cas' | 'delete-cas' | 'check-index' | 'set';
  readonly Key: string;
  /** base64. */
  readonly Value?: string;
  readonly Index?: number;
}

export interface NodeFields {
  readonly Node: string;
  readonly Address?: string;
  readonly Meta?: Readonly<Record<string, string>>;
}

export interface ServiceFields {
  readonly ID: string;
  readonly Service: string;
  readonly Tags?: readonly string[];
  readonly Address?: string;
  readonly Port?: number;
  readonly Meta?: Readonly<Record<string, string>>;
}

export interface CheckFields {
  readonly Node: string;
  readonly CheckID: string;
  readonly Name?: string;
  readonly Status?: 'passing' | 'critical';
  readonly Output?: string;
  readonly ServiceID?: string;
  readonly ServiceName?: string;
}

/** `index` 0: the key must not exist yet. */
export function setKey(key: string, fence: Fence, index: number): Operation {
  return { KV: { Verb: 'cas', Key: key, Value: Buffer.from(formatFence(fence)).toString('base64'), Index: index } };
}

export function deleteKey(key: string, index: number): Operation {
  return { KV: { Verb: 'delete-cas', Key: key, Index: index } };
}

export function guardKey(key: string, index: number): Operation {
  return { KV: { Verb: 'check-index', Key: key, Index: index } };
}

/** Meta of an external node: nobody probes it, nobody reaps it, and it says whose it is. */
export function nodeMeta(names: MasterNames): Record<string, string> {
  return { 'external-node': 'true', 'external-probe': 'false', [OWNER_META]: names.label };
}

export function setNode(names: MasterNames, { node, address }: WantedNode): Operation {
  return { Node: { Verb: 'set', Node: { Node: node, Address: address.host, Meta: nodeMeta(names) } } };
}

/** Takes the node's services and checks along. */
export function deleteNode(node: string): Operation {
  return { Node: { Verb: 'delete', Node: { Node: node } } };
}

export function setService(node: string, service: ServiceFields): Operation {
  return { Service: { Verb: 'set', Node: node, Service: service } };
}

export function deleteService(node: string, id: string, service: string): Operation {
  return { Service: { Verb: 'delete', Node: node, Service: { ID: id, Service: service } } };
}

/** The check that decides whether plain look-ups of `service` find this entry. */
export function setCheck(node: string, service: string, id: string, isPassing: boolean, output: string): Operation {
  const fields: CheckFields = {
    Node: node, CheckID: checkId(id), Name: `pointsman: ${service}`, Status: isPassing ? 'passing' : 'critical', Output: output,
    ServiceID: id, ServiceName: service,
  };
  return { Check: { Verb: 'set', Check: fields } };
}
