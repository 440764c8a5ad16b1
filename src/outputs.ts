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
import { zoneSettingsOf } from './dns-wiring.js';
import type { Hooks } from './hooks-wiring.js';
import { makeHooks } from './hooks-wiring.js';
import type { Log } from './log.js';
import type { ConsulPublisher } from './publishers/consul/consul-publisher.js';
import { DnsPublisher } from './publishers/dns-publisher.js';
import { MappedPublisher } from './publishers/mapped-publisher.js';
import type { Publisher } from './publishers/publisher.js';
import type { Reconciler } from './publishers/reconciler.js';
import type { SentinelState } from './sentinel/index.js';
import { millis } from './time.js';
import { makeVipPublisher } from './vip-wiring.js';

export interface OutputsWiring {
  readonly state: SentinelState;
  /** Path of the sentinel.conf; what outputs remember is kept beside it. */
  readonly stateFile: string;
  readonly listeners: () => readonly BoundAddress[];
  readonly reconciler: () => Reconciler;
  readonly onScriptFailure: (path: string, signal: number, exitCode: number) => void;
  readonly log: Log;
}

export interface Outputs {
  readonly config: PointsmanConfig | null;
  readonly dns: DnsPublisher | null;
  readonly consul: ConsulPublisher | null;
  readonly hooks: Hooks;
  /** In the order of `status`. */
  readonly publishers: readonly Publisher[];
}

/** The parts of a set by where they come from; wrapped as the reconciler gets them. */
interface Parts extends Outputs {
  readonly wrapped: Readonly<Record<'dns' | 'consul' | 'hooks' | 'vip', readonly Publisher[]>>;
}

/** Builds a set; parts of `before` whose sections say the same are taken over. */
export function makeOutputs(wiring: OutputsWiring, config: PointsmanConfig | null, before: Outputs | null = null): Outputs {
  const old = before as Parts | null;
  const isSame = (...sections: readonly (keyof PointsmanConfig)[]): boolean =>
    old !== null && sections.every((section) => isDeepStrictEqual(old.config?.[section], config?.[section]));
  const mapped = (publishers: readonly (Publisher | null)[]): Publisher[] => {
    const mappings = config?.route.addressMap ?? [];
    return publishers.flatMap((publisher) => (publisher === null ? [] : [new MappedPublisher(publisher, mappings)]));
  };
  const keptDns = old !== null && isSame('route', 'dns') ? old : null;
  const keptConsul = old !== null && isSame('route', 'dns', 'consul') ? old : null;
  const keptHooks = old !== null && isSame('route', 'hooks') ? old : null;
  const dns = keptDns === null ? makeDns(wiring, config?.dns ?? null, config) : keptDns.dns;
  const consul = keptConsul === null ? makeConsul(wiring, config) : keptConsul.consul;
  const hooks = keptHooks === null ? hooksOf(wiring, config) : keptHooks.hooks;
  const wrapped = {
    dns: keptDns?.wrapped.dns ?? mapped([dns]),
    consul: keptConsul?.wrapped.consul ?? mapped([consul]),
    hooks: keptHooks?.wrapped.hooks ?? mapped(hooks.publishers),
    // An address of this host is what it is: never mapped.
    vip: old !== null && isSame('vip') ? old.wrapped.vip : vipOf(wiring, config),
  };
  const publishers = [...wrapped.dns, ...wrapped.consul, ...wrapped.hooks, ...wrapped.vip];
  const parts: Parts = { config, dns, consul, hooks, wrapped, publishers };
  return parts;
}

function makeDns({ state, stateFile, listeners, log }: OutputsWiring, section: DnsSection | null, config: PointsmanConfig | null): DnsPublisher | null {
  if (section === null || config === null) return null;
  return new DnsPublisher({
    settings: zoneSettingsOf(section, config.route.allowLoopback),
    masters: [...state.masters.keys()],
    listeners,
    clock: () => millis(Date.now()),
    log: log.child({ part: 'dns' }),
    serials: new FileSerialStore(`${stateFile}.dns-serial`),
  });
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

function vipOf({ state, reconciler, log }: OutputsWiring, config: PointsmanConfig | null): Publisher[] {
  if (config === null) return [];
  const vip = makeVipPublisher({
    config, state, log: log.child({ part: 'vip' }),
    isFenced: (master) => reconciler().isFenced(master),
    wake: (master) => reconciler().recheck('vip', master),
  });
  return vip === null ? [] : [vip];
}
