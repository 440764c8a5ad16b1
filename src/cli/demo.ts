/**
 * `pointsman demo`: a whole installation on this machine, and a crash to watch.
 *
 * Everything lives in a temporary folder, which is removed after a good end and named after a bad one; every process is ended
 * however the demo ends.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { must } from '../assert.js';
import { duration } from '../config/values.js';
import { Children } from '../demo/children.js';
import { Cluster } from '../demo/cluster.js';
import type { Node } from '../demo/cluster.js';
import { crashRound } from '../demo/crash-round.js';
import type { CrashRound } from '../demo/crash-round.js';
import { Ledger } from '../demo/ledger.js';
import { LiveView } from '../demo/live-view.js';
import { runLive } from '../demo/live-run.js';
import { concludeReport, showReport } from '../demo/report.js';
import { pause, waitUntilNothing } from '../demo/wait.js';
import { EXIT, FatalError, messageOf } from '../errors.js';

/** As the command line gives them. */
export interface DemoOptions {
  /** Crash, recover, count, end. */
  readonly once?: boolean;
  /** One JSON object instead of text; implies `once`. */
  readonly json?: boolean;
  /** A duration; default 1000ms. */
  readonly downAfter?: string;
  /** How many crashes, one after the other; implies `once`. */
  readonly rounds?: string | number;
  /** What `run --config FILE` is appended to, for tests; default: this program. */
  readonly agentCommand?: readonly string[];
}

interface Settings {
  readonly once: boolean;
  readonly json: boolean;
  readonly downAfterMs: number;
  readonly rounds: number;
}

const WRITES_PER_SECOND = 4000;
const SETTLE_LIMIT_MS = 60_000;
/** So that the agents' PINGs and INFOs are in their usual rhythm when the crash comes. */
const STEADY_MS = 1500;
const MOST_ROUNDS = 1000;

/**
 * Runs the demo and resolves with the exit status: 0, or 1 when an agent disagrees, a write was lost after the switch, or
 * `--once` was interrupted or did not get through.
 *
 * Rejects with FatalError for wrong options (64), a missing redis-server (69) and missing ports (71).
 */
export async function runDemo(options: DemoOptions = {}): Promise<number> {
  const settings = readSettings(options);
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-demo-'));
  const children = new Children(folder);
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  // The progress of a JSON run goes where it does not mix with the result.
  const say = (text: string): void => void (settings.json ? process.stderr : process.stdout).write(`${text}\n`);
  let clean = false;
  try {
    const exitCode = await playDemo(settings, options, children, say, stop.signal);
    clean = exitCode === EXIT.ok;
    return exitCode;
  } catch (error) {
    clean = stop.signal.aborted || error instanceof FatalError;
    if (error instanceof FatalError) throw error;
    if (stop.signal.aborted) return settings.once ? EXIT.failed : EXIT.ok;
    process.stderr.write(`demo failed: ${messageOf(error)}\n`);
    return EXIT.failed;
  } finally {
    await children.endAll();
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
    if (clean) rmSync(folder, { recursive: true, force: true });
    else process.stderr.write(`the logs of all processes are in ${folder}\n`);
  }
}

function readSettings({ once = false, json = false, downAfter = '1000ms', rounds = 1 }: DemoOptions): Settings {
  const refuse = (message: string): FatalError => new FatalError('CONFIG_INVALID', message, EXIT.usage);
  const downAfterMs = duration(downAfter);
  if (downAfterMs.kind === 'misfit') throw refuse(`--down-after: ${downAfterMs.message}`);
  if (downAfterMs.value < 1) throw refuse('--down-after: must be more than 0');
  const count = /^\d+$/.test(String(rounds)) ? Number(rounds) : 0;
  if (count < 1 || count > MOST_ROUNDS) throw refuse(`--rounds: bad number ${JSON.stringify(rounds)}, expected 1 to ${MOST_ROUNDS}`);
  return { once: once || json || count > 1, json, downAfterMs: downAfterMs.value, rounds: count };
}

async function playDemo(
  settings: Settings, { agentCommand }: DemoOptions, children: Children, say: (text: string) => void, signal: AbortSignal,
): Promise<number> {
  say('starting a master, two replicas and three agents …');
  const cluster = await Cluster.start(children, { downAfterMs: settings.downAfterMs, ...(agentCommand && { agentCommand }) }, signal);
  const ledger = new Ledger(async () => {
    // As a resolver does: the next server when one is silent.
    for (const { probe } of cluster.agents) {
      const reply = await probe.ask();
      if (reply.kind === 'silent') continue;
      const node = reply.kind === 'addresses' ? cluster.node(reply.hosts[0] ?? '') : null;
      return node?.address ?? null;
    }
    return null;
  }, WRITES_PER_SECOND);
  try {
    const first = must(cluster.nodes[0], 'the demo has nodes');
    await cluster.settled(first, 'ready', SETTLE_LIMIT_MS, signal);
    ledger.start();
    await waitUntilNothing(async () => (ledger.acknowledged > 0 ? null : 'the client has written nothing'), SETTLE_LIMIT_MS, signal);
    say(`all agree: ${first.name} at ${first.address.host} is the master; the client writes`);
    if (settings.once) return await runCrashes(settings, cluster, ledger, first, say, signal);
    await runLive(cluster, ledger, new LiveView(process.stdout), signal);
    await ledger.stop();
    say(`acknowledged writes: ${ledger.acknowledged}`);
    return EXIT.ok;
  } finally {
    await ledger.stop();
    await cluster.stop();
  }
}

async function runCrashes(
  settings: Settings, cluster: Cluster, ledger: Ledger, first: Node, say: (text: string) => void, signal: AbortSignal,
): Promise<number> {
  const rounds: CrashRound[] = [];
  let master = first;
  for (let round = 1; round <= settings.rounds; round++) {
    await cluster.settled(master, 'ready', SETTLE_LIMIT_MS, signal);
    await pause(STEADY_MS, signal);
    const crash = await crashRound(cluster, ledger, master, say, signal);
    rounds.push(crash);
    master = must(cluster.node(crash.promoted), 'the promoted node is one of the demo');
  }
  await ledger.stop();
  const last = await ledger.audit(master.address);
  const sum = (of: (round: CrashRound) => number): number => rounds.reduce((total, round) => total + of(round), 0);
  const report = concludeReport({
    downAfterMs: settings.downAfterMs,
    rounds,
    acknowledged: ledger.acknowledged,
    lostAtKill: sum((round) => round.lostAtKill) + last.lostBefore,
    lostAfterSwitch: sum((round) => round.lostAfterSwitch) + last.lostNow,
    errors: { refusedWrites: ledger.refusedWrites, failedConnects: ledger.failedConnects },
    disagreements: await cluster.whyUnsettled(master, 'agreed'),
  });
  process.stdout.write(`${settings.json ? JSON.stringify(report) : `\n${showReport(report)}`}\n`);
  return report.ok ? EXIT.ok : EXIT.failed;
}
