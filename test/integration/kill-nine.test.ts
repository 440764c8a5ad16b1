/**
 * SIGKILL at random moments while failovers run: the agent always starts again, and what it has voted for and adopted never falls.
 *
 * 30 kills; KILLS=100 for more. The moments are drawn from SEED, printed when something fails.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { must } from '../../src/assert.js';
import { masterNamedBy } from '../../src/demo/agreement.js';
import { createPrng, nextBelow } from '../../src/prng.js';
import { readConfFile } from '../../src/sentinel/runtime/conf-file.js';
import type { LabSentinel, RedisNode } from './lab.js';
import { Lab, MASTER_NAME, ask, textOf, textsOf, waitFor } from './lab.js';

const KILLS = Number(process.env['KILLS'] ?? 30);
const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 1e9));
/** Longer than down-after: the master is taken for dead, and lives again as a replica of another. */
const FREEZE_SECONDS = '1.2';
const lab = new Lab();
const prng = createPrng(SEED);
let master: RedisNode;

beforeAll(async () => {
  master = await lab.group(2, ['--enable-debug-command', 'yes']);
  const spec = { downAfterMs: 500, lines: [`sentinel failover-timeout ${MASTER_NAME} 1500`] };
  for (let index = 0; index < 3; index++) await lab.dropIn(master, spec);
  await lab.settled(master, 40_000);
}, 90_000);

afterAll(() => lab.stop());

interface Epochs {
  readonly current: number;
  readonly config: number;
  readonly leader: number;
}

/** The file as it lies; a file that would not load fails here. */
function epochsOf(sentinel: LabSentinel): Epochs & { readonly id: string | null } {
  const { conf, faults } = readConfFile(sentinel.conf);
  expect(faults).toEqual([]);
  const group = must(conf.masters[0], 'a monitored master');
  return { id: conf.globals.myId, current: conf.globals.currentEpoch, config: group.configEpoch, leader: group.leaderEpoch };
}

/** The highest epoch in which it has said that it votes, by its own log. */
function highestVote(sentinel: LabSentinel): number {
  const log = readFileSync(sentinel.child.logPath, 'utf8');
  return Math.max(0, ...[...log.matchAll(/\+vote-for-leader [0-9a-f]{40} (\d+)$/gm)].map((match) => Number(match[1])));
}

async function currentMaster(): Promise<RedisNode> {
  let found: RedisNode | undefined;
  await waitFor(() => `a master that says so, seed ${SEED}\n${lab.logs()}`, 60_000, async () => {
    for (const sentinel of lab.sentinels) {
      const named = await masterNamedBy(sentinel.address).catch(() => null);
      found = lab.nodes.find(({ address }) => address.host === named?.host);
      const role = found === undefined ? '' : await ask(found, 'ROLE').then((reply) => textsOf(reply)[0], () => '');
      if (role === 'master') return true;
    }
    return false;
  });
  return must(found, 'a master');
}

test(`${KILLS} kills, seed ${SEED}`, async () => {
  const lowest = new Map<LabSentinel, ReturnType<typeof epochsOf>>(lab.sentinels.map((each) => [each, epochsOf(each)]));
  for (let round = 1; round <= KILLS; round++) {
    const frozen = await currentMaster();
    // It answers once it is awake again, or its connections are gone by then.
    void ask(frozen, 'DEBUG', 'SLEEP', FREEZE_SECONDS).catch(() => undefined);
    const momentMs = performance.now() + nextBelow(prng, 1500);
    await waitFor('the moment', 5000, () => performance.now() >= momentMs);
    const victim = must(lab.sentinels[nextBelow(prng, lab.sentinels.length)], 'a victim');
    victim.child.kill('SIGKILL');
    await waitFor(`the end of ${victim.name}`, 10_000, () => victim.child.status !== null);

    const before = must(lowest.get(victim), 'its last epochs');
    const after = epochsOf(victim);
    expect(after.id).toBe(before.id);
    for (const field of ['current', 'config', 'leader'] as const) expect(after[field]).toBeGreaterThanOrEqual(before[field]);
    // What it said aloud was on disk before.
    expect(after.leader).toBeGreaterThanOrEqual(highestVote(victim));
    lowest.set(victim, after);

    await lab.restartSentinel(victim);
    expect(textOf(await ask(victim, 'SENTINEL', 'MYID'))).toBe(before.id);
  }
  expect(Math.max(...[...lowest.values()].map(({ config }) => config))).toBeGreaterThan(KILLS / 10);
  master = await currentMaster();
  await lab.settled(master, 90_000);
}, KILLS * 20_000 + 120_000);
