/**
 * The client-reconfig-script of sentinel.conf as an output: called when a master's clients have to go elsewhere.
 *
 * Stock's seven arguments and exit codes; what differs from stock (retries, order, overlaps) is the script publisher's.
 */
import type { Program } from './call.js';
import { ScriptPublisher } from './script-publisher.js';
import type { ScriptPublisherOptions } from './script-publisher.js';

export interface ClientReconfigScriptOptions extends Omit<ScriptPublisherOptions, 'name' | 'programOf' | 'wants' | 'tellsRoute'> {
  /** The script of a master as it is configured now, or null. */
  readonly scriptOf: (master: string) => string | null;
}

export class ClientReconfigScript extends ScriptPublisher {
  constructor({ scriptOf, ...options }: ClientReconfigScriptOptions) {
    const programOf = (master: string): Program | null => {
      const path = scriptOf(master);
      return path === null ? null : { path, args: [], wrap: [] };
    };
    super({ ...options, name: 'client-reconfig-script', programOf, wants: (kind) => kind !== 'steady', tellsRoute: false });
  }
}
