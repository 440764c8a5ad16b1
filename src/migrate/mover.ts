/**
 * Runs a move: asks the sentinels, lets decide.ts choose, does that step, writes it down; until the move is closed.
 *
 * Whatever interrupts it, the same loop goes on from the journal: forward, back, or past the point of no return. A step that fails on
 * the way forward turns the move back, unless the target is the master by then.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentError, messageOf } from '../errors.js';
import { sameAddress } from '../sentinel/wire/address.js';
import { BlindProbe } from './blind-probe.js';
import type { Context, Progress } from './context.js';
import type { World } from './decide.js';
import { decide } from './decide.js';
import { numberIn } from './fields.js';
import { Group } from './group.js';
import type { MoveJournal } from './journal.js';
import type { LinkSettings } from './links.js';
import { Links, PROBE_NAME, Refusal } from './links.js';
import type { Entry, Facts, MoveState } from './move-state.js';
import type { Step } from './plan.js';
import { chain, makeWritable, noAutoRevert, prefer, restore, save, waitSync } from './steps/nodes.js';
import { failover, report, settle } from './steps/settle.js';
import { abort, done, drain, prepare } from './steps/window.js';
import { WriteHold } from './write-hold.js';

/** What somebody may want to see of a running move. */
export type MoveEvent =
  | { readonly kind: 'begin'; readonly step: Step }
  | ({ readonly kind: 'progress'; readonly step: Step } & Progress)
  | { readonly kind: 'end'; readonly step: Step; readonly ms: number; readonly facts: Facts }
  | { readonly kind: 'failed'; readonly step: Step; readonly text: string }
  | { readonly kind: 'back'; readonly reason: string }
  | { readonly kind: 'closed'; readonly outcome: string; readonly text: string; readonly leftovers: readonly string[] };

export interface MoverOptions {
  readonly journal: MoveJournal;
  readonly links: LinkSettings;
  /** The operator wants it stopped. */
  readonly stop: AbortSignal;
  readonly onEvent: (event: MoveEvent) => void;
  /** A failure in the window: go back and lose its writes, or go through with it? */
  readonly choose: (reason: string) => Promise<'abort' | 'done'>;
}

type Closed = NonNullable<MoveState['closed']>;

const STEPS: Readonly<Record<Exclude<Step, 'preflight'>, (context: Context) => Promise<Facts>>> = {
  save, chain, prepare, drain, done, failover, settle, abort, restore, report,
  'wait-sync': waitSync, 'auto-revert': noAutoRevert, priority: prefer, writable: makeWritable,
};
const LOOK_TRIES = 30;
const MOST_FAILURES = 3;
/** Down-after, an election and a promotion, on a site with default settings. */
const FAILOVER_PATIENCE_MS = 60_000;
const RETRY_MS = 1_000;
const DEFAULT_DOWN_AFTER_MS = 30_000;
const NEVER = new AbortController().signal;

export class Mover {
  readonly #options: MoverOptions;
  readonly #links: Links;
  readonly #probeLinks: Links;
  /** A held write must not wait in the same queue as a renewal of the pause that holds it. */
  readonly #holdLinks: Links;
  readonly #group: Group;
  readonly #failures = new Map<Step, number>();
  #context: Context | null = null;
  #isChosen = false;

  constructor(options: MoverOptions) {
    this.#options = options;
    this.#links = new Links(options.links);
    this.#probeLinks = new Links(options.links, PROBE_NAME);
    this.#holdLinks = new Links(options.links);
    const { plan } = options.journal.move;
    for (const sentinel of plan.sentinels) for (const links of [this.#links, this.#probeLinks]) links.isSentinel(sentinel);
    this.#group = new Group(this.#links, plan.master);
  }

  /** Resolves when the move is closed. Rejects with AgentError when it can't go on nor back; the journal stays open then. */
  async run(): Promise<Closed> {
    try {
      for (;;) {
        const closed = await this.#next();
        if (closed !== null) return closed;
      }
    } finally {
      await this.#context?.hold.stop(true);
      await this.#context?.probe.stop();
      for (const links of [this.#links, this.#probeLinks, this.#holdLinks]) links.close();
    }
  }

  get #move(): MoveState {
    return this.#options.journal.move;
  }

  async #next(): Promise<Closed | null> {
    const world = await this.#look();
    const decision = decide(this.#move, world);
    switch (decision.kind) {
      case 'close': {
        const { outcome, text, leftovers } = decision;
        this.#note({ kind: 'closed', at: Date.now(), outcome, text, leftovers });
        this.#options.onEvent({ kind: 'closed', outcome, text, leftovers });
        return { outcome, text, leftovers };
      }
      case 'back':
        this.#turnBack(decision.reason);
        return null;
      case 'step':
        await this.#run(decision.step, world);
        return null;
    }
  }

  /** A sentinel that can be asked comes back, mostly: a move must not be left where it is for a moment's silence. */
  async #look(): Promise<World> {
    const { plan } = this.#move;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#group.world(plan.sentinels, plan.original);
      } catch (fault) {
        if (!(fault instanceof AgentError) || tries >= LOOK_TRIES) throw fault;
        await sleep(RETRY_MS);
      }
    }
  }

  /** A dead original is the sentinels' matter first: what they make of it decides whether there is a way back. */
  async #lookUntilDecided(): Promise<World> {
    const { plan } = this.#move;
    const deadlineMs = performance.now() + FAILOVER_PATIENCE_MS;
    for (;;) {
      const world = await this.#look();
      const isOpen = sameAddress(world.master, plan.original) && !(await this.#links.isAlive(plan.original));
      if (!isOpen || performance.now() > deadlineMs) return world;
      await sleep(RETRY_MS);
    }
  }

  async #run(step: Step, world: World): Promise<void> {
    if (step === 'preflight') throw new AgentError('MOVE_FAILED', 'a journal begins behind its preflight');
    const context = await this.#contextFor(step, world);
    this.#note({ kind: 'begin', at: Date.now(), step });
    this.#options.onEvent({ kind: 'begin', step });
    const startMs = performance.now();
    try {
      const facts = await STEPS[step](context);
      this.#end(step, Math.round(performance.now() - startMs), facts);
    } catch (fault) {
      if (!(fault instanceof AgentError || fault instanceof Refusal)) throw fault;
      this.#options.onEvent({ kind: 'failed', step, text: messageOf(fault) });
      await this.#afterFailure(step, messageOf(fault), Math.round(performance.now() - startMs));
    }
  }

  #end(step: Step, ms: number, facts: Facts): void {
    this.#note({ kind: 'end', at: Date.now(), step, ms, facts });
    this.#options.onEvent({ kind: 'end', step, ms, facts });
  }

  async #afterFailure(step: Step, reason: string, ms: number): Promise<void> {
    const world = await this.#lookUntilDecided();
    const isForward = this.#move.back === null && sameAddress(world.master, this.#move.plan.original);
    if (isForward) {
      const inWindow = world.silent === 'prepared' && world.tainted === '';
      if (inWindow && !this.#isChosen && (await this.#options.choose(reason)) === 'done') {
        // Once: a done that can't be had either is no choice any more.
        this.#isChosen = true;
        for (const each of ['prepare', 'drain'] as const) if (!this.#move.finished.has(each)) this.#end(each, ms, { overruled: reason });
        return;
      }
      return this.#turnBack(reason);
    }
    // It has tried for long enough by itself.
    if (step === 'abort') throw new AgentError('MOVE_FAILED', `${reason}; clients are still sent to the target: --abort again when the sentinels can vote`);
    const failures = (this.#failures.get(step) ?? 0) + 1;
    this.#failures.set(step, failures);
    if (failures < MOST_FAILURES) return void (await sleep(RETRY_MS));
    this.#end(step, ms, { problems: [reason] });
  }

  #turnBack(reason: string): void {
    this.#note({ kind: 'back', at: Date.now(), reason });
    this.#options.onEvent({ kind: 'back', reason });
  }

  #note(entry: Entry): void {
    this.#options.journal.note(entry);
  }

  async #contextFor(step: Step, world: World): Promise<Context> {
    this.#context ??= await this.#makeContext();
    const isForward = this.#move.back === null && sameAddress(world.master, this.#move.plan.original);
    const say = (progress: Progress): void => this.#options.onEvent({ kind: 'progress', step, ...progress });
    return { ...this.#context, say, signal: isForward ? this.#options.stop : NEVER };
  }

  async #makeContext(): Promise<Context> {
    const { journal } = this.#options;
    const { plan } = this.#move;
    const [view] = await this.#group.views(plan.sentinels);
    const downAfterMs = view === undefined ? DEFAULT_DOWN_AFTER_MS : numberIn(view.fields, 'down-after-milliseconds', DEFAULT_DOWN_AFTER_MS);
    return {
      plan, journal, links: this.#links, group: this.#group, signal: this.#options.stop, say: () => undefined, move: () => this.#move,
      probe: new BlindProbe(this.#probeLinks, plan.master, plan.sentinels, `pointsman:migrate:${plan.id}:probe`),
      hold: new WriteHold(this.#holdLinks, plan.original, downAfterMs),
      marker: `pointsman:migrate:${plan.id}:window`,
    };
  }
}
