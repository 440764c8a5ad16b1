/**
 * SENTINEL HELP: usage lines and indented descriptions, in the frame that every HELP of Redis has (addReplyHelp).
 */
import { array, simple } from '../../wire/resp-value.js';
import type { Outcome } from './outcome.js';
import { reply } from './outcome.js';
import { SENTINEL_SUBCOMMANDS } from './subcommands.js';

export function help(): Outcome {
  const lines = ['SENTINEL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:'];
  for (const { name, args, summary, deprecated } of SENTINEL_SUBCOMMANDS) {
    if (name === 'help' || deprecated !== undefined) continue;
    lines.push(`${name.toUpperCase()} ${args}`.trimEnd(), `    ${summary}`);
  }
  lines.push('HELP', '    Print this help.');
  return reply(array(lines.map(simple)));
}
