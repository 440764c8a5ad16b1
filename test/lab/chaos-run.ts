/**
 * One chaos run: rounds of faults under load, after each of which everything must agree again and every write be accounted for.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { whyNotIn, whyNotServing, whyNotWatching, masterNamedBy } from '../../src/demo/agreement.js';
import { messageOf } from '../../src/errors.js';
import { loadavg } from 'node:os';
import { Draw } from '../sim/draw.js';
import { audit, type Loss } from './audit.js';
import { Chaos } from './chaos.js';
import { dig } from './dig.js';
import type { History } from './lineage.js';
import { NodeWatch } from './node-watch.js';
import { Operators, statusOf } from './operators.js';
import { drawRound, type Step } from './plan.js';
import { Receipts } from './receipts.js';
import { explainGap, sumLosses, type ChaosReport, type Round } from './report.js';
import type { ChaosSettings } from './settings.js';
import { COMPANY, type Agent, type Node, type Site } from './site.js';

const STATUS_EVERY_MS = 10_000;
const DIG_EVERY_MS = 3_000;
const SETTLE_LIMIT_MS = 120_000;
const SHORTEST_ROUND_MS = 15_000;
const POLL_MS = 500;
/** Writes younger than this are left to the next audit. */
const AUDIT_AGE_MS = 2_000;

export class ChaosRun {
  readonly #watch: NodeWatch;
  readonly #operators: Operators;
  readonly #chaos: Chaos;
  readonly #startMs = Date.now();
  readonly #rounds: Round[] = [];
  readonly #losses: Loss[] = [];
  readonly #counted = new Set<string>();
  readonly #failures: string[] = [];
  readonly #digs = new Map<string, number>();
  readonly #lastDig = new Map<Agent, string>();
  readonly #background = new AbortController();
  #receipts: Receipts | null = null;
  #stoppedMs = Infinity;

  constructor(readonly settings: ChaosSettings, readonly site: Site, readonly print: (text: string) => void) {
    const say = (text: string): void => this.#say(text);
    this.#watch = new NodeWatch(site.nodes.map(({ name, address, socket }) => ({ name, host: address.host, socket })));
    this.#operators = new Operators(site, say);
    this.#chaos = new Chaos(site, this.#watch, this.#operators, say, (host) => [...this.#lastDig.values()].filter((each) => each === host).length);
  }

  /** The site is up. Resolves with the report; rejects when `signal` aborts. */
  async play(signal: AbortSignal): Promise<ChaosReport> {
    this.#watch.start();
    await this.#settle(signal);
    this.site.startClients();
    const receipts = (this.#receipts = new Receipts(this.site.clients));
    const chores = [this.#showStatus(), this.#digAround()];
    try {
      await this.#waitForWrites(receipts, signal);
      const draw = new Draw(this.settings.seed).fork();
      const endMs = Date.now() + this.settings.minutes * 60_000;
      while (Date.now() + SHORTEST_ROUND_MS < endMs && this.#failures.length === 0) await this.#round(drawRound(draw, this.settings.only), endMs, receipts, signal);
      this.#stoppedMs = Date.now();
      await this.site.stopClients();
      const master = await this.#settle(signal);
      receipts.read();
      if (master !== null) await this.#audit(receipts, master, Infinity);
    } finally {
      this.#background.abort();
      await Promise.all(chores);
      await this.#watch.stop();
    }
    return this.#conclude(receipts);
  }

  async #round(steps: readonly Step[], endMs: number, receipts: Receipts, signal: AbortSignal): Promise<void> {
    this.#say(`round ${this.#rounds.length + 1}: ${steps.map(({ kind }) => kind).join(', ')}`);
    const startMs = Date.now();
    const timely = steps.filter(({ atMs, lastsMs }) => startMs + atMs + lastsMs < endMs);
    const over = new AbortController();
    const limit = AbortSignal.any([signal, over.signal]);
    // A step of the round each, all waiting at once.
    setMaxListeners(0, limit);
    try {
      await Promise.all(timely.map(async (step) => {
        await sleep(step.atMs, undefined, { signal: limit });
        await this.#chaos.perform(step);
      }));
    } finally {
      over.abort();
    }
    const mendedMs = Date.now();
    const master = await this.#settle(signal);
    this.#rounds.push({ steps: timely.length, settledMs: master === null ? null : Date.now() - mendedMs });
    if (master === null) return;
    this.#say(`all agree on ${master.name} after ${((Date.now() - mendedMs) / 1000).toFixed(1)} s`);
    const until = Date.now() - AUDIT_AGE_MS;
    receipts.read();
    await this.#audit(receipts, master, until);
  }

  /** Waits until everything agrees; null, with a failure noted, when that does not come about. */
  async #settle(signal: AbortSignal): Promise<Node | null> {
    const deadlineMs = Date.now() + SETTLE_LIMIT_MS;
    let reasons: string[] = [];
    let tellMs = Date.now() + STATUS_EVERY_MS;
    while (Date.now() < deadlineMs) {
      signal.throwIfAborted();
      const deaths = this.site.deaths();
      if (deaths.length > 0) {
        this.#failures.push(...deaths);
        return null;
      }
      await this.#operators.finish();
      const found = await this.#whyUnsettled();
      if (found.master !== null && found.reasons.length === 0) return found.master;
      reasons = found.reasons;
      if (Date.now() > tellMs) {
        this.#say(`not yet: ${reasons.join('; ')}`);
        tellMs += STATUS_EVERY_MS;
      }
      await sleep(POLL_MS, undefined, { signal });
    }
    this.#failures.push(`no agreement ${SETTLE_LIMIT_MS / 1000} s after the last fault: ${reasons.join('; ')}`);
    return null;
  }

  async #whyUnsettled(): Promise<{ master: Node | null; reasons: string[] }> {
    const [first] = this.site.agents;
    const named = first === undefined ? null : await masterNamedBy(first.sentinel).catch(messageOf);
    const master = named === null || typeof named === 'string' ? null : this.site.byAddress(named.host);
    if (master === null) return { master, reasons: [`agent1 names ${typeof named === 'string' ? named : JSON.stringify(named)}`] };
    const { address } = master;
    const ofNodes = this.site.nodes.map((node) => whyNotIn(node.name, () => whyNotServing(node.address, address)));
    const ofAgents = this.site.agents.flatMap((agent) => [
      whyNotIn(agent.name, () => whyNotWatching(agent.sentinel, address, COMPANY)),
      whyNotIn(agent.name, async () => {
        const status = await statusOf(agent);
        if (status.get('state') !== 'none') return `its silent state is ${status.get('state') ?? 'unknown'}`;
        return (status.get('resync-debts') ?? '') === '' ? null : `owes copies: ${status.get('resync-debts') ?? ''}`;
      }),
    ]);
    const reasons = (await Promise.all([...ofNodes, ...ofAgents])).filter((reason) => reason !== null);
    // Programs cost more than questions: last.
    const digs = reasons.length > 0 ? [] : this.site.agents.map((agent) => whyNotIn(agent.name, async () => {
      const answer = await this.#dig(agent);
      return answer === address.host ? null : `dig says ${answer}, not ${address.host}`;
    }));
    return { master, reasons: [...reasons, ...(await Promise.all(digs)).filter((reason) => reason !== null)] };
  }

  async #audit(receipts: Receipts, master: Node, untilMs: number): Promise<void> {
    const settled = receipts.all.filter(({ acknowledgedMs }) => acknowledgedMs <= untilMs);
    const { losses, unequal } = await audit(settled, master, this.site.nodes, () => this.#history(), this.#counted);
    this.#losses.push(...losses);
    for (const { kind, count, reason, client } of losses) {
      this.#say(`${count} writes of ${client} are gone (${kind}): ${reason}`);
      if (kind === 'unexplained') this.#failures.push(`${count} acknowledged writes of ${client} are gone: ${reason}`);
    }
    this.#failures.push(...unequal);
  }

  #history(): History {
    const { disturbances, restarts } = this.#chaos;
    return { samples: this.#watch.samples, disturbances, restarts, windows: this.#operators.windows };
  }

  async #waitForWrites(receipts: Receipts, signal: AbortSignal): Promise<void> {
    const deadlineMs = Date.now() + 60_000;
    while (receipts.writing(0) < this.site.clients.length) {
      if (Date.now() > deadlineMs) throw new Error(`not all clients write: ${this.site.clients.map(({ child }) => child.lastWords()).join('\n')}`);
      await sleep(POLL_MS, undefined, { signal });
      receipts.read();
    }
  }

  async #showStatus(): Promise<void> {
    let before = 0;
    while (await this.#tick(STATUS_EVERY_MS)) {
      const receipts = this.#receipts;
      if (receipts === null) continue;
      receipts.read();
      const answers = this.site.agents.map((agent) => this.site.byAddress(this.#lastDig.get(agent) ?? '')?.name ?? this.#lastDig.get(agent) ?? '?');
      const writing = receipts.writing(Date.now() - 1_000);
      this.#say(`status: ${receipts.acknowledged} acknowledged (+${receipts.acknowledged - before}), ${writing} of ${this.site.clients.length} clients write, `
        + `dig says ${answers.join(' ')}, load ${(loadavg()[0] ?? 0).toFixed(1)}`);
      before = receipts.acknowledged;
    }
  }

  async #digAround(): Promise<void> {
    while (await this.#tick(DIG_EVERY_MS)) await Promise.all(this.site.agents.map((agent) => this.#dig(agent)));
  }

  async #dig(agent: Agent): Promise<string> {
    const [client] = this.site.clients;
    const answer = await dig(this.site.network, client?.host ?? agent.host, agent.sentinel.host);
    this.#lastDig.set(agent, answer);
    const kind = this.site.byAddress(answer) === null ? answer : 'a node';
    this.#digs.set(kind, (this.#digs.get(kind) ?? 0) + 1);
    return answer;
  }

  /** False when the run is over. */
  async #tick(ms: number): Promise<boolean> {
    await sleep(ms, undefined, { signal: this.#background.signal }).catch(() => undefined);
    return !this.#background.signal.aborted;
  }

  #say(text: string): void {
    this.print(`${((Date.now() - this.#startMs) / 1000).toFixed(1).padStart(7)} s  ${text}`);
  }

  #conclude(receipts: Receipts): ChaosReport {
    const endMs = Date.now();
    const { deeds, skipped } = this.#chaos;
    const failures = [...this.#failures, ...receipts.complaints.map((line) => `a client complains: ${line}`)];
    if (receipts.acknowledged === 0) failures.push('nothing was ever acknowledged');
    return {
      settings: this.settings,
      tookMs: endMs - this.#startMs,
      rounds: this.#rounds,
      deeds: deeds.map((deed) => ({ title: deed.title, startMs: deed.startMs - this.#startMs, endMs: deed.endMs - this.#startMs })),
      skipped,
      accepted: Object.fromEntries(this.#operators.accepted),
      acknowledged: receipts.acknowledged,
      lost: sumLosses(this.#losses),
      losses: this.#losses,
      blind: receipts.gaps(Math.min(endMs, this.#stoppedMs)).map((gap) => explainGap(gap, deeds, this.#startMs)),
      digs: Object.fromEntries(this.#digs),
      failures,
      isOk: failures.length === 0,
    };
  }
}
