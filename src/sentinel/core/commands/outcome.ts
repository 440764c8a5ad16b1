/**
 * What a subcommand is to the dispatcher: a function from the turn and its arguments to a reply as data.
 *
 * A refusal is a value like any other reply; nothing here throws. `persist` asks for the barrier before the reply, as
 * sentinelFlushConfigAndReply does: the client hears OK only after the state is on disk, else the error in `ifNotSaved`.
 */
import type { RespValue } from '../../wire/resp-value.js';
import { error, OK } from '../../wire/resp-value.js';
import type { Master } from '../state.js';
import type { Turn } from '../turn.js';

export interface Outcome {
  readonly value: RespValue;
  /** Persist before replying. */
  readonly persist?: boolean;
  /** Replaces `value` when the write before it failed. */
  readonly ifNotSaved?: RespValue;
}

/** What the core cannot see itself and the runtime found out before it handed the command over (see outside-facts.ts). */
export interface CommandFacts {
  /** Script paths named in the command that are missing or not executable. */
  readonly unusableScripts: readonly string[];
}

/** `args` are the words behind the subcommand; their number has been checked against the subcommand's arity. */
export type Execute = (turn: Turn, args: readonly string[], facts: CommandFacts) => Outcome;

export type ExecuteForMaster = (turn: Turn, master: Master, args: readonly string[], facts: CommandFacts) => Outcome;

/** The reply instead of OK when the state could not be written. What the command changed stays changed, as in stock. */
export const NOT_SAVED: RespValue = error('ERR Failed to save config file. Check server logs.');

export const reply = (value: RespValue): Outcome => ({ value });

/** An error reply; `text` starts with its code, e.g. `ERR …`. */
export const refuse = (text: string): Outcome => ({ value: error(text) });

/** OK once the state is on disk. */
export const savedOk = (): Outcome => ({ value: OK, persist: true, ifNotSaved: NOT_SAVED });

/** For subcommands whose first argument names a master; the others get their arguments without that name. */
export function forMaster(execute: ExecuteForMaster): Execute {
  return (turn, [name = '', ...rest], facts) => {
    const master = turn.state.masters.get(name);
    return master === undefined ? refuse('ERR No such master with that name') : execute(turn, master, rest, facts);
  };
}
