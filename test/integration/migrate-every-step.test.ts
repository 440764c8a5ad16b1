/**
 * What can happen to a move happens behind each step of `pointsman migrate`: the move ends with one sentence, the group with one master, and
 * once all are back, a resume leaves nothing of the move behind.
 */
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { must } from '../../src/assert.js';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import { ConsulServer } from './consul-lab.js';
import { MASTER_NAME, ask, waitFor, type RedisNode } from './lab.js';
import { MigrateLab, type Ran } from './migrate-lab.js';

// Each begins where the one before it ended.
jest.retryTimes(0);

const STEPS = ['save', 'wait-sync', 'auto-revert', 'chain', 'priority', 'writable', 'prepare', 'drain', 'done', 'settle', 'restore'];

const BEFORE_SWITCH = STEPS.slice(0, STEPS.indexOf('done'));
const IN_WINDOW = ['prepare', 'drain'];
/** Who is the master, or why nothing was done, and what is left over. */
const ONE_SENTENCE = /^[^\n]*127\.0\.0\.\d[^\n]*$/;

class Group {
  readonly lab = new MigrateLab();
  master!: RedisNode;
  #before: Record<string, unknown> = {};

  get target(): RedisNode {
    return must(this.lab.site.lab.nodes.find((node) => node !== this.master), 'there are three nodes');
  }

  /** Moves the master; `happens` begins as soon as the step is over. `isHalted`: migrate itself is stopped meanwhile. */
  async moveWith(step: string, happens: () => Promise<unknown>, more: readonly string[] = [], isHalted = false): Promise<Ran> {
    const { lab } = this;
    await lab.site.calm(this.master, 60_000);
    this.#before = await lab.everything();
    lab.newJournal();
    let happened: Promise<unknown> | null = null;
    const move = lab.begin(['--to', formatAddress(this.target.address), '--drain-timeout', '20s', ...more], {}, lab.site.agent(0), (line) => {
      if (line['step'] !== step || happened !== null) return;
      if (isHalted) move.kill('SIGSTOP');
      happened = happens().finally(() => move.kill('SIGCONT'));
    });
    const ran = await move.ended;
    expect(happened).not.toBeNull();
    await happened;
    expect([0, 1]).toContain(ran.status);
    expect(ran.text).toMatch(ONE_SENTENCE);
    return ran;
  }

  /** Whoever leads now: nothing of the move is left. */
  async endsAsBefore(): Promise<void> {
    const { lab } = this;
    await lab.site.calm(this.master, 90_000);
    await lab.run(['--resume']);
    expect((await lab.run(['--status'])).status).toBe(0);
    await lab.site.calm(this.master, 60_000);
    expect(await lab.everything()).toEqual(this.#before);
    expect(await lab.isHeld(this.master)).toBe(false);
  }

  /** The node that runs as a master and that every agent names. */
  async agreedMaster(): Promise<RedisNode> {
    const { site } = this.lab;
    let agreed: RedisNode | undefined;
    await waitFor(() => `one master of all agents\n${site.lab.logs(25)}`, 60_000, async () => {
      const told = await site.told().catch(() => []);
      agreed = site.lab.nodes.find((node) => told.length > 0 && told.every(({ sentinel, dns }) => sentinel === node.address.host && dns === node.address.host));
      return agreed !== undefined && (await site.role(agreed).catch(() => '')) === 'master';
    });
    return must(agreed, 'they agree');
  }
}

describe('nodes and sentinels', () => {
  const group = new Group();
  const { lab } = group;
  const { site } = lab;
  beforeAll(async () => {
    group.master = await lab.start({ downAfterMs: 2_000 });
  }, 120_000);
  afterAll(() => lab.stop());

  const deaths = STEPS.flatMap((step) => (['target', 'original'] as const).map((who) => [who, step] as const));

  test.each(deaths)('the %s dies behind %s', async (who, step) => {
    const victim = who === 'target' ? group.target : group.master;
    await group.moveWith(step, () => {
      victim.child.kill('SIGKILL');
      return victim.child.ended;
    });
    // A node that died as the master is replaced first; one that is back before that would be empty, and followed.
    await waitFor(() => `another master than ${victim.name}\n${site.lab.logs(25)}`, 60_000, async () => (await group.agreedMaster()) !== victim);
    group.master = await group.agreedMaster();
    await site.lab.restartRedis(victim);
    await group.endsAsBefore();
  }, 300_000);

  test.each(STEPS)('the sentinel that was named dies behind %s: another one is asked, and the move is made', async (step) => {
    const named = site.agent(0);
    const ran = await group.moveWith(step, () => {
      named.child.kill('SIGKILL');
      return named.child.ended;
    });
    expect(ran.text).toContain(`${formatAddress(group.target.address)} is the master`);
    group.master = group.target;
    await site.restart(named);
    await group.endsAsBefore();
  }, 300_000);

  // Behind the switch the target is the master, and follows nobody.
  test.each(BEFORE_SWITCH)('the target is copied in full behind %s', async (step) => {
    const { master, target } = group;
    const ran = await group.moveWith(step, async () => {
      await ask(target, 'REPLICAOF', 'NO', 'ONE');
      await ask(target, 'REPLICAOF', master.address.host, String(master.address.port));
    });
    if (IN_WINDOW.includes(step)) {
      // Very quickly done: the sentinels refuse it, too.
      expect([ran.status, ran.text]).toEqual([1, expect.stringMatching(/is still the master: .*(tainted|window has ended)/)]);
    }
    group.master = await group.agreedMaster();
    expect(ran.text).toContain(group.master.address.host);
    await group.endsAsBefore();
  }, 300_000);

  test.each(STEPS)('a stock sentinel joins behind %s', async (step) => {
    const ran = await group.moveWith(step, async () => {
      await site.lab.stock(BEFORE_SWITCH.includes(step) ? group.master : group.target, { downAfterMs: 2_000 });
      await waitFor('every agent knowing it', 30_000, async () => (await peerCounts()).every((count) => count === site.agents.length));
    }, [], true);
    const stock = must(site.lab.sentinels.pop(), 'it is the last one');
    const isRefused = BEFORE_SWITCH.includes(step) && !IN_WINDOW.includes(step);
    expect([ran.status, ran.text]).toEqual(isRefused
      ? [1, expect.stringMatching(/is still the master: .*silent failover/)] : [0, expect.stringContaining('is the master')]);
    group.master = await group.agreedMaster();
    stock.child.kill('SIGKILL');
    await stock.child.ended;
    for (const agent of site.agents) await ask(agent, 'SENTINEL', 'FORGET', MASTER_NAME, formatAddress(stock.address));
    await group.endsAsBefore();
  }, 300_000);

  async function peerCounts(): Promise<number[]> {
    return Promise.all(site.agents.map(async (agent) => {
      const reply = await ask(agent, 'SENTINEL', 'SENTINELS', MASTER_NAME);
      return reply.kind === 'array' ? reply.items.length : -1;
    }));
  }
});

describe('Consul', () => {
  const group = new Group();
  const { lab } = group;
  let consul: ConsulServer;
  beforeAll(async () => {
    consul = await ConsulServer.start();
    group.master = await lab.start({ yaml: [`consul: { address: "${consul.url}" }`] });
  }, 120_000);
  afterAll(async () => {
    await lab.stop();
    await consul.end();
  });

  const inConsul = async (): Promise<string> => {
    const found = await consul.get(`/v1/catalog/service/${MASTER_NAME}?tag=master`).catch(() => []);
    return JSON.stringify(found);
  };

  test.each(STEPS)('is away from behind %s on', async (step) => {
    const ran = await group.moveWith(step, () => consul.stop(), ['--publish-timeout', '4s']);
    if (STEPS.indexOf(step) < STEPS.indexOf('prepare')) {
      expect([ran.status, ran.text]).toEqual([1, expect.stringMatching(/still the master: output consul of .* is (failing|pending)/)]);
    } else {
      expect(ran.text).toContain('is the master');
      // Behind done it may have the new master already.
      if (IN_WINDOW.includes(step)) expect(JSON.stringify(ran.lines)).toMatch(/output consul of [^"]* is (failing|pending)/);
    }
    consul.run([consul]);
    await consul.ready();
    group.master = await group.agreedMaster();
    await waitFor(() => `${group.master.address.host} in Consul`, 60_000, async () => (await inConsul()).includes(`"${group.master.address.host}"`));
    await group.endsAsBefore();
  }, 300_000);
});
