/**
 * The next action of a move: from its journal and what the sentinels say now. Pure; all that a resume has to go by.
 *
 * The world decides, not the journal: a target that is the master can't be taken back, a window that the sentinels have ended can't
 * be finished, and an interrupted step may have taken effect or not.
 */
import { formatAddress, sameAddress } from '../sentinel/wire/address.js';
import type { Address } from '../sentinel/wire/address.js';
import type { MoveState, Outcome } from './move-state.js';
import type { Step } from './plan.js';
import { AFTER_SWITCH, stepsOf } from './plan.js';

/** What the newest configuration among the sentinels says. */
export interface World {
  /** The master by topology: the original as long as a silent failover is only prepared. */
  readonly master: Address;
  readonly silent: 'none' | 'reserved' | 'prepared';
  readonly silentTarget: Address | null;
  /** Why the window's writes can't be trusted; empty = they can. */
  readonly tainted: string;
  /** A sentinel is at it: a failover, or a done or abort of the silent one. */
  readonly failingOver: boolean;
}

export type Decision =
  | { readonly kind: 'step'; readonly step: Step }
  | { readonly kind: 'back'; readonly reason: string }
  | { readonly kind: 'close'; readonly outcome: Outcome; readonly text: string; readonly leftovers: readonly string[] };

function close(move: MoveState, outcome: Outcome, text: string): Decision {
  return { kind: 'close', outcome, text, leftovers: leftovers(move) };
}

const run = (step: Step): Decision => ({ kind: 'step', step });

export function decide(move: MoveState, world: World): Decision {
  const { plan } = move;
  if (sameAddress(world.master, plan.target)) return afterSwitch(move);
  if (!sameAddress(world.master, plan.original)) {
    if (!move.finished.has('restore') && move.saved !== null) return run('restore');
    return close(move, 'elsewhere', `${formatAddress(world.master)} has become the master meanwhile; what was changed is put back`);
  }
  const isOurs = world.silent !== 'none' && world.silentTarget !== null && sameAddress(world.silentTarget, plan.target);
  if (move.back !== null) {
    if (isOurs) return run('abort');
    if (!move.finished.has('restore') && move.saved !== null) return run('restore');
    return close(move, 'rolled-back', `${formatAddress(plan.original)} is still the master: ${move.back}`);
  }
  const reason = whyNotForward(move, world, isOurs);
  if (reason !== null) return { kind: 'back', reason };
  const step = stepsOf(plan.mode).find((each) => !move.finished.has(each));
  return step === undefined ? close(move, 'moved', 'nothing is left to do') : run(step);
}

/** The target is the master: whatever was planned, what is left is to look on and to tidy up. */
function afterSwitch(move: MoveState): Decision {
  const step = AFTER_SWITCH.find((each) => !move.finished.has(each) && (each !== 'restore' || move.saved !== null));
  if (step !== undefined) return run(step);
  const target = formatAddress(move.plan.target);
  const late = move.back === null ? '' : `; it was too late to go back (${move.back})`;
  return close(move, 'moved', `${target} is the master${late}`);
}

function whyNotForward(move: MoveState, world: World, isOurs: boolean): string | null {
  const has = (step: Step): boolean => move.finished.has(step);
  if (world.silent !== 'none' && !isOurs) return `a silent failover to ${formatAddressOrNone(world.silentTarget)} is prepared by somebody else`;
  if (has('done') || has('failover')) return 'the target was the master for a moment, and is not any more';
  if (has('prepare') && world.silent !== 'prepared') return 'the window has ended: the sentinels have sent clients back to the old master';
  if (world.tainted !== '') return `the window is tainted: ${world.tainted}`;
  return null;
}

const formatAddressOrNone = (address: Address | null): string => (address === null ? 'nobody' : formatAddress(address));

/** What the steps could not do, in words. */
export function leftovers(move: MoveState): readonly string[] {
  return [...move.finished.values()].flatMap(({ facts }) => {
    const { problems } = facts;
    return Array.isArray(problems) ? problems.filter((each): each is string => typeof each === 'string') : [];
  });
}
