/**
 * A lab for `pointsman migrate`: three nodes, agents, six clients, the program itself, and what must be the same before and after.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import { parseClients } from '../../src/migrate/drain-rules.js';
import { MAIN, MASTER_NAME, ask, fieldsOf, textOf, textsOf, waitFor, type LabSentinel, type RedisNode } from './lab.js';
import { MigrateClients, type ClientLoad } from './migrate-clients.js';
import { SilentLab, type SilentLabSpec } from './silent-lab.js';

export interface Ran {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The lines of --json. */
  readonly lines: readonly Record<string, unknown>[];
  readonly errors: string;
  /** The last thing it said. */
  readonly text: string;
}

/** Changes with every move, and shall. */
const MOVING = /^(ip|port|runid|config-epoch|last-|info-refresh|role-reported-time|link-)/;

export class MigrateLab {
  readonly site = new SilentLab();
  clients: MigrateClients | null = null;
  /** A move that takes longer is killed. */
  runLimitMs = 150_000;
  #journals = 0;
  journal = '';

  async start(spec: SilentLabSpec = {}): Promise<RedisNode> {
    const master = await this.site.start({ downAfterMs: 5_000, isQuiet: true, redisArgs: ['--replica-read-only', 'yes'], ...spec });
    this.newJournal();
    return master;
  }

  newJournal(): void {
    this.journal = join(this.site.lab.folder, `journal${this.#journals++}.ndjson`);
  }

  /** Six clients at work, the pinned one at `pinnedTo`; without that, five. */
  async withClients(pinnedTo: RedisNode | null, load: ClientLoad = {}): Promise<MigrateClients> {
    this.clients = new MigrateClients(this.site, pinnedTo?.address ?? null, load);
    this.clients.start();
    const { writers } = this.clients;
    await waitFor('every client writing', 20_000, () => writers.every(({ acknowledged }) => acknowledged.length > 10));
    return this.clients;
  }

  /** Starts `pointsman migrate mymaster …`; resolves when it has ended. */
  run(args: readonly string[], env: NodeJS.ProcessEnv = {}, agent = this.site.agent(0), onLine: (line: Record<string, unknown>) => void = () => undefined): Promise<Ran> {
    return this.begin(args, env, agent, onLine).ended;
  }

  begin(
    args: readonly string[], env: NodeJS.ProcessEnv = {}, agent: LabSentinel = this.site.agent(0), onLine: (line: Record<string, unknown>) => void = () => undefined,
  ): { readonly ended: Promise<Ran>; readonly kill: (signal: NodeJS.Signals) => void } {
    const argv = [MAIN, 'migrate', MASTER_NAME, '--sentinel', formatAddress(agent.address), '--journal', this.journal, '--yes', '--json', ...args];
    const child = spawn(process.execPath, argv, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const limit = setTimeout(() => child.kill('SIGKILL'), this.runLimitMs);
    const lines: Record<string, unknown>[] = [];
    let [rest, errors] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => {
      const parts = (rest + String(chunk)).split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const line = JSON.parse(part) as Record<string, unknown>;
        lines.push(line);
        onLine(line);
      }
    });
    child.stderr.on('data', (chunk: Buffer) => void (errors += String(chunk)));
    const ended = new Promise<Ran>((resolve) => child.once('close', (status, signal) => {
      clearTimeout(limit);
      const text = String(lines.findLast((line) => 'ok' in line)?.['text'] ?? errors.trim());
      resolve({ status, signal, lines, errors, text });
    }));
    return { ended, kill: (signal) => void child.kill(signal) };
  }

  /** A move to `target`. */
  move(target: RedisNode, more: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Ran> {
    this.newJournal();
    return this.run(['--to', formatAddress(target.address), ...more], env);
  }

  /** Settings of every node and what every agent says of the group, but for what a move changes by its nature. */
  async everything(): Promise<Record<string, unknown>> {
    const { lab, agents } = this.site;
    const nodes = await Promise.all(lab.nodes.map(async (node) => {
      const config = fieldsOf(await ask(node, 'CONFIG', 'GET', '*'));
      return [node.name, [...config].filter(([name]) => !/^(replica|slave)of$/.test(name)).sort()] as const;
    }));
    const sentinels = await Promise.all(agents.map(async (agent) => {
      const fields = fieldsOf(await ask(agent, 'SENTINEL', 'MASTER', MASTER_NAME));
      const status = await this.site.status(agent);
      const kept = [...fields].filter(([name]) => !MOVING.test(name));
      return [agent.name, [...kept, ['auto-revert', status.get('auto-revert')], ['state', status.get('state')]]] as const;
    }));
    return Object.fromEntries([...nodes, ...sentinels]);
  }

  /** Clients at a node that are neither sentinels, replicas, nor this test's own questions. */
  async guests(node: RedisNode): Promise<number> {
    const list = textOf(await ask(node, 'CLIENT', 'LIST'));
    return parseClients(list, 'pointsman-migrate').length - 1;
  }

  /** A write that must be taken. */
  async write(node: RedisNode, key: string, value: string): Promise<void> {
    const reply = textOf(await ask(node, 'SET', key, value));
    if (reply !== 'OK') throw new Error(`${node.name} answers ${reply} to SET ${key}`);
  }

  async isHeld(node: RedisNode): Promise<boolean> {
    const reply = await Promise.race([ask(node, 'SET', 'held?', '1').then(textOf), new Promise<string>((done) => void setTimeout(done, 1_500, 'held'))]);
    return reply === 'held';
  }

  /** Values that were acknowledged and are missing, on any node; waits until the nodes agree. */
  async lost(): Promise<number> {
    const { nodes } = this.site.lab;
    await waitFor('equal offsets', 30_000, async () => {
      const reports = await Promise.all(nodes.map(async (node) => textOf(await ask(node, 'INFO', 'replication'))));
      return new Set(reports.map((text) => /master_repl_offset:(\d+)/.exec(text)?.[1])).size === 1;
    });
    const found = await this.clients?.audit(nodes.map(({ address }) => address));
    return (found?.missingValues ?? 0) + (found?.missingIncrements ?? 0);
  }

  async keys(pattern: string): Promise<string[]> {
    return (await Promise.all(this.site.lab.nodes.map(async (node) => textsOf(await ask(node, 'KEYS', pattern))))).flat();
  }

  async stop(): Promise<void> {
    await this.clients?.stop();
    await this.site.stop();
  }
}

/** One line per client, for a test's output. */
export function showClients(clients: MigrateClients): string {
  return clients.report().map(({ name, errors, blindMs }) => `${name}: ${errors} errors${blindMs === null ? '' : `, blind ${blindMs} ms`}`).join('; ');
}
