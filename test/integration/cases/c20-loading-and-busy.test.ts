/**
 * Case C20: signs of life that are no PONG. LOADING after a restart is no death, unless the operator set a limit; BUSY is ended by one
 * SCRIPT KILL; MASTERDOWN of a replica does not keep it from being promoted.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freePort, MASTER_NAME, waitFor } from '../lab.js';
import { addressOf, Bench, hurry, masterOf, open, ready, tell, type Started } from './bench.js';

const bench = new Bench();
const nodes: Started[] = [];
let sentinel: Started;
const KEYS = 15_000;

async function node(name: string, extra: readonly string[]): Promise<void> {
  const port = await freePort();
  const place = ['--port', String(port), '--bind', '127.0.0.1'];
  const args = [...place, '--enable-debug-command', 'yes', '--loading-process-events-interval-bytes', '1024', ...extra];
  nodes.push(await bench.redis(name, args, { access: { host: '127.0.0.1', port } }));
}

beforeAll(async () => {
  await node('master', []);
  await node('replica', ['--replicaof', '127.0.0.1', String(nodes[0]!.access.port), '--replica-serve-stale-data', 'no']);
  const port = await freePort();
  const monitor = [`sentinel monitor ${MASTER_NAME} 127.0.0.1 ${nodes[0]!.access.port} 2`, `sentinel down-after-milliseconds ${MASTER_NAME} 1500`];
  sentinel = await bench.sentinel('sentinel', [`port ${port}`, 'bind 127.0.0.1', ...monitor], { access: { host: '127.0.0.1', port } });
  await hurry([sentinel]);
  expect(await tell(nodes[0]!, 'DEBUG', 'POPULATE', String(KEYS))).toBe('OK');
  expect(await tell(nodes[0]!, 'SAVE')).toBe('OK');
  await ready(bench, [sentinel], 1);
}, 240_000);

afterAll(() => bench.stop());

/** SIGKILL and a start that takes a millisecond a key. */
async function restartSlowly(): Promise<void> {
  nodes[0]!.child.kill('SIGKILL');
  await nodes[0]!.child.ended;
  nodes[0]!.child = bench.children.start('master', [...nodes[0]!.argv, '--key-load-delay', '1000'], nodes[0]!.folder);
}

const infoOf = async (started: Started): Promise<string> => String(await tell(started, 'INFO'));
const attempts = (): number => (bench.logOf(sentinel).match(/\+try-failover/g) ?? []).length;

test('a script that runs for ever is killed, once, after down-after', async () => {
  // Nobody agrees (quorum 2): a failover would be quicker than the script's end.
  expect(await tell(nodes[0]!, 'CONFIG', 'SET', 'busy-reply-threshold', '100')).toBe('OK');
  // The laboratory's own limit for a command is shorter than the script's life.
  const client = await open(nodes[0]!.access);
  if (typeof client === 'string') throw new Error(client);
  client.options.commandTimeout = undefined as never;
  const running = client.eval('while true do end', 0).then(String, (fault: Error) => fault.message);
  await waitFor(() => `-sdown again\n${bench.logs()}`, 20_000, () => bench.logOf(sentinel).includes('-sdown master'));
  expect(await running).toMatch(/killed|timed out/i);
  client.disconnect();
  expect(await infoOf(nodes[0]!)).toMatch(/^role:master/m);
  expect(await tell(nodes[0]!, 'INFO', 'commandstats')).toMatch(/cmdstat_script\|kill:calls=1,/);
  expect((await masterOf(sentinel)).get('flags')).toBe('master');
}, 40_000);

test('LOADING for long: no failover without a limit', async () => {
  expect(await tell(sentinel, 'SENTINEL', 'SET', MASTER_NAME, 'quorum', '1')).toBe('OK');
  const before = attempts();
  await restartSlowly();
  await waitFor(() => `loading for 6 s\n${bench.logs()}`, 30_000, async () => {
    const info = await infoOf(nodes[0]!);
    return /^loading:1/m.test(info) && Number(/uptime_in_seconds:(\d+)/.exec(info)?.[1] ?? 0) >= 6;
  });
  expect(await tell(nodes[0]!, 'PING')).toMatch(/^LOADING/);
  expect((await masterOf(sentinel)).get('flags')).toBe('master');
  expect(attempts()).toBe(before);
  expect(await addressOf(sentinel)).toBe(`127.0.0.1:${nodes[0]!.access.port}`);
  await waitFor(() => `all keys there\n${bench.logs()}`, 60_000, async () => (await tell(nodes[0]!, 'DBSIZE')) === KEYS);
  await ready(bench, [sentinel], 1);
}, 120_000);

test('with master-reboot-down-after-period the replica is promoted, though it says MASTERDOWN', async () => {
  expect(await tell(sentinel, 'SENTINEL', 'SET', MASTER_NAME, 'master-reboot-down-after-period', '3000')).toBe('OK');
  await restartSlowly();
  await waitFor(() => `MASTERDOWN\n${bench.logs()}`, 20_000, async () => String(await tell(nodes[1]!, 'PING')).startsWith('MASTERDOWN'));
  await waitFor(() => `the promotion\n${bench.logs()}`, 30_000, async () => (await addressOf(sentinel)) === `127.0.0.1:${nodes[1]!.access.port}`);
  expect(bench.logOf(sentinel)).not.toContain('+sdown slave');
  expect(await tell(nodes[1]!, 'DBSIZE')).toBe(KEYS);
}, 60_000);
