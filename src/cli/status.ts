/**
 * `pointsman status [master]`: the running agent's view as a table, or as JSON for programs.
 */
import { readFileSync } from 'node:fs';
import type { AgentStatus, MasterStatus } from '../admin/status.js';
import { loadConfig } from '../config/load.js';
import { AgentError, EXIT, messageOf } from '../errors.js';
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress, parseAddress } from '../sentinel/wire/address.js';

export interface StatusOptions {
  readonly config: string | null;
  /** `host:port` of the agent's admin port; default: what the configuration says, else 127.0.0.1:9126. */
  readonly admin: string | null;
  readonly master: string | null;
  readonly json: boolean;
}

const DEFAULT_ADMIN: Address = { host: '127.0.0.1', port: 9126 };
const DEADLINE_MS = 3_000;

/** Resolves to the exit status: 0 all well, 1 something is not as it should be. Rejects with AGENT_UNREACHABLE. */
export async function status(options: StatusOptions): Promise<number> {
  const address = adminAddress(options);
  const view = await fetchStatus(address);
  const masters = options.master === null ? view.masters : view.masters.filter((master) => master.name === options.master);
  if (options.master !== null && masters.length === 0) throw new AgentError('AGENT_UNREACHABLE', `no master named ${options.master} is monitored`);
  process.stdout.write(options.json ? `${JSON.stringify({ ...view, masters }, null, 2)}\n` : table({ ...view, masters }));
  return masters.every(isWell) && !view.sentinel.tilt ? EXIT.ok : EXIT.failed;
}

function adminAddress({ config, admin }: StatusOptions): Address {
  if (admin !== null) {
    const address = parseAddress(admin);
    if (address === null) throw new AgentError('CONFIG_INVALID', `--admin ${admin}: expected host:port`);
    return address;
  }
  if (config === null) return DEFAULT_ADMIN;
  const loaded = loadConfig({ path: config, env: process.env, read: (path) => readFileSync(path, 'utf8') });
  return (loaded.kind === 'ok' ? loaded.config.admin?.listen : undefined) ?? DEFAULT_ADMIN;
}

async function fetchStatus(address: Address): Promise<AgentStatus> {
  const url = `http://${formatAddress(address)}/status`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(DEADLINE_MS) });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return (await response.json()) as AgentStatus;
  } catch (fault) {
    const cause = fault instanceof Error && fault.cause instanceof Error ? fault.cause : fault;
    throw new AgentError('AGENT_UNREACHABLE', `agent at ${url} does not answer: ${messageOf(cause)}`, { url }, { cause: fault });
  }
}

function isWell(master: MasterStatus): boolean {
  const healthy = master.state === 'ok' && master.trusted && master.confirmed && master.alarms.length === 0;
  return healthy && master.outputs.every((output) => output.state === 'published');
}

function table(view: AgentStatus): string {
  const lines = [`sentinel ${view.sentinel.id}  epoch ${view.sentinel.epoch}${view.sentinel.tilt ? '  TILT' : ''}`];
  for (const master of view.masters) lines.push('', ...masterLines(master));
  return `${lines.join('\n')}\n`;
}

function masterLines(master: MasterStatus): string[] {
  const marks = [
    master.failoverState ?? master.state,
    master.phase,
    ...(master.confirmed ? [] : ['unconfirmed']),
    ...(master.trusted ? [] : ['isolated']),
  ];
  const rows: string[][] = [
    ['MASTER', 'ADDRESS', 'STATE', 'EPOCH', 'QUORUM'],
    [master.name, master.primary, marks.join(','), String(master.configEpoch), String(master.quorum)],
  ];
  const nodes = [
    ...master.replicas.map(replicaRow),
    ...master.sentinels.map((peer) => ['sentinel', peer.address, peer.state, '']),
  ];
  const outputs = master.outputs.map((output) => [
    'output',
    output.output,
    output.state,
    output.lastError === null ? `order ${output.publishedOrder ?? '-'} of ${output.wantedOrder ?? '-'}` : output.lastError.message,
  ]);
  const alarms = master.alarms.map((text) => `  ALARM ${text}`);
  return [...columns(rows), ...alarms, ...columns([...nodes, ...outputs]).map((line) => `  ${line}`)];
}

const replicaRow = ({ address, state, notEligible }: MasterStatus['replicas'][number]): string[] => [
  ...['replica', address, state],
  notEligible === null ? '' : `not promotable: ${notEligible}`,
];

function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, cell.length)));
  return rows.map((row) => row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  ').trimEnd());
}
