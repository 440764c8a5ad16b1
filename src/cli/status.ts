/**
 * `pointsman status [master]`: the running agent's view as a table, or as JSON for programs.
 */
import type { OutputStatus } from '../publishers/reconciler.js';
import type { AgentStatus, MasterStatus } from '../admin/status.js';
import { AgentError, EXIT } from '../errors.js';
import { adminAddress, askAgent } from './agent-port.js';

export interface StatusOptions {
  readonly config: string | null;
  /** `host:port` of the agent's admin port; default: what the configuration says, else 127.0.0.1:9126. */
  readonly admin: string | null;
  readonly master: string | null;
  readonly json: boolean;
}

/** Resolves to the exit status: 0 all well, 1 something is not as it should be. Rejects with AGENT_UNREACHABLE. */
export async function status(options: StatusOptions): Promise<number> {
  const view = (await askAgent(adminAddress(options), '/status')) as AgentStatus;
  const masters = options.master === null ? view.masters : view.masters.filter((master) => master.name === options.master);
  if (options.master !== null && masters.length === 0) throw new AgentError('AGENT_UNREACHABLE', `no master named ${options.master} is monitored`);
  process.stdout.write(options.json ? `${JSON.stringify({ ...view, masters }, null, 2)}\n` : table({ ...view, masters }));
  return masters.every(isWell) && !view.sentinel.tilt ? EXIT.ok : EXIT.failed;
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
  const outputs = master.outputs.map(outputRow);
  const alarms = master.alarms.map((text) => `  ALARM ${text}`);
  return [...columns(rows), ...alarms, ...columns([...nodes, ...outputs]).map((line) => `  ${line}`)];
}

function outputRow({ output, state, publishedEpoch, wantedEpoch, publishedOrder, wantedOrder, lagMs, attempts, lastError, detail }: OutputStatus): string[] {
  const epochs = `epoch ${publishedEpoch ?? '-'} of ${wantedEpoch}, order ${publishedOrder ?? '-'} of ${wantedOrder}`;
  const lag = lagMs === null ? '' : `, lag ${lagMs} ms`;
  const tries = attempts > 1 ? `, ${attempts} attempts` : '';
  const last = lastError === null ? detail : `${lastError.message} (${new Date(lastError.atMs).toISOString()})`;
  return ['output', output, state, `${epochs}${lag}${tries}${last === '' ? '' : `; ${last}`}`];
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
