/**
 * Wiring of the outputs: from pointsman.yaml to publishers, for the start and for SIGHUP.
 *
 * A set is built from a configuration and, on SIGHUP, from the set before it: what a section of the file makes stays as it is where
 * neither that section nor one that it depends on has changed, so that a new hook moves no VIP and closes no zone.
 */
import { isDeepStrictEqual } from 'node:util';
import type { BoundAddress } from './dns/listeners.js';
import type { DnsSection, PointsmanConfig } from './config/config.js';
import { makeConsulPublisher } from './consul-wiring.js';
import { FileSerialStore } from './dns/serial-store.js';
import { TransferService } from './dns/transfer-service.js';
import { rateLimitOf, transferSettingsOf, zoneSettingsOf } from './dns-wiring.js';
import type { Hooks } from './hooks-wiring.js';
import { makeHooks } from './hooks-wiring.js';
import type { Log } from './log.js';
import type { ConsulPublisher } from './publishers/consul/consul-publisher.js';
import { DnsPublisher } from './publishers/dns-publisher.js';
import type { ZoneFollowers } from './publishers/dns-publisher.js';
import { MappedPublisher } from './publishers/mapped-publisher.js';
import type { Publisher } from './publishers/publisher.js';
import type { Reconciler } from './publishers/reconciler.js';
import type { VipPublisher } from './publishers/vip/vip-publisher.js';
import type { SentinelState } from './sentinel/index.js';
import { millis } from './time.js';
import type { Millis } from './time.js';
import { makeVipPublisher } from './vip-wiring.js';

export interface OutputsWiring {
  readonly state: SentinelState;
  /** Path of the sentinel.conf; what outputs remember is kept beside it. */
  readonly stateFile: string;
  readonly listeners: () => readonly BoundAddress[];
  readonly reconciler: () => Reconciler;
  /** Who answers from this publisher's zone beside the agent itself. */
  readonly followersOf: (publisher: DnsPublisher) => ZoneFollowers | null;
  readonly onScriptFailure: (path: string, signal: number, exitCode: number) => void;
  readonly log: Log;
}

/** What one section of the file makes: for whoever asks it something, and as the reconciler gets it. */
interface Part<T> {
  readonly made: T;
  readonly publishers: readonly Publisher[];
}

export interface Outputs {
  readonly config: PointsmanConfig | null;
  readonly dns: Part<DnsPublisher | null>;
  readonly consul: Part<ConsulPublisher | null>;
  readonly hooks: Part<Hooks>;
  readonly vip: Part<VipPublisher | null>;
}

/** All of them, in the order of `status`. */
export function publishersOf({ dns, consul, hooks, vip }: Outputs): readonly Publisher[] {
  return [dns, consul, hooks, vip].flatMap(({ publishers }) => publishers);
}

/** Builds a set; parts of `before` whose sections say the same are taken over. */
export function makeOutputs(wiring: OutputsWiring, config: PointsmanConfig | null, before: Outputs | null = null): Outputs {
  const unless = <T>(sections: readonly (keyof PointsmanConfig)[], kept: T | undefined, make: () => T): T => {
    const isSame = sections.every((section) => isDeepStrictEqual(before?.config?.[section], config?.[section]));
    return kept !== undefined && isSame ? kept : make();
  };
  const mapped = <T>(made: T, publishers: readonly Publisher[]): Part<T> => {
    const mappings = config?.route.addressMap ?? [];
    return { made, publishers: publishers.map((publisher) => new MappedPublisher(publisher, mappings)) };
  };
  const one = <T extends Publisher>(made: T | null): Part<T | null> => mapped(made, made === null ? [] : [made]);
  return {
    config,
    dns: unless(['route', 'dns'], before?.dns, () => one(makeDns(wiring, config?.dns ?? null, config))),
    // Names of services follow the labels of the zone.
    consul: unless(['route', 'dns', 'consul'], before?.consul, () => one(makeConsul(wiring, config))),
    hooks: unless(['route', 'hooks'], before?.hooks, () => {
      const hooks = hooksOf(wiring, config);
      return mapped(hooks, hooks.publishers);
    }),
    // An address of this host is what it is: never mapped.
    vip: unless(['vip'], before?.vip, () => {
      const made = makeVip(wiring, config);
      return { made, publishers: made === null ? [] : [made] };
    }),
  };
}

function makeDns({ state, stateFile, listeners, followersOf, log }: OutputsWiring, section: DnsSection | null, config: PointsmanConfig | null): DnsPublisher | null {
  if (section === null || config === null) return null;
  const clock = (): Millis => millis(Date.now());
  const dnsLog = log.child({ part: 'dns' });
  const transfer = transferSettingsOf(section);
  const publisher: DnsPublisher = new DnsPublisher({
    settings: zoneSettingsOf(section, config.route.allowLoopback),
    masters: [...state.masters.keys()],
    listeners,
    clock,
    log: dnsLog,
    serials: new FileSerialStore(`${stateFile}.dns-serial`),
    transfers: transfer === null ? null : new TransferService(transfer, () => publisher.zone(), clock, dnsLog),
    rateLimit: rateLimitOf(section),
    followers: followersOf,
  });
  return publisher;
}

function makeConsul({ state, reconciler, log }: OutputsWiring, config: PointsmanConfig | null): ConsulPublisher | null {
  if (config === null) return null;
  return makeConsulPublisher({
    config,
    state,
    masters: [...state.masters.keys()],
    wake: (master) => reconciler().recheck('consul', master),
    log: log.child({ part: 'consul' }),
  });
}

function hooksOf({ state, stateFile, onScriptFailure, log }: OutputsWiring, config: PointsmanConfig | null): Hooks {
  return makeHooks({ config, state, stateFile, log: log.child({ part: 'hook' }), onFailure: onScriptFailure });
}

function makeVip({ state, reconciler, log }: OutputsWiring, config: PointsmanConfig | null): VipPublisher | null {
  if (config === null) return null;
  return makeVipPublisher({
    config, state, log: log.child({ part: 'vip' }),
    isFenced: (master) => reconciler().isFenced(master),
    wake: (master) => reconciler().recheck('vip', master),
  });
}
