/**
 * What a modelled node knows of its clients, what its watchers hear, and which commands it refuses while it loads or is busy.
 */
import type { Address } from '../../src/sentinel/wire/address.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import { error } from '../../src/sentinel/wire/resp-value.js';
import type { Machine, Socket } from './network.js';
import type { RedisNode } from './redis-node.js';

/** Sizes and durations of a node. */
export interface RedisOptions {
  readonly backlogSize: number;
  /** Longest handshake, snapshot and loading times. */
  readonly maxHandshakeMs: number;
  readonly maxSnapshotMs: number;
  readonly maxLoadingMs: number;
  readonly replTimeoutMs: number;
  /** A master's PINGs in the stream; 10 s when absent. */
  readonly streamPingMs?: number;
}

/** A connection as the server sees it. */
export interface Session {
  readonly socket: Socket;
  kind: 'normal' | 'pubsub' | 'replica';
  channels: Set<string>;
  /** Queued commands of a MULTI. */
  multi: (readonly string[])[] | null;
  /** One of them was refused. */
  isAborted: boolean;
  /** A replica's address, and whether the stream flows to it. */
  from: string;
  online: boolean;
  ackOffset: number;
  /** What waits for the end of a pause; nothing overtakes it. */
  readonly held: (readonly string[])[];
}

/** What the node tells those who watch the simulation. */
export interface NodeWatcher {
  replicaOf(node: RedisNode, target: Address | null, by: Machine | null): void;
  note(node: RedisNode, text: string): void;
  /** A write was executed; `local`: on a writable replica. */
  wrote?(node: RedisNode, value: number, local: boolean): void;
  /** A command, or a transaction as a whole, made a replica a master. */
  promoted?(node: RedisNode, by: Machine | null): void;
  /** A full resync replaced all its data. */
  replaced?(node: RedisNode): void;
}

/** What a server answers while a script runs, and while it loads. */
const PASS_BUSY = /^(?:SCRIPT|MULTI|AUTH|HELLO)$/;
const PASS_LOADING = /^(?:INFO|ROLE|MULTI|EXEC|CONFIG|CLIENT|SUBSCRIBE|PUBLISH|SCRIPT|AUTH|HELLO)$/;

export const READONLY = "READONLY You can't write against a read only replica.";

/** Why a command is not even looked at; null: it is. */
export function refusalOf(word: string, node: { readonly isBusy: boolean; readonly isLoading: boolean }): RespValue | null {
  if (node.isBusy && !PASS_BUSY.test(word)) return error('BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.');
  if (node.isLoading && !PASS_LOADING.test(word)) return error('LOADING Redis is loading the dataset in memory');
  return null;
}
