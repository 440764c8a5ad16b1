/**
 * One quorum of ours and stock sentinels: they find each other, vote for each other, and agree, whichever kind leads.
 *
 * Who leads is decided by quorum: a sentinel that wants more agreement than there are sentinels never sees ODOWN and never stands
 * for election, but votes.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { must } from '../../src/assert.js';
import { masterNamedBy } from '../../src/demo/agreement.js';
import type { LabSentinel, RedisNode } from './lab.js';
import { Lab, MASTER_NAME, NAME, answerOf, ask, fieldsOf, textOf, textsOf, roleOf, waitFor } from './lab.js';

const LIMIT_MS = 60_000;
type Kind = LabSentinel['kind'];
let lab = new Lab();

afterEach(async () => {
  await lab.stop();
  lab = new Lab();
});

/** Starts the group and lets only sentinels of `leading` (null: all) stand for election. */
async function mixedGroup(kinds: readonly Kind[], leading: Kind | null): Promise<RedisNode> {
  const master = await lab.group(2);
  // With 1000 stock may take the new master for dead at once: it tries to connect once per second (docs/drop-in.md).
  for (const kind of kinds) await (kind === 'ours' ? lab.agent(master, { downAfterMs: 2000 }) : lab.stock(master, { downAfterMs: 2000 }));
  await lab.settled(master, LIMIT_MS);
  for (const sentinel of lab.sentinels.filter(({ kind }) => leading !== null && kind !== leading)) {
    expect(textOf(await ask(sentinel, 'SENTINEL', 'SET', MASTER_NAME, 'quorum', '4'))).toBe('OK');
  }
  return master;
}

/** Waits until all name one new master, by the protocol and where they can by DNS; that one. */
async function agreedOtherThan(old: RedisNode): Promise<RedisNode> {
  let named: string[] = [];
  await waitFor(() => `one new master, not ${named.join(' ')}\n${lab.logs()}`, LIMIT_MS, async () => {
    named = await Promise.all(lab.sentinels.map(async ({ address, dnsPort }) => {
      const { host } = await masterNamedBy(address);
      return dnsPort === null ? host : `${host} ${await answerOf(dnsPort, NAME, 'A')}`;
    }));
    const hosts = new Set(named.flatMap((text) => text.split(' ')));
    return hosts.size === 1 && !hosts.has(old.address.host);
  });
  return must(lab.nodes.find(({ address }) => named[0]?.startsWith(address.host)), 'a node of the lab');
}

async function follows(node: RedisNode, master: RedisNode): Promise<void> {
  await waitFor(() => `${node.name} following ${master.name}\n${lab.logs()}`, LIMIT_MS, async () => {
    const [role, host, , link] = await roleOf(node);
    return role === 'slave' && host === master.address.host && link === 'connected';
  });
}

const hasLed = ({ child }: LabSentinel): boolean => readFileSync(child.logPath, 'utf8').includes('+elected-leader');

describe.each([
  ['two of ours and one stock', ['ours', 'ours', 'stock']],
  ['one of ours and two stock', ['ours', 'stock', 'stock']],
] as const)('%s', (_title, kinds) => {
  test.each([[null], ['ours'], ['stock']] as const)('fail over together; leading: %s', async (leading) => {
    const master = await mixedGroup(kinds, leading);
    master.child.kill('SIGKILL');
    const promoted = await agreedOtherThan(master);
    expect(textsOf(await ask(promoted, 'ROLE'))[0]).toBe('master');
    for (const node of lab.nodes.filter((each) => each !== master && each !== promoted)) await follows(node, promoted);

    const leaders = lab.sentinels.filter(hasLed);
    expect(leaders.length).toBeGreaterThan(0);
    if (leading !== null) expect(new Set(leaders.map(({ kind }) => kind))).toEqual(new Set([leading]));
    const epochs = await Promise.all(lab.sentinels.map(async (each) => {
      return fieldsOf(await ask(each, 'SENTINEL', 'MASTER', MASTER_NAME)).get('config-epoch');
    }));
    expect(new Set(epochs).size).toBe(1);
    expect(Number(epochs[0])).toBeGreaterThan(0);

    // The old master comes back as one and is made a replica.
    await lab.restartRedis(master);
    await follows(master, promoted);
    await lab.settled(promoted, LIMIT_MS);
  }, 240_000);
});
