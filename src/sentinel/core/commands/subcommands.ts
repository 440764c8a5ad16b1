/**
 * The table of SENTINEL's subcommands: what COMMAND DOCS, LIST and INFO show, what HELP prints, what the arity check reads.
 *
 * Mirrors Redis 7.2 (CONFIG wants four words there, three in 7.0) plus the PRIMARY spellings of Valkey 8, which by them
 * deprecates the older ones.
 */
import type { Origin, Product, ServerIdentity } from '../../wire/identity.js';
import { isIn } from '../../wire/identity.js';

export interface SubcommandSpec {
  /** Lower case, as in arity errors: `sentinel|<name>`. */
  readonly name: string;
  /** Number of words including `SENTINEL`; negative = at least that many. */
  readonly arity: number;
  /** Arguments as HELP shows them. */
  readonly args: string;
  readonly summary: string;
  /** Version of `origin` that introduced it. */
  readonly since: string;
  /** Redis has it, or only Valkey does; a COMMAND LIST that must look like Redis leaves the latter out. */
  readonly origin: Origin;
}

const redis = <const N extends string>(name: N, arity: number, since: string, args: string, summary: string) =>
  ({ name, arity, since, args, summary, origin: 'redis' }) as const;
const valkey = <const N extends string>(name: N, arity: number, args: string, summary: string) =>
  ({ name, arity, since: '8.0.0', args, summary, origin: 'valkey' }) as const;

const ROWS = [
  redis('ckquorum', 3, '2.8.4', '<master-name>', 'Tell whether the Sentinels that are up reach quorum and majority.'),
  redis('config', -4, '6.2.0', 'GET|SET <param> [<value>] [<param> [<value>] ...]', 'Show or change settings of this Sentinel.'),
  redis('debug', -2, '7.0.0', '[<param> <value> ...]', 'Show or change the periods and timeouts of this Sentinel, in milliseconds.'),
  redis('failover', 3, '2.8.4', '<master-name>', 'Start a failover without asking the other Sentinels for their agreement.'),
  redis('flushconfig', 2, '2.8.4', '', 'Write the configuration and the current state to disk.'),
  redis('get-master-addr-by-name', 3, '2.8.4', '<master-name>', 'Show the address where clients find the master.'),
  redis('help', 2, '6.2.0', '', 'Print this help.'),
  redis('info-cache', -3, '3.2.0', '<master-name> [<master-name> ...]', 'Show the last INFO of each node, with its age.'),
  redis('is-master-down-by-addr', 6, '2.8.4', '<ip> <port> <current-epoch> <runid>', 'Tell whether this master is down; vote if asked.'),
  redis('master', 3, '2.8.4', '<master-name>', 'Show the state of one master.'),
  redis('masters', 2, '2.8.4', '', 'Show the state of every monitored master.'),
  redis('monitor', 6, '2.8.4', '<master-name> <ip> <port> <quorum>', 'Start to monitor a master under this name.'),
  redis('myid', 2, '6.2.0', '', 'Show the run id of this Sentinel.'),
  redis('pending-scripts', 2, '2.8.4', '', 'Show the scripts that run or wait.'),
  redis('remove', 3, '2.8.4', '<master-name>', 'Stop monitoring a master.'),
  redis('replicas', 3, '5.0.0', '<master-name>', 'Show the state of the replicas of a master.'),
  redis('reset', 3, '2.8.4', '<pattern>', 'Forget replicas, Sentinels and failover of the masters whose name matches.'),
  redis('sentinels', 3, '2.8.4', '<master-name>', 'Show the state of the other Sentinels of a master.'),
  redis('set', -5, '2.8.4', '<master-name> <option> <value> [<option> <value> ...]', 'Change settings of a monitored master.'),
  redis('simulate-failure', -3, '3.2.0', '[CRASH-AFTER-ELECTION] [CRASH-AFTER-PROMOTION] [HELP]', 'Crash during the next failover.'),
  redis('slaves', 3, '2.8.0', '<master-name>', 'Show the state of the replicas of a master.'),
  valkey('get-primary-addr-by-name', 3, '<primary-name>', 'Show the address where clients find the primary.'),
  valkey('is-primary-down-by-addr', 6, '<ip> <port> <current-epoch> <runid>', 'Tell whether this primary is down; vote if asked.'),
  valkey('primaries', 2, '', 'Show the state of every monitored primary.'),
  valkey('primary', 3, '<primary-name>', 'Show the state of one primary.'),
  {
    ...redis('silent-failover', -4, '0.1.0', '<master-name> <ip:port>|status prepare|done|abort', 'Move a master in two steps.'),
    origin: 'pointsman',
  },
  { ...redis('outputs', -3, '0.2.0', '<master-name> [RECHECK]', 'Show what each output of this Sentinel has published.'), origin: 'pointsman' },
  { ...redis('forget', 4, '0.2.0', '<master-name> <ip:port>|<runid>', 'Forget one replica or one Sentinel.'), origin: 'pointsman' },
] as const;

export type SubcommandName = (typeof ROWS)[number]['name'];

/** One row per subcommand, stock's ones first, each group by name. */
export const SENTINEL_SUBCOMMANDS: readonly (SubcommandSpec & { readonly name: SubcommandName })[] = ROWS;

/** The newer spelling of a subcommand, and who deprecated the older one when. */
const REPLACED: ReadonlyMap<string, { readonly by: SubcommandName; readonly origin: Product; readonly since: string }> = new Map([
  ['slaves', { by: 'replicas', origin: 'redis', since: '5.0.0' }],
  ['get-master-addr-by-name', { by: 'get-primary-addr-by-name', origin: 'valkey', since: '8.0.0' }],
  ['is-master-down-by-addr', { by: 'is-primary-down-by-addr', origin: 'valkey', since: '8.0.0' }],
  ['master', { by: 'primary', origin: 'valkey', since: '8.0.0' }],
  ['masters', { by: 'primaries', origin: 'valkey', since: '8.0.0' }],
]);

/** Whether the server we present calls a subcommand (lower case) deprecated; null when not. */
export function deprecationOf(identity: ServerIdentity, name: string): { readonly since: string; readonly replacedBy: string } | null {
  const replaced = REPLACED.get(name);
  if (replaced === undefined || !isIn(identity, replaced.since, replaced.origin)) return null;
  return { since: replaced.since, replacedBy: `\`SENTINEL ${replaced.by.toUpperCase()}\`` };
}
