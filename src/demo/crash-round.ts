/**
 * One crash, with a stopwatch: kill the master, see who notices when, bring it back, count what was lost.
 *
 * Times count from the kill. "DNS" is the first answer, by bare UDP queries every few milliseconds, that names another node.
 */
import { must } from '../assert.js';
import { AgentError } from '../errors.js';
import type { Agent, Cluster, Node } from './cluster.js';
import type { Ledger } from './ledger.js';
import { pause, waitUntilNothing } from './wait.js';

const QUERY_EVERY_MS = 4;
const SETTLE_LIMIT_MS = 60_000;

export interface CrashRound {
  readonly killed: string;
  readonly promoted: string;
  /** Per agent, in order. */
  readonly dnsMs: readonly number[];
  readonly firstWriteMs: number;
  /** From the old master's restart until it followed the new one and all agents agreed. */
  readonly rejoinedMs: number;
  /** Acknowledged by the killed master and held by nobody now: replication is asynchronous. */
  readonly lostAtKill: number;
  /** How long before the kill the oldest of them was acknowledged; null = none. */
  readonly oldestLossMs: number | null;
  /** Acknowledged by the new master and not held by it: a fault. */
  readonly lostAfterSwitch: number;
}

/**
 * Kills `master`, which all are ready to replace, and resolves when all agree on another one that it follows.
 *
 * Rejects when that takes too long.
 */
export async function crashRound(
  cluster: Cluster, ledger: Ledger, master: Node, say: (text: string) => void, signal: AbortSignal,
): Promise<CrashRound> {
  // The first failure ends the other watchers too.
  const failure = new AbortController();
  const limit = AbortSignal.any([signal, failure.signal, AbortSignal.timeout(cluster.options.downAfterMs + SETTLE_LIMIT_MS)]);
  const reignsBefore = ledger.reigns.length;
  say(`killing the master ${master.name} at ${master.address.host} (SIGKILL, pid ${master.child.pid})`);
  const killedMs = performance.now();
  master.child.kill('SIGKILL');
  const switches = cluster.agents.map(async (agent) => {
    const host = await nextAnswer(agent, master.address.host, limit);
    const tookMs = tenths(performance.now() - killedMs);
    say(`${agent.name} answers ${host} after ${Math.round(tookMs)} ms`);
    return { host, tookMs };
  });
  const firstWrite = (async () => {
    while (ledger.reigns.length === reignsBefore) await pause(QUERY_EVERY_MS, limit);
    const reign = must(ledger.reigns[reignsBefore], 'a new reign has begun');
    const tookMs = tenths(reign.firstWriteMs - killedMs);
    say(`${reign.address.host} accepts writes after ${Math.round(tookMs)} ms`);
    return tookMs;
  })();
  const [seen, firstWriteMs] = await Promise.all([Promise.all(switches), firstWrite]).finally(() => failure.abort());
  const promoted = must(cluster.node(must(seen[0], 'there are agents').host), 'DNS named a node of the demo');
  await waitUntilNothing(async () => (master.child.status === null ? `${master.name} still runs` : null), SETTLE_LIMIT_MS, signal);

  say(`starting ${master.name} again, as a master`);
  const restartedMs = performance.now();
  await cluster.restartNode(master, signal);
  await cluster.settled(promoted, 'agreed', SETTLE_LIMIT_MS, signal);
  const rejoinedMs = tenths(performance.now() - restartedMs);
  say(`${master.name} follows ${promoted.name}, all agents agree`);

  const audit = await ledger.audit(promoted.address);
  const oldestLossMs = audit.oldestLossMs === null ? null : tenths(killedMs - audit.oldestLossMs);
  return {
    killed: master.address.host, promoted: promoted.address.host, dnsMs: seen.map(({ tookMs }) => tookMs), firstWriteMs, rejoinedMs,
    lostAtKill: audit.lostBefore, oldestLossMs, lostAfterSwitch: audit.lostNow,
  };
}

/** To a tenth of a millisecond: what lies behind it is noise. */
const tenths = (ms: number): number => Math.round(ms * 10) / 10;

/** The first host in the agent's answers that is not `old`. */
async function nextAnswer(agent: Agent, old: string, limit: AbortSignal): Promise<string> {
  for (;;) {
    const host = await agent.probe.askHost();
    if (host !== null && host !== old) return host;
    if (limit.aborted) throw new AgentError('LINK_FAILED', `${agent.name} still answers ${host ?? 'nothing'}`);
    agent.child.assertRunning();
    await pause(QUERY_EVERY_MS);
  }
}

