/**
 * Keeps an eye on the rights of our users on the data nodes: asks each node once a minute at most, when a link to it comes up, and
 * says in the log what is missing and what to do. Only where `auth-user` is set: everybody else is `default`.
 */
import type { RedisOptions } from 'ioredis';
import type { Log } from '../../log.js';
import { masterOf } from '../core/turn.js';
import type { ConnectionId, SentinelState } from '../core/state.js';
import { lookUp } from '../core/state.js';
import { formatAddress } from '../wire/address.js';
import { missingRules } from './rule-check.js';
import type { MissingRules } from './rule-check.js';

const MIN_PAUSE_MS = 60_000;

export interface RightsOptions {
  readonly connection: Pick<RedisOptions, 'tls' | 'Connector'>;
  readonly log: Log;
}

export class Rights {
  readonly #options: RightsOptions;
  readonly #missing = new Map<string, MissingRules>();
  readonly #askedAtMs = new Map<string, number>();

  constructor(options: RightsOptions) {
    this.#options = options;
  }

  /** By `host:port`; a node that lets us do everything is not in it. */
  get missing(): ReadonlyMap<string, MissingRules> {
    return this.#missing;
  }

  /** A link came up: time to ask, if it leads to a data node as a user with rules. */
  connected(state: Readonly<SentinelState>, connection: ConnectionId): void {
    const end = state.connections.get(connection);
    const owner = end?.channel === 'command' ? end.link.owners[0] : undefined;
    const instance = owner === undefined ? undefined : lookUp(state, owner);
    if (instance === undefined || instance.kind === 'sentinel') return;
    const master = masterOf(state, instance);
    if (master === undefined || master.authUser === null || master.authPass === null) return;
    const { ip: host, port } = instance.address;
    const address = formatAddress({ host, port });
    if (performance.now() - (this.#askedAtMs.get(address) ?? -MIN_PAUSE_MS) < MIN_PAUSE_MS) return;
    this.#askedAtMs.set(address, performance.now());
    const { renamedCommands, authUser: user, authPass: password } = master;
    const nameOf = (command: string): string => renamedCommands.get(command) ?? command;
    void missingRules({ host, port, user, password, nameOf, connection: this.#options.connection }).then((missing) => {
      if (missing !== null) this.#note(address, user, missing);
      else this.#askedAtMs.delete(address);
    });
  }

  #note(address: string, user: string, missing: MissingRules): void {
    const { log } = this.#options;
    this.#missing.delete(address);
    if (missing.needed.length + missing.forMoves.length === 0) return;
    this.#missing.set(address, missing);
    const { needed, forMoves } = missing;
    if (needed.length > 0) {
      const rules = needed.join(' ');
      log.error({ code: 'LINK_FAILED', address, missing: needed }, `${address}: user ${user} lacks ${rules}: a failover would fail there`);
    } else {
      log.warn({ address, missing: forMoves }, `${address}: user ${user} lacks ${forMoves.join(' ')}: planned moves need it`);
    }
  }
}
