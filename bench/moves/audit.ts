/**
 * What the ledger's clients were promised, against what each node holds: value by value, and the nodes key by key.
 *
 * Millions of values fit: of a ledger's value that is as it should be, one bit is kept per node.
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

/** Bits by number; grows as needed. */
class Bits {
  #bytes = new Uint8Array(1 << 16);

  add(number: number): void {
    const at = number >> 3;
    if (at >= this.#bytes.length) {
      const larger = new Uint8Array(Math.max(at + 1, 2 * this.#bytes.length));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes[at] = (this.#bytes[at] ?? 0) | (1 << (number & 7));
  }

  has(number: number): boolean {
    return ((this.#bytes[number >> 3] ?? 0) & (1 << (number & 7))) !== 0;
  }
}

interface Held {
  /** By writer: the numbers whose value is there and right. */
  readonly values: ReadonlyMap<string, Bits>;
  /** Everything else, and what a ledger's key holds that is not its number. */
  readonly rest: ReadonlyMap<string, string>;
}

async function contentsOf({ host, port }: Address, writers: readonly Writer[]): Promise<Held> {
  const redis = new Redis({ host, port, lazyConnect: true, protocol: 2, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  redis.on('error', () => undefined);
  const values = new Map(writers.map(({ spec }) => [spec.name, new Bits()]));
  const rest = new Map<string, string>();
  const keep = (key: string, value: string): void => {
    const [kind, name = '', number = ''] = key.split(':');
    const bits = kind === 'value' && number === value ? values.get(name) : undefined;
    if (bits === undefined) rest.set(key, value);
    else bits.add(Number(number));
  };
  try {
    await redis.connect();
    let cursor = '0';
    do {
      const [next, found] = await redis.scan(cursor, 'COUNT', SCAN_COUNT);
      cursor = next;
      const keys = found.filter((key) => !key.startsWith(FILLER));
      const held = keys.length === 0 ? [] : await redis.mget(keys);
      keys.forEach((key, index) => keep(key, held[index] ?? '(none)'));
    } while (cursor !== '0');
  } finally {
    redis.disconnect();
  }
  return { values, rest };
}

/** The writers have stopped, and the nodes have settled. */
export async function audit(writers: readonly Writer[], nodes: readonly Address[]): Promise<Audit> {
  const held: Held[] = [];
  for (const node of nodes) held.push(await contentsOf(node, writers));
  const increments = writers.reduce((sum, writer) => sum + writer.increments, 0);
  let [acknowledged, missingValues, missingIncrements, differingKeys] = [0, 0, 0, 0];
  for (const writer of writers) {
    acknowledged += writer.acknowledged.length;
    const bits = held.map(({ values }) => values.get(writer.spec.name) ?? new Bits());
    for (const number of writer.acknowledged) for (const each of bits) if (!each.has(number)) missingValues++;
    for (let number = 0; number < writer.sent; number++) if (new Set(bits.map((each) => each.has(number))).size > 1) differingKeys++;
  }
  for (const { rest } of held) missingIncrements += Math.max(0, increments - Number(rest.get(COUNTER) ?? 0));
  const keys = new Set(held.flatMap(({ rest }) => [...rest.keys()]));
  differingKeys += [...keys].filter((key) => new Set(held.map(({ rest }) => rest.get(key))).size > 1).length;
  return { acknowledged, missingValues, missingIncrements, differingKeys };
}
