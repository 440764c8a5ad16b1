/**
 * The subcommands that only look: MASTERS, MASTER, REPLICAS, SENTINELS, GET-MASTER-ADDR-BY-NAME, CKQUORUM, MYID, INFO-CACHE.
 */
import type { RespValue } from '../../wire/resp-value.js';
import { array, bulk, bulks, integer, NULL, NULL_ARRAY, simple } from '../../wire/resp-value.js';
import { isShown } from '../caution/last-known.js';
import type { DataNode, Master } from '../state.js';
import { advertisedAddress } from '../silent/prepared.js';
import { announcedHost } from '../state.js';
import type { Turn } from '../turn.js';
import { instanceMap } from './instance-map.js';
import type { Outcome } from './outcome.js';
import { forMaster, refuse, reply } from './outcome.js';

export const masters = ({ state, now }: Turn): Outcome =>
  reply(array([...state.masters.values()].map((master) => instanceMap(state, master, master, now))));

export const master = forMaster(({ state, now }, found) => reply(instanceMap(state, found, found, now)));

/** Replicas that announce themselves; the others are monitored and counted all the same (10.2). */
export const replicas = forMaster(({ state, now }, found) => {
  const announced = [...found.replicas.values()].filter((replica) => isShown(found, replica));
  return reply(array(announced.map((replica) => instanceMap(state, found, replica, now))));
});

export const sentinels = forMaster(({ state, now }, found) =>
  reply(array([...found.peers.values()].map((peer) => instanceMap(state, found, peer, now)))),
);

/** Where clients go: the promoted replica from the promotion on, before `+switch-master`. Null for an unknown name. */
export function getMasterAddress({ state }: Turn, [name = '']: readonly string[]): Outcome {
  const found = state.masters.get(name);
  if (found === undefined) return reply(NULL_ARRAY);
  const address = advertisedAddress(found);
  return reply(bulks([announcedHost(state.settings, address), String(address.port)]));
}

/** Could this group agree on ODOWN and elect a leader now? (sentinelIsQuorumReachable) */
export const ckquorum = forMaster((_turn, found) => {
  const voters = found.peers.size + 1;
  const usable = 1 + [...found.peers.values()].filter((peer) => peer.sdownSinceMs === null).length;
  const faults: string[] = [];
  if (usable < found.quorum) faults.push('Not enough available Sentinels to reach the specified quorum for this master');
  if (usable < Math.floor(voters / 2) + 1) faults.push('Not enough available Sentinels to reach the majority and authorize a failover');
  if (faults.length > 0) return refuse(`NOQUORUM ${usable} usable Sentinels. ${faults.join('. ')}`);
  return reply(simple(`OK ${usable} usable Sentinels. Quorum and failover authorization can be reached`));
});

export const myId = ({ state }: Turn): Outcome => reply(bulk(state.myId));

/** Name, [age, INFO] of the master and of each replica, and so on; unknown names are passed over, repeated ones merged. */
export function infoCache({ state, now }: Turn, names: readonly string[]): Outcome {
  const found = [...new Set(names)].flatMap((name) => state.masters.get(name) ?? []);
  return reply(array(found.flatMap((each) => [bulk(each.name), cachedInfos(each, now)])));
}

function cachedInfos(found: Master, now: number): RespValue {
  // As in stock, the master's INFO decides for all whether there is an age: an unread replica of a read master shows `now`.
  const cached = (node: DataNode): RespValue => {
    const ageMs = found.infoRefreshMs === null ? 0 : now - (node.infoRefreshMs ?? 0);
    return array([integer(ageMs), node.infoText === null ? NULL : bulk(node.infoText)]);
  };
  return array([found, ...found.replicas.values()].map(cached));
}
