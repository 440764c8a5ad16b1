/**
 * From sentinel.conf to a state, and from a state back to the lines of sentinel.conf.
 *
 * The text itself is the wire's business; this file maps fields. What is written is what must survive a restart: votes,
 * epochs, configurations, settings, known replicas and peers (8.5).
 */
import type { Millis } from '../../time.js';
import { createPrng } from '../../prng.js';
import { DEFAULT_IDENTITY } from '../wire/identity.js';
import { isIpAddress } from '../wire/ip.js';
import type { ConfGlobals, ConfLine, ConfMaster, LoadedConf } from '../wire/sentinel-conf.js';
import { sentinelLines } from '../wire/sentinel-conf.js';
import { createMaster, createPeer, createReplica } from './instance.js';
import { defaultTunables, LIMITS } from './limits.js';
import type { Master, NodeAddress, RunId, SentinelState, Settings } from './state.js';
import { restoreSilent, silentLines } from './silent/persisted.js';
import { announcedHost, currentMasterAddress, promotedReplica } from './state.js';

/** What a state is made of besides the file. */
export interface Birth {
  readonly conf: Pick<LoadedConf, 'globals' | 'masters' | 'server'>;
  /** Used when the file has no myid. */
  readonly freshId: RunId;
  readonly seed: number;
  readonly now: Millis;
}

export function createState({ conf, freshId, seed, now }: Birth): SentinelState {
  const { globals } = conf;
  const state: SentinelState = {
    myId: globals.myId ?? freshId,
    currentEpoch: globals.currentEpoch,
    masters: new Map(),
    settings: settingsOf(globals, conf.server),
    tunables: defaultTunables(),
    tiltSinceMs: null,
    previousMs: now,
    prng: createPrng(seed),
    silentCounters: { prepare: 0, done: 0, abort: 0 },
    bornMs: globals.myId === null ? now : null,
    simulate: { crashAfterElection: false, crashAfterPromotion: false },
    connections: new Map(),
    nextConnectionId: 1,
    hostIps: new Map(),
    touched: new Set(),
  };
  for (const entry of conf.masters) restoreMaster(state, entry, now);
  return state;
}

function settingsOf(globals: ConfGlobals, server: LoadedConf['server']): Settings {
  const last = (name: string): string | undefined => server.get(name)?.at(-1)?.[0];
  return {
    port: Number(last('port') ?? LIMITS.defaultPort),
    tlsPort: Number(last('tls-port') ?? 0),
    tlsReplication: last('tls-replication')?.toLowerCase() === 'yes',
    announceIp: globals.announceIp,
    announcePort: globals.announcePort,
    resolveHostnames: globals.resolveHostnames,
    announceHostnames: globals.announceHostnames,
    sentinelUser: globals.sentinelUser,
    sentinelPass: globals.sentinelPass,
    requirePass: last('requirepass') || null,
    denyScriptsReconfig: globals.denyScriptsReconfig,
    isolationAfterMs: null,
    logLevel: logLevelOf(last('loglevel')),
    identity: DEFAULT_IDENTITY,
  };
}

function logLevelOf(word: string | undefined): Settings['logLevel'] {
  switch (word?.toLowerCase()) {
    case 'debug':
    case 'verbose':
    case 'warning':
    case 'nothing':
      return word.toLowerCase() as Settings['logLevel'];
    default:
      return 'notice';
  }
}

/** A name from the file has no IP until the first look-up; the instance connects then. */
function fromFile(host: string, port: number): NodeAddress {
  return { host, ip: isIpAddress(host) ? host : '', port };
}

function restoreMaster(state: SentinelState, entry: ConfMaster, now: Millis): void {
  const master = createMaster(state, { name: entry.name, address: fromFile(entry.host, entry.port), quorum: entry.quorum }, now);
  master.downAfterMs = entry.downAfterMs ?? master.downAfterMs;
  master.failoverTimeoutMs = entry.failoverTimeoutMs ?? master.failoverTimeoutMs;
  master.parallelSyncs = entry.parallelSyncs;
  master.notificationScript = entry.notificationScript;
  master.clientReconfigScript = entry.clientReconfigScript;
  master.authUser = entry.authUser;
  master.authPass = entry.authPass;
  master.masterRebootDownAfterMs = entry.masterRebootDownAfterMs;
  master.configEpoch = entry.configEpoch;
  master.leaderEpoch = entry.leaderEpoch;
  state.currentEpoch = Math.max(state.currentEpoch, entry.configEpoch);
  for (const [command, renamed] of entry.renameCommands) master.renamedCommands.set(command, renamed);
  for (const [key, rest] of entry.extra) master.extraSettings.set(key, rest);
  restoreSilent(master, now);
  for (const { host, port } of entry.knownReplicas) createReplica(state, master, fromFile(host, port), now);
  for (const { address, runId } of entry.knownSentinels) {
    if (runId !== state.myId && !master.peers.has(runId)) createPeer(state, master, runId, fromFile(address.host, address.port), now);
  }
}

/** The `sentinel …` lines that say this state. */
export function configLines(state: Readonly<SentinelState>): ConfLine[] {
  const { settings, tunables } = state;
  const globals: ConfGlobals = { ...settings, myId: state.myId, currentEpoch: state.currentEpoch };
  const masters = [...state.masters.values()].map((master) => confOf(state, master));
  return sentinelLines(globals, masters, { downAfterMs: tunables.defaultDownAfterMs, failoverTimeoutMs: tunables.defaultFailoverTimeoutMs });
}

/** From promotion on the new master is written, and its replica line carries the old one's address (8.5). */
function confOf(state: Readonly<SentinelState>, master: Master): ConfMaster {
  const shown = (address: NodeAddress): { host: string; port: number } => ({
    host: announcedHost(state.settings, address) || address.host,
    port: address.port,
  });
  const current = currentMasterAddress(master);
  const promoted = promotedReplica(master);
  const { host, port } = shown(current);
  return {
    name: master.name,
    host,
    port,
    quorum: master.quorum,
    downAfterMs: master.downAfterMs,
    failoverTimeoutMs: master.failoverTimeoutMs,
    parallelSyncs: master.parallelSyncs,
    notificationScript: master.notificationScript,
    clientReconfigScript: master.clientReconfigScript,
    authUser: master.authUser,
    authPass: master.authPass,
    masterRebootDownAfterMs: master.masterRebootDownAfterMs,
    renameCommands: master.renamedCommands,
    configEpoch: master.configEpoch,
    leaderEpoch: master.leaderEpoch,
    knownReplicas: [
      ...[...master.replicas.values()].map((replica) => (replica === promoted && current !== master.address ? master.address : replica.address)),
      ...master.caution.lastKnown,
    ].map(shown),
    knownSentinels: [...master.peers.values()].map((peer) => ({ address: shown(peer.address), runId: peer.runId })),
    extra: new Map([...master.extraSettings, ...silentLines(master)]),
  };
}
