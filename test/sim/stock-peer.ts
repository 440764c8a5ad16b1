/**
 * A sentinel that knows nothing of silent failovers: it ignores hellos of more than eight fields and refuses the command.
 *
 * Like stock it still votes for whoever asks, and holds its own failovers.
 */
import type { Input } from '../../src/sentinel/index.js';
import type { Core } from './core.js';

const STOCK_FIELDS = 8;

export function stockPeer(core: Core): Core {
  return { ...core, step: (state, input, now) => core.step(state, asStockHears(input), now) };
}

function asStockHears(input: Input): Input {
  const isStranger = (payload: string): boolean => payload.split(',').length > STOCK_FIELDS;
  if ((input.kind === 'message' || input.kind === 'hello') && isStranger(input.payload)) return { ...input, payload: '' };
  if (input.kind !== 'command') return input;
  const [word = '', second = '', payload = ''] = input.argv;
  if (word.toUpperCase() === 'PUBLISH' && isStranger(payload)) return { ...input, argv: [word, second, ''] };
  if (second.toUpperCase() === 'SILENT-FAILOVER') return { ...input, argv: [word, 'no-such-subcommand'] };
  return input;
}
