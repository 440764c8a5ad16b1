/**
 * Between the RESP server and the core: what a command needs from outside is found out first, what only the runtime knows
 * is answered here, and everything else goes in as an input.
 */
import { resolve } from 'node:path';
import type { SentinelState } from '../core/state.js';
import { sentinelInfoSection } from '../core/commands/info-section.js';
import { outsideQuestions } from '../core/commands/outside-facts.js';
import type { RespValue } from '../wire/resp-value.js';
import { array, bulk, bulkMap, bulks, error, map } from '../wire/resp-value.js';
import { isExecutable } from './conf-file.js';
import { lookupOrNull } from './resolver.js';
import type { Sentinel } from './sentinel.js';
import type { CommandGate } from './server/options.js';

/** A script that runs or waits, of whatever kind, as SENTINEL PENDING-SCRIPTS shows it. */
export interface PendingScriptView {
  readonly argv: readonly string[];
  readonly runs: number;
  /** 0 while it waits. */
  readonly pid: number;
  /** Start of this run, or the earliest next one. */
  readonly atMs: number;
}

/** One output of this agent, as SENTINEL OUTPUTS shows it: what a planned move waits for. */
export interface OutputView {
  readonly name: string;
  readonly state: string;
  readonly wantedOrder: number;
  /** Null until the first success. */
  readonly publishedOrder: number | null;
  readonly sinceMs: number;
  /** The last failure of the present wish; empty = none. */
  readonly error: string;
  /** How long clients may keep an older answer, ms. */
  readonly ttlMs: number;
}

export interface GateOptions {
  readonly sentinel: () => Sentinel;
  /** Scripts run by others than the sentinel itself (client-reconfig-script). */
  readonly otherScripts: () => readonly PendingScriptView[];
  readonly reply: (client: number, value: RespValue) => void;
  /** Outputs of one master; `recheck` makes each look now whether what it published is still there. */
  readonly outputs: (master: string, recheck: boolean) => readonly OutputView[];
  /** Why outputs can't carry a master of this name (SENTINEL MONITOR); null = they can. */
  readonly whyNotMonitorable: (name: string) => string | null;
  /** Asked before a planned move is begun: why it must not be, or null. */
  readonly whyVetoed?: (argv: readonly string[]) => Promise<string | null>;
}

export class SentinelGate implements CommandGate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  execute(client: number, argv: readonly string[]): void {
    const verb = argv.slice(0, 2).join(' ').toLowerCase();
    if (verb === 'sentinel pending-scripts' && argv.length === 2) return this.#options.reply(client, this.#pendingScripts());
    if (verb === 'sentinel outputs' && argv.length >= 3) return this.#options.reply(client, this.#outputs(argv));
    if (verb === 'sentinel monitor' && argv.length === 6) {
      const reason = this.#options.whyNotMonitorable(argv[2] ?? '');
      if (reason !== null) return this.#options.reply(client, error(`ERR ${reason}`));
    }
    void this.#execute(client, argv);
  }

  infoSentinel(): string {
    const { state, scripts } = this.#options.sentinel();
    const others = this.#options.otherScripts();
    const running = scripts.running + others.filter((script) => script.pid !== 0).length;
    return sentinelInfoSection(state, running, scripts.jobs.length + others.length);
  }

  /** The promise never rejects: what could fail in here fails as a reply. */
  async #execute(client: number, argv: readonly string[]): Promise<void> {
    const sentinel = this.#options.sentinel();
    const { hosts, scripts } = outsideQuestions(argv);
    for (const host of namesToLookUp(sentinel.state, hosts)) {
      sentinel.dispatch({ kind: 'resolved', host, ip: await lookupOrNull(host) });
    }
    const veto = (await this.#options.whyVetoed?.(argv)) ?? null;
    if (veto !== null) return this.#options.reply(client, error(`ERR ${veto}`));
    const unusableScripts = scripts.filter((path) => !isExecutable(resolve(path)));
    sentinel.dispatch({ kind: 'command', client, argv, facts: { unusableScripts } });
  }

  /** Divergence D80: who moves a master by hand or by `migrate` must know when every output has followed. */
  #outputs([, , master = '', word, ...rest]: readonly string[]): RespValue {
    if (rest.length > 0 || (word !== undefined && word.toLowerCase() !== 'recheck')) return error('ERR Unknown word, expected RECHECK');
    if (!this.#options.sentinel().state.masters.has(master)) return error('ERR No such master with that name');
    return array(this.#options.outputs(master, word !== undefined).map(describeOutput));
  }

  #pendingScripts(): RespValue {
    const own = this.#options.sentinel().scripts.jobs.map((job) => ({
      argv: job.argv,
      runs: job.runs,
      pid: job.child?.pid ?? 0,
      atMs: job.child === null ? job.dueAtMs : job.startedAtMs,
    }));
    return array([...own, ...this.#options.otherScripts()].map(describeScript));
  }
}

function namesToLookUp(state: SentinelState, hosts: readonly string[]): readonly string[] {
  return state.settings.resolveHostnames ? hosts : [];
}

function describeOutput(output: OutputView): RespValue {
  return bulkMap([
    ['name', output.name],
    ['state', output.state],
    ['wanted-order', String(output.wantedOrder)],
    ['published-order', String(output.publishedOrder ?? -1)],
    ['since-ms', String(Math.max(0, Date.now() - output.sinceMs))],
    ['ttl-ms', String(output.ttlMs)],
    ['error', output.error],
  ]);
}

function describeScript({ argv, runs, pid, atMs }: PendingScriptView): RespValue {
  const now = Date.now();
  const time: [string, number] = pid === 0 ? ['run-delay', Math.max(0, atMs - now)] : ['run-time', now - atMs];
  return map([
    [bulk('argv'), bulks(argv)],
    [bulk('flags'), bulk(pid === 0 ? 'scheduled' : 'running')],
    [bulk('pid'), bulk(String(pid))],
    [bulk(time[0]), bulk(String(time[1]))],
    [bulk('retry-num'), bulk(String(runs))],
  ]);
}
