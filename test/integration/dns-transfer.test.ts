/**
 * Zone transfer as real name servers see it: dig and named-checkzone take it, BIND and Knot follow each change by NOTIFY and IXFR.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Children } from '../../src/demo/children.js';
import { startDnsListeners } from '../../src/dns/listeners.js';
import type { DnsListeners } from '../../src/dns/listeners.js';
import { TransferService } from '../../src/dns/transfer-service.js';
import { tsigKey } from '../../src/dns/tsig-key.js';
import { removeMaster, updateZone } from '../../src/dns/zone.js';
import type { Zone } from '../../src/dns/zone.js';
import { millis } from '../../src/time.js';
import { route, sampleZone } from '../unit/dns/ask.js';
import { Lab, MASTER_NAME, NAME, ask, query, waitFor } from './lab.js';
import type { LabSentinel, RedisNode } from './lab.js';
import { KEY_NAME, SECRET, SIGNED, checkZone, dig, fetchZone, firstOf, secondaryIn, startBind, startKnot, whyNotHere } from './secondary-lab.js';
import type { Secondary } from './secondary-lab.js';

const ZONE = 'redis.internal';
const lab = new Lab();
const clock = (): ReturnType<typeof millis> => millis(Date.now());
const hasBind = whyNotHere('zone transfer to BIND', 'named', 'named-checkzone', 'dig') === null;
const hasKnot = whyNotHere('zone transfer to Knot', 'knotd') === null;
const withBind = hasBind ? test : test.skip;
const withKnot = hasKnot ? test : test.skip;

afterAll(() => lab.stop());

const median = (sorted: readonly number[]): number => sorted[sorted.length >> 1] ?? NaN;

/** The real listeners and transfers over a zone that the test changes as it likes. */
class Primary {
  readonly transfers: string[] = [];
  readonly children = new Children(lab.folder);
  zone: Zone;
  listeners: DnsListeners | null = null;
  service: TransferService | null = null;

  constructor(zone: Zone) {
    this.zone = zone;
  }

  get port(): number {
    return this.listeners?.addresses[0]?.port ?? 0;
  }

  async start(notify: readonly Secondary[]): Promise<void> {
    const nothing = (): void => undefined;
    const info = (context: object, message: string): void => {
      if (message === 'dns zone transferred') this.transfers.push((context as { form: string }).form);
    };
    const log = { debug: nothing, info, warn: nothing, error: nothing };
    const settings = {
      allow: ['127.0.0.1'], notify: notify.map(({ port }) => ({ host: '127.0.0.1', port })), sources: { 4: '127.0.0.1' },
      key: tsigKey(KEY_NAME, Buffer.from(SECRET, 'base64')),
    };
    const service = new TransferService(settings, () => this.zone, clock, log);
    this.listeners = await startDnsListeners({ listen: ['127.0.0.1:0'], zone: () => this.zone, gate: () => service.gate, log });
    this.service = service;
    service.open();
  }

  change(epoch: number): void {
    const hosts = epoch % 2 === 0 ? ['10.0.0.1', '10.0.0.2'] : ['10.0.0.2', '10.0.0.1'];
    this.zone = updateZone(this.zone, route('cache', `${hosts[0]}:6379`, [`${hosts[1]}:6379`], { configEpoch: epoch }), clock());
    this.service?.changed();
  }

  async stop(): Promise<void> {
    this.service?.close();
    await this.listeners?.close();
    await this.children.endAll();
  }
}

const readyZone = (): Zone => removeMaster(sampleZone(), 'pending', clock());
const textAt = (epoch: number): string => `epoch=${epoch} phase=steady`;

/** Milliseconds from each of `count` changes to the secondary's new answer. */
async function followed(primary: Primary, secondary: Secondary, count: number, apartMs: (index: number) => number, from = 100): Promise<number[]> {
  const took: number[] = [];
  for (let index = 0; index < count; index++) {
    const epoch = from + index;
    await new Promise((done) => void setTimeout(done, apartMs(index)));
    const startMs = performance.now();
    primary.change(epoch);
    while ((await firstOf(secondary.port, `cache.${ZONE}`, 'TXT')) !== textAt(epoch)) {
      if (performance.now() - startMs > 10_000) throw new Error(`epoch ${epoch} did not arrive: ${secondary.child?.lastWords()}`);
    }
    took.push(performance.now() - startMs);
  }
  return took.sort((a, b) => a - b);
}

function tell(what: string, took: readonly number[]): void {
  const [middle, most] = [median(took), took.at(-1) ?? NaN].map((ms) => ms.toFixed(1));
  process.stderr.write(`${what}: ${took.length} changes, median ${middle} ms, longest ${most} ms from the change to the secondary's answer\n`);
}

describe('a secondary follows', () => {
  const arrives = (secondary: Secondary, epoch: number): Promise<void> =>
    waitFor(() => `first transfer; ${secondary.child?.lastWords()}`, 20_000, async () =>
      (await firstOf(secondary.port, `cache.${ZONE}`, 'TXT')) === textAt(epoch));

  withBind('BIND, within milliseconds and by differences', async () => {
    const secondary = await secondaryIn(join(lab.folder, 'bind'));
    const primary = new Primary(readyZone());
    try {
      await primary.start([secondary]);
      startBind(primary.children, secondary, ZONE, primary.port);
      await arrives(secondary, 7);
      const took = await followed(primary, secondary, 20, (index) => 100 + 20 * (index % 7));
      tell('BIND', took);
      expect(median(took)).toBeLessThan(1_000);
      expect(primary.transfers[0]).toBe('axfr');
      expect(primary.transfers.slice(1).every((form) => form === 'ixfr')).toBe(true);
    } finally {
      await primary.stop();
    }
  });

  withKnot('Knot, by differences', async () => {
    const secondary = await secondaryIn(join(lab.folder, 'knot'));
    const primary = new Primary(readyZone());
    try {
      await primary.start([secondary]);
      startKnot(primary.children, secondary, ZONE, primary.port);
      await arrives(secondary, 7);
      const took = await followed(primary, secondary, 6, () => 1_300);
      tell('Knot', took);
      expect(median(took)).toBeLessThan(2_000);
      // It waits out the second of its last refresh.
      const quick = await followed(primary, secondary, 6, () => 200, 200);
      tell('Knot, 200 ms apart', quick);
      expect(quick.at(-1)).toBeLessThan(3_000);
      expect(primary.transfers[0]).toBe('axfr');
      expect(primary.transfers.slice(1).every((form) => form === 'ixfr')).toBe(true);
    } finally {
      await primary.stop();
    }
  });

  withBind('a secondary that was away hears of it when it is back', async () => {
    const secondary = await secondaryIn(join(lab.folder, 'late'));
    const primary = new Primary(readyZone());
    try {
      await primary.start([secondary]);
      primary.change(8);
      startBind(primary.children, secondary, ZONE, primary.port);
      await arrives(secondary, 8);
      secondary.child?.kill('SIGSTOP');
      primary.change(9);
      await new Promise((done) => void setTimeout(done, 400));
      secondary.child?.kill('SIGCONT');
      await arrives(secondary, 9);
    } finally {
      await primary.stop();
    }
  });
});

describe('two agents as primaries', () => {
  const both = async (left: Primary, right: Primary, act: (secondary: Secondary) => Promise<void>): Promise<void> => {
    const secondary = await secondaryIn(join(lab.folder, `two-${Math.random()}`));
    try {
      await Promise.all([left.start([secondary]), right.start([secondary])]);
      startBind(right.children, secondary, ZONE, left.port, right.port);
      await act(secondary);
    } finally {
      await Promise.all([left.stop(), right.stop()]);
    }
  };
  const becomes = (secondary: Secondary, text: string): Promise<void> =>
    waitFor(() => `${text}; ${secondary.child?.lastWords()}`, 20_000, async () => (await firstOf(secondary.port, `cache.${ZONE}`, 'TXT')) === text);

  withBind('one is frozen, then gone: the secondary follows the other', async () => {
    const [frozen, live] = [new Primary(readyZone()), new Primary(readyZone())];
    await both(frozen, live, async (secondary) => {
      await becomes(secondary, textAt(7));
      // What an isolated agent does: it answers as before.
      live.change(20);
      await becomes(secondary, textAt(20));
      live.change(21);
      await becomes(secondary, textAt(21));
      await frozen.stop();
      live.change(22);
      await becomes(secondary, textAt(22));
    });
  });

  withBind('one serial for different contents: no difference is taken from a base that the other gave', async () => {
    const [left, right] = [new Primary(readyZone()), new Primary(readyZone())];
    const now = clock();
    const shown = (host: string, configEpoch: number, base: Zone): Zone => updateZone(base, route('cache', `${host}:6379`, ['10.0.0.9:6379'], { configEpoch }), now);
    left.zone = shown('10.0.0.1', 30, left.zone);
    right.zone = shown('10.0.0.2', 30, right.zone);
    expect(left.zone.serial).toBe(right.zone.serial);
    await both(left, right, async (secondary) => {
      await becomes(secondary, textAt(30));
      const first = await firstOf(secondary.port, `cache.${ZONE}`, 'A');
      // The one that BIND did not ask goes on; the other converges later, without a change of its own.
      const [asked, other] = first === '10.0.0.1' ? [left, right] : [right, left];
      other.change(32);
      await becomes(secondary, textAt(32));
      asked.change(32);
      expect(await firstOf(secondary.port, `cache.${ZONE}`, 'A')).toBe('10.0.0.1');
      const nodes = await Promise.all(['10-0-0-1', '10-0-0-2', '10-0-0-9'].map((ip) => firstOf(secondary.port, `n-${ip}.cache.${ZONE}`, 'A')));
      const theirs = await Promise.all(['10-0-0-1', '10-0-0-2', '10-0-0-9'].map((ip) => firstOf(other.port, `n-${ip}.cache.${ZONE}`, 'A')));
      expect(nodes).toEqual(theirs);
    });
  });
});

describe('a big zone', () => {
  withBind('goes in several messages, each signed, and named-checkzone takes it', async () => {
    let zone = readyZone();
    for (let index = 0; index < 2_000; index++) {
      const [first, second] = [1, 2].map((group) => `10.${group}.${index >> 8}.${index & 255}:6379`);
      zone = updateZone(zone, route(`m${index}`, first ?? '', [second ?? '']), clock());
    }
    const primary = new Primary(zone);
    await primary.start([]);
    try {
      const text = await fetchZone(primary.port, ZONE, ...SIGNED);
      const [, records, messages] = /XFR size: (\d+) records \(messages (\d+),/.exec(text) ?? [];
      process.stderr.write(`big zone: ${records} records in ${messages} messages\n`);
      expect(Number(messages)).toBeGreaterThan(30);
      expect(Number(records)).toBeGreaterThan(18_000);
      expect(text).not.toMatch(/could not be validated|Couldn't verify|WARNING|malformed/i);
      expect(await checkZone(lab.folder, ZONE, text)).toMatch(new RegExp(`loaded serial ${zone.serial}\\nOK`));
    } finally {
      await primary.stop();
    }
  });
});

describe('an agent', () => {
  let master: RedisNode;
  let agent: LabSentinel;
  let secondary: Secondary;

  beforeAll(async () => {
    if (!hasBind) return;
    secondary = await secondaryIn(join(lab.folder, 'agents-bind'));
    const secretFile = join(lab.folder, 'tsig.secret');
    mkdirSync(lab.folder, { recursive: true });
    writeFileSync(secretFile, `${SECRET}\n`, { mode: 0o600 });
    master = await lab.group(1);
    agent = await lab.agent(master, {
      env: {
        POINTSMAN_DNS_TRANSFER_ALLOW: '127.0.0.1', POINTSMAN_DNS_TRANSFER_NOTIFY: `127.0.0.1:${secondary.port}`,
        POINTSMAN_DNS_TRANSFER_TSIG_NAME: KEY_NAME, POINTSMAN_DNS_TRANSFER_TSIG_SECRET_FILE: secretFile,
      },
    });
    await lab.settled(master, 40_000);
    startBind(lab.children, secondary, 'redis.test', agent.dnsPort ?? 0);
  }, 90_000);

  withBind('gives its zone to those that are listed and sign', async () => {
    const port = agent.dnsPort ?? 0;
    expect(await checkZone(lab.folder, 'redis.test', await fetchZone(port, 'redis.test', ...SIGNED))).toMatch(/OK\n$/);
    expect(await dig(port, 'redis.test', 'AXFR')).toMatch(/Transfer failed/);
    expect(await dig(port, 'redis.test', 'AXFR', '-b', '127.0.0.2', ...SIGNED)).toMatch(/Transfer failed/);
    expect(await dig(port, 'example.org', 'AXFR', ...SIGNED)).toMatch(/Transfer failed/);
    const byUdp = await dig(port, 'redis.test', 'IXFR=1', '+notcp', ...SIGNED);
    expect([byUdp.match(/\sIN\s+/g)?.length, /\sSOA\s/.test(byUdp), /\(UDP\)/.test(byUdp)]).toEqual([1, true, true]);
    expect(await dig(port, NAME, 'A', ...SIGNED)).toMatch(/status: NOERROR[^]*TSIG\s+hmac-sha256\. .* NOERROR 0/);
    expect(await dig(port, NAME, 'A', '-y', `hmac-sha256:${KEY_NAME}:${Buffer.alloc(32).toString('base64')}`)).toMatch(/NOTAUTH[^]* BADSIG /);
  });

  withBind('takes BIND along through a failover', async () => {
    await waitFor(() => `BIND has the zone; ${secondary.child?.lastWords()}`, 20_000, async () => (await firstOf(secondary.port, NAME, 'A')) === master.address.host);
    expect((await ask(agent, 'SENTINEL', 'FAILOVER', MASTER_NAME)).kind).toBe('simple');
    const changed: { agent?: number; bind?: number } = {};
    await waitFor(() => `both at the new master\n${lab.logs()}`, 30_000, async () => {
      const [ours, theirs] = await Promise.all([firstOf(agent.dnsPort ?? 0, NAME, 'A'), firstOf(secondary.port, NAME, 'A')]);
      const promoted = lab.nodes[1]?.address.host;
      if (ours === promoted) changed.agent ??= performance.now();
      if (theirs === promoted) changed.bind ??= performance.now();
      return changed.agent !== undefined && changed.bind !== undefined;
    });
    process.stderr.write(`failover: BIND ${Math.round((changed.bind ?? 0) - (changed.agent ?? 0))} ms behind the agent (looked at every 15 ms)\n`);
    const log = (): string => readFileSync(agent.child.logPath, 'utf8');
    await waitFor(() => `an IXFR in the log\n${lab.logs()}`, 5_000, () => /dns zone transferred.*\bixfr\b/.test(log()));
  });

  withBind('tells BIND of the zone that a SIGHUP has made anew', async () => {
    const yaml = join(agent.folder, 'pointsman.yaml');
    writeFileSync(yaml, readFileSync(yaml, 'utf8').replace('ttl: 1s', 'ttl: 2s'));
    agent.child.kill('SIGHUP');
    const startMs = performance.now();
    const ttlAt = async (): Promise<number | undefined> => ((await query(secondary.port, NAME, 'A'))?.answers?.[0] as { ttl?: number } | undefined)?.ttl;
    await waitFor(() => `the new ttl at BIND\n${lab.logs()}`, 4_000, async () => (await ttlAt()) === 2);
    process.stderr.write(`SIGHUP: BIND has the new zone after ${Math.round(performance.now() - startMs)} ms\n`);
  });
});
