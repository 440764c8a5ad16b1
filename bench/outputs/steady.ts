/**
 * What three whole agents write to a real Consul while nothing changes, and while they see a replica's health differently.
 *
 * Every write goes through a recorder, and Consul's own ModifyIndexes are looked at each second. To differ, one agent after the other is cut from one
 * replica by an ip rule (agents still hear each other), while the other replica dies and comes back: that's the real change.
 */
import { join } from 'node:path';
import { waitFor } from '../../test/integration/lab.js';
import type { Host } from '../../test/integration/netns-lab.js';
import { CACHE, SENTINEL_PORT, SESSIONS, VipLab } from '../../test/integration/vip-lab.js';
import { ConsulServers, recordedIn } from '../../test/integration/netns-consul.js';
import type { Recorded } from '../../test/integration/netns-consul.js';

/** After the start, and after each change. */
const SETTLE_MS = 5_000;
const say = (text: string): void => void process.stderr.write(`${text}\n`);
const pause = (ms: number): Promise<void> => new Promise((done) => void setTimeout(done, ms));

export interface Step {
  readonly what: string;
  /** Changes that whoever may write sees. */
  readonly changes: number;
  readonly writes: number;
}

export interface SteadyReport {
  readonly isSound: boolean;
  readonly steady: { readonly minutes: number; readonly writes: number; readonly indexChanges: number };
  readonly differ: { readonly minutes: number; readonly changes: number; readonly writes: number; readonly steps: readonly Step[] };
}

/** Three agents at rest for `minutes`, then at odds for `differMinutes`. */
export async function steady(minutes: number, differMinutes: number): Promise<SteadyReport> {
  // Long enough for a machine with other work: what is late there would be a change.
  const lab = new VipLab({ withVips: false, downAfterMs: 5_000, yaml: ['consul: { address: "CONSUL" }'] });
  try {
    const run = new Steady(lab);
    await run.start();
    return await run.report(minutes, differMinutes);
  } finally {
    await lab.stop();
  }
}

class Steady {
  readonly #file: string;

  constructor(readonly lab: VipLab) {
    this.#file = join(lab.folder, 'recorded');
  }

  async start(): Promise<void> {
    const { lab } = this;
    const consul = await ConsulServers.one(lab);
    const address = consul.record(this.#file, [CACHE.name, SESSIONS.name]);
    await lab.start((text) => text.replace('CONSUL', address));
    await lab.ready(CACHE, lab.host(1));
    await lab.ready(SESSIONS, lab.host(2));
    // Until nothing has been written for a while: replicas become healthy one by one.
    await waitFor('a Consul that is written to and then no more', 60_000, () => {
      const last = this.#lines().at(-1);
      return last !== undefined && Date.now() - last.at > 2 * SETTLE_MS;
    });
  }

  async report(minutes: number, differMinutes: number): Promise<SteadyReport> {
    say(`nothing changes for ${minutes} minutes`);
    const fromMs = Date.now();
    await pause(minutes * 60_000);
    const calm = this.#lines().filter(({ at }) => at >= fromMs);
    const rest = { minutes, writes: calm.filter(isWrite).length, indexChanges: calm.length - calm.filter(isWrite).length };
    const steps: Step[] = [];
    const keeper = await this.#keeper();
    for (const host of this.lab.network.hosts) steps.push(...await this.#atOdds(host, host === keeper, (differMinutes * 60_000) / this.lab.network.hosts.length));
    const sum = (field: 'changes' | 'writes'): number => steps.reduce((total, step) => total + step[field], 0);
    const isSound = rest.writes + rest.indexChanges === 0 && steps.every(({ changes, writes }) => writes <= changes) && sum('writes') > 0;
    return { isSound, steady: rest, differ: { minutes: differMinutes, changes: sum('changes'), writes: sum('writes'), steps } };
  }

  #lines(): Recorded[] {
    return recordedIn(this.#file);
  }

  /** The one that writes what the order does not decide: the lowest run id (publishing.md, rule 2). */
  async #keeper(): Promise<Host> {
    const { hosts } = this.lab.network;
    const ids = await Promise.all(hosts.map((host) => this.lab.ask(host, SENTINEL_PORT, 'sentinel', 'myid')));
    const lowest = [...ids].sort()[0] ?? '';
    return hosts[ids.indexOf(lowest)] as Host;
  }

  /** The agent on `host` does not reach one replica, while the other one dies and comes back, for `limitMs` in all. */
  async #atOdds(host: Host, isKeeper: boolean, limitMs: number): Promise<Step[]> {
    const { lab } = this;
    const endMs = Date.now() + limitMs;
    const [master] = lab.network.hosts as [Host];
    const replicas = lab.network.hosts.filter((each) => each !== master);
    const unseen = replicas.findLast((each) => each !== host) as Host;
    const dying = replicas.find((each) => each !== unseen) as Host;
    const rule = `rule add pref 50 to ${unseen.ip} ipproto tcp dport ${CACHE.port} blackhole`;
    const who = `agent ${host.number}${isKeeper ? ' (who writes)' : ''}`;
    const steps: Step[] = [];
    const step = async (what: string, changes: number, act: () => Promise<void> | void, restMs = SETTLE_MS): Promise<void> => {
      say(`${who}: ${what}`);
      const fromMs = Date.now();
      await act();
      await pause(restMs);
      steps.push({ what: `${who}: ${what}`, changes, writes: this.#lines().filter((line) => line.at >= fromMs && isWrite(line)).length });
    };
    const own = isKeeper ? 1 : 0;
    await step(`does not reach replica ${unseen.number}`, own, () => host.ipCommand(rule), limitMs / 4);
    await step(`replica ${dying.number} dies`, 1, () => lab.redisOf(dying, CACHE).kill('SIGKILL'), limitMs / 8);
    await step(`replica ${dying.number} is back`, 1, () => lab.startRedis(dying, CACHE, master), limitMs / 8);
    await step('still does not', 0, () => undefined, Math.max(SETTLE_MS, endMs - Date.now() - 4 * SETTLE_MS));
    await step(`reaches replica ${unseen.number} again`, own, () => host.ipCommand(rule.replace('add', 'del')), 4 * SETTLE_MS);
    return steps;
  }
}

function isWrite({ path }: Recorded): boolean {
  return path !== undefined;
}
