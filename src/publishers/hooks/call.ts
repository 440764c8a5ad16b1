/**
 * One call of a script: its words, its environment, what it reads on standard input, and what its end means.
 *
 * Words and exit codes are stock's, so that one script serves as client-reconfig-script and as a hook; what stock has no word for
 * is in the environment and, for hooks, as one line of JSON on standard input.
 */
import type { Route, RoutePhase } from '../../route/route.js';
import { formatAddress } from '../../sentinel/wire/address.js';
import type { Address } from '../../sentinel/wire/address.js';
import type { ScriptEnd } from './child.js';
import type { HookMemory } from './targets.js';

/** What a script is called for: a phase of the Route, seen from the move that the call is about. */
export type CallKind = RoutePhase;

/** A program and how to start it; `args` come before stock's words. */
export interface Program {
  readonly path: string;
  readonly args: readonly string[];
  /** See {@link ScriptCall.wrap}. */
  readonly wrap: readonly string[];
}

export interface Call {
  readonly program: Program;
  readonly route: Route;
  readonly kind: CallKind;
  readonly from: Address;
  readonly to: Address;
  readonly memory: HookMemory;
  /** Whether the move was prepared by an operator. */
  readonly planned: boolean;
}

/** `<path> <args…> <master> <leader|observer> start <from-ip> <from-port> <to-ip> <to-port>`. */
export function argvOf({ program, route, from, to }: Call): string[] {
  const stock = [route.master, route.role, 'start', from.host, String(from.port), to.host, String(to.port)];
  return [program.path, ...program.args, ...stock];
}

export function environmentOf({ route, kind, from, to, planned }: Call): Record<string, string> {
  return {
    POINTSMAN_MASTER: route.master,
    POINTSMAN_ROLE: route.role,
    POINTSMAN_PHASE: kind,
    POINTSMAN_EPOCH: String(route.configEpoch),
    POINTSMAN_FROM: formatAddress(from),
    POINTSMAN_TO: formatAddress(to),
    // A failover that was over before the hook could be called (the agent was away) is only known as a switch.
    POINTSMAN_REASON: kind === 'failover' && route.phase === 'steady' ? 'switch' : kind,
    POINTSMAN_PLANNED: planned ? '1' : '0',
  };
}

/** The whole Route, one line of JSON: replicas and order have no place in words. */
export function inputOf({ route, kind, from, to, planned }: Call): string {
  const document = {
    master: route.master, phase: kind, planned, role: route.role, epoch: route.configEpoch, order: route.order,
    from: formatAddress(from), to: formatAddress(to), since: new Date(route.since).toISOString(),
    replicas: route.replicas.map(({ address, healthy }) => ({ address: formatAddress(address), healthy })),
  };
  return `${JSON.stringify(document)}\n`;
}

export type Verdict =
  | { readonly kind: 'done' }
  | { readonly kind: 'again'; readonly reason: string; readonly signal: number; readonly exitCode: number }
  | { readonly kind: 'givenUp'; readonly reason: string; readonly exitCode: number };

/** Stock's reading of a script's end: 0 done, 1 and signals again, anything else for good. */
export function verdictOf(end: ScriptEnd): Verdict {
  switch (end.kind) {
    case 'exited':
      if (end.exitCode === 0) return { kind: 'done' };
      if (end.exitCode === 1) return { kind: 'again', reason: 'asks for a retry (exit code 1)', signal: 0, exitCode: 1 };
      return { kind: 'givenUp', reason: `exit code ${end.exitCode}`, exitCode: end.exitCode };
    case 'signalled': return { kind: 'again', reason: `was killed by signal ${end.signal}`, signal: end.signal, exitCode: 0 };
    case 'timedOut': return { kind: 'again', reason: 'ran too long and was killed', signal: 9, exitCode: 0 };
    case 'aborted': return { kind: 'again', reason: 'was ended for a newer target', signal: 15, exitCode: 0 };
    case 'notStarted': return { kind: 'again', reason: `could not be started: ${end.reason}`, signal: 0, exitCode: 99 };
    case 'refused': return { kind: 'givenUp', reason: end.reason, exitCode: 2 };
  }
}
