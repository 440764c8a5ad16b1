/**
 * What a planned move is made of: the plan, its steps in order, and what each mode promises. Pure.
 *
 * The steps are those of the source document for a silent move, made safe; a coordinated one needs fewer, since it has no window.
 */
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress } from '../sentinel/wire/address.js';

export type Mode = 'silent' | 'coordinated';

/** Forward steps; `abort` belongs to the way back alone, `restore` to both. */
export type Step =
  | 'preflight' | 'save' | 'wait-sync' | 'auto-revert' | 'chain' | 'priority' | 'writable' | 'prepare' | 'drain' | 'done' | 'failover'
  | 'settle' | 'abort' | 'restore' | 'report';

/** Everything that a later process needs to go on or to go back; the first line of the journal. */
export interface Plan {
  /** Also the name of the marker key's value. */
  readonly id: string;
  readonly master: string;
  readonly mode: Mode;
  readonly barrier: boolean;
  readonly original: Address;
  readonly target: Address;
  /** The other replicas. */
  readonly others: readonly Address[];
  readonly sentinels: readonly Address[];
  readonly drainTimeoutMs: number;
  readonly onDrainTimeout: 'abort' | 'proceed';
  /** How long outputs may take to acknowledge. */
  readonly publishTimeoutMs: number;
  /** How long every node's copy may take. */
  readonly resyncTimeoutMs: number;
  /** 0: the target must be in sync when the move begins. */
  readonly waitSyncMs: number;
  /** Replication backlog that the window needs, bytes; nodes that have less get it for the move. */
  readonly backlogBytes: number;
}

const SILENT: readonly Step[] = [
  'preflight', 'save', 'wait-sync', 'auto-revert', 'chain', 'priority', 'writable', 'prepare', 'drain', 'done', 'settle', 'restore', 'report',
];
const COORDINATED: readonly Step[] = ['preflight', 'save', 'wait-sync', 'failover', 'settle', 'restore', 'report'];

/** The way forward. */
export function stepsOf(mode: Mode): readonly Step[] {
  return mode === 'silent' ? SILENT : COORDINATED;
}

/** Steps that only look on, or tidy up, once the target is the master. */
export const AFTER_SWITCH: readonly Step[] = ['settle', 'restore', 'report'];

/** One line for people: what the step does, with the plan's addresses. */
export function describeStep(step: Step, plan: Plan): string {
  const original = formatAddress(plan.original);
  const target = formatAddress(plan.target);
  switch (step) {
    case 'preflight': return 'look at everything, change nothing';
    case 'save': return 'write down what will be changed';
    case 'wait-sync': return `wait until ${target} is in sync`;
    case 'auto-revert': return 'tell every sentinel to leave replicas where they are';
    case 'chain': {
      const others = plan.others.map(formatAddress).join(', ');
      return `give the window a backlog, ${others === '' ? 'no other replica to re-point' : `let ${others} follow ${target}`}`;
    }
    case 'priority': return `prefer ${target} in any failover`;
    case 'writable': return `make ${target} writable`;
    case 'prepare': return `send clients to ${target}${plan.barrier ? ', hold writes on the old master' : ''}; wait for every output and the TTL`;
    case 'drain': return `cut connections at ${original} until nobody is left`;
    case 'done': return `make ${target} the master`;
    case 'failover': return `hold writes, let ${target} catch up, make it the master`;
    case 'settle': return 'wait for sentinels, outputs and every node; look for the marker';
    case 'abort': return `send clients back to ${original}`;
    case 'restore': return 'put back what was changed';
    case 'report': return 'say what it cost';
  }
}

/** What the mode promises, and what it does not; printed before anything happens. */
export function contractOf(plan: Pick<Plan, 'mode' | 'barrier'>): readonly string[] {
  if (plan.mode === 'coordinated') {
    return ['writes pause for some milliseconds; nothing is lost, nothing inverted, no node is copied in full'];
  }
  if (plan.barrier) {
    return [
      'from the flip on the old master holds its writes until its clients are cut: no inversion, no late write, no expiry from there',
      'late writers see one broken connection; every other node copies the new master in full afterwards',
    ];
  }
  return [
    'no write is paused; writes acknowledged by either node survive',
    'for a short time both nodes take writes: two clients that write one key at that moment may see their order inverted',
    'keys that expire on the old master are deleted on the new one, even if refreshed there',
    'every other node copies the new master in full afterwards',
  ];
}
