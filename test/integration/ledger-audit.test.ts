/** The audit of a ledger can fail: what a node lacks, holds wrongly, or holds alone is counted. */
import { afterAll, expect, test } from '@jest/globals';
import { audit } from '../../bench/moves/audit.js';
import { COUNTER, Writer } from '../../bench/moves/writer.js';
import { Lab, ask } from './lab.js';

const lab = new Lab();
afterAll(() => lab.stop());

test('missing, wrong and surplus values', async () => {
  const nodes = [await lab.group(0), await lab.group(0)] as const;
  const writer = new Writer({ name: 'w', finder: { find: () => Promise.resolve(null) }, everyMs: 1 });
  writer.acknowledged.push(0, 1, 2, 70_000);
  Object.defineProperty(writer, 'sent', { value: 70_001 });
  writer.increments = 3;
  const addresses = nodes.map(({ address }) => address);
  for (const node of nodes) {
    for (const number of writer.acknowledged) await ask(node, 'SET', writer.keyOf(number), String(number));
    await ask(node, 'SET', COUNTER, '3');
  }
  expect(await audit([writer], addresses)).toEqual({ acknowledged: 4, missingValues: 0, missingIncrements: 0, differingKeys: 0 });
  await ask(nodes[0], 'DEL', writer.keyOf(70_000));
  await ask(nodes[1], 'SET', writer.keyOf(1), '8');
  await ask(nodes[1], 'SET', COUNTER, '1');
  await ask(nodes[1], 'SET', 'other', 'x');
  // Numbers 1 and 70 000, the wrong value of 1 as a text of its own, the counter, and the other key.
  expect(await audit([writer], addresses)).toEqual({ acknowledged: 4, missingValues: 2, missingIncrements: 2, differingKeys: 5 });
}, 60_000);
