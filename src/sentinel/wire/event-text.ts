/**
 * The payload of an event: who it is about, then what happened.
 *
 * Mirrors sentinelEvent with its `%@`: the channel is the event's name, the payload starts with the instance. Like stock's
 * fixed buffer, a payload ends after 1023 bytes whatever its parts were; unlike it, never inside a character.
 */
import type { Address } from './address.js';

/** The word on the wire for a kind of instance. */
export type InstanceKind = 'master' | 'replica' | 'sentinel';

/** A name (master's name, `host:port` of a replica, run id of a sentinel) and the address to show with it. */
export interface NamedInstance {
  readonly name: string;
  readonly address: Address;
}

/** Whom an event is about; replicas and sentinels belong to a master and show its held address. */
export type EventInstance =
  | (NamedInstance & { readonly kind: 'master' })
  | (NamedInstance & { readonly kind: 'replica' | 'sentinel'; readonly master: NamedInstance });

/** Stock's buffer of 1024 bytes, without its closing zero. */
export const MAX_EVENT_BYTES = 1023;

/** `master <name> <ip> <port>`, or `slave|sentinel <name> <ip> <port> @ <master-name> <master-ip> <master-port>`. */
export function instancePrefix(instance: EventInstance): string {
  if (instance.kind === 'master') return `master ${nameAndAddress(instance)}`;
  return `${instance.kind === 'replica' ? 'slave' : 'sentinel'} ${nameAndAddress(instance)} @ ${nameAndAddress(instance.master)}`;
}

/** The whole payload: the prefix if there is an instance, a blank, the suffix if there is one, cut to {@link MAX_EVENT_BYTES}. */
export function eventPayload(instance: EventInstance | null, suffix = ''): string {
  return cutToBytes([instance === null ? '' : instancePrefix(instance), suffix].filter((part) => part !== '').join(' '), MAX_EVENT_BYTES);
}

/** The longest beginning of `text` that needs at most `maxBytes` bytes in UTF-8 and ends between two characters. */
export function cutToBytes(text: string, maxBytes: number): string {
  // No character needs less than one byte per code unit, nor more than three.
  if (text.length * 3 <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}

const nameAndAddress = ({ name, address }: NamedInstance): string => `${name} ${address.host} ${address.port}`;
