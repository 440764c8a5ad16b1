/**
 * The simulator's Redis nodes against redis-server: the same scripts, the same replies, the same INFO and ROLE in the end.
 */
import { expect, test } from '@jest/globals';
import { ModelledServers } from './redis-model/modelled-servers.js';
import { RealServers } from './redis-model/real-servers.js';
import type { Script } from './redis-model/scripts.js';
import { SCRIPTS } from './redis-model/scripts.js';
import { HELD_AFTER_MS, PATIENCE_MS, readSteps } from './redis-model/step.js';

/** Reconnects take a second each, forks on a busy machine more. */
const SETTLE_LIMIT_MS = 9_000;
const AT_ONCE = 8;

/** Runs a script on both sides; answers with the first step at which they differ. */
async function firstDifference({ name, nodes, steps }: Script): Promise<string | null> {
  const real = await RealServers.start(nodes);
  const modelled = new ModelledServers(nodes);
  try {
    for (const { line, step, settles } of readSteps(steps)) {
      const expected = await modelled.carryOut(step);
      const replied = await real.carryOut(step, expected === 'held' ? HELD_AFTER_MS : PATIENCE_MS);
      if (replied !== expected) return `${name}: ${line}\n  redis-server: ${replied}\n  model:        ${expected}`;
      if (!settles) continue;
      const wanted = await modelled.view();
      let seen = await real.view();
      for (const deadline = performance.now() + SETTLE_LIMIT_MS; seen.join('\n') !== wanted.join('\n') && performance.now() < deadline; ) {
        await new Promise((done) => void setTimeout(done, 50));
        seen = await real.view();
      }
      if (seen.join('\n') !== wanted.join('\n')) {
        const different = seen.flatMap((text, index) => (text === wanted[index] ? [] : [`  redis-server: ${text}`, `  model:        ${wanted[index]}`]));
        return [`${name}: ${line}`, ...different].join('\n');
      }
      await real.keep();
    }
    return null;
  } finally {
    await real.close();
  }
}

test('modelled nodes and redis-server do the same', async () => {
  const waiting = [...SCRIPTS];
  const differences: string[] = [];
  const work = async (): Promise<void> => {
    for (let script = waiting.shift(); script !== undefined; script = waiting.shift()) {
      const difference = await firstDifference(script);
      if (difference !== null) differences.push(difference);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  expect(differences.join('\n\n')).toBe('');
}, 180_000);
