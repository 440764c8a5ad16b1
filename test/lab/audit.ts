/**
 * Compares what was acknowledged with what the nodes hold, while clients go on writing.
 */
import { Redis } from 'ioredis';
import { must } from '../../src/assert.js';
import { askRedis } from '../../src/demo/ask-redis.js';
import { isHeld } from '../../src/demo/ledger.js';
import { waitUntilNothing } from '../../src/demo/wait.js';
import { finalHistory, judgeLoss, type History, type LossKind, type Receipt, type Sample } from './lineage.js';
import { readSample } from './node-watch.js';
import type { Node } from './site.js';

const ANSWER_LIMIT_MS = 5_000;
const CATCH_UP_LIMIT_MS = 20_000;

/** Lost numbers with one reason. */
export interface Loss {
  readonly kind: LossKind;
  readonly reason: string;
  readonly client: string;
  readonly count: number;
  /** Of the oldest one, by the wall clock, in ms. */
  readonly sentMs: number;
}

export interface Audit {
  readonly losses: readonly Loss[];
  /** Numbers that the master holds and another node does not, a line per node. */
  readonly unequal: readonly string[];
}

type Contents = ReadonlyMap<string, Buffer>;

async function contentsOf(node: Node, keys: readonly string[]): Promise<Contents> {
  const redis = new Redis({ path: node.socket, lazyConnect: true, protocol: 2, retryStrategy: () => null, commandTimeout: ANSWER_LIMIT_MS });
  redis.on('error', () => undefined);
  const contents = new Map<string, Buffer>();
  try {
    await redis.connect();
    for (const key of keys) contents.set(key, (await redis.getBuffer(key)) ?? Buffer.alloc(0));
  } finally {
    redis.disconnect();
  }
  return contents;
}

const has = (contents: Contents, key: string, number: number): boolean => isHeld(contents.get(key) ?? Buffer.alloc(0), number);

/**
 * Losses that are not in `counted` yet, which gets them. `receipts` were all acknowledged some time ago; the replicas have caught up
 * with what the master held when this began.
 */
export async function audit(
  receipts: readonly Receipt[], master: Node, nodes: readonly Node[], history: () => History, counted: Set<string>,
): Promise<Audit> {
  const keys = [...new Set(receipts.map(({ key }) => key))];
  const held = await contentsOf(master, keys);
  const offset = (await sampleOf(master)).offset;
  const replicas = nodes.filter((node) => node !== master);
  await waitUntilNothing(async () => {
    const behind = (await Promise.all(replicas.map(sampleOf))).filter((sample) => sample.offset < offset);
    return behind.length === 0 ? null : `${behind.length} replicas are behind offset ${offset}`;
  }, CATCH_UP_LIMIT_MS);
  const segments = finalHistory(history(), master.address.host);
  const groups = new Map<string, Loss>();
  for (const receipt of receipts) {
    const lost = lostOf(receipt, held, counted);
    if (lost === 0) continue;
    const { kind, reason } = judgeLoss(receipt, history(), segments);
    // The figures in a reason differ from write to write; its words make the group.
    const group = `${receipt.key} ${kind} ${kind === 'unexplained' ? reason : reason.replace(/\b\d+ ms /, '')}`;
    const before = groups.get(group);
    groups.set(group, before === undefined ? { kind, reason, client: receipt.key, count: lost, sentMs: receipt.sentMs } : { ...before, count: before.count + lost });
  }
  const unequal: string[] = [];
  for (const node of replicas) {
    const own = await contentsOf(node, keys);
    let missing = 0;
    for (const { key, first, last } of receipts) {
      for (let number = first; number <= last; number++) if (has(held, key, number) && !has(own, key, number)) missing++;
    }
    if (missing > 0) unequal.push(`${node.name} lacks ${missing} acknowledged writes that ${master.name} holds`);
  }
  return { losses: [...groups.values()], unequal };
}

async function sampleOf(node: Node): Promise<Sample> {
  const reply = await askRedis({ path: node.socket }, ['INFO']);
  return must('text' in reply ? readSample(reply.text, 0, 0) : null, 'a node answers INFO');
}

function lostOf({ key, first, last }: Receipt, held: Contents, counted: Set<string>): number {
  let lost = 0;
  for (let number = first; number <= last; number++) {
    if (has(held, key, number) || counted.has(`${key} ${number}`)) continue;
    counted.add(`${key} ${number}`);
    lost++;
  }
  return lost;
}
