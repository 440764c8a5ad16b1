/**
 * What every step of a move gets: the plan, the connections, a way to say how far it is, and a signal that says stop.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentError } from '../errors.js';
import type { Address } from '../sentinel/wire/address.js';
import type { BlindProbe } from './blind-probe.js';
import type { Group } from './group.js';
import type { Links } from './links.js';
import type { MoveJournal } from './journal.js';
import type { Facts, MoveState } from './move-state.js';
import type { Plan } from './plan.js';
import type { WriteHold } from './write-hold.js';

/** How far a step is: words, and a part of 1 where that is known. */
export interface Progress {
  readonly text: string;
  readonly part?: number;
  readonly facts?: Facts;
}

export interface Context {
  readonly plan: Plan;
  readonly links: Links;
  readonly group: Group;
  readonly journal: MoveJournal;
  readonly probe: BlindProbe;
  readonly hold: WriteHold;
  /** The key that a check looks for on every node afterwards. */
  readonly marker: string;
  /** Aborted: the operator wants it stopped. Never so where stopping would leave more behind than going on. */
  readonly signal: AbortSignal;
  readonly say: (progress: Progress) => void;
  readonly move: () => MoveState;
}

/** A step can't be done: one clear sentence. */
export function fail(text: string): AgentError {
  return new AgentError('MOVE_FAILED', text);
}

/** Ends what a step waits for when the operator says stop. */
export function checkSignal({ signal }: Pick<Context, 'signal'>): void {
  if (signal.aborted) throw fail('interrupted by the operator');
}

/** Polls until `look` returns null; after `limitMs` fails with what it returned last. */
export async function waitUntil(
  context: Context, limitMs: number, everyMs: number, look: () => Promise<string | null>, show: (waitedMs: number) => Progress | null = () => null,
): Promise<void> {
  const startMs = performance.now();
  for (;;) {
    checkSignal(context);
    const missing = await look();
    if (missing === null) return;
    const waitedMs = performance.now() - startMs;
    if (waitedMs > limitMs) throw fail(`${missing} (waited ${Math.round(waitedMs / 1000)} s)`);
    context.say(show(waitedMs) ?? { text: missing });
    await sleep(everyMs);
  }
}

export const allNodes = (plan: Plan): readonly Address[] => [plan.original, plan.target, ...plan.others];
