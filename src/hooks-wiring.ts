/**
 * From sentinel.conf and the hooks block of pointsman.yaml to their publishers, and to who may veto a planned move.
 */
import type { HookSection, PointsmanConfig } from './config/config.js';
import type { Log } from './log.js';
import { ClientReconfigScript } from './publishers/hooks/client-reconfig-script.js';
import { Hook, whyVetoed } from './publishers/hooks/hook.js';
import type { PlannedMove } from './publishers/hooks/hook.js';
import { MAX_RUNNING } from './publishers/hooks/script-publisher.js';
import type { ScriptPublisher } from './publishers/hooks/script-publisher.js';
import { hookFaults } from './publishers/hooks/self-test.js';
import { Slots } from './publishers/hooks/slots.js';
import type { SentinelState } from './sentinel/index.js';
import { currentMasterAddress } from './sentinel/index.js';
import { parseAddress } from './sentinel/wire/address.js';

export interface HooksWiring {
  /** Null for a plain drop-in: its scripts are called as stock calls them, and nothing but sentinel.conf is written. */
  readonly config: PointsmanConfig | null;
  readonly state: SentinelState;
  /** Path of the sentinel.conf; what hooks remember is kept beside it. */
  readonly stateFile: string;
  readonly onFailure: (path: string, signal: number, exitCode: number) => void;
  readonly log: Log;
}

export interface Hooks {
  /** client-reconfig-script first, then the hooks in the order of the file. */
  readonly publishers: readonly ScriptPublisher[];
  /** Why the planned move that this command asks for must not begin; null for every other command. */
  readonly whyVetoed: (argv: readonly string[]) => Promise<string | null>;
}

export function makeHooks({ config, state, stateFile, onFailure, log }: HooksWiring): Hooks {
  const slots = new Slots(MAX_RUNNING);
  const memory = (name: string): { stateFile?: string } => (config === null ? {} : { stateFile: `${stateFile}.${name}.json` });
  const script = new ClientReconfigScript({
    scriptOf: (master) => state.masters.get(master)?.clientReconfigScript ?? null,
    maxRuntimeMs: () => state.tunables.scriptMaxRuntimeMs,
    log, onFailure, slots, ...memory('client-reconfig-script'),
  });
  const sections = config?.hooks ?? [];
  const called = sections.filter(({ on }) => on.some((phase) => phase !== 'pre'));
  const hooks = called.map((section) => new Hook(section, { log, onFailure, slots, ...memory(`hook-${section.name}`) }));
  return {
    publishers: [script, ...hooks],
    whyVetoed: async (argv) => {
      const move = plannedMoveOf(state, argv);
      return move === null ? null : await whyVetoed(sections, move, log);
    },
  };
}

/** `SENTINEL FAILOVER M [COORDINATED [ip:port]]` and `SENTINEL SILENT-FAILOVER M ip:port prepare`, of a master that lives. */
function plannedMoveOf(state: SentinelState, argv: readonly string[]): PlannedMove | null {
  const [first = '', verb = '', name = '', fourth, fifth] = argv;
  const words = `${first} ${verb}`.toLowerCase();
  const isPrepare = words === 'sentinel silent-failover' && fifth?.toLowerCase() === 'prepare';
  const master = state.masters.get(name);
  // Where the master is down somebody wants the failover that didn't come by itself; nothing may stand in its way.
  if (master === undefined || master.sdownSinceMs !== null || !(isPrepare || words === 'sentinel failover')) return null;
  const target = isPrepare ? fourth : fifth;
  const to = target === undefined ? null : parseAddress(target);
  const { host, port } = currentMasterAddress(master);
  return { master: name, from: { host, port }, to, epoch: state.currentEpoch };
}

/** What would keep the hooks from running; one line each. */
export function faultsOfHooks(hooks: readonly HookSection[]): string[] {
  return hooks.flatMap((hook, index) => hookFaults(hook).map((fault) => `hooks[${index}] (${hook.name}): ${fault}`));
}
