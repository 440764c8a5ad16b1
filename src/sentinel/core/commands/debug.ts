/**
 * SENTINEL DEBUG and SIMULATE-FAILURE: the tunables of limits.ts at run time, and crashes on demand (6.9, 6.10).
 *
 * Neither is persisted. Both apply what comes before a bad word, as in stock. Mirrors sentinelSetDebugConfigParameters,
 * addReplySentinelDebugInfo and the simulate-failure branch of sentinelCommand.
 */
import { bulkMap, bulks, OK } from '../../wire/resp-value.js';
import type { Tunables } from '../limits.js';
import type { Turn } from '../turn.js';
import { log, touch } from '../turn.js';
import { strictInteger } from './integer.js';
import type { Outcome } from './outcome.js';
import { refuse, reply } from './outcome.js';

/** In the order of the reply. */
const OPTIONS: ReadonlyMap<string, keyof Tunables> = new Map([
  ['INFO-PERIOD', 'infoPeriodMs'],
  ['PING-PERIOD', 'pingPeriodMs'],
  ['ASK-PERIOD', 'askPeriodMs'],
  ['PUBLISH-PERIOD', 'publishPeriodMs'],
  ['DEFAULT-DOWN-AFTER', 'defaultDownAfterMs'],
  ['DEFAULT-FAILOVER-TIMEOUT', 'defaultFailoverTimeoutMs'],
  ['TILT-TRIGGER', 'tiltTriggerMs'],
  ['TILT-PERIOD', 'tiltPeriodMs'],
  ['SLAVE-RECONF-TIMEOUT', 'replicaReconfTimeoutMs'],
  ['MIN-LINK-RECONNECT-PERIOD', 'minLinkReconnectPeriodMs'],
  ['ELECTION-TIMEOUT', 'electionTimeoutMs'],
  ['SCRIPT-MAX-RUNTIME', 'scriptMaxRuntimeMs'],
  ['SCRIPT-RETRY-DELAY', 'scriptRetryDelayMs'],
]);

export function debug(turn: Turn, args: readonly string[]): Outcome {
  const { tunables, masters } = turn.state;
  if (args.length === 0) return reply(bulkMap([...OPTIONS].map(([name, key]) => [name, String(tunables[key])] as const)));
  for (let at = 0; at < args.length; at += 2) {
    const [option = '', value] = args.slice(at, at + 2);
    const key = OPTIONS.get(option.toUpperCase());
    if (key === undefined || value === undefined) return refuse(`ERR Unknown option or number of arguments for SENTINEL DEBUG '${option}'`);
    const durationMs = strictInteger(value, 1);
    if (durationMs === null) return refuse(`ERR Invalid argument '${value}' for SENTINEL DEBUG '${option}'`);
    tunables[key] = durationMs;
    for (const name of masters.keys()) touch(turn, name);
  }
  return reply(OK);
}

export function simulateFailure(turn: Turn, args: readonly string[]): Outcome {
  const { simulate } = turn.state;
  // Every call starts from none: the only way to disarm is to ask for HELP or to name the other one.
  simulate.crashAfterElection = false;
  simulate.crashAfterPromotion = false;
  for (const word of args) {
    switch (word.toLowerCase()) {
      case 'crash-after-election':
        simulate.crashAfterElection = true;
        log(turn, 'warning', 'Failure simulation: this Sentinel stops once it is elected leader of a failover');
        break;
      case 'crash-after-promotion':
        simulate.crashAfterPromotion = true;
        log(turn, 'warning', 'Failure simulation: this Sentinel stops once the selected replica has become master');
        break;
      case 'help':
        return reply(bulks(['crash-after-election', 'crash-after-promotion']));
      default:
        return refuse('ERR Unknown failure simulation specified');
    }
  }
  return reply(OK);
}
