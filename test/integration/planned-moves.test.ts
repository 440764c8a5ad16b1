/**
 * The bench of planned moves, shortened: there and back under load, each way, and no acknowledged write is missing on any node.
 */
import { describe, expect, test } from '@jest/globals';
import { measure } from '../../bench/moves/measure.js';

describe.each(['silent', 'coordinated', 'plain'] as const)('%s, there and back', (way) => {
  test('nothing acknowledged is missing, all nodes are equal', async () => {
    const found = await measure(way, 2);
    const { missingValues, missingIncrements, differingKeys } = found;
    expect({ missingValues, missingIncrements, differingKeys }).toEqual({ missingValues: 0, missingIncrements: 0, differingKeys: 0 });
    expect(found.acknowledged).toBeGreaterThan(500);
    // Silent: every node but the new master copies it in full; the others resynchronise partially.
    if (way === 'silent') expect(found.fullResyncs).toBeGreaterThanOrEqual(4);
    else expect(found.fullResyncs).toBe(0);
    // A number for a machine with other things to do; the bench shows the real one.
    expect(Math.max(...found.gapsMs)).toBeLessThan(5_000);
  }, 240_000);
});
