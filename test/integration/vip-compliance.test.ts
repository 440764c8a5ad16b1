/**
 * The suite that every publisher passes, for the VIP: three publishers, each on a host of its own, as three agents would have them;
 * and what one of them does on its host: exact addresses, no source address, survivors of other removals, taken addresses.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Published, Publisher } from '../../src/publishers/publisher.js';
import type { VipSettings } from '../../src/publishers/vip/settings.js';
import { VipPublisher } from '../../src/publishers/vip/vip-publisher.js';
import type { Route } from '../../src/route/route.js';
import { publisherCompliance } from '../unit/publishers/compliance.js';
import { A, B, C, captureLog, routeOf, waitFor } from '../unit/publishers/routes.js';
import { Network, whyNoNetwork } from './netns-lab.js';
import type { Host } from './netns-lab.js';

const reason = whyNoNetwork();
if (reason !== null) process.stderr.write(`skipped: VIPs as a publisher: ${reason}\n`);
const testHere = reason === null ? test : test.skip;
/** What each of the three hosts is known by in Routes. */
const OWN = [A.host, B.host, C.host];
const VIPS: readonly VipSettings[] = ['cache', 'other'].map((master, index) => ({
  master, ip: `10.0.0.${100 + index}`, prefix: 32, interface: 'eth0', whenIsolated: 'release', label: null, dad: false,
}));

/** `ip` that notes each line it is given, and waits with it while a file is there. */
function watchedIp(folder: string): string {
  const path = join(folder, 'ip.sh');
  const relay = `while IFS= read -r line <&3; do while [ -e "${folder}/stalled" ]; do sleep 0.02; done; echo "$line" >> "${folder}/lines"; printf '%s\\n' "$line"; done`;
  writeFileSync(path, ['#!/bin/bash', 'exec 3<&0', `exec ip "$@" < <(${relay})`, ''].join('\n'), { mode: 0o755 });
  return path;
}

function publisherOn(host: Host, ip: string, more: { vips?: readonly VipSettings[]; isFenced?: () => boolean } = {}): VipPublisher {
  return new VipPublisher({
    vips: more.vips ?? VIPS, isKnownDown: () => true, isFenced: more.isFenced ?? (() => false), wake: () => undefined, log: captureLog().log,
    programs: { ip: [...host.wrap, ip], arping: [...host.wrap, 'arping'], ndptool: [...host.wrap, 'ndptool'] },
  });
}

/** All hosts' publishers as one, so that "where are clients sent" has an answer. */
class AllHosts implements Publisher {
  readonly name = 'vip';
  readonly deadlineMs: number;
  readonly wantsUntrusted = true;

  constructor(readonly each: readonly VipPublisher[]) {
    this.deadlineMs = each[0]?.deadlineMs ?? 0;
  }

  async apply(route: Route, signal: AbortSignal): Promise<Published> {
    const results = await Promise.allSettled(this.each.map((publisher) => publisher.apply(route, signal)));
    const done = results.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
    return { order: Math.max(...done.map(({ order }) => order)), detail: done.map(({ detail }) => detail).join('; ') };
  }

  forceNext(master: string): void {
    for (const publisher of this.each) publisher.forceNext(master);
  }

  async forget(master: string): Promise<void> {
    await Promise.all(this.each.map((publisher) => publisher.forget(master)));
  }

  async close(): Promise<void> {
    await Promise.all(this.each.map((publisher) => publisher.close()));
  }
}

let network: Network;
const suite = (): void => {
  beforeAll(() => {
    if (reason !== null) return;
    network = Network.open(3, ({ number }) => [number === 3 ? `${C.host}/64` : `10.0.0.${number}/24`]);
  });
  afterAll(() => { if (reason === null) network.close(); });
};

describe('three hosts', () => {
  suite();
  if (reason === null) publisherCompliance('vip', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pointsman-vip-'));
    const ip = watchedIp(folder);
    const make = (): AllHosts => new AllHosts(network.hosts.map((host) => publisherOn(host, ip)));
    return {
      publisher: make(),
      seen: async (master) => {
        const holders = await network.holders(VIPS.find((vip) => vip.master === master)?.ip ?? '');
        expect(holders.length).toBeLessThan(2);
        return [A, B, C].find(({ host }) => host === OWN[(holders[0]?.number ?? 0) - 1]) ?? null;
      },
      writes: async () => (existsSync(join(folder, 'lines')) ? readFileSync(join(folder, 'lines'), 'utf8').match(/^addr (add|del)/gm)?.length ?? 0 : 0),
      stall: async () => {
        writeFileSync(join(folder, 'stalled'), '');
        return async () => rmSync(join(folder, 'stalled'));
      },
      whenIsolated: 'lets-go',
      restart: async () => make(),
      dispose: async () => rmSync(folder, { recursive: true, force: true }),
    };
  });
});

describe('one host', () => {
  suite();
  const signal = (): AbortSignal => new AbortController().signal;
  const vip = (change: Partial<VipSettings>): VipSettings => ({ ...(VIPS[0] as VipSettings), ...change });
  const host = (): Host => network.hosts[0] as Host;
  const here = routeOf({ primary: A });
  const elsewhere = routeOf({ primary: B, previous: A, configEpoch: 6 });

  async function withVip(change: Partial<VipSettings>, use: (publisher: VipPublisher) => Promise<void>, isFenced = (): boolean => false): Promise<void> {
    const publisher = publisherOn(host(), 'ip', { vips: [vip(change)], isFenced });
    try {
      await use(publisher);
    } finally {
      await publisher.close();
    }
  }

  testHere('an address that begins with the same digits is another one, and stays', async () => {
    await host().ipCommand('addr add 10.0.0.10/32 dev eth0');
    await withVip({}, async (publisher) => {
      await publisher.apply(here, signal());
      await publisher.apply(elsewhere, signal());
      expect(await host().has('10.0.0.10')).toBe(true);
      expect(await host().has('10.0.0.100')).toBe(false);
    });
    await withVip({ ip: '10.0.0.10' }, async (publisher) => {
      expect((await publisher.apply(here, signal())).detail).toBe('10.0.0.10/32 on eth0 is here');
      await publisher.apply(elsewhere, signal());
      expect([await host().has('10.0.0.10'), await host().has('10.0.0.1')]).toEqual([false, true]);
    });
  });

  testHere("survives the removal of the host's own address, and that survives the VIP's", async () => {
    await withVip({}, async (publisher) => {
      await publisher.apply(here, signal());
      await host().ipCommand('addr del 10.0.0.1/24 dev eth0');
      expect(await host().has('10.0.0.100')).toBe(true);
      await host().ipCommand('addr add 10.0.0.1/24 dev eth0');
      await publisher.apply(elsewhere, signal());
      expect([await host().has('10.0.0.100'), await host().has('10.0.0.1')]).toEqual([false, true]);
    });
  });

  testHere('neither the IPv4 nor the IPv6 VIP becomes a source address', async () => {
    await host().ipCommand('addr add 2001:db8::1/64 dev eth0 nodad');
    for (const [ip, prefix, target, own] of [['10.0.0.100', 32, '10.0.0.2', '10.0.0.1'], ['2001:db8::99', 128, C.host, '2001:db8::1']] as const) {
      await withVip({ ip, prefix }, async (publisher) => {
        await publisher.apply(here, signal());
        const row = (await host().addresses()).find(({ local }) => local === ip);
        // 0 = never preferred; IPv4 has no such word, its place in the list decides.
        expect(row?.preferred_life_time).toBe(ip.includes(':') ? 0 : 4294967295);
        expect(await host().sh('ip', 'route', 'get', target)).toContain(`src ${own} `);
      });
    }
  });

  testHere('carries its label, and is left alone by who is not confirmed, let go by who is fenced', async () => {
    let fenced = false;
    await withVip({ label: 'vip' }, async (publisher) => {
      await publisher.apply(here, signal());
      expect((await host().addresses()).find(({ local }) => local === '10.0.0.100')?.label).toBe('eth0:vip');
      expect((await publisher.apply(routeOf({ primary: B, confirmed: false }), signal())).detail).toContain('left as it is: not confirmed yet');
      expect(await host().has('10.0.0.100')).toBe(true);
      fenced = true;
      expect((await publisher.apply(here, signal())).detail).toContain('fenced by a higher order');
      expect(await host().has('10.0.0.100')).toBe(false);
    }, () => fenced);
  });

  testHere('when-isolated: keep holds on to it, and announces it after the heal', async () => {
    await withVip({ whenIsolated: 'keep' }, async (publisher) => {
      await publisher.apply(here, signal());
      await publisher.apply(routeOf({ primary: A, trusted: false }), signal());
      expect(await host().has('10.0.0.100')).toBe(true);
      const mac = await host().hardwareAddress();
      await network.client.ipCommand('addr replace 10.0.0.200/24 dev eth0');
      // An entry that is there is what a gratuitous ARP corrects.
      await network.client.ipCommand('neigh replace 10.0.0.100 lladdr 02:00:00:00:00:99 dev eth0 nud stale');
      await publisher.apply(here, signal());
      await waitFor(async () => (await network.client.neighbour('10.0.0.100')) === mac, 'the neighbour to be told', 15_000);
    });
  });

  testHere('is announced both ways at 0, 1, 3 and 10 s, and anew after a heal', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pointsman-arping-'));
    const arping = join(folder, 'arping.sh');
    writeFileSync(arping, `#!/bin/bash\necho "$(date +%s%3N) $*" >> ${folder}/calls\nexec arping "$@"\n`, { mode: 0o755 });
    const calls = (): [number, string][] => (existsSync(join(folder, 'calls')) ? readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n') : [])
      .map((line) => [Number(line.split(' ')[0]), line.slice(line.indexOf(' ') + 1)]);
    const publisher = new VipPublisher({
      vips: [vip({ whenIsolated: 'keep' })], isKnownDown: () => true, isFenced: () => false, wake: () => undefined, log: captureLog().log,
      programs: { ip: [...host().wrap, 'ip'], arping: [...host().wrap, arping], ndptool: null },
    });
    await publisher.apply(here, signal());
    await waitFor(() => calls().length >= 8, 'eight announcements', 20_000);
    const startMs = calls()[0]?.[0] ?? 0;
    for (const kind of ['-U', '-A']) {
      const at = calls().filter(([, words]) => words === `-q -c 1 ${kind} -I eth0 10.0.0.100`).map(([ms]) => ms - startMs);
      expect(at).toHaveLength(4);
      // The machine may be slow, never early.
      [0, 900, 2_900, 9_900].forEach((dueMs, index) => expect(at[index]).toBeGreaterThanOrEqual(dueMs));
    }
    await publisher.apply(routeOf({ primary: A, trusted: false }), signal());
    await publisher.apply(here, signal());
    await waitFor(() => calls().length >= 10, 'the announcement after the heal', 10_000);
    await publisher.close();
    rmSync(folder, { recursive: true, force: true });
  });

  testHere('dad: an address that somebody has is not taken, a free one is', async () => {
    const other = network.hosts[1] as Host;
    await other.ipCommand('addr add 10.0.0.100/32 dev eth0');
    await withVip({ dad: true }, async (publisher) => {
      await expect(publisher.apply(here, signal())).rejects.toThrow('in use by another host');
      expect(await host().has('10.0.0.100')).toBe(false);
      await other.ipCommand('addr del 10.0.0.100/32 dev eth0');
      await publisher.apply(here, signal());
      expect(await host().has('10.0.0.100')).toBe(true);
    });
  });

  testHere('says what is wrong: no such interface, no right', async () => {
    await withVip({ interface: 'eth7' }, async (publisher) => {
      await expect(publisher.apply(here, signal())).rejects.toThrow('vip 10.0.0.100: there is no interface eth7');
    });
    const powerless = new VipPublisher({
      vips: VIPS, isKnownDown: () => true, isFenced: () => false, wake: () => undefined, log: captureLog().log,
      programs: { ip: [...host().wrap, 'setpriv', '--reuid', '65534', '--clear-groups', '--bounding-set', '-all', 'ip'], arping: null, ndptool: null },
    });
    await expect(powerless.apply(here, signal())).rejects.toThrow('vip 10.0.0.100 cannot be added to eth0: RTNETLINK answers: Operation not permitted');
    await powerless.close();
  });
});
