/**
 * VIPs on three hosts with real servers: the holder moves with the master in crashes, planned and silent moves, the client on the
 * bridge follows by its neighbour table, and nobody who should have let go holds on. Agents have two capabilities and no more.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { waitFor } from './lab.js';
import { whyNoNetwork } from './netns-lab.js';
import type { Host } from './netns-lab.js';
import { CACHE, SENTINEL_PORT, SESSIONS, VipLab } from './vip-lab.js';
import type { Group } from './vip-lab.js';

const reason = whyNoNetwork();
if (reason !== null) process.stderr.write(`skipped: VIPs between hosts: ${reason}\n`);
const testHere = reason === null ? test : test.skip;

let lab: VipLab;
let home: Host;

/** Every VIP of the group on `host` alone, the client writing there. */
async function arrived(group: Group, host: Host, sinceMs: number, limitMs = 20_000): Promise<void> {
  await waitFor(() => `the vips of ${group.name} on host ${host.number} alone\n${lab.logs()}`, limitMs, async () => (await lab.holderOf(group)) === host);
  await lab.reached(group, host, sinceMs, limitMs);
}

/** The agents name a host other than `old`. */
async function elected(group: Group, old: Host, agents = lab.network.hosts, limitMs = 30_000): Promise<Host> {
  let found: Host | null = null;
  await waitFor(() => `another master of ${group.name} than host ${old.number}\n${lab.logs()}`, limitMs, async () => {
    found = await lab.masterOf(group, agents);
    return found !== null && found !== old;
  });
  return found as unknown as Host;
}

/** Where the group is at home now, all settled there: each test begins so, whatever became of the one before. */
async function settledHome(): Promise<Host> {
  for (const host of lab.network.hosts) {
    if (lab.agentOf(host).status !== null) lab.startAgent(host);
    if (lab.redisOf(host, CACHE).status !== null) lab.startRedis(host, CACHE, null);
    lab.agentOf(host).kill('SIGCONT');
  }
  let found: Host | null = null;
  await waitFor(() => `agents that agree\n${lab.logs()}`, 40_000, async () => (found = await lab.masterOf(CACHE)) !== null);
  await lab.ready(CACHE, found as unknown as Host);
  await arrived(CACHE, found as unknown as Host, Date.now());
  return found as unknown as Host;
}

const others = (host: Host): Host[] => lab.network.hosts.filter((each) => each !== host);

describe('three hosts, two masters', () => {
  beforeAll(async () => {
    if (reason !== null) return;
    lab = new VipLab();
    await lab.start();
    for (const group of [CACHE, SESSIONS]) {
      home = lab.host(group === CACHE ? 1 : 2);
      await lab.ready(group, home);
      await arrived(group, home, 0);
    }
    home = lab.host(1);
  });
  afterAll(async () => { if (reason === null) await lab.stop(); });

  testHere('the agents run without root: two capabilities, and what arping carries works with them', () => {
    const status = readFileSync(`/proc/${lab.agentOf(home).pid}/status`, 'utf8');
    expect(status).toMatch(/^Uid:\s+65534\s+65534/m);
    expect(['CapEff', 'CapPrm', 'CapBnd'].map((name) => new RegExp(`^${name}:\\s+(\\w+)$`, 'm').exec(status)?.[1])).toEqual(Array(3).fill('0000000000003000'));
  }, 150_000);

  testHere('each master has its VIPs on its own host, IPv6 never as a source', async () => {
    expect(await lab.holderOf(SESSIONS)).toBe(lab.host(2));
    expect(await home.sh('ip', 'route', 'get', lab.client.ip6)).toContain(`src ${home.ip6} `);
    expect((await home.addresses()).find(({ local }) => local === 'fd77::100')).toMatchObject({ prefixlen: 128, preferred_life_time: 0 });
    expect(await lab.client.neighbour('10.77.0.100')).toBe(await home.hardwareAddress());
  }, 150_000);

  testHere('a planned move takes them along', async () => {
    home = await settledHome();
    const sinceMs = Date.now();
    expect(await lab.ask(home, SENTINEL_PORT, 'sentinel', 'failover', 'cache')).toBe('OK');
    const next = await elected(CACHE, home);
    await arrived(CACHE, next, sinceMs);
    expect(await lab.client.neighbour('10.77.0.100')).toBe(await next.hardwareAddress());
    expect(lab.gapMs('10.77.0.100', CACHE.port, next, sinceMs)).toBeLessThan(5_000);
    expect(await lab.holderOf(SESSIONS)).toBe(lab.host(2));
    await lab.ready(CACHE, next);
    home = next;
  }, 150_000);

  testHere('a silent move: to the target at prepare, back at abort, and done leaves them there', async () => {
    home = await settledHome();
    const [dropped, target] = others(home) as [Host, Host];
    const move = (phase: string, to = target): Promise<string> =>
      lab.ask(home, SENTINEL_PORT, 'sentinel', 'silent-failover', 'cache', `${to.ip}:${CACHE.port}`, phase);
    const prepared = async (to: Host): Promise<void> => {
      let reply = '';
      await waitFor(() => `prepare towards host ${to.number}: ${reply}\n${lab.logs()}`, 30_000, async () => (reply = await move('prepare', to)) === 'OK');
    };
    let sinceMs = Date.now();
    await prepared(dropped);
    await arrived(CACHE, dropped, sinceMs);
    sinceMs = Date.now();
    expect(await move('abort', dropped)).toBe('OK');
    await arrived(CACHE, home, sinceMs);
    await lab.ready(CACHE, home);
    await prepared(target);
    sinceMs = Date.now();
    expect(await move('done')).toBe('OK');
    await arrived(CACHE, target, sinceMs);
    await lab.ready(CACHE, target);
    home = target;
  }, 150_000);

  testHere('the master crashes: its host lets go, the new one takes', async () => {
    home = await settledHome();
    const sinceMs = Date.now();
    lab.redisOf(home, CACHE).kill('SIGKILL');
    const next = await elected(CACHE, home);
    await arrived(CACHE, next, sinceMs);
    expect(await lab.client.neighbour('fd77::100')).toBe(await next.hardwareAddress());
    lab.startRedis(home, CACHE, null);
    await lab.ready(CACHE, next);
    home = next;
  }, 150_000);

  testHere('what a hand took away, or a link that went down, comes back', async () => {
    home = await settledHome();
    await home.ipCommand('addr del 10.77.0.100/32 dev eth0');
    await waitFor('the vip to come back', 10_000, async () => (await lab.holderOf(CACHE)) === home);
    // IPv6 addresses go with the link; the agent may have put it back before anybody can look.
    await home.ipCommand('link set eth0 down');
    await home.ipCommand('link set eth0 up');
    await home.ipCommand(`addr replace ${home.ip6}/64 dev eth0 nodad`);
    const sinceMs = Date.now();
    await arrived(CACHE, (await lab.masterOf(CACHE)) ?? home, sinceMs);
    home = (await lab.masterOf(CACHE)) ?? home;
    await lab.ready(CACHE, home);
  }, 150_000);

  testHere('a dead agent cannot let go: the newer word wins, and it lets go when it is back', async () => {
    home = await settledHome();
    lab.agentOf(home).kill('SIGKILL');
    lab.redisOf(home, CACHE).kill('SIGKILL');
    const sinceMs = Date.now();
    const next = await elected(CACHE, home, others(home));
    await lab.reached(CACHE, next, sinceMs, 20_000);
    expect(await home.has('10.77.0.100')).toBe(true);
    expect(await lab.client.neighbour('10.77.0.100')).toBe(await next.hardwareAddress());
    lab.startAgent(home);
    lab.startRedis(home, CACHE, null);
    await arrived(CACHE, next, Date.now());
    await lab.ready(CACHE, next);
    home = next;
  }, 150_000);

  testHere('a paused agent loses to the newer word, and lets go within 2 s of running again', async () => {
    home = await settledHome();
    const paused = home;
    lab.agentOf(paused).kill('SIGSTOP');
    lab.redisOf(paused, CACHE).kill('SIGKILL');
    const sinceMs = Date.now();
    const next = await elected(CACHE, paused, others(paused));
    await lab.reached(CACHE, next, sinceMs, 20_000);
    expect(await paused.has('10.77.0.100')).toBe(true);
    lab.agentOf(paused).kill('SIGCONT');
    const resumedMs = Date.now();
    await waitFor(`host ${paused.number} to let go`, 10_000, async () => !(await paused.has('10.77.0.100')) && !(await paused.has('fd77::100')));
    expect(Date.now() - resumedMs).toBeLessThan(4_000);
    lab.startRedis(paused, CACHE, null);
    await arrived(CACHE, next, Date.now());
    await lab.ready(CACHE, next);
    home = next;
  }, 150_000);
});

describe('three hosts, one cut off', () => {
  beforeAll(async () => {
    if (reason !== null) return;
    lab = new VipLab();
    await lab.start();
    home = lab.host(1);
    await lab.ready(CACHE, home);
    await arrived(CACHE, home, 0);
  });
  afterAll(async () => { if (reason === null) await lab.stop(); });

  testHere('an agent cut from its peers, but not from the client, lets go; one holder, before and after the heal', async () => {
    home = await settledHome();
    const old = home;
    const sinceMs = Date.now();
    await old.cutFrom(others(old));
    const next = await elected(CACHE, old, others(old));
    await waitFor(() => `host ${old.number} to let go\n${lab.logs()}`, 15_000, async () => !(await old.has('10.77.0.100')) && !(await old.has('fd77::100')));
    await arrived(CACHE, next, sinceMs);
    await old.joinAgain(others(old));
    await lab.ready(CACHE, next);
    expect(await lab.holderOf(CACHE)).toBe(next);
    home = next;
  }, 150_000);

  testHere('a host whose cable is pulled: the others go on without it, and the heal brings no second holder', async () => {
    home = await settledHome();
    const old = home;
    await old.cable('down');
    const sinceMs = Date.now();
    const next = await elected(CACHE, old, others(old));
    await lab.reached(CACHE, next, sinceMs, 20_000);
    await waitFor(() => `host ${old.number} to let go\n${lab.logs()}`, 15_000, async () => !(await old.has('10.77.0.100')));
    await old.cable('up');
    await lab.ready(CACHE, next);
    await arrived(CACHE, next, Date.now());
    home = next;
  }, 150_000);

  testHere('an agent that is stopped lets go at once, and takes again when it is back', async () => {
    home = await settledHome();
    lab.agentOf(home).kill('SIGTERM');
    await lab.agentOf(home).ended;
    expect(await home.has('10.77.0.100')).toBe(false);
    expect(await home.has('fd77::100')).toBe(false);
    lab.startAgent(home);
    await arrived(CACHE, home, Date.now());
  }, 150_000);
});
