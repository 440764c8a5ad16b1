/**
 * `pointsman watch [master]`: sentinel events, changes of masters and results of outputs as the running agent sees them.
 */
import type { FeedEntry } from '../admin/event-feed.js';
import { AgentError, EXIT } from '../errors.js';
import { formatAddress } from '../sentinel/wire/address.js';
import { adminAddress, openAgent } from './agent-port.js';
import type { AgentPortOptions } from './agent-port.js';
import { entryText, isAbout } from './entry-text.js';

export interface WatchOptions extends AgentPortOptions {
  readonly master: string | null;
  readonly json: boolean;
}

/** Runs until INT or TERM (0). Rejects with AGENT_UNREACHABLE when the agent is not there, or goes away. */
export async function watch(options: WatchOptions): Promise<number> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  const address = adminAddress(options);
  try {
    const response = await openAgent(address, '/events', { signal: stop.signal });
    for await (const line of linesOf(response)) {
      const entry = JSON.parse(line) as FeedEntry;
      if (isAbout(entry, options.master)) process.stdout.write(`${options.json ? line : entryText(entry)}\n`);
    }
  } catch (fault) {
    if (stop.signal.aborted) return EXIT.ok;
    if (fault instanceof AgentError) throw fault;
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
  throw new AgentError('AGENT_UNREACHABLE', `agent at ${formatAddress(address)} has gone away`);
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    const parts = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    yield* parts.filter((line) => line !== '');
  }
}
