/**
 * What went wrong between us and Consul, from status code, body and error to one word and one sentence. Pure.
 *
 * Consul compares indexes and says so in prose; the words matched here are those of 1.8 to 1.20. A refusal inside a transaction
 * is a bare `Permission denied` per operation in 1.8, so the missing rule is named from the operation itself.
 */
import { AgentError } from '../../errors.js';
import { NODE_PREFIX } from './naming.js';
import type { Operation } from './operation.js';

export type FaultKind =
  /** No answer in time, a cut connection or a server error: a write may or may not have been applied. */
  | 'timeout' | 'unreachable' | 'serverError'
  /** The agent is there, but the cluster has no leader now. */
  | 'noLeader'
  /** 429 or 503: come back later. */
  | 'busy'
  /** A rule of the token's policy is missing; `unknownToken`: the token itself is. */
  | 'denied' | 'unknownToken'
  /** Our request was wrong, or not meant for this Consul (namespace, datacenter, TLS). */
  | 'refused'
  /** Given up by ourselves. */
  | 'cancelled';

/** An operational failure of Consul with its kind; `AgentError` to everybody else. */
export class ConsulError extends AgentError {
  constructor(readonly kind: FaultKind, message: string, context: Readonly<Record<string, unknown>> = {}) {
    super(kind === 'timeout' ? 'PUBLISH_TIMEOUT' : 'PUBLISH_FAILED', message, { kind, ...context });
  }

  /** Whether a write that ended so may have been applied all the same. */
  get isUncertain(): boolean {
    return this.kind === 'timeout' || this.kind === 'unreachable' || this.kind === 'serverError' || this.kind === 'noLeader';
  }
}

/** What the client knows of a failed call. */
export interface FailedCall {
  /** Method and path, e.g. `PUT /v1/txn`. */
  readonly call: string;
  /** host:port. */
  readonly at: string;
  readonly deadlineMs: number;
  readonly statusCode: number | null;
  readonly body: string;
  /** Of the socket or the runtime, e.g. ECONNREFUSED; empty when there was an answer. */
  readonly code: string;
  readonly message: string;
  readonly isTimeout: boolean;
  readonly isAbort: boolean;
}

export function faultOf(failed: FailedCall): ConsulError {
  const { call, at, statusCode } = failed;
  const kind = kindOf(failed);
  const context = { at, call, statusCode };
  return new ConsulError(kind, `consul at ${at} ${sentenceOf(kind, failed)}`, context);
}

function kindOf({ statusCode, body, isTimeout, isAbort }: FailedCall): FaultKind {
  if (isAbort) return 'cancelled';
  if (isTimeout) return 'timeout';
  if (statusCode === null) return 'unreachable';
  if (/ACL not found/.test(body)) return 'unknownToken';
  if (/Permission denied/.test(body)) return 'denied';
  if (statusCode === 429 || statusCode === 503) return 'busy';
  if (/No cluster leader|leadership/i.test(body)) return 'noLeader';
  return statusCode >= 500 && !/No path to datacenter/.test(body) ? 'serverError' : 'refused';
}

function sentenceOf(kind: FaultKind, { call, statusCode, body, code, message, deadlineMs }: FailedCall): string {
  const said = body.trim().slice(0, 300) || message;
  switch (kind) {
    case 'cancelled': return `was given up on: ${call}`;
    case 'timeout': return `did not answer ${call} within ${deadlineMs} ms`;
    case 'unreachable': return `cannot be reached for ${call}: ${code === '' ? message : `${code} ${tlsAdvice(code)}`.trim()}`;
    case 'noLeader': return `has no cluster leader now (${call})`;
    case 'busy': return `is busy (${statusCode}, ${call}), trying again later`;
    case 'unknownToken': return `does not know the token (${call}): ACL not found`;
    case 'denied': return `refuses ${call}: ${said}`;
    default: return `answered ${call} with ${statusCode}: ${said}${cutAdvice(statusCode, said)}`;
  }
}

/** A TLS port answers plain HTTP with one line and hangs up, so that the line may be lost. */
function cutAdvice(statusCode: number | null, said: string): string {
  return statusCode === 400 && said.includes('ECONNRESET') ? ' (an HTTP request to an HTTPS server? then consul.address begins with https)' : '';
}

function tlsAdvice(code: string): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return '(the certificate is for another name: set consul.tls-server-name)';
  if (/^(SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)|DEPTH_ZERO)/.test(code)) return '(the certificate is not signed by consul.ca-file)';
  if (/^ERR_SSL_.*CERTIFICATE/.test(code)) return '(it wants a client certificate: set consul.cert-file and consul.key-file)';
  return '';
}

/** One entry of `Errors` in the answer of a transaction. */
export interface OperationError {
  readonly index: number;
  readonly what: string;
}

/** The `Errors` of a transaction's answer; empty when the body is something else. */
export function operationErrors(body: unknown): OperationError[] {
  const errors: unknown = typeof body === 'object' && body !== null && 'Errors' in body ? body.Errors : null;
  return (Array.isArray(errors) ? (errors as unknown[]) : []).flatMap((item) => {
    if (typeof item !== 'object' || item === null || !('What' in item) || typeof item.What !== 'string') return [];
    return [{ index: 'OpIndex' in item && typeof item.OpIndex === 'number' ? item.OpIndex : 0, what: item.What }];
  });
}

/**
 * What a refused transaction means. `stale`: somebody wrote the key since it was read, nothing is applied, read again.
 * `mistaken`: none of the known reasons; the transaction itself does not fit what is there.
 */
export type Refusal =
  | { readonly kind: 'stale' }
  | { readonly kind: 'denied'; readonly rules: readonly string[] }
  | { readonly kind: 'mistaken'; readonly text: string };

export function refusalOf(operations: readonly Operation[], errors: readonly OperationError[], keyPrefix: string): Refusal {
  const denied = errors.filter(({ what }) => isDenied(what));
  if (denied.length > 0) return { kind: 'denied', rules: missingRules(operations, denied, keyPrefix) };
  if (errors.some(({ what }) => /index is stale|failed to check index/.test(what))) return { kind: 'stale' };
  return { kind: 'mistaken', text: errors.map(({ index, what }) => `operation ${index}: ${what}`).join('; ') || 'no reason given' };
}

export function isDenied(what: string): boolean {
  return what.startsWith('Permission denied');
}

/** The rules of the minimal policy (docs/consul.md) that these refusals call for, each once. */
export function missingRules(operations: readonly Operation[], denied: readonly OperationError[], keyPrefix: string): string[] {
  const rules = denied.flatMap(({ index }) => {
    const operation = operations[index];
    return operation === undefined ? [] : [ruleOf(operation, keyPrefix)];
  });
  return [...new Set(rules)];
}

function ruleOf(operation: Operation, keyPrefix: string): string {
  if ('KV' in operation) return `key_prefix "${keyPrefix}/" { policy = "write" }`;
  if ('Node' in operation) return `node_prefix "${NODE_PREFIX}" { policy = "write" }`;
  const service = 'Service' in operation ? operation.Service.Service.Service : operation.Check.Check.ServiceName ?? '';
  return `service "${service}" { policy = "write" }`;
}

/** The sentence for a token that lacks rules. */
export function deniedError(at: string, rules: readonly string[]): ConsulError {
  const named = rules.length === 1 ? `the rule ${rules[0]}` : `the rules ${rules.join(', ')}`;
  return new ConsulError('denied', `consul at ${at}: the token lacks ${named}`, { at, rules });
}
