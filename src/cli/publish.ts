/**
 * `pointsman publish M [--force]`: asks the running agent to look at a master's outputs again, or to overrule a higher order.
 */
import { EXIT } from '../errors.js';
import { adminAddress, askAgent } from './agent-port.js';
import type { AgentPortOptions } from './agent-port.js';

export interface PublishOptions extends AgentPortOptions {
  readonly master: string;
  readonly force: boolean;
}

/** Resolves to the exit status: 1 when no output could be told (the agent is isolated or unconfirmed). */
export async function publish(options: PublishOptions): Promise<number> {
  const { master, force } = options;
  const path = `/publish?master=${encodeURIComponent(master)}${force ? '&force=1' : ''}`;
  const { outputs } = (await askAgent(adminAddress(options), path, 'POST')) as { outputs: readonly string[] };
  if (outputs.length === 0) {
    process.stderr.write(`no output of ${master} was told: the agent is isolated, not confirmed yet, or has no outputs\n`);
    return EXIT.failed;
  }
  process.stdout.write(`${force ? 'forced' : 'looking at'}: ${outputs.join(', ')}; see "pointsman status ${master}"\n`);
  return EXIT.ok;
}
