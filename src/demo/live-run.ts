/**
 * `pointsman demo` without --once: the world runs until somebody stops it, and whatever the audience kills is brought back.
 */
import { Redis } from 'ioredis';
import { messageOf } from '../errors.js';
import { formatAddress } from '../sentinel/wire/address.js';
import { MASTER_NAME } from './agreement.js';
import { ZONE } from './cluster.js';
import type { Agent, Cluster, Node } from './cluster.js';
import { showReply } from './dns-probe.js';
import type { Ledger } from './ledger.js';
import type { LiveState, LiveView } from './live-view.js';
import { pause } from './wait.js';

const DRAW_EVERY_MS = 250;
/** Long enough that a failover happens first: what comes back sooner has never been away for the agents. */
const REVIVE_AFTER_MS = 5000;
const RATE_WINDOW_MS = 1000;
const EVENTS = ['[+-]sdown', '[+-]odown', '+elected-leader', '+promoted-slave', '+switch-master', '[+-]tilt'];

/** Shows the cluster until `signal` aborts. Rejects only for the demo's own faults. */
export async function runLive(cluster: Cluster, ledger: Ledger, view: LiveView, signal: AbortSignal): Promise<void> {
  const events = followEvents(cluster, view);
  const reviver = new Reviver(cluster, view, signal);
  const rate = new RateMeter(() => ledger.acknowledged);
  const losses = new LossCount(ledger, view);
  try {
    while (!signal.aborted) {
      const state = await observe(cluster, ledger, rate, losses.lost);
      view.show(state);
      reviver.look();
      await losses.look();
      await pause(DRAW_EVERY_MS, signal).catch(() => undefined);
    }
  } finally {
    for (const link of events) link.disconnect();
    await reviver.idle();
  }
}

async function observe(cluster: Cluster, ledger: Ledger, rate: RateMeter, lost: number): Promise<LiveState> {
  const replies = await Promise.all(cluster.agents.map(async ({ name, probe }) => ({ agent: name, answer: showReply(await probe.ask()) })));
  // An agent that was killed has no say.
  const named = new Set(replies.map(({ answer }) => answer).filter((answer) => answer !== 'no answer'));
  const master = named.size === 1 ? cluster.node([...named][0] ?? '') : null;
  const alive = master !== null && master.child.status === null;
  return {
    master: master === null ? null : describeNode(master),
    masterPid: alive ? master.child.pid : null,
    answers: replies,
    writesPerSecond: rate.perSecond(),
    acknowledged: ledger.acknowledged,
    errors: ledger.refusedWrites + ledger.failedConnects,
    lost,
    tryOut: cluster.agents.slice(0, 1).flatMap(waysToAsk),
  };
}

function describeNode({ name, address, child }: Node): string {
  return `${name} at ${formatAddress(address)}, ${child.status === null ? `pid ${child.pid}` : `down (${child.status})`}`;
}

const waysToAsk = ({ dns, sentinel }: Agent): string[] => [
  `dig @${dns.host} -p ${dns.port} +short ${MASTER_NAME}.${ZONE} A`,
  `dig @${dns.host} -p ${dns.port} +short _redis._tcp.${MASTER_NAME}.${ZONE} SRV`,
  `redis-cli -p ${sentinel.port} sentinel get-master-addr-by-name ${MASTER_NAME}`,
];

/** What the agents publish about instances going down, votes and switches. */
function followEvents(cluster: Cluster, view: LiveView): Redis[] {
  return cluster.agents.map(({ name, sentinel }) => {
    const link = new Redis({ ...sentinel, protocol: 2, disableClientInfo: true, enableReadyCheck: false, maxRetriesPerRequest: null });
    // An agent that is away is seen by its DNS; the link comes back by itself.
    link.on('error', () => undefined);
    link.on('pmessage', (_pattern: string, channel: string, message: string) => view.note(`${name} ${channel} ${message}`));
    void link.psubscribe(...EVENTS).catch(() => undefined);
    return link;
  });
}

/** Starts again whatever has ended, some time later. */
class Reviver {
  readonly #endedMs = new Map<string, number>();
  readonly #starting = new Map<string, Promise<void>>();

  constructor(readonly cluster: Cluster, readonly view: LiveView, readonly signal: AbortSignal) {}

  look(): void {
    for (const node of this.cluster.nodes) this.#tend(node, () => this.cluster.restartNode(node, this.signal));
    for (const agent of this.cluster.agents) this.#tend(agent, () => this.cluster.restartAgent(agent, this.signal));
  }

  async idle(): Promise<void> {
    await Promise.all(this.#starting.values());
  }

  #tend({ name, child }: Node | Agent, restart: () => Promise<void>): void {
    if (child.status === null || this.#starting.has(name)) return;
    const endedMs = this.#endedMs.get(name);
    if (endedMs === undefined) {
      this.view.note(`${name} is gone (${child.status}); it comes back in ${REVIVE_AFTER_MS / 1000} s`);
      this.#endedMs.set(name, performance.now());
    } else if (performance.now() - endedMs >= REVIVE_AFTER_MS) {
      this.#endedMs.delete(name);
      const started = restart()
        .then(() => this.view.note(`${name} is back`), (error: unknown) => this.view.note(`${name} does not start: ${messageOf(error)}`))
        .finally(() => this.#starting.delete(name));
      this.#starting.set(name, started);
    }
  }
}

/** How much a counter grew over the last second. */
class RateMeter {
  readonly #samples: { readonly atMs: number; readonly count: number }[] = [];

  constructor(readonly count: () => number) {}

  perSecond(): number {
    const now = { atMs: performance.now(), count: this.count() };
    this.#samples.push(now);
    while (this.#samples.length > 2 && now.atMs - (this.#samples[1]?.atMs ?? 0) > RATE_WINDOW_MS) this.#samples.shift();
    const oldest = this.#samples[0] ?? now;
    return now.atMs === oldest.atMs ? 0 : ((now.count - oldest.count) * 1000) / (now.atMs - oldest.atMs);
  }
}

/** Counts the losses each time the client has begun to write to another master. */
class LossCount {
  lost = 0;
  #reigns = 1;

  constructor(readonly ledger: Ledger, readonly view: LiveView) {}

  async look(): Promise<void> {
    const { reigns } = this.ledger;
    const present = reigns.at(-1);
    if (present === undefined || reigns.length <= this.#reigns) return;
    try {
      const { lostBefore, lostNow } = await this.ledger.audit(present.address);
      this.#reigns = reigns.length;
      this.lost += lostBefore + lostNow;
      this.view.note(`the client writes to ${formatAddress(present.address)}; lost with the old master: ${lostBefore} acknowledged writes`);
    } catch {
      // Killed again meanwhile: the next reign's audit finds these losses too.
    }
  }
}
