/**
 * Consul as an output: the entries and the key of every master, kept as its Route says.
 *
 * `apply` goes to the writer of the mode; a watcher per master looks for what others do and asks to be called again, so that the
 * one way to write stays the reconciler's, which also knows when nothing may be written (publishing.md, rule 4). Stopping takes
 * nothing away; forgetting a master does.
 */
import { networkInterfaces } from 'node:os';
import { AgentError } from '../../errors.js';
import type { Log } from '../../log.js';
import type { Route } from '../../route/route.js';
import type { Address } from '../../sentinel/wire/address.js';
import type { Published, Publisher } from '../publisher.js';
import { AgentWriter } from './agent-writer.js';
import { CatalogWriter } from './catalog-writer.js';
import { CALL_DEADLINE_MS, ConsulClient } from './client.js';
import type { Snapshot } from './entry.js';
import { nameFaults, namesOf } from './naming.js';
import type { LabelOf, MasterNames } from './naming.js';
import type { ConsulSettings } from './settings.js';
import { Token } from './token.js';
import { Watcher } from './watcher.js';
import { asksElse, wishOf } from './wish.js';
import type { Wish } from './wish.js';
import type { Writer } from './writer.js';

export interface ConsulPublisherOptions {
  readonly settings: ConsulSettings;
  /** This agent's id; stands in the key as its writer. */
  readonly writer: string;
  /** The masters of sentinel.conf, to find names that Consul cannot tell apart. */
  readonly masters: readonly string[];
  readonly labelOf: LabelOf;
  /** Why clients must not get this host as an address (publishing.md, rule 5); null when they may. */
  readonly whyNotPublishable: (host: string) => string | null;
  /** Whether this agent writes what the order does not decide: the living one with the lowest run id (publishing.md, rule 2). */
  readonly isKeeper: (master: string) => boolean;
  /** Asks for another `apply` of the master's Route, e.g. `(master) => reconciler.recheck('consul', master)`. */
  readonly wake: (master: string) => void;
  readonly log: Log;
  /** In `[0, 1)`; for jitter only. */
  readonly random?: () => number;
  /** Agent mode: whether an address is this host's own (default: one of its interfaces has it). */
  readonly isLocal?: (address: Address) => boolean;
}

interface Watched {
  readonly names: MasterNames;
  readonly watcher: Watcher;
  wish: Wish;
  /** Highest order of ours, or of others, that has been read back. */
  lastOrder: number;
}

export class ConsulPublisher implements Publisher {
  readonly name = 'consul';
  /** Room for a few rounds of look, write, look, each call with a deadline of its own. */
  readonly deadlineMs = 4 * CALL_DEADLINE_MS;
  readonly wantsUntrusted = false;
  readonly #options: ConsulPublisherOptions;
  readonly #random: () => number;
  readonly #token: Token;
  readonly #client: ConsulClient;
  readonly #writer: Writer;
  readonly #known: Set<string>;
  readonly #watched = new Map<string, Watched>();
  readonly #forced = new Set<string>();
  readonly #stop = new AbortController();

  /** Throws AgentError CONFIG_INVALID, all faults in one message, when Consul cannot carry these masters. */
  constructor(options: ConsulPublisherOptions) {
    const { settings, masters, log, labelOf } = options;
    const faults = nameFaults(masters, settings, labelOf);
    if (faults.length > 0) throw new AgentError('CONFIG_INVALID', faults.join('; '), { faults });
    this.#options = options;
    this.#known = new Set(masters);
    const random = this.#random = options.random ?? Math.random;
    const token = this.#token = new Token(settings.token, settings.tokenFile);
    const client = this.#client = new ConsulClient(settings, token);
    const kvPrefix = settings.kvPrefix.replace(/\/+$/, '');
    this.#writer = settings.mode === 'catalog'
      ? new CatalogWriter({ client, token, kvPrefix, log, random })
      : new AgentWriter({ client, kvPrefix, log, random, isLocal: options.isLocal ?? isOwnAddress });
  }

  /** Why Consul cannot carry one more master of that name (SENTINEL MONITOR asks first); null = it can. */
  whyNotAddable(master: string): string | null {
    const { settings, labelOf } = this.#options;
    return nameFaults([...[...this.#known].filter((each) => each !== master), master], settings, labelOf)[0] ?? null;
  }

  /** An operator's way out of `fenced`: the next Route of this master is written over a higher order. */
  forceNext(master: string): void {
    this.#forced.add(master);
    this.#options.wake(master);
  }

  differs(a: Route, b: Route): boolean {
    return asksElse(a, b);
  }

  async apply(route: Route, signal: AbortSignal): Promise<Published> {
    const { master } = route;
    const { writer, whyNotPublishable, isKeeper } = this.#options;
    const names = this.#namesOf(master);
    const wish = wishOf(route, { names, writer, whyNotPublishable });
    const watched = this.#watch(wish);
    const force = this.#forced.has(master);
    const published = await this.#writer.apply(wish, { isLeader: route.role === 'leader', isKeeper: isKeeper(master), force, signal });
    watched.lastOrder = Math.max(watched.lastOrder, published.order);
    if (force) {
      this.#forced.delete(master);
      watched.lastOrder = published.order;
    }
    return published;
  }

  async forget(master: string): Promise<void> {
    const names = this.#namesOf(master);
    const watched = this.#watched.get(master);
    this.#watched.delete(master);
    this.#known.delete(master);
    this.#forced.delete(master);
    await watched?.watcher.close();
    // What was never read back here is not ours to take away: somebody else may have published it since.
    const lastOrder = watched === undefined ? -1 : Math.max(watched.lastOrder, watched.wish.fence.order);
    await this.#writer.forget(names, lastOrder, AbortSignal.any([this.#stop.signal, AbortSignal.timeout(this.deadlineMs)]));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#watched.values()].map(({ watcher }) => watcher.close()));
    this.#watched.clear();
    this.#client.close();
  }

  #namesOf(master: string): MasterNames {
    const { settings, labelOf } = this.#options;
    const fault = this.whyNotAddable(master);
    const names = namesOf(master, settings, labelOf);
    if (fault !== null || typeof names === 'string') {
      throw new AgentError('CONFIG_INVALID', `consul: ${fault ?? 'no name'}`, { master });
    }
    this.#known.add(master);
    return names;
  }

  /** One watcher per master from its first Route on. */
  #watch(wish: Wish): Watched {
    const { names } = wish;
    const running = this.#watched.get(names.master);
    if (running !== undefined) {
      running.wish = wish;
      return running;
    }
    const { settings, log, wake } = this.#options;
    const watcher = new Watcher({
      names, log, random: this.#random, watchesKey: settings.mode === 'catalog', client: new ConsulClient(settings, this.#token),
      onSnapshot: (snapshot) => this.#look(names.master, snapshot),
      onReachable: () => wake(names.master),
    });
    const watched: Watched = { names, watcher, wish, lastOrder: -1 };
    this.#watched.set(names.master, watched);
    return watched;
  }

  #look(master: string, snapshot: Snapshot): void {
    const watched = this.#watched.get(master);
    if (watched === undefined) return;
    if (this.#writer.needsLook(watched.wish, snapshot, this.#options.isKeeper(master))) this.#options.wake(master);
  }
}

function isOwnAddress({ host }: Address): boolean {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []).map(({ address }) => address.toLowerCase());
  return own.includes(host.toLowerCase());
}
