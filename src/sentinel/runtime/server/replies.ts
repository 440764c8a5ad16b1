/**
 * Refusals and readings that several commands share, in the server's words.
 */
import type { RespValue } from '../../wire/resp-value.js';
import { array, error, simple } from '../../wire/resp-value.js';

export const SYNTAX_ERROR: RespValue = error('ERR syntax error');
export const NOT_AN_INTEGER: RespValue = error('ERR value is not an integer or out of range');

/** `name`: full, lower case. */
export function wrongArity(name: string): RespValue {
  return error(`ERR wrong number of arguments for '${name}' command`);
}

/** `typed` as the client wrote it. */
export function unknownSubcommand(container: string, typed: string): RespValue {
  return error(`ERR unknown subcommand '${cText(typed).slice(0, 128)}'. Try ${container.toUpperCase()} HELP.`);
}

export function unknownCommand(argv: readonly string[]): RespValue {
  let args = '';
  for (const arg of argv.slice(1)) {
    if (args.length >= 128) break;
    args += `'${cText(arg).slice(0, 128 - args.length)}' `;
  }
  return error(`ERR unknown command '${cText(argv[0] ?? '').slice(0, 128)}', with args beginning with: ${args}`);
}

/** The whole text as a decimal integer (no plus, no leading zeros) that a number holds exactly; else null. */
export function integerOf(text: string): number | null {
  const value = /^(?:0|-?[1-9]\d*)$/.test(text) ? Number(text) : NaN;
  return Number.isSafeInteger(value) ? value : null;
}

/** The reply of a HELP subcommand. */
export function helpReply(container: string, lines: readonly string[]): RespValue {
  const head = `${container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:`;
  return array([head, ...lines, 'HELP', '    Prints this help.'].map(simple));
}

// The server formats these texts as C strings.
const cText = (text: string): string => text.split('\0', 1)[0] ?? '';
