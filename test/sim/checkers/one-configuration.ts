/**
 * I1: one configuration per (master, configEpoch), over all sentinels and all times. And the Route of a sentinel is always
 * such a configuration, or the target of an effective silent state, and (I8, on one sentinel) its order never goes back.
 *
 * Epoch 0 is no configuration but what an operator said: after MONITOR anew it may be said otherwise.
 * A plain SENTINEL FAILOVER needs no election: where it is given, two of one epoch end the life of that world (class Accepted).
 */
import { formatAddress } from '../../../src/sentinel/wire/address.js';
import { currentMasterAddress } from '../../../src/sentinel/index.js';
import type { Master, NodeAddress } from '../../../src/sentinel/index.js';
import type { Route } from '../../../src/route/route.js';
import type { SentinelHost } from '../sentinel-host.js';
import { Accepted } from '../trace.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';
import { mastersOf } from './checker.js';

interface Seen {
  readonly configEpoch: number;
  readonly ip: string;
  readonly port: number;
  readonly doneEpoch: number;
  readonly target: string;
}

export class OneConfiguration implements Checker {
  readonly name = 'I1 one configuration per epoch';
  readonly #addresses = new Map<string, { readonly address: string; readonly by: string }>();
  /** Targets of effective silent states, by the order of their Route. */
  readonly #targets = new Map<string, string>();
  /** What each sentinel said when it was last looked at: the same again needs no second look. */
  readonly #seen = new Map<string, Map<string, Seen>>();
  readonly #highestRoute = new Map<string, { readonly order: number; readonly primary: string }>();

  constructor(readonly world: World) {}

  stepped(host: SentinelHost): Verdict {
    for (const master of mastersOf(host)) {
      const { silent } = master;
      const current = currentMasterAddress(master);
      if (this.#isSeen(host, master, current)) continue;
      if (silent !== null) this.#targets.set(`${master.name}/${2 * silent.doneEpoch - 1}`, silent.target);
      const address = `${current.ip}:${current.port}`;
      const key = `${master.name}/${master.configEpoch}`;
      const known = this.#addresses.get(key);
      if (master.configEpoch === 0 && this.world.options.meddling !== null) continue;
      if (known === undefined) this.#addresses.set(key, { address, by: host.name });
      else if (known.address !== address && known.by !== host.name && this.world.isForgetful) throw new Accepted(`${key} of two majorities`);
      else if (known.address !== address && this.world.hasForced) throw new Accepted(`${key} twice after a plain FAILOVER`);
      else if (known.address !== address) return `${key} is ${known.address} for ${known.by} and ${address} for ${host.name}`;
    }
    return null;
  }

  #isSeen(host: SentinelHost, master: Master, { ip, port }: NodeAddress): boolean {
    let seen = this.#seen.get(host.name);
    if (seen === undefined) this.#seen.set(host.name, (seen = new Map<string, Seen>()));
    const { configEpoch, silent } = master;
    const doneEpoch = silent?.doneEpoch ?? 0;
    const target = silent?.target ?? '';
    const last = seen.get(master.name);
    if (last?.configEpoch === configEpoch && last.ip === ip && last.port === port && last.doneEpoch === doneEpoch && last.target === target) return true;
    seen.set(master.name, { configEpoch, ip, port, doneEpoch, target });
    return false;
  }

  /** The highest configEpoch that ever was; 0 = none. */
  highestOf(group: string): number {
    const epochs = [...this.#addresses.keys()].filter((key) => key.startsWith(`${group}/`)).map((key) => Number(key.slice(group.length + 1)));
    return Math.max(0, ...epochs);
  }

  forgot(host: SentinelHost, group: string | null): void {
    this.#seen.delete(host.name);
    for (const [key, known] of this.#addresses) {
      if (known.by === host.name && key.startsWith(`${group ?? ''}`)) this.#addresses.set(key, { ...known, by: `${host.name} before` });
    }
    for (const key of this.#highestRoute.keys()) if (key.startsWith(`${host.name}/${group ?? ''}`)) this.#highestRoute.delete(key);
  }

  routed(host: SentinelHost, name: string, route: Route | null): Verdict {
    if (route === null || route.primary === null) return null;
    if (route.configEpoch === 0 && this.world.options.meddling !== null) return null;
    const primary = formatAddress(route.primary);
    const known = route.phase === 'prepared' ? this.#targets.get(`${name}/${route.order}`) : this.#addresses.get(`${name}/${route.configEpoch}`)?.address;
    if (known !== primary) {
      return `${host.name} routes ${name} to ${primary}, which is no configuration of epoch ${route.configEpoch}`;
    }
    // What could not be saved is forgotten by a crash, and then taken back.
    if (!route.trusted || !route.confirmed || host.disk.lastWriteFailed) return null;
    const key = `${host.name}/${name}`;
    const highest = this.#highestRoute.get(key);
    if (highest === undefined || route.order >= highest.order) {
      this.#highestRoute.set(key, { order: route.order, primary });
    } else if (highest.primary !== primary) {
      // A stock FAILOVER took an epoch below a D that was prepared: a new configuration all the same.
      if (this.world.hasForced) throw new Accepted(`the order of ${name} after a plain FAILOVER`);
      // The same primary under a lower order: a renewed D that a crash took back. Nobody is sent elsewhere.
      return `the Route of ${name} on ${host.name} went back from order ${highest.order} to ${route.order}`;
    }
    return null;
  }
}
