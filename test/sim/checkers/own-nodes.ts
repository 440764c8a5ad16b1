/**
 * I5: only nodes of a master ever get REPLICAOF for it.
 */
import { formatAddress } from '../../../src/sentinel/wire/address.js';
import type { Address } from '../../../src/sentinel/wire/address.js';
import type { RedisNode } from '../redis-node.js';
import type { Checker, GroupOf, Verdict } from './checker.js';

export class OwnNodes implements Checker {
  readonly name = 'I5 only nodes of a master follow it';

  constructor(readonly groupOf: GroupOf) {}

  replicaOf(node: RedisNode, target: Address | null): Verdict {
    if (target === null) return null;
    const [own, other] = [this.groupOf(node.machine.ip), this.groupOf(target.host)];
    if (target.host === node.machine.ip) return `${node.machine.name} was told to follow itself`;
    return own === other ? null : `${node.machine.name} of ${own} was told to follow ${formatAddress(target)} of ${other}`;
  }
}
