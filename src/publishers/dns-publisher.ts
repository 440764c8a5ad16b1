/**
 * The DNS as a publisher: it holds the zone that the listeners answer from, swaps it, and asks its own listener what clients now get.
 *
 * Unlike the other outputs it takes every Route, confirmed or not: not to be sure is an answer too (SERVFAIL), and what an
 * isolated agent tells is the operator's choice (zone settings). A lower order than the one shown is left alone.
 */
import { encodeData, encodeRecord, QNAME_POINTER } from '../dns/encode.js';
import { nodeLabel } from '../dns/ip.js';
import type { DnsLog } from '../dns/limited-log.js';
import type { BoundAddress } from '../dns/listeners.js';
import { routeFaults } from '../dns/master-records.js';
import type { MasterContent } from '../dns/master-records.js';
import { knownName, labelFaults, wireLabel } from '../dns/name.js';
import { addressType, RCODE, TYPE } from '../dns/record.js';
import type { RateLimit } from '../dns/rate-limit.js';
import { askOverUdp } from '../dns/self-query.js';
import type { SerialStore } from '../dns/serial-store.js';
import type { TransferService } from '../dns/transfer-service.js';
import { addMaster, blockFor, buildZone, purgeZone, removeMaster, updateZone, whyNotAddable } from '../dns/zone.js';
import type { MasterBlock, Zone, ZoneSettings } from '../dns/zone.js';
import { zoneFaults } from '../dns/zone-settings.js';
import { AgentError, messageOf } from '../errors.js';
import { must } from '../assert.js';
import type { Route } from '../route/route.js';
import { formatAddress } from '../sentinel/wire/address.js';
import type { Millis } from '../time.js';
import type { Published, Publisher } from './publisher.js';

export interface DnsPublisherOptions {
  readonly settings: ZoneSettings;
  /** The masters of sentinel.conf: their names exist from the start and answer SERVFAIL until a Route arrives. */
  readonly masters: readonly string[];
  /** Where our listeners are; asked at each read-back, since they are opened after the publisher is made. */
  readonly listeners: () => readonly BoundAddress[];
  readonly clock: () => Millis;
  readonly log: DnsLog;
  readonly serials?: SerialStore;
  /** Told of each change, and closed with the publisher. */
  readonly transfers?: TransferService | null;
  /** For the listeners that answer from this zone. */
  readonly rateLimit?: RateLimit | null;
  /** Who follows this publisher's zone now; asked at each change. */
  readonly followers?: (publisher: DnsPublisher) => ZoneFollowers | null;
}

/** Other processes that answer from the same zone. */
export interface ZoneFollowers {
  /** Resolves when all of them answer by what is new about this master. */
  changed(master: string): Promise<void>;
}

export class DnsPublisher implements Publisher {
  readonly name = 'dns';
  readonly deadlineMs = 1000;
  readonly wantsUntrusted = true;
  readonly #options: DnsPublisherOptions;
  readonly #purges = new Map<string, NodeJS.Timeout>();
  readonly #forced = new Set<string>();
  #zone: Zone;
  /** When the followers have the last change. */
  #followed: Promise<void> = Promise.resolve();
  #saved: Promise<void> = Promise.resolve();

  /** Throws AgentError CONFIG_INVALID, all faults in one message, when the zone cannot carry these masters. */
  constructor(options: DnsPublisherOptions) {
    const { settings, masters } = options;
    const faults = [...zoneFaults(settings), ...labelFaults(masters, settings.labels, settings)];
    if (faults.length > 0) throw new AgentError('CONFIG_INVALID', faults.join('; '), { faults });
    this.#options = options;
    this.#zone = buildZone(settings, masters, options.serials?.load() ?? 0, options.clock());
    this.#saveSerial();
  }

  /** Who may transfer the zone; null: nobody. */
  get transfers(): TransferService | null {
    return this.#options.transfers ?? null;
  }

  /** How often UDP replies may go to one network; null: no limit. */
  get rateLimit(): RateLimit | null {
    return this.#options.rateLimit ?? null;
  }

  /** The zone as it is now; listeners ask once per message. */
  zone(): Zone {
    return this.#zone;
  }

  /** Why this zone cannot carry one more master of that name (SENTINEL MONITOR asks first); null = it can. */
  whyNotAddable(master: string): string | null {
    return whyNotAddable(this.#zone, master);
  }

  /** A master is monitored from now on; its names answer SERVFAIL until its first Route. Throws CONFIG_INVALID, see above. */
  addMaster(master: string): void {
    const fault = whyNotAddable(this.#zone, master);
    if (fault !== null) throw new AgentError('CONFIG_INVALID', fault, { master });
    this.#swap(addMaster(this.#zone, master, this.#options.clock()), master);
  }

  /** The master is not monitored any more: its names do not exist. */
  removeMaster(master: string): void {
    clearTimeout(this.#purges.get(master));
    this.#purges.delete(master);
    this.#swap(removeMaster(this.#zone, master, this.#options.clock()), master);
  }

  async apply(route: Route, signal: AbortSignal): Promise<Published> {
    signal.throwIfAborted();
    const { master } = route;
    if (this.#forced.delete(master)) this.removeMaster(master);
    this.addMaster(master);
    const shown = must(blockFor(this.#zone, master), `master ${master} is in the zone`);
    if (route.order < shown.order) {
      return { order: shown.order, detail: `serial ${this.#zone.serial}; order ${shown.order} is shown, ${route.order} is older` };
    }

    this.#swap(updateZone(this.#zone, route, this.#options.clock()), master);
    this.#schedulePurge(master);
    const { serial } = this.#zone;
    const block = must(blockFor(this.#zone, master), `master ${master} is in the zone`);
    await this.#awaitFollowers(master, signal);
    await this.#readBack(block, signal);
    const faults = routeFaults(route, this.#options.settings);
    if (route.confirmed && faults.primary !== null) {
      throw new AgentError('PUBLISH_FAILED', `dns cannot publish ${master}: ${faults.primary}`, { master, order: route.order });
    }
    const notes = [...(route.trusted ? [] : [block.muted ? 'isolated: servfail' : 'isolated: last trusted answers']), ...faults.replicas];
    return { order: block.order, detail: [`serial ${serial}`, ...notes].join('; ') };
  }

  /** The names go and come back within one `apply`, with no query in between. */
  forceNext(master: string): void {
    this.#forced.add(master);
  }

  async forget(master: string): Promise<void> {
    this.removeMaster(master);
  }

  async close(): Promise<void> {
    for (const timer of this.#purges.values()) clearTimeout(timer);
    this.#purges.clear();
    this.transfers?.close();
    await this.#saved;
  }

  #swap(zone: Zone, master: string): void {
    if (zone === this.#zone) return;
    const raised = zone.serial !== this.#zone.serial;
    this.#zone = zone;
    this.#followed = this.#options.followers?.(this)?.changed(master) ?? Promise.resolve();
    if (raised) this.#saveSerial();
    this.transfers?.changed();
  }

  // A serial that could not be kept is no reason not to publish: the next start counts on from the clock.
  #saveSerial(): void {
    const { serial } = this.#zone;
    this.#saved = (this.#options.serials?.save(serial) ?? Promise.resolve()).catch((error: unknown) =>
      this.#options.log.warn({ serial, error: messageOf(error) }, 'dns zone serial not saved'));
  }

  /** Lets the names of nodes that are gone go when their time is over. */
  #schedulePurge(master: string): void {
    const retired = blockFor(this.#zone, master)?.retired ?? [];
    clearTimeout(this.#purges.get(master));
    this.#purges.delete(master);
    if (retired.length === 0) return;
    const waitMs = Math.min(...retired.map(({ until }) => until)) - this.#options.clock();
    // The clock may jump: never wait longer than a timer can, and look again rather than trust one long wait.
    const timer = setTimeout(() => {
      this.#swap(purgeZone(this.#zone, master, this.#options.clock()), master);
      this.#schedulePurge(master);
    }, Math.min(Math.max(waitMs, 1), 3_600_000));
    this.#purges.set(master, timer.unref());
  }

  async #awaitFollowers(master: string, signal: AbortSignal): Promise<void> {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(this.deadlineMs)]);
    const late = new Promise<never>((_, reject) => {
      deadline.addEventListener('abort', () => reject(new AgentError('PUBLISH_TIMEOUT', `dns workers have not the new zone of ${master}`)), { once: true });
    });
    await Promise.race([this.#followed, late]);
  }

  /** Asks each listener for the primary's address and its SRV record, and compares the bytes of the Answer section. */
  async #readBack(block: MasterBlock, signal: AbortSignal): Promise<void> {
    const listeners = this.#options.listeners();
    if (listeners.length === 0) throw new AgentError('PUBLISH_FAILED', `dns cannot read ${block.master} back: no listener is open`);
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(this.deadlineMs)]);
    await Promise.all(listeners.flatMap((listener) => expectedAnswers(this.#zone, block).map(async (expected) => {
      const at = formatAddress(listener);
      const reply = await askOverUdp(listener, expected.qname, expected.qtype, deadline).catch((error: unknown) => {
        const code = deadline.aborted ? 'PUBLISH_TIMEOUT' : 'PUBLISH_FAILED';
        const message = `dns cannot read ${block.master} back from ${at}: ${messageOf(error)}`;
        throw new AgentError(code, message, { listener: at }, { cause: error });
      });
      const answer = reply.subarray(12 + expected.qname.length + 4);
      const rcode = (reply[3] ?? 0) & 15;
      if (rcode !== expected.rcode || !answer.subarray(0, expected.answer.length).equals(expected.answer)) {
        const message = `dns at ${at} answers something else for ${block.master} (rcode ${rcode})`;
        throw new AgentError('PUBLISH_FAILED', message, { listener: at });
      }
    })));
  }
}

interface Expected {
  readonly qname: Buffer;
  readonly qtype: number;
  readonly rcode: number;
  readonly answer: Buffer;
}

/** What clients must get for a master, written down without the zone's own compiled answers. */
function expectedAnswers(zone: Zone, block: MasterBlock): Expected[] {
  const owner = Buffer.concat([block.label, zone.origin]);
  const { content } = block;
  if (content === null || block.muted) return [{ qname: owner, qtype: TYPE.A, rcode: RCODE.SERVFAIL, answer: Buffer.alloc(0) }];
  return [expectedAddress(zone, owner, content), expectedService(zone, owner, content)];
}

function expectedAddress(zone: Zone, owner: Buffer, { primary }: MasterContent): Expected {
  const qtype = addressType(primary.ip);
  const answer = encodeRecord(QNAME_POINTER, qtype, zone.settings.ttlSeconds, primary.ip);
  return { qname: owner, qtype, rcode: RCODE.NOERROR, answer };
}

function expectedService(zone: Zone, owner: Buffer, { primary }: MasterContent): Expected {
  const target = Buffer.concat([wireLabel(nodeLabel(primary.ip)), owner]);
  const data = encodeData({ kind: 'srv', port: primary.port, target }, null);
  const answer = encodeRecord(QNAME_POINTER, TYPE.SRV, zone.settings.ttlSeconds, data);
  const qname = Buffer.concat([knownName('_redis._tcp').subarray(0, -1), owner]);
  return { qname, qtype: TYPE.SRV, rcode: RCODE.NOERROR, answer };
}
