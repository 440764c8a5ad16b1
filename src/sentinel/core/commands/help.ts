/**
 * SENTINEL HELP: usage lines and indented descriptions, in the frame that every HELP of Redis has (addReplyHelp); what the
 * server we present does not have, or calls deprecated, is left out, and Valkey's users read of primaries. Divergence D38: the words
 * are our own.
 */
import { isIn } from '../../wire/identity.js';
import { array, simple } from '../../wire/resp-value.js';
import type { Turn } from '../turn.js';
import type { Outcome } from './outcome.js';
import { reply } from './outcome.js';
import { SENTINEL_SUBCOMMANDS, deprecationOf } from './subcommands.js';

export function help({ state }: Turn): Outcome {
  const { identity } = state.settings;
  const worded = (text: string): string => (identity.product === 'valkey' ? text.replaceAll('master', 'primary') : text);
  const lines = ['SENTINEL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:'];
  for (const { name, args, summary, since, origin } of SENTINEL_SUBCOMMANDS) {
    if (name === 'help' || !isIn(identity, since, origin) || deprecationOf(identity, name) !== null) continue;
    lines.push(`${name.toUpperCase()} ${worded(args)}`.trimEnd(), `    ${worded(summary)}`);
  }
  lines.push('HELP', '    Print this help.');
  return reply(array(lines.map(simple)));
}
