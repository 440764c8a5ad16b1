/**
 * How the verbs for people reach the running agent: its admin port, from the command line, the configuration, or the default.
 */
import { readFileSync } from 'node:fs';
import { loadConfig } from '../config/load.js';
import { AgentError, EXIT, FatalError, messageOf } from '../errors.js';
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress, parseAddress } from '../sentinel/wire/address.js';

export interface AgentPortOptions {
  readonly config: string | null;
  /** `host:port` of the agent's admin port; default: what the configuration says, else 127.0.0.1:9126. */
  readonly admin: string | null;
}

const DEFAULT_ADMIN: Address = { host: '127.0.0.1', port: 9126 };
const DEADLINE_MS = 3_000;

/** Throws FatalError CONFIG_INVALID for an address that is none. */
export function adminAddress({ config, admin }: AgentPortOptions): Address {
  if (admin !== null) {
    const address = parseAddress(admin);
    if (address === null) throw new FatalError('CONFIG_INVALID', `--admin ${admin}: expected host:port`, EXIT.usage);
    return address;
  }
  if (config === null) return DEFAULT_ADMIN;
  const loaded = loadConfig({ path: config, env: process.env, read: (path) => readFileSync(path, 'utf8') });
  return (loaded.kind === 'ok' ? loaded.config.admin?.listen : undefined) ?? DEFAULT_ADMIN;
}

/** One request and its JSON. Rejects with AGENT_UNREACHABLE where nobody answers, or with what the agent objects to. */
export async function askAgent(address: Address, path: string, method: 'GET' | 'POST' = 'GET'): Promise<unknown> {
  const response = await openAgent(address, path, { method, signal: AbortSignal.timeout(DEADLINE_MS) });
  return await response.json();
}

/** The response with its body still to come; the deadline is the caller's. */
export async function openAgent(address: Address, path: string, init: RequestInit): Promise<Response> {
  const url = `http://${formatAddress(address)}${path}`;
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers: { 'x-pointsman': '1' } });
  } catch (fault) {
    const cause = fault instanceof Error && fault.cause instanceof Error ? fault.cause : fault;
    throw new AgentError('AGENT_UNREACHABLE', `agent at ${url} does not answer: ${messageOf(cause)}`, { url }, { cause: fault });
  }
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => null);
  const said = typeof body === 'object' && body !== null && 'error' in body ? String(body.error) : `HTTP ${response.status}`;
  throw new AgentError('AGENT_UNREACHABLE', `agent at ${url}: ${said}`, { url });
}
