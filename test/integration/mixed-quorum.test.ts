/**
 * One quorum of ours and stock sentinels: they find each other, vote for each other, and agree.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { masterNamedBy } from '../../src/demo/agreement.js';
import { Lab, MASTER_NAME, NAME, answerOf, ask, fieldsOf, textsOf, waitFor } from './lab.js';

const FAILOVER_LIMIT_MS = 40_000;
let lab: Lab | null = null;

afterEach(async () => {
  await lab?.stop();
  lab = null;
});

describe.each([
  ['two of ours and one stock', ['ours', 'ours', 'stock']],
  ['one of ours and two stock', ['ours', 'stock', 'stock']],
])('%s', (_title, kinds) => {
  test('fail over together', async () => {
    lab = new Lab();
    const master = await lab.group(2);
    for (const kind of kinds) await (kind === 'ours' ? lab.agent(master) : lab.stock(master));
    await lab.settled(master, 40_000);

    master.child.kill('SIGKILL');
    const { sentinels } = lab;
    let named: string[] = [];
    await waitFor(() => `one new master, not ${named.join(' ')}\n${lab?.logs()}`, FAILOVER_LIMIT_MS, async () => {
      named = await Promise.all(sentinels.map(async ({ address, dnsPort }) => {
        const { host } = await masterNamedBy(address);
        return dnsPort === null ? host : `${host} ${await answerOf(dnsPort, NAME, 'A')}`;
      }));
      const hosts = new Set(named.flatMap((text) => text.split(' ')));
      return hosts.size === 1 && !hosts.has(master.address.host);
    });
    const promoted = lab.nodes.find(({ address }) => named[0]?.startsWith(address.host))!;
    expect(textsOf(await ask(promoted, 'ROLE'))[0]).toBe('master');

    const follower = lab.nodes.find((node) => node !== master && node !== promoted)!;
    await waitFor(() => `${follower.name} following ${promoted.name}\n${lab?.logs()}`, FAILOVER_LIMIT_MS, async () => {
      const [role, host] = textsOf(await ask(follower, 'ROLE'));
      return role === 'slave' && host === promoted.address.host;
    });
    const epochs = await Promise.all(sentinels.map(async (each) => {
      return fieldsOf(await ask(each, 'SENTINEL', 'MASTER', MASTER_NAME)).get('config-epoch');
    }));
    expect(new Set(epochs).size).toBe(1);
    expect(Number(epochs[0])).toBeGreaterThan(0);
  }, 150_000);
});
