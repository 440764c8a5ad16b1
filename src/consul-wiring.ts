/**
 * From the consul block of pointsman.yaml to its publisher: what it needs to know of names, addresses and the group.
 */
import type { PointsmanConfig } from './config/config.js';
import { whyNotPublishable } from './dns/ip.js';
import { labelFor } from './dns/name.js';
import type { Log } from './log.js';
import { ConsulPublisher } from './publishers/consul/consul-publisher.js';
import type { SentinelState } from './sentinel/index.js';
import { isIpAddress } from './sentinel/wire/ip.js';

/** A peer that was silent for three of its announcements doesn't keep anything any more (publishing.md, rule 2). */
const KEEPER_SILENCE_PERIODS = 3;

export interface ConsulWiring {
  readonly config: PointsmanConfig;
  readonly state: SentinelState;
  readonly masters: readonly string[];
  /** Consul changed under us: look at this master again. */
  readonly wake: (master: string) => void;
  readonly log: Log;
}

/** Null without a consul block. */
export function makeConsulPublisher({ config, state, masters, wake, log }: ConsulWiring): ConsulPublisher | null {
  if (config.consul === null) return null;
  const labels = new Map(Object.entries(config.dns?.labels ?? {}));
  return new ConsulPublisher({
    settings: config.consul,
    writer: state.myId,
    masters,
    labelOf: (master) => labelFor(master, labels),
    whyNotPublishable: (host) => (isIpAddress(host) ? whyNotPublishable(host, config.route.allowLoopback) : null),
    isKeeper: (name) => keeps(state, name),
    wake,
    log,
  });
}

/** What the epoch doesn't decide is written by one agent: the living one with the lowest run id. */
function keeps(state: SentinelState, name: string): boolean {
  const peers = [...(state.masters.get(name)?.peers.values() ?? [])];
  const silentMs = KEEPER_SILENCE_PERIODS * state.tunables.publishPeriodMs;
  return peers.every((peer) => peer.runId > state.myId || state.previousMs - peer.lastHelloMs > silentMs);
}
