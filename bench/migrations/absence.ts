/**
 * Which replicas are of no use while they copy: asked twenty times a second, since a node that loads a copy answers nothing else.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, textOf, type RedisNode } from '../../test/integration/lab.js';

const LOOK_EVERY_MS = 50;

export interface Absences {
  /** Replicas that copied at one time. One whose master was promoted is without a link for up to a second, too, and does not copy. */
  readonly mostCopying: number;
  /** Each stretch of absence of a node, ms. */
  readonly stretchesMs: readonly number[];
}

/** A node that drops its old data before a copy says nothing for a while: then what it said last stands. */
function isCopying(info: string, before: boolean): boolean {
  return info === '' ? before : /master_sync_in_progress:1|loading:1/.test(info);
}

const isAbsent = (info: string): boolean => !/role:master/.test(info) && !/master_link_status:up/.test(info);

/** Looks until `stop` is called. */
export function watchAbsences(nodes: readonly RedisNode[]): { stop(): Promise<Absences> } {
  const since = new Map<RedisNode, number>();
  const stretchesMs: number[] = [];
  const copying = new Map<RedisNode, boolean>();
  let mostCopying = 0;
  let isStopped = false;
  const watch = async (): Promise<void> => {
    while (!isStopped) {
      const infos = await Promise.all(nodes.map((node) => ask(node, 'INFO').then(textOf).catch(() => '')));
      const nowMs = performance.now();
      const absent = infos.map(isAbsent);
      nodes.forEach((node, index) => copying.set(node, isCopying(infos[index] ?? '', copying.get(node) ?? false)));
      mostCopying = Math.max(mostCopying, [...copying.values()].filter(Boolean).length);
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
      return { mostCopying, stretchesMs };
    },
  };
}
