/**
 * Does the token have every right that publishing a master needs? One transaction that can never be applied tells. Pure.
 *
 * It sets one thing of each kind and ends in a check on a key that never exists. Rights are judged before anything else, so every
 * missing one shows as `Permission denied`; with all of them only the last operation fails, and nothing is left behind. Without
 * this test a missing read right looks like an empty catalog (Consul filters, it does not refuse), and we would write for ever.
 */
import { isDenied, missingRules } from './fault.js';
import type { OperationError } from './fault.js';
import { NODE_PREFIX, serviceId } from './naming.js';
import type { MasterNames } from './naming.js';
import { guardKey, nodeMeta, setCheck, setService } from './operation.js';
import type { Operation } from './operation.js';

const NOWHERE = { host: '192.0.2.1', port: 1 };

export function selfTestOperations(names: MasterNames, keyPrefix: string): Operation[] {
  const node = `${NODE_PREFIX}${names.label}-selftest`;
  const services = [names.service, names.replicaService].flatMap((service) => {
    const id = serviceId(service, NOWHERE);
    return [setService(node, { ID: id, Service: service }), setCheck(node, service, id, false, 'self-test')];
  });
  return [
    { Node: { Verb: 'set', Node: { Node: node, Address: NOWHERE.host, Meta: nodeMeta(names) } } },
    ...services,
    { KV: { Verb: 'set', Key: `${keyPrefix}/.selftest`, Value: '' } },
    guardKey(`${keyPrefix}/.never`, 1),
  ];
}

/** The rules that are missing; empty = passed; a sentence when the answer is none that this test can have. */
export function judgeSelfTest(
  operations: readonly Operation[], errors: readonly OperationError[], keyPrefix: string,
): readonly string[] | string {
  const denied = errors.filter(({ what }) => isDenied(what));
  if (denied.length > 0) return missingRules(operations, denied, keyPrefix);
  const last = errors.length === 1 ? errors[0] : undefined;
  if (last?.index === operations.length - 1) return [];
  return `unexpected answer to the self-test: ${errors.map(({ what }) => what).join('; ') || 'it was applied'}`;
}
