/**
 * What the ledger's clients were promised, against what each node holds: value by value, and the nodes key by key.
 */
import { Redis } from 'ioredis';
import type { Address } from '../../src/sentinel/wire/address.js';
import { COUNTER, type Writer } from './writer.js';

const SCAN_COUNT = 5_000;
/** Keys that only make a copy long; no client writes them. */
const FILLER = 'filler:';

export interface Audit {
  readonly acknowledged: number;
  /** Acknowledged values that a node lacks, summed over the nodes asked. */
  readonly missingValues: number;
  /** Acknowledged increments that a node's counter lacks, summed likewise. */
  readonly missingIncrements: number;
  /** Keys that are not the same on all nodes. */
  readonly differingKeys: number;
}

async function contentsOf({ host, port }: Address): Promise<ReadonlyMap<string, string>> {
  const redis = new Redis({ host, port, lazyConnect: true, protocol: 2, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  redis.on('error', () => undefined);
  const contents = new Map<string, string>();
  try {
    await redis.connect();
    let cursor = '0';
    do {
      const [next, found] = await redis.scan(cursor, 'COUNT', SCAN_COUNT);
      cursor = next;
      const keys = found.filter((key) => !key.startsWith(FILLER));
      const values = keys.length === 0 ? [] : await redis.mget(keys);
      keys.forEach((key, index) => contents.set(key, values[index] ?? '(none)'));
    } while (cursor !== '0');
  } finally {
    redis.disconnect();
  }
  return contents;
}

/** The writers have stopped, and the nodes have settled. */
export async function audit(writers: readonly Writer[], nodes: readonly Address[]): Promise<Audit> {
  const held: ReadonlyMap<string, string>[] = [];
  for (const node of nodes) held.push(await contentsOf(node));
  const increments = writers.reduce((sum, writer) => sum + writer.increments, 0);
  let [acknowledged, missingValues, missingIncrements] = [0, 0, 0];
  for (const writer of writers) acknowledged += writer.acknowledged.length;
  for (const contents of held) {
    for (const writer of writers) {
      for (const number of writer.acknowledged) if (contents.get(writer.keyOf(number)) !== String(number)) missingValues++;
    }
    missingIncrements += Math.max(0, increments - Number(contents.get(COUNTER) ?? 0));
  }
  const keys = new Set(held.flatMap((contents) => [...contents.keys()]));
  const differingKeys = [...keys].filter((key) => new Set(held.map((contents) => contents.get(key))).size > 1).length;
  return { acknowledged, missingValues, missingIncrements, differingKeys };
}
