/**
 * What "all agree" means, question by question: each returns what is still missing, in words, or null.
 */
import { messageOf } from '../errors.js';
import { formatAddress, sameAddress } from '../sentinel/wire/address.js';
import type { Address } from '../sentinel/wire/address.js';
import { askRedis, fieldsOf, textsOf } from './ask-redis.js';

export const MASTER_NAME = 'mymaster';

/** How many a sentinel must know of, itself not counted. */
export interface Company {
  readonly replicas: number;
  readonly peers: number;
}

/** A reason with its owner's name; a question that got no answer is a reason too. */
export async function whyNotIn(name: string, why: () => Promise<string | null>): Promise<string | null> {
  const reason = await why().catch(messageOf);
  return reason === null ? null : `${name}: ${reason}`;
}

/** Whether a Redis node is the master, or follows it with a working link. */
export async function whyNotServing(node: Address, master: Address): Promise<string | null> {
  const [role, host = '', port, link] = textsOf(await askRedis(node, ['ROLE']));
  if (sameAddress(node, master)) return role === 'master' ? null : 'is not the master yet';
  if (role !== 'slave') return 'is not a replica yet';
  const followed = { host, port: Number(port) };
  if (!sameAddress(followed, master)) return `follows ${formatAddress(followed)}, not ${formatAddress(master)}`;
  return link === 'connected' ? null : `its replication link is "${link}"`;
}

/** The master's address as a sentinel tells it; port 0 when it names none. */
export async function masterNamedBy(sentinel: Address): Promise<Address> {
  const [host = '', port = '0'] = textsOf(await askRedis(sentinel, ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME]));
  return { host, port: Number(port) };
}

/** Whether a sentinel names `master`. */
export async function whyNotNaming(sentinel: Address, master: Address): Promise<string | null> {
  const named = await masterNamedBy(sentinel);
  return sameAddress(named, master) ? null : `names ${formatAddress(named)}, not ${formatAddress(master)}`;
}

/** Whether a sentinel names `master`, finds it well, and knows its company well enough to replace it. */
export async function whyNotWatching(sentinel: Address, master: Address, company: Company): Promise<string | null> {
  const otherwise = await whyNotNaming(sentinel, master);
  if (otherwise !== null) return otherwise;
  const view = fieldsOf(await askRedis(sentinel, ['SENTINEL', 'MASTER', MASTER_NAME]));
  if (view.get('flags') !== 'master') return `sees the master as ${view.get('flags')}`;
  const known = { replicas: Number(view.get('num-slaves')), peers: Number(view.get('num-other-sentinels')) };
  if (known.replicas !== company.replicas || known.peers !== company.peers) {
    return `knows ${known.replicas} replicas and ${known.peers} other sentinels`;
  }
  const seen = await askRedis(sentinel, ['SENTINEL', 'REPLICAS', MASTER_NAME]);
  const replicas = seen.kind === 'array' ? seen.items.map((item) => fieldsOf(item)) : [];
  // Only a replica whose own INFO has been read can be promoted.
  const ready = replicas.filter((each) => each.get('master-link-status') === 'ok' && each.get('flags') === 'slave');
  return ready.length === company.replicas ? null : `sees ${ready.length} of ${company.replicas} replicas in sync`;
}
