/**
 * Which replicas are of no use while they copy: asked twenty times a second, since a node that loads a copy answers nothing else.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, textOf, type RedisNode } from '../../test/integration/lab.js';

const LOOK_EVERY_MS = 50;

export interface Absences {
  /** Replicas without a link, or without an answer, at one time. */
  readonly most: number;
  /** Each stretch of absence of a node, ms. */
  readonly stretchesMs: readonly number[];
}

async function isAbsent(node: RedisNode): Promise<boolean> {
  const info = await ask(node, 'INFO', 'replication').then(textOf).catch(() => '');
  return !/^role:master|\nrole:master/.test(info) && !/master_link_status:up/.test(info);
}

/** Looks until `stop` is called. */
export function watchAbsences(nodes: readonly RedisNode[]): { stop(): Promise<Absences> } {
  const since = new Map<RedisNode, number>();
  const stretchesMs: number[] = [];
  let most = 0;
  let isStopped = false;
  const watch = async (): Promise<void> => {
    while (!isStopped) {
      const absent = await Promise.all(nodes.map(isAbsent));
      const nowMs = performance.now();
      most = Math.max(most, absent.filter(Boolean).length);
      nodes.forEach((node, index) => {
        const startMs = since.get(node);
        if (absent[index] === true && startMs === undefined) since.set(node, nowMs);
        if (absent[index] !== true && startMs !== undefined) {
          stretchesMs.push(nowMs - startMs);
          since.delete(node);
        }
      });
      await sleep(LOOK_EVERY_MS);
    }
  };
  const watching = watch();
  return {
    async stop() {
      isStopped = true;
      await watching;
      return { most, stretchesMs };
    },
  };
}
