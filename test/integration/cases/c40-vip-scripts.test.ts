/**
 * C40: the VIP script that everybody has copied from everybody, unchanged as client-reconfig-script under agents that have two
 * capabilities and no sudo; and our own mover beside it, back and forth in a few seconds.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitFor } from '../lab.js';
import { whyNoNetwork } from '../netns-lab.js';
import { CACHE, SENTINEL_PORT, VipLab } from '../vip-lab.js';

const reason = whyNoNetwork();
if (reason !== null) process.stderr.write(`skipped: C40, VIP scripts in namespaces: ${reason}\n`);
const testHere = reason === null ? test : test.skip;

/** The common shape: first interface address, one kind of ARP, the subnet's prefix, nothing read back. */
const COPIED = `#!/bin/bash
echo "$@" >> "$CALLS"
MASTER_IP=\${6}
VIP=10.77.0.150
IF=eth0
MY_IP=$(ip -4 -o addr show dev $IF | awk '{print $4}' | cut -d/ -f1 | head -1)
if [ "$MASTER_IP" = "$MY_IP" ]; then
  ip addr add $VIP/24 dev $IF
  arping -q -c 3 -A $VIP -I $IF
  exit 0
else
  ip addr del $VIP/24 dev $IF
  exit 0
fi
exit 1
`;

describe('the copied script under our agent', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-c40-'));
  const script = join(folder, 'vip.sh');
  let lab: VipLab;
  beforeAll(async () => {
    if (reason !== null) return;
    chmodSync(folder, 0o777);
    writeFileSync(script, COPIED.replace('$CALLS', `${folder}/calls`), { mode: 0o755 });
    chmodSync(script, 0o755);
    lab = new VipLab({ withVips: false, conf: [`sentinel client-reconfig-script cache ${script}`] });
    await lab.start();
    await lab.ready(CACHE, lab.host(1));
  });
  afterAll(async () => {
    if (reason === null) await lab.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  testHere("gets stock's seven words on each host, moves the address without sudo, and works as under stock", async () => {
    expect(await lab.ask(lab.host(1), SENTINEL_PORT, 'sentinel', 'failover', 'cache')).toBe('OK');
    const read = (): string[] => (existsSync(`${folder}/calls`) ? readFileSync(`${folder}/calls`, 'utf8').trim().split('\n').sort() : []);
    await waitFor(() => `three calls\n${lab.logs()}`, 30_000, () => read().length === 3);
    const calls = read();
    const to = calls[0]?.split(' ')[5] ?? '';
    expect(calls.map((call) => call.replace(/^cache (leader|observer) /, ''))).toEqual(Array(3).fill(`start 10.77.0.1 6379 ${to} 6379`));
    expect(calls.filter((call) => call.startsWith('cache leader'))).toHaveLength(1);
    const next = lab.network.hosts.find(({ ip }) => ip === to);
    await waitFor('the address on the new host', 10_000, async () => (await lab.network.holders('10.77.0.150')).join() === [next].join());
  });

  testHere('one that needs sudo where there is none is given up, and said so', async () => {
    await lab.ready(CACHE, (await lab.masterOf(CACHE)) ?? lab.host(1));
    writeFileSync(script, COPIED.replace('$CALLS', `${folder}/calls`).replace(/^ {2}ip addr.*$/gm, '  no-such-sudo ip addr add || exit 127'));
    const master = (await lab.masterOf(CACHE)) ?? lab.host(1);
    expect(await lab.ask(master, SENTINEL_PORT, 'sentinel', 'failover', 'cache')).toBe('OK');
    await waitFor(() => `a word about it\n${lab.logs()}`, 30_000, () => /-script-error.* 127/.test(lab.logs(40)) && lab.logs(40).includes('gave up: exit code 127'));
  });
});

describe('our mover', () => {
  let lab: VipLab;
  beforeAll(async () => {
    if (reason !== null) return;
    lab = new VipLab();
    await lab.start();
    await lab.ready(CACHE, lab.host(1));
    await waitFor('the vips', 20_000, async () => (await lab.holderOf(CACHE)) === lab.host(1));
  });
  afterAll(async () => { if (reason === null) await lab.stop(); });

  testHere('there and back: one holder in the end, never two for more than 2 s, whatever other addresses look like it', async () => {
    // An address that begins with the VIP's digits, and one before the host's own.
    await lab.host(1).ipCommand('addr replace 10.77.0.10/32 dev eth0');
    await lab.host(2).ipCommand('addr replace 10.77.0.10/32 dev lo');
    let twoSinceMs: number | null = null;
    let longestMs = 0;
    let isWatched = true;
    const watching = (async () => {
      while (isWatched) {
        const isTwo = (await lab.network.holders('10.77.0.100')).length > 1;
        twoSinceMs = isTwo ? (twoSinceMs ?? Date.now()) : null;
        if (twoSinceMs !== null) longestMs = Math.max(longestMs, Date.now() - twoSinceMs);
      }
    })();
    const target = `${lab.host(2).ip}:${CACHE.port}`;
    const move = (phase: string): Promise<string> => lab.ask(lab.host(1), SENTINEL_PORT, 'sentinel', 'silent-failover', 'cache', target, phase);
    try {
      const startMs = Date.now();
      for (const phase of ['prepare', 'abort']) {
        let reply = '';
        await waitFor(() => `${phase}: ${reply}\n${lab.logs()}`, 30_000, async () => (reply = await move(phase)) === 'OK');
      }
      await waitFor(() => `home again\n${lab.logs()}`, 10_000, async () => (await lab.holderOf(CACHE)) === lab.host(1));
      await lab.reached(CACHE, lab.host(1), startMs, 10_000);
    } finally {
      isWatched = false;
      await watching;
    }
    expect(longestMs).toBeLessThan(2_000);
    expect([await lab.host(1).has('10.77.0.10'), (await lab.network.holders('10.77.0.100')).length]).toEqual([true, 1]);
  });
});
