/**
 * What the sentinels of a group say: who is who, which configuration is the newest, what each output has published.
 *
 * One reachable sentinel is enough to find the others; where they differ, the highest configuration epoch is the truth, as among
 * themselves.
 */
import { AgentError, messageOf } from '../errors.js';
import type { Address } from '../sentinel/wire/address.js';
import { formatAddress, parseAddress, sameAddress } from '../sentinel/wire/address.js';
import type { World } from './decide.js';
import { infoFields, mapsOf, numberIn, pairsOf } from './fields.js';
import type { SentinelFacts } from './findings.js';
import { Refusal } from './links.js';
import type { Links } from './links.js';

const LOOK_LIMIT_MS = 3_000;
const SENTINEL_LINK = /(?:^| )name=(?:sentinel-|pointsman-)/;

/** Who belongs to a group, as one sentinel knows it. */
export interface Members {
  readonly master: Address;
  readonly replicas: readonly Address[];
  readonly sentinels: readonly Address[];
}

export interface OutputState {
  readonly sentinel: Address;
  readonly name: string;
  readonly state: string;
  readonly publishedOrder: number;
  readonly ttlMs: number;
  readonly error: string;
}

/** What one sentinel says now. */
export interface View {
  readonly sentinel: Address;
  readonly fields: ReadonlyMap<string, string>;
  readonly status: ReadonlyMap<string, string> | null;
}

const addressOf = (fields: ReadonlyMap<string, string>): Address => ({ host: fields.get('ip') ?? '', port: numberIn(fields, 'port') });

export class Group {
  constructor(readonly links: Links, readonly master: string) {}

  /** The first of `contacts` that answers, and what it knows. Rejects with AgentError AGENT_UNREACHABLE, naming each. */
  async discover(contacts: readonly Address[]): Promise<Members> {
    const reasons: string[] = [];
    for (const contact of contacts) {
      this.links.isSentinel(contact);
      try {
        const fields = pairsOf(await this.links.ask(contact, ['SENTINEL', 'MASTER', this.master]));
        const status = await this.#status(contact);
        const peers = mapsOf(await this.links.ask(contact, ['SENTINEL', 'SENTINELS', this.master])).map(addressOf);
        const replicas = mapsOf(await this.links.ask(contact, ['SENTINEL', 'REPLICAS', this.master])).map(addressOf);
        for (const peer of peers) this.links.isSentinel(peer);
        // While prepared, all but the initiator show the target: the master is whoever its replicas follow.
        const shown = addressOf(fields);
        const isPrepared = (status?.get('state') ?? 'none') !== 'none';
        const master = isPrepared ? await this.#followed(status?.get('target') ?? '', shown) : shown;
        return { master, replicas: replicas.filter((each) => !sameAddress(each, master)), sentinels: [contact, ...peers] };
      } catch (fault) {
        reasons.push(`${formatAddress(contact)}: ${messageOf(fault)}`);
      }
    }
    throw new AgentError('AGENT_UNREACHABLE', `no sentinel answers for ${this.master}: ${reasons.join('; ')}`);
  }

  async #followed(target: string, shown: Address): Promise<Address> {
    const address = parseAddress(target);
    if (address === null) return shown;
    const info = infoFields(await this.links.text(address, 'INFO', 'replication').catch(() => ''));
    const host = info.get('master_host');
    return host === undefined ? shown : { host, port: numberIn(info, 'master_port') };
  }

  async #status(sentinel: Address): Promise<ReadonlyMap<string, string> | null> {
    try {
      return pairsOf(await this.links.ask(sentinel, ['SENTINEL', 'SILENT-FAILOVER', this.master, 'status'], LOOK_LIMIT_MS));
    } catch (fault) {
      if (fault instanceof Refusal) return null;
      throw fault;
    }
  }

  /** Those that answer. */
  async views(sentinels: readonly Address[]): Promise<View[]> {
    const found = await Promise.all(sentinels.map(async (sentinel): Promise<View | null> => {
      try {
        // Asked in this order: a move that ends in between shows as ended, not as a state without an end.
        const status = await this.#status(sentinel);
        const fields = pairsOf(await this.links.ask(sentinel, ['SENTINEL', 'MASTER', this.master], LOOK_LIMIT_MS));
        return { sentinel, fields, status };
      } catch {
        return null;
      }
    }));
    return found.filter((view) => view !== null);
  }

  /** Nodes that owe a copy by what anybody who answers says. Two may hear of the end of a debt at different times. */
  async debts(sentinels: readonly Address[]): Promise<ReadonlySet<string>> {
    const found = await Promise.all(sentinels.map((sentinel) => this.#status(sentinel).catch(() => null)));
    return new Set(found.flatMap((status) => (status?.get('resync-debts') ?? '').split(',').filter((each) => each !== '')));
  }

  /** Rejects with AgentError AGENT_UNREACHABLE when no sentinel answers. `original`: the master as long as a move is prepared. */
  async world(sentinels: readonly Address[], original: Address): Promise<World> {
    const views = await this.views(sentinels);
    if (views.length === 0) throw new AgentError('AGENT_UNREACHABLE', `no sentinel of ${this.master} answers: ${sentinels.map(formatAddress).join(', ')}`);
    return worldOf(views, original);
  }

  /** Everything the preflight wants to know of one sentinel; never rejects. */
  async inspect(address: Address): Promise<SentinelFacts> {
    const nothing = { address, master: new Map<string, string>(), status: null, tilt: false, outputs: null, clients: 0 };
    try {
      const status = await this.#status(address);
      const fields = pairsOf(await this.links.ask(address, ['SENTINEL', 'MASTER', this.master], LOOK_LIMIT_MS));
      const info = infoFields(await this.links.text(address, 'INFO', 'sentinel'));
      const outputs = await this.outputs(address);
      const list = await this.links.text(address, 'CLIENT', 'LIST').catch(() => '');
      const clients = list.split('\n').filter((line) => line.startsWith('id=') && !SENTINEL_LINK.test(line)).length;
      return { address, fault: null, master: fields, status, tilt: info.get('sentinel_tilt') === '1', outputs, clients };
    } catch (fault) {
      return { ...nothing, fault: messageOf(fault) };
    }
  }

  /** Outputs of one agent; null where it does not know the command. Rejects when it can't be reached. */
  async outputs(sentinel: Address, recheck = false): Promise<OutputState[] | null> {
    try {
      const reply = await this.links.ask(sentinel, ['SENTINEL', 'OUTPUTS', this.master, ...(recheck ? ['RECHECK'] : [])], LOOK_LIMIT_MS);
      return mapsOf(reply).map((fields) => ({
        sentinel,
        name: fields.get('name') ?? '',
        state: fields.get('state') ?? '',
        publishedOrder: numberIn(fields, 'published-order', -1),
        ttlMs: numberIn(fields, 'ttl-ms'),
        error: fields.get('error') ?? '',
      }));
    } catch (fault) {
      if (fault instanceof Refusal) return null;
      throw fault;
    }
  }

  /** Outputs of all that answer. */
  async allOutputs(sentinels: readonly Address[], recheck = false): Promise<OutputState[]> {
    const lists = await Promise.all(sentinels.map((sentinel) => this.outputs(sentinel, recheck).catch(() => null)));
    return lists.flatMap((list) => list ?? []);
  }
}

/** The newest configuration among views; `original` counts as the master while a silent failover is prepared. */
export function worldOf(views: readonly View[], original: Address): World {
  const epochOf = ({ fields }: View): number => numberIn(fields, 'config-epoch');
  const doneOf = ({ status }: View): number => (status === null ? 0 : numberIn(status, 'done-epoch'));
  const newest = views.reduce((best, view) => (epochOf(view) > epochOf(best) ? view : best));
  const silentViews = views.filter(({ status }) => (status?.get('state') ?? 'none') !== 'none');
  // One whose done-epoch a configuration has reached has not heard of its end yet.
  const open = silentViews.filter((view) => doneOf(view) > epochOf(newest));
  const failingOver = views.some(({ fields }) => /failover_in_progress/.test(fields.get('flags') ?? ''));
  const tainted = open.map(({ status }) => status?.get('tainted') ?? '').find((reason) => reason !== '') ?? '';
  const isPrepared = open.some(({ status }) => status?.get('effective') === '1');
  const best = open.find(({ status }) => status?.get('effective') === '1') ?? open[0];
  if (best === undefined) return { master: addressOf(settledView(views, newest).fields), silent: 'none', silentTarget: null, tainted: '', failingOver };
  const silentTarget = parseAddress(best.status?.get('target') ?? '');
  return { master: original, silent: isPrepared ? 'prepared' : 'reserved', silentTarget, tainted, failingOver };
}

/** Of the views with the newest epoch, one that is not in a silent state itself: only that shows the master by topology. */
function settledView(views: readonly View[], newest: View): View {
  const epoch = numberIn(newest.fields, 'config-epoch');
  const settled = views.filter(({ fields, status }) => numberIn(fields, 'config-epoch') === epoch && (status?.get('state') ?? 'none') === 'none');
  return settled[0] ?? newest;
}
