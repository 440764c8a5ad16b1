/**
 * Asks every Redis node several times a second what it is, through its Unix socket: cuts don't hide it, only a stopped process
 * does not answer.
 */
import { askRedis } from '../../src/demo/ask-redis.js';
import { pause } from '../../src/demo/wait.js';
import type { Sample } from './lineage.js';

const EVERY_MS = 150;
const ANSWER_LIMIT_MS = 1_500;

export interface Watched {
  readonly name: string;
  readonly host: string;
  readonly socket: string;
}

export class NodeWatch {
  readonly #samples = new Map<string, Sample[]>();
  readonly #stop = new AbortController();
  #running: Promise<unknown> | null = null;

  constructor(readonly nodes: readonly Watched[]) {
    for (const { host } of nodes) this.#samples.set(host, []);
  }

  /** By host. */
  get samples(): ReadonlyMap<string, readonly Sample[]> {
    return this.#samples;
  }

  start(): void {
    this.#running ??= Promise.all(this.nodes.map((node) => this.#watch(node)));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #watch({ host, socket }: Watched): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const askedMs = Date.now();
      // Down or stopped: there is nothing to note, and the next question comes soon.
      const reply = await askRedis({ path: socket }, ['INFO'], ANSWER_LIMIT_MS).catch(() => null);
      const sample = reply !== null && 'text' in reply ? readSample(reply.text, askedMs, Date.now()) : null;
      if (sample !== null) this.#samples.get(host)?.push(sample);
      await pause(EVERY_MS);
    }
  }
}

/** From a reply to INFO; null when it is something else. */
export function readSample(text: string, askedMs: number, answeredMs: number): Sample | null {
  const field = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1] ?? '';
  const role = field('role');
  if (role !== 'master' && role !== 'slave') return null;
  return {
    askedMs, answeredMs, role,
    runId: field('run_id'),
    replid: field('master_replid'),
    offset: Number(field('master_repl_offset')),
    replid2: field('master_replid2'),
    secondOffset: Number(field('second_repl_offset')),
  };
}
