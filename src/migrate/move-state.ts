/**
 * What a journal says about a move: its lines, folded into one value. Pure.
 *
 * M1 a setting is changed only after its old value is in the journal. M2 a step counts as finished only by its own line: one that
 * was cut off is done again, so every step may be repeated. M3 once turned back, a move never goes forward again by itself.
 */
import { AgentError } from '../errors.js';
import type { Address } from '../sentinel/wire/address.js';
import type { Plan, Step } from './plan.js';

/** One node as it was. */
export interface SavedNode {
  readonly address: Address;
  /** CONFIG names and values, as they were. */
  readonly settings: Readonly<Record<string, string>>;
  /** Whom it followed; null for the original. */
  readonly follows: Address | null;
}

export interface SavedSentinel {
  readonly address: Address;
  /** `yes` or `no`; null where the sentinel does not know the setting (a stock one). */
  readonly autoRevert: string | null;
}

export interface Saved {
  readonly nodes: readonly SavedNode[];
  readonly sentinels: readonly SavedSentinel[];
}

export type Outcome = 'moved' | 'rolled-back' | 'elsewhere';

export type Facts = Readonly<Record<string, unknown>>;

/** A line of the journal. `at`: milliseconds since the epoch. */
export type Entry =
  | { readonly kind: 'plan'; readonly version: 1; readonly at: number; readonly plan: Plan }
  | { readonly kind: 'saved'; readonly at: number; readonly saved: Saved }
  | { readonly kind: 'begin'; readonly at: number; readonly step: Step }
  | { readonly kind: 'end'; readonly at: number; readonly step: Step; readonly ms: number; readonly facts: Facts }
  | { readonly kind: 'back'; readonly at: number; readonly reason: string }
  | { readonly kind: 'closed'; readonly at: number; readonly outcome: Outcome; readonly text: string; readonly leftovers: readonly string[] };

export interface Finished {
  readonly ms: number;
  readonly facts: Facts;
}

export interface MoveState {
  readonly plan: Plan;
  readonly saved: Saved | null;
  readonly finished: ReadonlyMap<Step, Finished>;
  /** Begun at least once, whatever came of it. */
  readonly begun: ReadonlySet<Step>;
  /** Why it was turned back; null = on the way forward. */
  readonly back: string | null;
  readonly closed: { readonly outcome: Outcome; readonly text: string; readonly leftovers: readonly string[] } | null;
}

/** Throws AgentError MOVE_FAILED when the lines are none of a move. */
export function foldEntries(entries: readonly Entry[]): MoveState {
  const [first, ...rest] = entries;
  if (first?.kind !== 'plan') throw new AgentError('MOVE_FAILED', 'the journal does not begin with a plan');
  return rest.reduce(applyEntry, { plan: first.plan, saved: null, finished: new Map(), begun: new Set(), back: null, closed: null });
}

export function applyEntry(move: MoveState, entry: Entry): MoveState {
  switch (entry.kind) {
    case 'plan':
      throw new AgentError('MOVE_FAILED', 'the journal has two plans');
    case 'saved':
      // The first one is from before any change (M1).
      return move.saved === null ? { ...move, saved: entry.saved } : move;
    case 'begin':
      return { ...move, begun: new Set([...move.begun, entry.step]) };
    case 'end':
      return { ...move, finished: new Map([...move.finished, [entry.step, { ms: entry.ms, facts: entry.facts }]]) };
    case 'back': {
      if (move.back !== null) return move;
      // What was put back on the way forward has to be looked at again.
      const finished = new Map([...move.finished].filter(([step]) => step !== 'restore' && step !== 'abort'));
      return { ...move, back: entry.reason, finished };
    }
    case 'closed':
      return { ...move, closed: { outcome: entry.outcome, text: entry.text, leftovers: entry.leftovers } };
  }
}

/** Whether somebody has to come back to it: it did not end, or left something behind. */
export const isOpen = ({ closed }: MoveState): boolean => closed === null || closed.leftovers.length > 0;

/** A move that ended with leftovers, as one that can be tidied up again. */
export function reopen(move: MoveState): MoveState {
  if (move.closed === null) return move;
  const isWhole = (step: Step, { facts }: Finished): boolean => step !== 'report' && !(Array.isArray(facts['problems']) && facts['problems'].length > 0);
  return { ...move, closed: null, finished: new Map([...move.finished].filter(([step, finished]) => isWhole(step, finished))) };
}
