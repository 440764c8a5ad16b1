/**
 * The agent's view in one value: what `pointsman status` shows and GET /status answers. Its JSON is an interface.
 */
import type { OutputStatus } from '../publishers/reconciler.js';
import { formatAddress } from '../sentinel/wire/address.js';
import type { Master, MissingRules, SentinelState } from '../sentinel/index.js';
import { announcedHost, currentMasterAddress, isDisconnected, whyNotEligible } from '../sentinel/index.js';
import type { NodeAddress } from '../sentinel/index.js';

export interface AgentStatus {
  readonly sentinel: { readonly id: string; readonly epoch: number; readonly tilt: boolean };
  readonly masters: readonly MasterStatus[];
}

export interface MasterStatus {
  readonly name: string;
  /** `host:port` that clients are sent to. */
  readonly primary: string;
  readonly state: 'ok' | 'sdown' | 'odown' | 'failover';
  readonly failoverState: string | null;
  readonly configEpoch: number;
  readonly quorum: number;
  readonly trusted: boolean;
  readonly confirmed: boolean;
  readonly phase: string;
  /** What somebody should look at, in words; empty = nothing. */
  readonly alarms: readonly string[];
  readonly replicas: readonly NodeStatus[];
  readonly sentinels: readonly NodeStatus[];
  readonly outputs: readonly OutputStatus[];
}

export interface NodeStatus {
  readonly address: string;
  readonly state: 'ok' | 'sdown' | 'disconnected';
  /** Replicas: why this one would not be promoted now; null = it may be. */
  readonly notEligible: string | null;
}

/** `rights`: what the nodes, by `host:port`, do not let us do. */
export function statusOf(
  state: Readonly<SentinelState>,
  outputs: readonly OutputStatus[],
  rights: ReadonlyMap<string, MissingRules> = new Map(),
): AgentStatus {
  return {
    sentinel: { id: state.myId, epoch: state.currentEpoch, tilt: state.tiltSinceMs !== null },
    masters: [...state.masters.values()].map((master) => describeMaster(state, master, outputs, rights)),
  };
}

function alarmsOf(master: Master): string[] {
  const { reborn, foreign, differing } = master.caution;
  return [
    ...(reborn?.kind === 'empty' ? ['the master was reborn with a new run id, its data set is lost'] : []),
    ...[...foreign].map(([key, owner]) => `replica ${key} belongs to another master, ${owner}`),
    ...[...differing].map(([runId, theirs]) => `sentinel ${runId} names ${theirs} as the master`),
    ...(/^loading:1/m.test(master.infoText ?? '') ? ['the master is loading its data set'] : []),
  ];
}

function lackingRights(master: Master, rights: ReadonlyMap<string, MissingRules>): string[] {
  return [master, ...master.replicas.values()].flatMap(({ address: { ip, port } }) => {
    const address = formatAddress({ host: ip, port });
    const { needed, forMoves } = rights.get(address) ?? { needed: [], forMoves: [] };
    return needed.length + forMoves.length === 0 ? [] : [`on ${address} user ${master.authUser ?? 'default'} lacks ${[...needed, ...forMoves].join(' ')}`];
  });
}

function describeMaster(
  state: Readonly<SentinelState>,
  master: Master,
  outputs: readonly OutputStatus[],
  rights: ReadonlyMap<string, MissingRules>,
): MasterStatus {
  const text = (address: NodeAddress): string => formatAddress({ host: announcedHost(state.settings, address) || address.host, port: address.port });
  const node = (instance: Parameters<typeof isDisconnected>[0], notEligible: string | null): NodeStatus => ({
    address: text(instance.address),
    state: instance.sdownSinceMs !== null ? 'sdown' : isDisconnected(instance) ? 'disconnected' : 'ok',
    notEligible,
  });
  const { published, failover } = master;
  return {
    name: master.name,
    primary: text(currentMasterAddress(master)),
    state: failover !== null ? 'failover' : master.odownSinceMs !== null ? 'odown' : master.sdownSinceMs !== null ? 'sdown' : 'ok',
    failoverState: failover?.state ?? null,
    configEpoch: master.configEpoch,
    quorum: master.quorum,
    trusted: published.trusted,
    confirmed: published.confirmed,
    phase: published.phase,
    alarms: [...alarmsOf(master), ...lackingRights(master, rights)],
    replicas: [...master.replicas.values()].map((replica) => node(replica, whyNotEligible(state, master, replica, state.previousMs))),
    sentinels: [...master.peers.values()].map((peer) => node(peer, null)),
    outputs: outputs.filter((output) => output.master === master.name),
  };
}
