/**
 * Calls to Consul that always end: every one has a deadline and can be cancelled, and every failure becomes a ConsulError.
 *
 * Through the `consul` package, whose habits are dealt with here: it has no default time-out (a half-open link or a cut answer would
 * never settle), ignores AbortSignal (cancel goes by an emitter), puts little into messages (status code and body tell), types
 * transactions wrongly, and drops the filter header. After a time-out or a broken link the connections are thrown away, so that
 * the next call takes no dead socket, and certificates are read anew.
 */
import Consul from 'consul';
import { EventEmitter } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { AgentError, messageOf } from '../../errors.js';
import { formatAddress } from '../../sentinel/wire/address.js';
import { parseEntries, parseKey } from './entry.js';
import type { Entry, KeyState } from './entry.js';
import { ConsulError, faultOf, operationErrors } from './fault.js';
import type { FailedCall, OperationError } from './fault.js';
import type { Operation } from './operation.js';
import type { ConsulSettings } from './settings.js';
import type { Token } from './token.js';

/** Deadline of a call that does not wait for a change. */
export const CALL_DEADLINE_MS = 2_500;

export interface ReadOptions {
  readonly signal: AbortSignal;
  /** Blocking: answer once something is newer than this index, or after `waitMs` (and up to a 16th of it more). */
  readonly newerThan?: number;
  readonly waitMs?: number;
}

export interface Answer<T> {
  readonly value: T;
  /** X-Consul-Index; 0 when it is missing. */
  readonly index: number;
  readonly elapsedMs: number;
}

export type TransactionAnswer =
  /** `keyIndex`: the key's index from now on; 0 when the transaction held no key. */
  | { readonly kind: 'applied'; readonly keyIndex: number }
  /** Nothing was applied. */
  | { readonly kind: 'rejected'; readonly errors: readonly OperationError[] };

/** A service of the local agent, with the status of its own check. */
export interface LocalService {
  readonly id: string;
  readonly service: string;
  readonly tags: readonly string[];
  readonly address: string;
  readonly port: number;
  readonly meta: Readonly<Record<string, string>>;
}

export interface LocalRegistration extends LocalService {
  readonly checkId: string;
  readonly checkName: string;
}

interface Response {
  readonly statusCode?: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body?: unknown;
}
type Options = Readonly<Record<string, unknown>>;
type Call = (options: Options) => Promise<[Response, unknown?]>;

/** The part of the package that is used here, as it really behaves with `includeResponse` on the context. */
interface Api {
  readonly kv: { get: Call };
  readonly health: { service: Call };
  readonly catalog: { nodes: Call };
  readonly transaction: { create(operations: readonly Operation[], options: Options): Promise<[Response, unknown?]> };
  readonly agent: {
    readonly service: { list: Call; register: Call; deregister: Call };
    readonly check: { list: Call; pass: Call; fail: Call };
  };
  destroy(): void;
}
type ApiCall = (api: Api, common: Options) => Promise<[Response, unknown?]>;

export class ConsulClient {
  /** host:port, for messages. */
  readonly at: string;
  readonly #settings: ConsulSettings;
  readonly #token: Token;
  readonly #url: URL;
  #api: Promise<Api> | null = null;

  constructor(settings: ConsulSettings, token: Token) {
    this.#settings = settings;
    this.#token = token;
    this.#url = new URL(settings.address);
    const port = Number(this.#url.port) || (this.#url.protocol === 'https:' ? 443 : 80);
    this.at = formatAddress({ host: this.#host, port });
  }

  get #host(): string {
    return this.#url.hostname.replace(/^\[(.*)\]$/, '$1');
  }

  /** The key with its index; reading it without the right is an error, not absence. */
  async readKey(key: string, options: ReadOptions): Promise<Answer<KeyState>> {
    return await this.#read(`GET /v1/kv/${key}`, options, (api, common) => api.kv.get({ key, ...common }), parseKey);
  }

  /** All entries of a service, healthy or not. An answer that Consul has filtered by rights is an error, since it proves nothing. */
  async readEntries(service: string, options: ReadOptions): Promise<Answer<Entry[]>> {
    const call: ApiCall = (api, common) => api.health.service({ service, ...common });
    return await this.#read(`GET /v1/health/service/${service}`, options, call, parseEntries);
  }

  /** The nodes that carry a master's Meta. */
  async readNodes(meta: string, options: ReadOptions): Promise<Answer<string[]>> {
    const parse = (body: unknown): string[] => rows(body).map((row) => words(row, 'Node'));
    const call: ApiCall = (api, common) => api.catalog.nodes({ 'node-meta': meta, ...common });
    return await this.#read('GET /v1/catalog/nodes', options, call, parse);
  }

  /** Sends one transaction: all of it is applied or nothing. Rejects where that is not known (ConsulError.isUncertain). */
  async transact(operations: readonly Operation[], signal: AbortSignal): Promise<TransactionAnswer> {
    const call: ApiCall = (api, common) => api.transaction.create(operations, common);
    try {
      const [, body] = await this.#call('PUT /v1/txn', { signal }, call);
      return { kind: 'applied', keyIndex: keyIndexOf(body) };
    } catch (error) {
      if (error instanceof RejectedTransaction) return { kind: 'rejected', errors: error.errors };
      throw error;
    }
  }

  /** What the local agent has registered, as far as the token may see it. */
  async localServices(signal: AbortSignal): Promise<LocalService[]> {
    const [, body] = await this.#call('GET /v1/agent/services', { signal }, (api, common) => api.agent.service.list(common));
    return rows(body).map((row) => ({
      id: words(row, 'ID'), service: words(row, 'Service'), address: words(row, 'Address'), port: Number(row['Port']) || 0,
      tags: Array.isArray(row['Tags']) ? row['Tags'].map(String) : [],
      meta: Object.fromEntries(Object.entries(row['Meta'] ?? {}).map(([key, value]) => [key, String(value)])),
    }));
  }

  /** Check ID → status, of the local agent. */
  async localChecks(signal: AbortSignal): Promise<Map<string, string>> {
    const [, body] = await this.#call('GET /v1/agent/checks', { signal }, (api, common) => api.agent.check.list(common));
    return new Map(rows(body).map((row) => [words(row, 'CheckID'), words(row, 'Status')]));
  }

  /** Registers or changes a service of the local agent; the status of a check that is there already stays as it is. */
  async register({ id, service, tags, address, port, meta, checkId, checkName }: LocalRegistration, signal: AbortSignal): Promise<void> {
    // Longer than any machine lives: without news the last word stands (fail static). Status counts for a new check only.
    const check = { checkid: checkId, name: checkName, ttl: '87600h', status: 'critical' };
    const fields = { id, name: service, tags, address, port, meta, check };
    const call: ApiCall = (api, common) => api.agent.service.register({ ...fields, ...common });
    await this.#call('PUT /v1/agent/service/register', { signal }, call);
  }

  async deregister(id: string, signal: AbortSignal): Promise<void> {
    const call: ApiCall = (api, common) => api.agent.service.deregister({ id, ...common });
    await this.#call(`PUT /v1/agent/service/deregister/${id}`, { signal }, call);
  }

  async setLocalCheck(id: string, isPassing: boolean, note: string, signal: AbortSignal): Promise<void> {
    const verb = isPassing ? 'pass' : 'fail';
    const call: ApiCall = (api, common) => api.agent.check[verb]({ id, note, ...common });
    await this.#call(`PUT /v1/agent/check/${verb}/${id}`, { signal }, call);
  }

  /** Ends all connections; a later call opens new ones. */
  close(): void {
    const api = this.#api;
    this.#api = null;
    // A connection that could not be made has nothing to destroy; whoever asked for it has been told.
    api?.then((made) => made.destroy(), () => undefined);
  }

  async #read<T>(name: string, options: ReadOptions, call: ApiCall, parse: (body: unknown) => T): Promise<Answer<T>> {
    const startedMs = performance.now();
    const [response, body] = await this.#call(name, options, call);
    const elapsedMs = performance.now() - startedMs;
    if (response.headers['x-consul-results-filtered-by-acls'] === 'true') {
      throw new ConsulError('denied', `consul at ${this.at} hides part of ${name}: the token may not read all of it`, { call: name });
    }
    return { value: parse(body), index: Number(response.headers['x-consul-index']) || 0, elapsedMs };
  }

  async #call(name: string, options: ReadOptions, call: ApiCall): Promise<[Response, unknown?]> {
    const token = await this.#token.value();
    try {
      return await this.#attempt(name, options, token, call);
    } catch (error) {
      const isAboutToken = error instanceof ConsulError && (error.kind === 'unknownToken' || error.kind === 'denied');
      // Somebody may have rotated the file: with another token the call is worth one more try at once.
      if (!isAboutToken || !(await this.#token.refresh())) throw error;
      return await this.#attempt(name, options, await this.#token.value(), call);
    }
  }

  async #attempt(
    name: string, { signal, newerThan = 0, waitMs = 0 }: ReadOptions, token: string | null, call: ApiCall,
  ): Promise<[Response, unknown?]> {
    const timeout = newerThan > 0 ? Math.ceil(waitMs * 1.1) + 1_000 : CALL_DEADLINE_MS;
    const context = Object.assign(new EventEmitter(), { includeResponse: true });
    const cancel = (): void => { context.emit('cancel'); };
    this.#api ??= this.#connect();
    const connecting = this.#api;
    try {
      const api = await connecting;
      if (signal.aborted) throw new ConsulError('cancelled', `consul at ${this.at} was not asked: ${name}`);
      signal.addEventListener('abort', cancel, { once: true });
      const blocking = newerThan > 0 ? { index: String(newerThan), wait: `${waitMs}ms` } : {};
      const answer: unknown = await call(api, { ctx: context, timeout, ...(token === null ? {} : { token }), ...blocking });
      // The package tells a failure by instanceof and passes on one from another realm (a test runner's) as if it were the answer.
      if (!Array.isArray(answer)) throw answer;
      return answer as [Response, unknown?];
    } catch (thrown) {
      const error = thrown instanceof AgentError ? thrown : this.#translate(name, thrown, timeout);
      if (isBroken(error) && this.#api === connecting) this.close();
      throw error;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  #translate(call: string, thrown: unknown, deadlineMs: number): Error {
    const error = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as {
      response?: Response; code?: unknown; isTimeout?: unknown; isAbort?: unknown;
    };
    const { response } = error;
    const errors = response?.statusCode === 409 ? operationErrors(response.body) : [];
    if (errors.length > 0) return new RejectedTransaction(errors);
    const failed: FailedCall = {
      call, at: this.at, deadlineMs, statusCode: response?.statusCode ?? null, body: textOf(response?.body),
      message: messageOf(thrown), code: typeof error.code === 'string' ? error.code : '',
      isTimeout: error.isTimeout === true, isAbort: error.isAbort === true,
    };
    return faultOf(failed);
  }

  async #connect(): Promise<Api> {
    const { caFile, certFile, keyFile, tlsServerName, namespace, datacenter } = this.#settings;
    const isSecure = this.#url.protocol === 'https:';
    const files = isSecure ? { ca: caFile, cert: certFile, key: keyFile } : {};
    const pems = Object.entries(files).map(async ([name, path]) => (path === null ? [] : [[name, await this.#readPem(path)] as const]));
    const tls = Object.fromEntries((await Promise.all(pems)).flat());
    const servername = isSecure && tlsServerName !== null ? { servername: tlsServerName } : {};
    // The agent's own host counts: the package keeps the brackets of an IPv6 address, which no resolver knows.
    const target = { keepAlive: true, host: this.#host };
    const agent = isSecure ? new HttpsAgent({ ...target, ...tls, ...servername }) : new HttpAgent(target);
    const options = {
      baseUrl: `${this.#url.origin}/v1`, agent, ...tls, ...servername,
      headers: namespace === null ? {} : { 'X-Consul-Namespace': namespace },
      defaults: datacenter === null ? {} : { dc: datacenter },
    };
    return new Consul(options) as unknown as Api;
  }

  async #readPem(path: string): Promise<string> {
    try {
      return await readFile(path, 'utf8');
    } catch (error) {
      throw new AgentError('PUBLISH_FAILED', `consul certificate file ${path} cannot be read: ${messageOf(error)}`, { path });
    }
  }
}

/** Inside this file only: a 409 that lists operations is an answer, not a failure. */
class RejectedTransaction extends Error {
  constructor(readonly errors: readonly OperationError[]) {
    super('transaction rejected');
  }
}

/** Whether the next call needs new connections: the link is dead, or they could not even be made ready. */
function isBroken(error: Error): boolean {
  return error instanceof ConsulError ? error.kind === 'timeout' || error.kind === 'unreachable' : error instanceof AgentError;
}

type Row = Readonly<Record<string, unknown>>;

/** The objects of a list, or the values of a map of objects. */
function rows(body: unknown): Row[] {
  const items: unknown[] = typeof body === 'object' && body !== null ? Object.values(body) : [];
  return items.filter((item): item is Row => typeof item === 'object' && item !== null);
}

function words(row: Row, field: string): string {
  const value = row[field];
  return typeof value === 'string' ? value : '';
}

function keyIndexOf(body: unknown): number {
  const results = typeof body === 'object' && body !== null && 'Results' in body ? body.Results : null;
  const key = rows(results).map((row) => row['KV']).find((item) => typeof item === 'object' && item !== null);
  return key !== undefined && 'ModifyIndex' in (key as object) ? Number((key as { ModifyIndex: unknown }).ModifyIndex) || 0 : 0;
}

function textOf(body: unknown): string {
  if (typeof body === 'string') return body;
  if (Buffer.isBuffer(body)) return body.toString('utf8');
  return body === undefined || body === null ? '' : JSON.stringify(body);
}
