/**
 * Agent mode: every host tells its own Consul agent about its own Redis nodes; the key is the fence where the token may have it.
 *
 * Entries are bound to live nodes then, at a price that the documentation names: no transaction spans hosts, so there may be no
 * primary for a moment, and two when a host is cut off.
 */
import { AgentError } from '../../errors.js';
import type { Log } from '../../log.js';
import { sameAddress } from '../../sentinel/wire/address.js';
import type { Address } from '../../sentinel/wire/address.js';
import type { Published } from '../publisher.js';
import type { ConsulClient } from './client.js';
import type { KeyState, Snapshot } from './entry.js';
import { ConsulError, deniedError, refusalOf } from './fault.js';
import { planLocal } from './local-plan.js';
import type { LocalStep } from './local-plan.js';
import { OWNER_META, checkId, serviceId } from './naming.js';
import type { MasterNames } from './naming.js';
import { deleteKey, setKey } from './operation.js';
import { pause } from './pause.js';
import type { Wish } from './wish.js';
import { MAX_ROUNDS, contradiction, lookFirstMs, outrun } from './writer.js';
import type { ApplyOptions, Writer } from './writer.js';

export interface AgentWriterOptions {
  readonly client: ConsulClient;
  readonly kvPrefix: string;
  readonly log: Log;
  readonly random: () => number;
  /** Whether an address is this host's own. */
  readonly isLocal: (address: Address) => boolean;
}

export class AgentWriter implements Writer {
  readonly #options: AgentWriterOptions;
  #saidUnfenced = false;

  constructor(options: AgentWriterOptions) {
    this.#options = options;
  }

  async apply(wish: Wish, options: ApplyOptions): Promise<Published> {
    const { client } = this.#options;
    const { signal } = options;
    const newer = await this.#raiseFence(wish, options);
    if (newer !== null) return newer;

    const nodes = wish.nodes.filter(({ address }) => this.#options.isLocal(address));
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const state = { services: await client.localServices(signal), checks: await client.localChecks(signal) };
      const steps = planLocal(wish, nodes, state);
      if (steps.length === 0) {
        return { order: wish.fence.order, detail: [`${nodes.length} nodes at the local agent`, ...wish.leftOut].join('; ') };
      }
      for (const step of steps) await this.#do(step, wish.names, signal);
    }
    throw new AgentError('PUBLISH_FAILED', `consul agent at ${client.at} does not keep what it is told`, { master: wish.names.master });
  }

  /** Entries of this host that the catalog does not show as they should be; the agent itself is asked then. */
  needsLook(wish: Wish, { entries }: Snapshot): boolean {
    const { service } = wish.names;
    return wish.nodes.filter(({ address }) => this.#options.isLocal(address)).some(({ address, role }) => {
      const id = serviceId(service, address);
      const check = entries.find((entry) => entry.id.toLowerCase() === id)?.checks.find((each) => each.id === checkId(id));
      return check?.status !== (role === 'primary' ? 'passing' : 'critical');
    });
  }

  async forget(names: MasterNames, lastOrder: number, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const key = await this.#readFence(names, signal);
    if (key !== null && (key.fence?.order ?? -1) > lastOrder) return;
    const services = await client.localServices(signal);
    for (const { id, meta } of services) if (meta[OWNER_META] === names.label) await client.deregister(id, signal);
    if (key !== null && key.index > 0) await client.transact([deleteKey(names.key, key.index)], signal);
  }

  /** Writes the key where its order is lower; what it says when its order is higher, null when we may go on. */
  async #raiseFence(wish: Wish, { isLeader, isKeeper, force, signal }: ApplyOptions): Promise<Published | null> {
    const { client, kvPrefix, random } = this.#options;
    const { names, fence } = wish;
    let hasWaited = isLeader;
    for (let round = 0; round < MAX_ROUNDS;) {
      const key = await this.#readFence(names, signal);
      if (key === null) return null;
      const order = key.fence?.order ?? -1;
      if (key.fence !== null && order > fence.order && !force) {
        return { order, detail: `${names.key} holds order ${order} by ${key.fence.writer}, left alone` };
      }
      if (key.fence !== null && order === fence.order) {
        if (sameAddress(key.fence, fence)) return null;
        if (!isKeeper) throw contradiction(wish, key.fence);
      }
      if (!hasWaited) {
        hasWaited = true;
        await pause(lookFirstMs(random), signal);
        continue;
      }
      round++;
      const operations = [setKey(names.key, fence, key.index)];
      const answer = await client.transact(operations, signal);
      if (answer.kind === 'applied') continue;
      const refusal = refusalOf(operations, answer.errors, kvPrefix);
      // Reading without writing: the fence of others still binds us.
      if (refusal.kind === 'denied') return this.#unfenced(names);
    }
    throw outrun(names, MAX_ROUNDS);
  }

  async #readFence(names: MasterNames, signal: AbortSignal): Promise<KeyState | null> {
    try {
      return (await this.#options.client.readKey(names.key, { signal })).value;
    } catch (error) {
      if (error instanceof ConsulError && error.kind === 'denied') return this.#unfenced(names);
      throw error;
    }
  }

  #unfenced({ master, key }: MasterNames): null {
    if (!this.#saidUnfenced) this.#options.log.warn({ master, key }, 'the consul token has no right to the key: no fence between hosts');
    this.#saidUnfenced = true;
    return null;
  }

  async #do(step: LocalStep, { service }: MasterNames, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    try {
      switch (step.kind) {
        case 'register': return await client.register(step.registration, signal);
        case 'check': return await client.setLocalCheck(step.id, step.isPassing, step.note, signal);
        case 'deregister': return await client.deregister(step.id, signal);
      }
    } catch (error) {
      if (!(error instanceof ConsulError) || error.kind !== 'denied') throw error;
      const name = step.kind === 'register' ? step.registration.service : service;
      throw deniedError(client.at, [`service "${name}" { policy = "write" }`]);
    }
  }
}
