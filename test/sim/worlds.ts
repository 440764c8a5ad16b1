/**
 * Worlds by name: what `--world` chooses between. `drawn` is all that a seed can draw; the others are small and do one thing.
 */
import { focusedOptions } from './focused.js';
import type { FaultKind, WorldOptions } from './options.js';
import { drawOptions } from './options.js';
import type { PlannedOptions } from './planned-options.js';

type Build = (seed: number) => WorldOptions;

const focused = (planned: Partial<PlannedOptions>, faults: readonly FaultKind[] = []): Build => (seed) => focusedOptions(seed, planned, faults);

const withNetwork = (build: Build, network: Partial<WorldOptions['network']>): Build => (seed) => {
  const options = build(seed);
  return { ...options, network: { ...options.network, ...network } };
};

export const WORLDS: Readonly<Record<string, Build>> = {
  drawn: drawOptions,
  /** Planned moves and nothing else. */
  moves: focused({}),
  /** Several operators at once who do not know of each other. */
  crowd: focused({ operations: ['silent', 'silent', 'stray'], meanGapMs: 800, meanStepMs: 150 }),
  /** The same far from each other: a question takes as long as half a move. */
  distant: withNetwork(focused({ operations: ['silent', 'silent', 'stray'], meanGapMs: 1_500, meanStepMs: 300 }), { maxDelayMs: 250 }),
  /** The deadline of the window falls into the middle of moves. */
  deadlines: withNetwork(focused({ silentTimeoutMs: 1_500, meanStepMs: 1_200, meanGapMs: 1_500 }), { maxDelayMs: 120 }),
  /** Packets come late, hellos not at all. */
  lossy: withNetwork(focused({ faults: 'all', meanGapMs: 1_500 }, ['slowMachine', 'cutOneWay']), { lossRate: 0.1, pushLossRate: 0.3 }),
  /** So much data that a copy takes longer than anybody's patience. */
  copies: (seed) => {
    const options = focusedOptions(seed, {}, []);
    const groups = options.groups.map((group) => ({ ...group, replicas: 3 }));
    return { ...options, groups, redis: { ...options.redis, maxSnapshotMs: 3_000, maxLoadingMs: 25_000, backlogSize: 1_000 }, safetyMs: 100_000 };
  },
  coordinated: focused({ operations: ['coordinated'] }),
  /** Sentinels fail in the middle of it. */
  restarts: focused({ faults: 'sentinels' }, ['crashSentinel', 'crashSentinel', 'slowDisk']),
  /** … and no operator comes back to what was left half done. */
  abandoned: (seed) => ({
    ...focusedOptions(seed, { faults: 'sentinels', meanGapMs: 30_000, meanStepMs: 300 }, ['slowDisk']),
    promoterDeaths: 0.7,
    meanFaultLengthMs: 8_000,
    safetyMs: 100_000,
  }),
  /** Nodes fail in the middle of it. */
  deaths: focused({ faults: 'all' }, ['crashNode', 'stopNode']),
  /** … and some sentinels do not know silent failovers. */
  mixed: focused({ faults: 'all', stockPeers: 1 }, ['crashNode', 'stopNode']),
  /** The window is long, and nodes come back without it. */
  wipes: focused({ faults: 'all', meanStepMs: 6_000 }, ['crashNode', 'wipeNode']),
  /** Sentinels come back without their disks. */
  reborn: focused({ faults: 'all' }, ['wipeSentinel', 'wipeSentinel', 'crashNode']),
  /** Sentinels lose sight of each other. */
  partitions: focused({ faults: 'all' }, ['isolate', 'split', 'crashSentinel', 'stopSentinel']),
  /** Prepares beside deaths, slow machines and lonely sentinels. */
  rush: focused({ faults: 'all', meanGapMs: 500 }, ['crashNode', 'stopNode', 'isolate', 'slowMachine']),
};

/** The world of that name; null when there is none. */
export function worldNamed(name: string): Build | null {
  return WORLDS[name] ?? null;
}
