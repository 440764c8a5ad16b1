/**
 * Planned moves without loss (section 8, and step 2 of a done): when the new master is promoted, the old one is held and has
 * nothing that the new one lacks; and no two nodes that clients are sent to take writes as masters at once.
 *
 * Exempt: worlds with trouble on nodes or network (there a pause may end while the promotion is still on its way), an original that
 * the leader can't reach, servers that refuse the pause, and elections for a dead master.
 */
import { formatAddress } from '../../../src/sentinel/wire/address.js';
import type { Machine } from '../network.js';
import type { RedisNode } from '../redis-node.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';

export class WritesHeld implements Checker {
  readonly name = 'no write beside a planned move';

  constructor(readonly world: World) {}

  promoted(node: RedisNode, by: Machine | null): Verdict {
    const host = this.world.hosts.find(({ machine }) => machine === by);
    const master = host?.state?.masters.get(this.world.groupOf(node.machine.ip) ?? '');
    const failover = master?.failover;
    if (master === undefined || failover == null || this.world.strictness === 'loose') return null;
    const isPlanned = failover.coordinated || failover.state === 'silent_promote';
    const isReachable = master.sdownSinceMs === null && master.link.command !== null && failover.lastPauseMs !== 0;
    const original = this.world.nodeAt(master.address);
    if (!isPlanned || !isReachable || original === undefined || original.master !== null || !original.isRunning) return null;
    if (!original.isPaused) return `${node.machine.name} is promoted while ${original.machine.name} takes writes`;
    const missing = original.log.values.find((value) => !node.log.values.includes(value));
    return missing === undefined ? null : `${node.machine.name} is promoted without ${missing}, which ${original.machine.name} has`;
  }

  wrote(node: RedisNode, _value: number, local: boolean): Verdict {
    if (local || this.world.strictness !== 'strict') return null;
    const others = this.world.nodesOf(node).filter((other) => other !== node);
    const rivals = others.filter((other) => other.isRunning && other.master === null && !other.isPaused);
    if (rivals.length === 0 || !this.#isAdvertised(node) || !rivals.some((rival) => this.#isAdvertised(rival))) return null;
    return `${node.machine.name} and ${rivals.map(({ machine }) => machine.name).join(' ')} take writes at once, and both are advertised`;
  }

  #isAdvertised(node: RedisNode): boolean {
    const group = this.world.groupOf(node.machine.ip) ?? '';
    return this.world.awareHosts.some((host) => {
      const address = this.world.advertisedBy(host, group);
      return address !== null && formatAddress(address) === `${node.machine.ip}:${node.machine.port}`;
    });
  }
}
