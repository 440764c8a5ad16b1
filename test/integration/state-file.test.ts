/**
 * sentinel.conf between two programs and on bad disks: stock loads what we write and the other way round; files as people have
 * them; a file that cannot be replaced, a folder that cannot be written, a disk that is full.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { masterNamedBy } from '../../src/demo/agreement.js';
import { readConfFile } from '../../src/sentinel/runtime/conf-file.js';
import type { LabSentinel, RedisNode } from './lab.js';
import { Lab, MAIN, MASTER_NAME, ask, fieldsOf, freePort, program, textOf, waitFor } from './lab.js';

const LIMIT_MS = 40_000;
const NOT_SAVED = 'ERR Failed to save config file. Check server logs.';
const SET_QUORUM = ['SENTINEL', 'SET', MASTER_NAME, 'quorum'] as const;
let lab = new Lab();

afterEach(async () => {
  await lab.stop();
  lab = new Lab();
});

async function end(sentinel: LabSentinel, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
  sentinel.child.kill(signal);
  await waitFor(`the end of ${sentinel.name}`, 10_000, () => sentinel.child.status !== null);
}

/** What must survive: by the file, and by the port. */
async function memoryOf(sentinel: LabSentinel): Promise<Readonly<Record<string, unknown>>> {
  const view = fieldsOf(await ask(sentinel, 'SENTINEL', 'MASTER', MASTER_NAME));
  const shown = [
    'ip', 'port', 'quorum', 'down-after-milliseconds', 'failover-timeout', 'parallel-syncs', 'config-epoch', 'num-slaves',
    'num-other-sentinels',
  ];
  const { conf } = readConfFile(sentinel.conf);
  return {
    myId: textOf(await ask(sentinel, 'SENTINEL', 'MYID')),
    ...Object.fromEntries(shown.map((field) => [field, view.get(field)])),
    epochs: [conf.globals.currentEpoch, conf.masters[0]?.configEpoch, conf.masters[0]?.leaderEpoch],
    replicas: conf.masters[0]?.knownReplicas.map(({ host, port }) => `${host}:${port}`).sort(),
    peers: conf.masters[0]?.knownSentinels.map(({ runId }) => runId).sort(),
  };
}

describe('between two programs', () => {
  test('ours, stock, ours, stock: the same identity, epochs, votes, replicas and peers', async () => {
    const master = await lab.group(2);
    const swapped = await lab.dropIn(master, {
      lines: [`sentinel parallel-syncs ${MASTER_NAME} 2`, '# a comment', `sentinel auth-pass ${MASTER_NAME} s3cr3t`],
    });
    await lab.stock(master);
    await lab.dropIn(master);
    await lab.settled(master, LIMIT_MS);
    expect(textOf(await ask(swapped, 'SENTINEL', 'FAILOVER', MASTER_NAME))).toBe('OK');
    const hasMoved = async (): Promise<boolean> => (await masterNamedBy(swapped.address)).host !== master.address.host;
    await waitFor(() => `a new master\n${lab.logs()}`, LIMIT_MS, hasMoved);
    const promoted = await masterNamedBy(swapped.address);
    await lab.settled(lab.nodes.find(({ address }) => address.host === promoted.host)!, 60_000);

    const before = await memoryOf(swapped);
    expect(before).toMatchObject({ 'num-slaves': '2', 'num-other-sentinels': '2', 'parallel-syncs': '2' });
    const stock = [program('redis-sentinel'), swapped.conf];
    let current = swapped;
    for (const argv of [stock, swapped.argv, stock]) {
      await end(current);
      current = { ...current, argv };
      await lab.restartSentinel(current);
      expect(textOf(await ask(current, 'SENTINEL', 'FLUSHCONFIG'))).toBe('OK');
      expect(await memoryOf(current)).toEqual(before);
      expect(readFileSync(current.conf, 'utf8')).toContain('# a comment');
    }
  }, 180_000);

  test('a file as people have it: CRLF, quotes, include, any order, known-slave, comments, unknown lines', async () => {
    const master = await lab.group(1);
    const folder = join(lab.folder, 'old');
    mkdirSync(folder);
    const conf = join(folder, 'sentinel.conf');
    const { host, port } = master.address;
    const [id, peer, ownPort] = ['f'.repeat(40), 'e'.repeat(40), await freePort()];
    writeFileSync(join(folder, 'more.conf'), `sentinel auth-user ${MASTER_NAME} "default"\r\nrequirepass 'open sesame'\r\n`);
    writeFileSync(conf, [
      '# Größe der Gruppe: drei', `sentinel down-after-milliseconds ${MASTER_NAME} 3000`, `port ${ownPort}`,
      `SENTINEL KNOWN-SLAVE ${MASTER_NAME} 127.0.0.2 ${port}`, `sentinel myid ${id}`,
      `sentinel known-replica ${MASTER_NAME} 127.0.0.2 ${port}`,
      `sentinel monitor "${MASTER_NAME}" ${host} ${port} 2`, 'bind "127.0.0.1"', `sentinel config-epoch ${MASTER_NAME} 7`,
      `sentinel leader-epoch ${MASTER_NAME} 9`, 'sentinel current-epoch 12', `include ${join(folder, 'more.conf')}`,
      `sentinel auth-pass ${MASTER_NAME} "with # and \\"quotes\\""`, `sentinel known-sentinel ${MASTER_NAME} 127.0.0.1 1 ${peer}`,
      `dir ${folder}`, '',
    ].join('\r\n'));
    const argv = [process.execPath, MAIN, 'sentinel', conf];
    const sentinel = await lab.start({ name: 'taken-over', kind: 'ours', port: ownPort, dnsPort: null, folder, conf, argv });
    const login = ['-p', String(ownPort), '-a', 'open sesame', '--no-auth-warning'];
    const cli = (...args: string[]): string => spawnSync(program('redis-cli'), [...login, ...args], { encoding: 'utf8' }).stdout.trim();
    expect(cli('SENTINEL', 'SET', MASTER_NAME, 'failover-timeout', '60000')).toBe('OK');
    expect(cli('SENTINEL', 'MYID')).toBe(id);
    await end(sentinel);

    const written = readFileSync(conf, 'utf8');
    expect(written.split('\n')[0]).toBe('# Größe der Gruppe: drei');
    expect(written).not.toMatch(/known-slave/i);
    expect(readConfFile(conf).faults).toEqual([]);
    await lab.restartSentinel({ ...sentinel, argv: [program('redis-sentinel'), conf] });
    expect(cli('SENTINEL', 'MYID')).toBe(id);
    expect(fieldsOfText(cli('SENTINEL', 'MASTER', MASTER_NAME))).toMatchObject({
      'config-epoch': '7', 'down-after-milliseconds': '3000', 'failover-timeout': '60000', 'num-slaves': '1', 'num-other-sentinels': '1',
      quorum: '2',
    });
  }, 90_000);
});

function fieldsOfText(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\n');
  return Object.fromEntries(lines.flatMap((name, at) => (at % 2 === 0 ? [[name, lines[at + 1] ?? '']] : [])));
}

test('mode and owner stay, also for a file that only its group may read', async () => {
  const master = await lab.group(0);
  const sentinel = await lab.dropIn(master);
  await end(sentinel);
  chmodSync(sentinel.conf, 0o640);
  if (process.getuid?.() === 0) chownSync(sentinel.conf, 0, 12_345);
  const before = statSync(sentinel.conf);
  await lab.restartSentinel(sentinel);
  expect(textOf(await ask(sentinel, ...SET_QUORUM, '3'))).toBe('OK');
  const after = statSync(sentinel.conf);
  expect(after.ino).not.toBe(before.ino);
  expect([after.mode & 0o777, after.uid, after.gid]).toEqual([0o640, before.uid, before.gid]);
}, 60_000);

// A mount namespace of its own needs rights that not every machine gives.
const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0;

(mayMount ? describe : describe.skip)('on bad disks', () => {
  interface Mounted {
    readonly sentinel: LabSentinel;
    readonly inside: (name: string) => string;
  }

  /** One of ours behind `mount` lines of a shell; what it sees itself is under /proc/<pid>/root. */
  async function mounted(master: RedisNode, mount: (folder: string) => string): Promise<Mounted> {
    const folder = join(lab.folder, 'mounted');
    mkdirSync(folder);
    const port = await freePort();
    const conf = lab.writeConf(folder, master, port, {});
    const script = `${mount(folder)} && exec "$@"`;
    const argv = ['unshare', '-m', 'sh', '-c', script, 'sh', process.execPath, MAIN, 'sentinel', conf];
    const sentinel = await lab.start({ name: 'mounted', kind: 'ours', port, dnsPort: null, folder, conf, argv });
    return { sentinel, inside: (name) => `/proc/${sentinel.child.pid}/root${join(folder, name)}` };
  }

  async function failsOver(sentinel: LabSentinel, master: RedisNode): Promise<void> {
    await waitFor(() => `a replica to promote\n${lab.logs()}`, LIMIT_MS, async () => {
      const reply = await ask(sentinel, 'SENTINEL', 'REPLICAS', MASTER_NAME);
      return reply.kind === 'array' && reply.items.some((item) => fieldsOf(item).get('master-link-status') === 'ok');
    });
    master.child.kill('SIGKILL');
    const hasMoved = async (): Promise<boolean> => (await masterNamedBy(sentinel.address)).host !== master.address.host;
    await waitFor(() => `the failover\n${lab.logs(40)}`, LIMIT_MS, hasMoved);
  }

  test('a single file that is bind-mounted is written in place', async () => {
    const master = await lab.group(1);
    const { sentinel, inside } = await mounted(master, (folder) => `mount --bind ${folder}/sentinel.conf ${folder}/sentinel.conf`);
    expect(textOf(await ask(sentinel, ...SET_QUORUM, '1'))).toBe('OK');
    expect(readFileSync(inside('sentinel.conf'), 'utf8')).toMatch(new RegExp(`^sentinel monitor ${MASTER_NAME} .* 1$`, 'm'));
    await failsOver(sentinel, master);
    await end(sentinel, 'SIGKILL');
    expect(readConfFile(sentinel.conf).faults).toEqual([]);
    expect(readConfFile(sentinel.conf).conf.masters[0]).toMatchObject({ quorum: 1, configEpoch: 1, leaderEpoch: 1 });
    expect(readdirSync(sentinel.folder)).toEqual(['sentinel.conf']);
  }, 120_000);

  test('a folder that became read-only: SET answers an error, a failover still happens', async () => {
    const master = await lab.group(1);
    const turn = (folder: string): string => `(while [ ! -e ${lab.folder}/now ]; do sleep 0.05; done; until mount -o remount,ro,bind ${folder}; do sleep 0.01; done)`;
    const { sentinel } = await mounted(master, (folder) => `mount --bind ${folder} ${folder} && { ${turn(folder)} & }`);
    expect(textOf(await ask(sentinel, ...SET_QUORUM, '1'))).toBe('OK');
    writeFileSync(join(lab.folder, 'now'), '');
    let quorum = 1;
    await waitFor(() => `an error\n${lab.logs()}`, LIMIT_MS, async () => {
      quorum = 5 - Math.max(quorum, 2);
      return textOf(await ask(sentinel, ...SET_QUORUM, String(quorum))) === NOT_SAVED;
    });
    expect(readConfFile(sentinel.conf).conf.masters[0]?.quorum).not.toBe(quorum);
    // In memory it counts all the same.
    await ask(sentinel, ...SET_QUORUM, '1');
    await failsOver(sentinel, master);
    expect(readFileSync(sentinel.child.logPath, 'utf8')).toContain('Sentinel was not able to save the new configuration on disk');
  }, 120_000);

  test('a full disk: SET answers an error, the old file stays whole, and once there is room all is written', async () => {
    const master = await lab.group(1);
    const { sentinel, inside } = await mounted(master, (folder) =>
      [
        `cp ${folder}/sentinel.conf ${lab.folder}/copy`, `mount -t tmpfs -o size=64k none ${folder}`,
        `cp ${lab.folder}/copy ${folder}/sentinel.conf`, `cd ${folder}`,
      ].join(' && '));
    expect(textOf(await ask(sentinel, ...SET_QUORUM, '1'))).toBe('OK');
    // What it finds out by itself is written, too: there is nothing left to find once this replica is known.
    await waitFor('the replica in the file', 20_000, () => readFileSync(inside('sentinel.conf'), 'utf8').includes('known-replica'));
    const before = readFileSync(inside('sentinel.conf'), 'utf8');
    try {
      writeFileSync(inside('fill'), Buffer.alloc(1 << 20));
    } catch {
      // That is what it is for.
    }
    expect(textOf(await ask(sentinel, ...SET_QUORUM, '2'))).toBe(NOT_SAVED);
    expect(readFileSync(inside('sentinel.conf'), 'utf8')).toBe(before);
    // In memory it counts all the same.
    await ask(sentinel, ...SET_QUORUM, '1');
    await failsOver(sentinel, master);
    rmSync(inside('fill'));
    expect(textOf(await ask(sentinel, 'SENTINEL', 'FLUSHCONFIG'))).toBe('OK');
    const { host } = await masterNamedBy(sentinel.address);
    expect(readFileSync(inside('sentinel.conf'), 'utf8')).toContain(`sentinel monitor ${MASTER_NAME} ${host} `);
    expect(readdirSync(inside(''))).toEqual(['sentinel.conf']);
  }, 120_000);
});
