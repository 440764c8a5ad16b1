/**
 * Errors by kind: an operational fault carries a code, a cause and context; a fatal one also an exit status.
 *
 * Bugs are assertions (assert.ts), protocol refusals are values, bad configuration is a list of faults (config/).
 * Every code here has a line in docs/errors.md; a test compares both ways.
 */

/** What went wrong, in one word that stays the same between releases. */
export type ErrorCode =
  | 'LINK_FAILED'
  | 'PERSIST_FAILED'
  | 'PUBLISH_FAILED'
  | 'PUBLISH_TIMEOUT'
  | 'SCRIPT_FAILED'
  | 'RESOLVE_FAILED'
  | 'PORT_IN_USE'
  | 'LISTEN_FAILED'
  | 'CONFIG_INVALID'
  | 'CONFIG_UNREADABLE'
  | 'STATE_UNWRITABLE'
  | 'SETUP_MISSING'
  | 'AGENT_UNREACHABLE'
  | 'MOVE_FAILED';

/** An expected failure of the outside world; caught where policy lives (reconciler, link, command line). */
export class AgentError extends Error {
  override readonly name: string = 'AgentError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly context: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The environment does not let the program work; main.ts prints the message and exits with `exitCode`. */
export class FatalError extends AgentError {
  override readonly name = 'FatalError';

  constructor(
    code: ErrorCode,
    message: string,
    readonly exitCode: number,
    context: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(code, message, context, options);
  }
}

/** Exit statuses, after sysexits.h where it has a word for the case. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 64,
  badConfig: 64,
  bug: 70,
  portInUse: 71,
  missingTool: 69,
  stateUnwritable: 73,
  simulatedCrash: 99,
} as const;

/** The text of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The `code` of anything that was thrown (`ENOENT`, `PUBLISH_TIMEOUT`), or null. */
export function codeOf(error: unknown): string | null {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
