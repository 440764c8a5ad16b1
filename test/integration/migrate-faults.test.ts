/**
 * What can go wrong while `pointsman migrate` runs, on real processes: each fault ends the move one way or the other, with one clear
 * sentence, nothing left paused or writable, and everything restored at those that can be reached.
 */
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatAddress } from '../../src/sentinel/wire/address.js';
import { ConsulServer } from './consul-lab.js';
import { ask, textOf, waitFor, type RedisNode } from './lab.js';
import { MigrateLab, type Ran } from './migrate-lab.js';

// Each begins where the one before it ended: a second try would begin in the middle of the first.
jest.retryTimes(0);

describe('three agents', () => {
  const lab = new MigrateLab();
  const { site } = lab;
  let [master, target]: RedisNode[] = [];

  beforeAll(async () => {
    master = await lab.start({ downAfterMs: 3_000 });
    target = site.node(1);
  }, 120_000);
  afterAll(() => lab.stop());

  /** A move during which something happens behind a step. */
  async function moveWith(step: string, happens: () => Promise<void> | void, more: readonly string[] = []): Promise<Ran> {
    await site.calm(master!, 60_000);
    lab.newJournal();
    let happened: Promise<void> | null = null;
    const ran = await lab.run(['--to', formatAddress(target!.address), ...more], {}, site.agent(0), (line) => {
      if (line['step'] === step && happened === null) happened = Promise.resolve(happens());
    });
    await happened;
    expect(happened).not.toBeNull();
    return ran;
  }

  async function kill(node: RedisNode): Promise<void> {
    node.child.kill('SIGKILL');
    await node.child.ended;
  }

  async function revive(node: RedisNode, of: RedisNode): Promise<void> {
    await site.lab.restartRedis(node);
    await ask(node, 'REPLICAOF', of.address.host, String(of.address.port));
  }

  test('the target dies before the window: taken back, and what could not be restored is said and restored later', async () => {
    const before = await lab.everything();
    const ran = await moveWith('chain', () => kill(target!));
    expect([ran.status, ran.text]).toEqual([1, expect.stringMatching(/is still the master: .*127\.0\.0\.2/)]);
    expect(JSON.stringify(ran.lines)).toContain("127.0.0.2");
    await site.allTell(master!);
    await revive(target!, master!);
    await site.calm(master!, 60_000);
    await lab.run(['--resume']);
    expect((await lab.run(['--status'])).status).toBe(0);
    await site.calm(master!);
    expect(await lab.everything()).toEqual(before);
  }, 150_000);

  test('the target dies in the window: the sentinels send clients back, the move is taken back', async () => {
    const ran = await moveWith('prepare', () => kill(target!), ['--drain-timeout', '30s']);
    expect([ran.status, ran.text]).toEqual([1, expect.stringContaining('is still the master')]);
    await site.allTell(master!, 20_000);
    await revive(target!, master!);
    await site.calm(master!, 60_000);
    await lab.run(['--resume']);
    await site.calm(master!);
  }, 150_000);

  test('the original dies in the window: the target is promoted with all of it, the old one is left over until it is back', async () => {
    const before = await lab.everything();
    const [old, next] = [master!, target!];
    const ran = await moveWith('prepare', async () => {
      await lab.write(next, 'window', 'kept');
      await kill(old);
    }, ['--drain-timeout', '30s']);
    [master, target] = [next, old];
    expect([ran.status, ran.text]).toEqual([1, expect.stringContaining('127.0.0.2')]);
    expect(JSON.stringify(ran.lines.at(-2))).toContain('does not answer');
    await site.allTell(master);
    await site.lab.restartRedis(old);
    await site.calm(master, 60_000);
    const again = await lab.run(['--resume']);
    expect([again.status, again.text]).toEqual([0, expect.stringContaining('is the master')]);
    expect(await site.onAll('window')).toEqual(['kept', 'kept', 'kept']);
    await site.calm(master);
    expect(await lab.everything()).toEqual(before);
  }, 180_000);

  test('the original dies before the window: whoever the sentinels choose, it ends, and settings are put back', async () => {
    const [old, next] = [master!, target!];
    const ran = await moveWith('priority', () => kill(old));
    // The priority has made it the target, or the move was turned back before anybody noticed.
    await waitFor('another master', 30_000, async () => (await site.role(next)) === 'master');
    [master, target] = [next, old];
    expect(ran.status).toBe(1);
    await site.lab.restartRedis(old);
    await site.calm(master, 60_000);
    await lab.run(['--resume']);
    expect((await lab.run(['--status'])).status).toBe(0);
    const priorities = await Promise.all(site.lab.nodes.map(async (node) => textOf(await ask(node, 'INFO', 'replication'))));
    for (const text of priorities) expect(/slave_priority:(\d+)/.exec(text)?.[1] ?? '100').toBe('100');
  }, 180_000);

  test('a full resync of the target in the window: tainted, taken back', async () => {
    const next = target!;
    const ran = await moveWith('prepare', async () => {
      await ask(next, 'REPLICAOF', 'NO', 'ONE');
      await ask(next, 'REPLICAOF', master!.address.host, String(master!.address.port));
    }, ['--drain-timeout', '30s']);
    // Very quickly done: the sentinels refuse it, too.
    expect([ran.status, ran.text]).toEqual([1, expect.stringMatching(/is still the master: .*(tainted|window has ended)/)]);
    await site.allTell(master!, 20_000);
    expect(await lab.isHeld(master!)).toBe(false);
  }, 150_000);

  test('TERM in the window: clients are sent back, and everything is as before', async () => {
    await site.calm(master!, 60_000);
    const before = await lab.everything();
    lab.newJournal();
    const running = lab.begin(['--to', formatAddress(target!.address), '--barrier'], {}, site.agent(0), (line) => {
      if (line['step'] === 'writable') setTimeout(() => running.kill('SIGTERM'), 700);
    });
    const ran = await running.ended;
    expect([ran.status, ran.text]).toEqual([1, expect.stringContaining('interrupted by the operator')]);
    await site.calm(master!);
    expect(await lab.isHeld(master!)).toBe(false);
    expect(await lab.everything()).toEqual(before);
  }, 120_000);

  test('the drain never ends and may not go on: taken back, naming who stays', async () => {
    await site.calm(master!, 60_000);
    const before = await lab.everything();
    await lab.withClients(master!);
    const ran = await lab.move(target!, ['--on-drain-timeout', 'abort', '--drain-timeout', '10s']);
    expect([ran.status, ran.text]).toEqual([1, expect.stringMatching(/still the master: .*(come back|not drained).*127\.0\.0\.\d at /)]);
    await lab.clients?.stop();
    await site.calm(master!);
    expect(await lab.everything()).toEqual(before);
  }, 120_000);

  test('what stands in the way is said at once, and nothing is changed', async () => {
    await site.calm(master!, 60_000);
    const before = await lab.everything();
    await ask(target!, 'CONFIG', 'SET', 'replica-priority', '0', 'min-replicas-to-write', '1');
    const ran = await lab.move(target!);
    await ask(target!, 'CONFIG', 'SET', 'replica-priority', '100', 'min-replicas-to-write', '0');
    const stops = ran.lines.filter((line) => line['finding'] === 'stop').map((line) => String(line['text']));
    expect([ran.status, ran.text]).toEqual([1, 'nothing was changed: 2 findings stand in the way']);
    expect(stops).toEqual([expect.stringContaining('replica-priority is 0'), expect.stringContaining('min-replicas-to-write is 1')]);
    expect(await lab.everything()).toEqual(before);
    const unknown = await lab.run(['--to', '127.0.0.9:6379', '--journal', join(site.lab.folder, 'none.ndjson')]);
    expect(unknown.lines.some((line) => /is no replica of mymaster/.test(String(line['text'])))).toBe(true);
  }, 60_000);

  test('two sentinels die in the window: no abort and no done is possible, which is said; then it is finished by a resume', async () => {
    const [first, second] = [site.agent(0), site.agent(1)];
    await site.calm(master!, 60_000);
    const before = await lab.everything();
    lab.newJournal();
    const ended = await lab.run(['--to', formatAddress(target!.address)], { POINTSMAN_MIGRATE_CRASH: 'prepare' });
    expect(ended.signal).toBe('SIGKILL');
    for (const agent of [first, second]) agent.child.kill('SIGKILL');
    const stuck = await lab.run(['--abort'], {}, site.agent(2));
    expect([stuck.status, stuck.errors]).toEqual([1, expect.stringMatching(/clients could not be sent back: .*NOQUORUM/s)]);
    for (const agent of [first, second]) await site.restart(agent);
    await site.allTell(target!, 20_000);
    expect((await lab.run(['--abort'])).status).toBe(0);
    await site.calm(master!, 60_000);
    expect(await lab.everything()).toEqual(before);
  }, 320_000);
});

describe('outputs', () => {
  test('Consul is away: found before anything is changed, and in the window the move is taken back', async () => {
    const consul = await ConsulServer.start();
    const lab = new MigrateLab();
    try {
      const master = await lab.start({ yaml: [`consul: { address: "${consul.url}" }`] });
      await lab.site.calm(master, 60_000);
      const before = await lab.everything();
      const gone = lab.run(['--to', formatAddress(lab.site.node(1).address), '--publish-timeout', '4s'], {}, lab.site.agent(0), (line) => {
        if (line['step'] === 'priority') void consul.stop();
      });
      const ran = await gone;
      expect([ran.status, ran.text]).toEqual([1, expect.stringMatching(/still the master: output consul of .* is (failing|pending)/)]);
      await lab.site.allTell(master);
      const second = await lab.move(lab.site.node(1));
      expect(second.text).toMatch(/nothing was changed: \d findings stand in the way/);
      expect(second.lines.filter((line) => /output consul is failing/.test(String(line['text'])))).toHaveLength(3);
      await lab.site.lab.settled(master, 20_000);
      await lab.site.calm(master);
      expect(await lab.everything()).toEqual(before);
    } finally {
      await lab.stop();
      await consul.end();
    }
  }, 150_000);

  test('a hook that has a veto: nothing was sent anywhere, everything is put back, and it says which hook', async () => {
    const lab = new MigrateLab();
    try {
      const script = join(lab.site.lab.folder, 'guard.sh');
      writeFileSync(script, '#!/bin/sh\necho "not on a Friday"\nexit 1\n');
      chmodSync(script, 0o755);
      const master = await lab.start({ yaml: [`hooks: [{ name: guard, command: ["${script}"], on: [pre] }]`] });
      const before = await lab.everything();
      for (const mode of ['silent', 'coordinated']) {
        const ran = await lab.move(lab.site.node(1), ['--mode', mode]);
        expect([ran.status, ran.text]).toEqual([1, expect.stringMatching(/still the master: .*hook guard refuses the move/)]);
        await lab.site.calm(master);
        expect(await lab.everything()).toEqual(before);
      }
      for (const agent of lab.site.agents) expect(lab.site.switches(agent)).toEqual([]);
    } finally {
      await lab.stop();
    }
  }, 120_000);

  async function moveWithFailingHook(phase: 'prepared' | 'steady'): Promise<Ran> {
    const lab = new MigrateLab();
    try {
      const script = join(lab.site.lab.folder, 'failing.sh');
      const switchFile = join(lab.site.lab.folder, 'fails');
      writeFileSync(script, `#!/bin/sh\ncase "$POINTSMAN_PHASE" in ${phase}) if [ -e ${switchFile} ]; then exit 1; fi ;; esac\nexit 0\n`);
      chmodSync(script, 0o755);
      writeFileSync(switchFile, '');
      const master = await lab.start({ yaml: [`hooks: [{ name: pool, command: ["${script}"], on: [prepared, steady] }]`] });
      const target = lab.site.node(1);
      const before = await lab.everything();
      const ran = await lab.move(target, ['--publish-timeout', '4s']);
      rmSync(switchFile);
      await lab.site.calm(phase === 'prepared' ? master : target, 60_000);
      if ((await lab.run(['--status'])).status !== 0) expect((await lab.run(['--resume'])).status).toBe(0);
      expect(await lab.everything()).toEqual(before);
      return ran;
    } finally {
      await lab.stop();
    }
  }

  test('a hook that fails when clients have moved: the move is taken back, with the name of the hook', async () => {
    const ran = await moveWithFailingHook('prepared');
    expect([ran.status, ran.text]).toEqual([1, expect.stringMatching(/still the master: output .* is (failing|pending)/)]);
  }, 150_000);

  test('a hook that fails behind the switch: the move is made, and the hook is named', async () => {
    const ran = await moveWithFailingHook('steady');
    expect(ran.text).toContain('is the master');
    expect(JSON.stringify(ran.lines)).toMatch(/output .*(failing|pending)/);
  }, 150_000);
});

test('a stock sentinel in the group: no silent move, which is said, but a coordinated one', async () => {
  const lab = new MigrateLab();
  try {
    const master = await lab.start({ agents: 2, stock: 1 });
    const ran = await lab.move(lab.site.node(1));
    expect([ran.status, ran.lines.filter((line) => line['finding'] === 'stop').map((line) => line['text'])])
      .toEqual([1, ['does not support silent failover: replace it, or use --mode coordinated']]);
    await lab.site.lab.settled(master, 20_000);
    const coordinated = await lab.move(lab.site.node(1), ['--mode', 'coordinated']);
    expect([coordinated.status, coordinated.text]).toEqual([0, expect.stringContaining('is the master')]);
  } finally {
    await lab.stop();
  }
}, 120_000);
