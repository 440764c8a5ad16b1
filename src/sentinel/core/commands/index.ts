/**
 * The commands of the core: SENTINEL with its subcommands, ROLE, and PUBLISH of hellos. One command in, one `reply` out.
 *
 * Everything else on the port (PING, INFO, CLIENT, ACL, …) is the server's. Names are matched without case; arity counts all
 * words. Mirrors sentinelCommand, sentinelRoleCommand and sentinelPublishCommand in sentinel.c.
 */
import type { RespValue } from '../../wire/resp-value.js';
import { array, bulk, bulks, integer } from '../../wire/resp-value.js';
import { applyHello } from '../gossip.js';
import { LIMITS } from '../limits.js';
import type { Turn } from '../turn.js';
import { persist } from '../turn.js';
import { config } from './config.js';
import { coordinatedFailover } from './coordinated-command.js';
import { debug, simulateFailure } from './debug.js';
import { failover } from './failover-command.js';
import { flushConfig } from './flush.js';
import { forget } from './forget.js';
import { help } from './help.js';
import { isMasterDown } from './is-master-down.js';
import { monitor, remove, reset } from './monitor-remove.js';
import type { CommandFacts, Execute, Outcome } from './outcome.js';
import { refuse, reply } from './outcome.js';
import { ckquorum, getMasterAddress, infoCache, master, masters, myId, replicas, sentinels } from './queries.js';
import { set } from './set.js';
import { silentFailover } from './silent-failover-command.js';
import type { SubcommandName } from './subcommands.js';
import { SENTINEL_SUBCOMMANDS } from './subcommands.js';

/** Taken out before the table is asked (slowCommand); the row is there for arity and help. */
const answersLater: Execute = () => refuse('ERR SILENT-FAILOVER is answered elsewhere');

/** The core runs no scripts and has none to show; the runtime answers this one before it gets here. */
const pendingScripts: Execute = () => reply(array([]));

/** Nor has it outputs. */
const outputs: Execute = () => reply(array([]));

type SlowCommand = (turn: Turn, client: number, args: readonly string[]) => RespValue | null;

/** Commands that are answered when the matter is decided, not when they are read: apart from the table of those that answer at once. */
function slowCommand(argv: readonly string[]): SlowCommand | null {
  const [command, subcommand, , mode] = argv.map((word) => word.toLowerCase());
  if (command !== 'sentinel') return null;
  if (subcommand === 'silent-failover') return silentFailover;
  return subcommand === 'failover' && mode === 'coordinated' && argv.length <= 5 ? coordinatedFailover : null;
}

const EXECUTE: Readonly<Record<SubcommandName, Execute>> = {
  ckquorum,
  config,
  debug,
  failover,
  flushconfig: flushConfig,
  forget,
  'get-master-addr-by-name': getMasterAddress,
  'get-primary-addr-by-name': getMasterAddress,
  help,
  'info-cache': infoCache,
  'is-master-down-by-addr': isMasterDown,
  'is-primary-down-by-addr': isMasterDown,
  master,
  masters,
  monitor,
  myid: myId,
  outputs,
  'pending-scripts': pendingScripts,
  primaries: masters,
  primary: master,
  remove,
  replicas,
  reset,
  sentinels,
  set,
  'silent-failover': answersLater,
  'simulate-failure': simulateFailure,
  slaves: replicas,
};

interface Subcommand {
  readonly arity: number;
  readonly execute: Execute;
}

const SUBCOMMANDS: ReadonlyMap<string, Subcommand> = new Map(
  SENTINEL_SUBCOMMANDS.map(({ name, arity }) => [name, { arity, execute: EXECUTE[name] }]),
);

const NO_FACTS: CommandFacts = { unusableScripts: [] };

/** Carries a command out and emits its reply, behind the barrier where the reply promises something that must be on disk. */
export function executeCommand(turn: Turn, client: number, argv: readonly string[], facts: CommandFacts = NO_FACTS): void {
  const slow = slowCommand(argv);
  if (slow !== null) {
    const value = slow(turn, client, argv.slice(2));
    if (value !== null) turn.effects.push({ kind: 'reply', client, value });
    return;
  }
  const { value, persist: mustPersist = false, ifNotSaved } = dispatch(turn, argv, facts);
  if (mustPersist) persist(turn);
  turn.effects.push({ kind: 'reply', client, value, ...(ifNotSaved === undefined ? {} : { ifNotSaved }) });
}

function dispatch(turn: Turn, argv: readonly string[], facts: CommandFacts): Outcome {
  const [command = '', ...args] = argv;
  switch (command.toLowerCase()) {
    case 'sentinel':
      return sentinel(turn, args, facts);
    case 'role':
      return args.length === 0 ? role(turn) : wrongArity('role');
    case 'publish':
      return args.length === 2 ? publish(turn, args) : wrongArity('publish');
    default:
      return refuse(`ERR unknown command '${command}', with args beginning with: ${args.map((word) => `'${word}' `).join('')}`);
  }
}

function sentinel(turn: Turn, [typed, ...args]: readonly string[], facts: CommandFacts): Outcome {
  if (typed === undefined) return wrongArity('sentinel');
  const name = typed.toLowerCase();
  const subcommand = SUBCOMMANDS.get(name);
  if (subcommand === undefined) return refuse(`ERR unknown subcommand '${typed}'. Try SENTINEL HELP.`);
  return hasArity(subcommand.arity, args.length + 2) ? subcommand.execute(turn, args, facts) : wrongArity(`sentinel|${name}`);
}

const hasArity = (arity: number, words: number): boolean => (arity < 0 ? words >= -arity : words === arity);

const wrongArity = (name: string): Outcome => refuse(`ERR wrong number of arguments for '${name}' command`);

const role = (turn: Turn): Outcome => reply(array([bulk('sentinel'), bulks([...turn.state.masters.keys()])]));

/** A hello said to us directly. Whether it was of any use is not told: the answer is always 1, as in stock. */
function publish(turn: Turn, [channel, payload = '']: readonly string[]): Outcome {
  if (channel !== LIMITS.helloChannel) return refuse('ERR Only HELLO messages are accepted by Sentinel instances.');
  applyHello(turn, payload);
  return reply(integer(1));
}
