/**
 * VIPs as an output: the address is on the host that owns the primary's address, and on no other (publishing.md, section 5).
 *
 * Every agent decides for its own host alone. The loser lets go at once; the winner gives it a moment where it is known to live, then
 * takes the address and tells the neighbours, who believe the newer word. A tick finds what a hand or a link that went down has
 * changed. Who is isolated, fenced or stopped lets go: two holders are worse than none.
 */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentError } from '../../errors.js';
import type { Log } from '../../log.js';
import type { Route } from '../../route/route.js';
import { sameAddress } from '../../sentinel/wire/address.js';
import type { Address } from '../../sentinel/wire/address.js';
import type { Published, Publisher } from '../publisher.js';
import { Announcer } from './announcer.js';
import { IpBatch } from './ip-batch.js';
import type { Link, LinkAddress } from './ip-batch.js';
import { answersTcp, isTaken } from './probe.js';
import { isSix, vipText } from './settings.js';
import type { VipPrograms, VipSettings } from './settings.js';

export interface VipPublisherOptions {
  readonly vips: readonly VipSettings[];
  readonly programs: VipPrograms;
  /** Whether this sentinel sees the node down: then nobody is waited for. */
  readonly isKnownDown: (master: string, address: Address) => boolean;
  /** Whether an output of this master holds a higher order than ours: then our view is an old one. */
  readonly isFenced: (master: string) => boolean;
  /** Asks for another `apply` of the master's Route, e.g. `(master) => reconciler.recheck('vip', master)`. */
  readonly wake: (master: string) => void;
  readonly log: Log;
  /** How often it looks, milliseconds. */
  readonly tickMs?: number;
}

/** The loser's chance to let go first. */
const LOSER_GRACE_MS = 300;
const GRACE_POLL_MS = 10;
const DAD_POLL_MS = 50;
const TICK_MS = 1_000;
const CLOSE_LIMIT_MS = 3_000;

type Intent = { readonly kind: 'hold' } | { readonly kind: 'release'; readonly why: string } | { readonly kind: 'leave'; readonly why: string };

/** What is known of one master. */
interface Followed {
  /** Highest order that was served. */
  order: number;
  primary: Address | null;
  /** When this primary was first heard of (monotonic). */
  sinceMs: number;
  trusted: boolean;
}

export class VipPublisher implements Publisher {
  readonly name = 'vip';
  readonly deadlineMs = 10_000;
  readonly wantsUntrusted = true;
  readonly #options: VipPublisherOptions;
  readonly #batch: IpBatch;
  readonly #announcer: Announcer;
  readonly #followed = new Map<string, Followed>();
  /** VIPs that were present when last looked, and whether their link was up then. */
  readonly #held = new Map<VipSettings, boolean>();
  readonly #ticks: NodeJS.Timeout;
  #closing: Promise<void> | null = null;

  constructor(options: VipPublisherOptions) {
    this.#options = options;
    this.#batch = new IpBatch(options.programs.ip);
    this.#announcer = new Announcer(options.programs, options.log);
    this.#ticks = setInterval(() => {
      for (const master of this.#followed.keys()) options.wake(master);
    }, options.tickMs ?? TICK_MS).unref();
  }

  /** The tick looks anyway; a Route that moves nothing here ends no running attempt. */
  differs(a: Route, b: Route): boolean {
    const of = ({ primary, trusted, confirmed, order }: Route): string => JSON.stringify([primary, trusted, confirmed, order]);
    return of(a) !== of(b);
  }

  async apply(route: Route, signal: AbortSignal): Promise<Published> {
    signal.throwIfAborted();
    const { master } = route;
    const vips = this.#options.vips.filter((vip) => vip.master === master);
    if (vips.length === 0) return { order: route.order, detail: 'no vip' };
    if (this.#closing !== null) throw new AgentError('PUBLISH_FAILED', 'vip is closed', { master });
    const followed = this.#follow(route);
    if (route.confirmed && route.order < followed.order) return { order: followed.order, detail: `order ${followed.order} was served, ${route.order} is older` };
    const healed = route.trusted && !followed.trusted;
    followed.trusted = route.trusted;
    const shown = await this.#batch.run([], signal);
    const isOurs = route.primary !== null && (await this.#isOwn(route.primary.host, shown));
    const isFenced = this.#options.isFenced(master);
    const results = await Promise.allSettled(vips.map((vip) => this.#keep(vip, route, intentOf(vip, route, isOurs, isFenced), healed, signal)));
    const faults = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    if (faults.length > 0) throw faults[0];
    if (route.confirmed) followed.order = Math.max(followed.order, route.order);
    return { order: route.order, detail: results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])).join('; ') };
  }

  /** A lower order is served again. */
  forceNext(master: string): void {
    const followed = this.#followed.get(master);
    if (followed !== undefined) followed.order = -1;
  }

  async forget(master: string): Promise<void> {
    this.#followed.delete(master);
    const signal = AbortSignal.timeout(this.deadlineMs);
    for (const vip of this.#options.vips.filter((each) => each.master === master)) await this.#release(vip, 'not monitored', signal);
  }

  /** Lets go of every VIP: an agent that does not run can't tell when it has to. */
  close(): Promise<void> {
    this.#closing ??= this.#letGo();
    return this.#closing;
  }

  async #letGo(): Promise<void> {
    clearInterval(this.#ticks);
    const signal = AbortSignal.timeout(CLOSE_LIMIT_MS);
    const results = await Promise.allSettled(this.#options.vips.map((vip) => this.#release(vip, 'stopping', signal)));
    this.#announcer.close();
    this.#batch.close();
    for (const result of results) if (result.status === 'rejected') this.#options.log.error({ err: result.reason as unknown }, 'vip could not be released at the stop');
  }

  #follow(route: Route): Followed {
    const { master, primary, trusted } = route;
    const known = this.#followed.get(master) ?? { order: -1, primary: null, sinceMs: 0, trusted };
    this.#followed.set(master, known);
    const same = known.primary === null ? primary === null : primary !== null && sameAddress(known.primary, primary);
    if (!same && route.order >= known.order) Object.assign(known, { primary, sinceMs: performance.now() });
    return known;
  }

  /** Whether an address of this host, other than a VIP, is the one; a name counts with all it resolves to. */
  async #isOwn(host: string, links: readonly Link[]): Promise<boolean> {
    const vips = new Set(this.#options.vips.map(({ ip }) => canonical(ip)));
    const own = new Set(links.flatMap(({ addresses }) => addresses).map(({ local }) => canonical(local)).filter((local) => !vips.has(local)));
    if (isIP(host) !== 0) return own.has(canonical(host));
    const found = await Promise.race([lookup(host, { all: true }).catch(() => []), sleep(1_000, [])]);
    return found.some(({ address }) => own.has(canonical(address)));
  }

  async #keep(vip: VipSettings, route: Route, intent: Intent, healed: boolean, signal: AbortSignal): Promise<string> {
    if (intent.kind === 'leave') return `${vipText(vip)} left as it is: ${intent.why}`;
    if (intent.kind === 'release') {
      await this.#release(vip, intent.why, signal);
      return `${vipText(vip)} is not here: ${intent.why}`;
    }
    const before = await this.#batch.run([], signal);
    const link = linkOf(vip, before);
    if (link === undefined) throw new AgentError('PUBLISH_FAILED', `vip ${vip.ip}: there is no interface ${vip.interface}`);
    const place = placeOf(vip, link);
    if (place?.isRefused === true) await this.#giveUp(vip, place, signal);
    if (place === undefined) await this.#take(vip, route, signal);
    else if (healed || (link.isUp && this.#held.get(vip) !== true)) this.#announcer.announce(vip);
    this.#held.set(vip, link.isUp);
    return `${vipText(vip)} is here`;
  }

  async #take(vip: VipSettings, route: Route, signal: AbortSignal): Promise<void> {
    await this.#awaitLoser(vip, route, signal);
    const { log, programs } = this.#options;
    if (vip.dad && !isSix(vip) && (await isTaken(vip, programs, signal))) {
      throw new AgentError('PUBLISH_FAILED', `vip ${vip.ip} is in use by another host, dad is on`, { master: vip.master });
    }
    signal.throwIfAborted();
    const kernelAnnounces = this.#announcer.kernelAnnounces(vip);
    let after = await this.#batch.run([addCommand(vip, vip.dad || kernelAnnounces)], signal);
    let place = placeOf(vip, linkOf(vip, after)) ?? (await this.#complain(vip, 'added to'));
    while (place.isTentative && !place.isRefused) {
      await sleep(DAD_POLL_MS, undefined, { signal });
      after = await this.#batch.run([], signal);
      place = placeOf(vip, linkOf(vip, after)) ?? (await this.#complain(vip, 'kept on'));
    }
    if (place.isRefused) await this.#giveUp(vip, place, signal);
    this.#announcer.announce(vip);
    log.info({ master: vip.master, vip: vipText(vip), order: route.order }, 'vip taken');
  }

  async #giveUp(vip: VipSettings, place: LinkAddress, signal: AbortSignal): Promise<never> {
    await this.#batch.run([removeCommand(vip, place)], signal);
    throw new AgentError('PUBLISH_FAILED', `vip ${vip.ip} is in use by another host, dad is on`, { master: vip.master });
  }

  /** Whoever holds it now lets go on its own; a moment's patience saves clients from two holders (at most {@link LOSER_GRACE_MS}). */
  async #awaitLoser(vip: VipSettings, { master, previous }: Route, signal: AbortSignal): Promise<void> {
    if (previous === null || this.#options.isKnownDown(master, previous)) return;
    const until = (this.#followed.get(master)?.sinceMs ?? 0) + LOSER_GRACE_MS;
    while (performance.now() < until && (await answersTcp(vip.ip, previous.port))) {
      signal.throwIfAborted();
      await sleep(GRACE_POLL_MS);
    }
  }

  async #release(vip: VipSettings, why: string, signal: AbortSignal): Promise<void> {
    this.#announcer.cancel(vip);
    this.#held.delete(vip);
    const place = placeOf(vip, linkOf(vip, await this.#batch.run([], signal)));
    if (place === undefined) return;
    const after = await this.#batch.run([removeCommand(vip, place)], signal);
    if (placeOf(vip, linkOf(vip, after)) !== undefined) await this.#complain(vip, 'removed from');
    this.#options.log.info({ master: vip.master, vip: vipText(vip), why }, 'vip released');
  }

  async #complain(vip: VipSettings, what: string): Promise<never> {
    const reason = (await this.#batch.complaint()) || 'no reason given';
    // The resident program may know the interface by an index of its past.
    this.#batch.reset();
    throw new AgentError('PUBLISH_FAILED', `vip ${vip.ip} cannot be ${what} ${vip.interface}: ${reason}`, { master: vip.master });
  }
}

function intentOf(vip: VipSettings, route: Route, isOurs: boolean, isFenced: boolean): Intent {
  if (!route.trusted) return vip.whenIsolated === 'keep' ? { kind: 'leave', why: 'isolated' } : { kind: 'release', why: 'isolated' };
  // What a dead life of this agent left behind is judged when a majority has spoken, not before (publishing.md, rule 3).
  if (!route.confirmed) return { kind: 'leave', why: 'not confirmed yet' };
  if (isFenced) return { kind: 'release', why: 'fenced by a higher order' };
  return isOurs ? { kind: 'hold' } : { kind: 'release', why: 'the primary is elsewhere' };
}

const linkOf = (vip: VipSettings, links: readonly Link[]): Link | undefined => links.find(({ name }) => name === vip.interface);

const placeOf = (vip: VipSettings, link: Link | undefined): LinkAddress | undefined =>
  link?.addresses.find(({ local }) => canonical(local) === canonical(vip.ip));

/** `preferred_lft 0`: never chosen as the source of a connection, or a replica would show up under it. */
function addCommand(vip: VipSettings, detects: boolean): string {
  const { ip, prefix, interface: device, label } = vip;
  if (isSix(vip)) return `addr add ${ip}/${prefix} dev ${device}${detects ? '' : ' nodad'} preferred_lft 0`;
  return `addr add ${ip}/${prefix} dev ${device}${label === null ? '' : ` label ${device}:${label}`}`;
}

const removeCommand = ({ interface: device }: VipSettings, { local, prefix }: LinkAddress): string => `addr del ${local}/${prefix} dev ${device}`;

/** One text per address: IPv6 has many. */
function canonical(ip: string): string {
  return isIP(ip) === 6 ? new URL(`http://[${ip.split('%')[0] ?? ''}]`).hostname.slice(1, -1) : ip;
}
