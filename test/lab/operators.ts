/**
 * People at the command line of the lab: planned moves sent to a drawn agent, by way of the main bridge.
 *
 * They do as the operator's page says: the target alone is made writable before a silent move, and that is taken back after
 * it; what they prepared they bring to an end, at the latest when the round is over.
 */
import { must } from '../../src/assert.js';
import { MASTER_NAME } from '../../src/demo/agreement.js';
import { askRedis, fieldsOf } from '../../src/demo/ask-redis.js';
import { pause } from '../../src/demo/wait.js';
import { messageOf } from '../../src/errors.js';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import type { SilentWindow } from './lineage.js';
import type { Step } from './plan.js';
import type { Agent, Node, Site } from './site.js';

const ANSWER_LIMIT_MS = 15_000;
const PREPARE_PATIENCE_MS = 20_000;
const TRY_AGAIN_MS = 1_000;
const CONCLUDE_TRIES = 4;
const OVER_LIMIT_MS = 6_000;

export class Operators {
  readonly windows: SilentWindow[] = [];
  /** How many moves of each kind were answered `OK`. */
  readonly accepted = new Map<string, number>();
  #isSilentBusy = false;
  #writable: Node | null = null;

  constructor(readonly site: Site, readonly say: (text: string) => void) {}

  async perform(step: Step, master: Node | null): Promise<void> {
    const agent = this.#agent(step.picks[1]);
    switch (step.kind) {
      case 'silent':
        if (master !== null) await this.#silent(step, master);
        return;
      case 'reset':
        await this.#order(agent, 'reset', ['SENTINEL', 'RESET', MASTER_NAME]);
        return;
      case 'coordinated':
        await this.#order(agent, 'coordinated', ['SENTINEL', 'FAILOVER', MASTER_NAME, 'COORDINATED']);
        return;
      default:
        await this.#order(agent, 'failover', ['SENTINEL', 'FAILOVER', MASTER_NAME]);
    }
  }

  /** Ends every prepared state, by whatever works; resolves when no agent that answers is prepared. */
  async finish(): Promise<void> {
    for (const agent of this.site.agents) {
      const status = await statusOf(agent).catch(() => null);
      const target = status?.get('target');
      if (status === null || status.get('state') === 'none' || target === undefined || target === '') continue;
      const reply = await this.#order(agent, 'abort', ['SENTINEL', 'SILENT-FAILOVER', MASTER_NAME, target, 'abort']);
      const window = this.windows.at(-1);
      if (reply === 'OK' && window !== undefined) window.wasAborted = true;
    }
  }

  async #silent(step: Step, master: Node): Promise<void> {
    const replicas = this.site.nodes.filter((node) => node !== master && node.isWanted && !node.isStopped);
    const target = replicas[Math.floor(step.picks[0] * replicas.length)];
    if (this.#isSilentBusy || target === undefined) return this.say('operator: silent move left out, another one runs or no replica does');
    this.#isSilentBusy = true;
    const window: SilentWindow = {
      target: target.address.host, original: master.address.host, startMs: Date.now(), endMs: Infinity, wasAborted: false,
    };
    this.windows.push(window);
    try {
      await this.#setWritable(target);
      const isPrepared = await this.#prepare(target, step.picks[1]);
      if (isPrepared) await pause(step.lastsMs);
      await this.#conclude(target, isPrepared && !step.aborts ? 'done' : 'abort', window);
      await this.#waitUntilOver();
    } finally {
      await this.#setWritable(null);
      window.endMs = Date.now();
      this.#isSilentBusy = false;
    }
  }

  async #prepare(target: Node, pick: number): Promise<boolean> {
    const giveUpMs = Date.now() + PREPARE_PATIENCE_MS;
    for (let turn = 0; ; turn++) {
      const agent = this.#agent((pick + turn / 3) % 1);
      const reply = await this.#order(agent, 'prepare', ['SENTINEL', 'SILENT-FAILOVER', MASTER_NAME, formatAddress(target.address), 'prepare']);
      if (reply === 'OK') return true;
      // A setting on the node is seen within an INFO period; the rest passes, or does not.
      if (Date.now() > giveUpMs) return false;
      await pause(TRY_AGAIN_MS);
    }
  }

  async #conclude(target: Node, phase: 'done' | 'abort', window: SilentWindow): Promise<void> {
    for (let turn = 0; turn < CONCLUDE_TRIES; turn++) {
      const words = ['SENTINEL', 'SILENT-FAILOVER', MASTER_NAME, formatAddress(target.address), turn === CONCLUDE_TRIES - 1 ? 'abort' : phase];
      const reply = await this.#order(this.#agent((turn % 3) / 3), must(words[4], 'a phase'), words);
      if (reply === 'OK' && words[4] === 'abort') window.wasAborted = true;
      if (reply === 'OK' || /^ERR No silent failover/.test(reply)) return;
      await pause(TRY_AGAIN_MS);
    }
  }

  /** The reply comes before the deed: clients are cut off the target some moments later. An agent that is cut off is not waited for. */
  async #waitUntilOver(): Promise<void> {
    const giveUpMs = Date.now() + OVER_LIMIT_MS;
    do {
      await pause(TRY_AGAIN_MS);
      const states = await Promise.all(this.site.agents.map((agent) => statusOf(agent).then((status) => status.get('state') ?? 'none', () => 'none')));
      if (states.every((state) => state === 'none')) return;
    } while (Date.now() < giveUpMs);
  }

  /** A node that is back may have been writable when its file was rewritten last (CONFIG REWRITE of a move): only a target of now is. */
  restarted(node: Node): Promise<void> {
    return this.#setReadOnly(node, node === this.#writable ? 'no' : 'yes');
  }

  /** The one replica that takes writes, or none. */
  async #setWritable(target: Node | null): Promise<void> {
    this.#writable = target;
    for (const node of this.site.nodes) await this.#setReadOnly(node, node === target ? 'no' : 'yes');
  }

  /** Tried again: the agents cut clients when they move a master. */
  async #setReadOnly(node: Node, value: 'yes' | 'no'): Promise<void> {
    for (let tries = 3; node.isWanted; tries--) {
      try {
        await askRedis({ path: node.socket }, ['CONFIG', 'SET', 'replica-read-only', value]);
        return;
      } catch (error) {
        if (tries === 0) return this.say(`operator: ${node.name} replica-read-only ${value}: ${messageOf(error)}`);
        await pause(TRY_AGAIN_MS);
      }
    }
  }

  async #order(agent: Agent, kind: string, argv: readonly string[]): Promise<string> {
    const answer = await askRedis(agent.sentinel, argv, ANSWER_LIMIT_MS).catch(messageOf);
    const reply = typeof answer === 'string' ? answer : answer.kind === 'integer' ? 'OK' : 'text' in answer ? answer.text : answer.kind;
    if (reply === 'OK') this.accepted.set(kind, (this.accepted.get(kind) ?? 0) + 1);
    this.say(`operator at ${agent.name}: ${argv.join(' ')}: ${reply}`);
    return reply;
  }

  #agent(pick: number): Agent {
    return must(this.site.agents[Math.floor(pick * this.site.agents.length)], 'there are agents');
  }
}

export async function statusOf(agent: Agent): Promise<ReadonlyMap<string, string>> {
  return fieldsOf(await askRedis(agent.sentinel, ['SENTINEL', 'SILENT-FAILOVER', MASTER_NAME, 'status']));
}
