/**
 * Case C19: nodes that know nobody by default and one user with exactly the rules of the documents; sentinels that want a user and a
 * password of each other; and one of three that has the wrong one.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { must } from '../../../src/assert.js';
import { freePort, MASTER_NAME, waitFor } from '../lab.js';
import { addressOf, Bench, fieldsOf, hurry, masterOf, tell, type Started } from './bench.js';

const bench = new Bench();
const nodes: Started[] = [];
const sentinels: Started[] = [];

/** The rules for a user, as docs/users.md prints them. */
function rulesOf(user: string): string[] {
  const text = readFileSync(new URL('../../../docs/users.md', import.meta.url), 'utf8');
  const line = must(new RegExp(`^user ${user} (.*)$`, 'm').exec(text)?.[1], `no user ${user} in docs/users.md`);
  return line.split(' ').filter((word) => word !== 'on' && !word.startsWith('>'));
}

async function node(name: string): Promise<void> {
  const port = await freePort();
  const master = nodes[0]?.access.port;
  const users = [
    ...['--user', 'default', 'off', '--user', 'sen', 'on', '>n0de', ...rulesOf('sentinel')],
    ...['--user', 'rep', 'on', '>r3p', '-@all', '+psync', '+replconf', '+ping', '--user', 'ops', 'on', '>0ps', '~*', '&*', '+@all'],
  ];
  const follow = ['--masteruser', 'rep', '--masterauth', 'r3p', ...(master === undefined ? [] : ['--replicaof', '127.0.0.1', String(master)])];
  nodes.push(await bench.redis(name, ['--port', String(port), '--bind', '127.0.0.1', ...users, ...follow], {
    access: { host: '127.0.0.1', port, username: 'ops', password: '0ps' },
  }));
}

async function sentinel(name: string, peerPassword: string): Promise<void> {
  const port = await freePort();
  const lines = [
    ...[`port ${port}`, 'bind 127.0.0.1', 'user default off'],
    `user peer on >p33r ${rulesOf('peer').join(' ')}`,
    ...['user ops on >0ps ~* &* +@all', 'sentinel sentinel-user peer', `sentinel sentinel-pass ${peerPassword}`],
    ...[`sentinel monitor ${MASTER_NAME} 127.0.0.1 ${nodes[0]!.access.port} 2`, `sentinel down-after-milliseconds ${MASTER_NAME} 2000`],
    ...[`sentinel auth-user ${MASTER_NAME} sen`, `sentinel auth-pass ${MASTER_NAME} n0de`],
  ];
  sentinels.push(await bench.sentinel(name, lines, { access: { host: '127.0.0.1', port, username: 'ops', password: '0ps' } }));
}

beforeAll(async () => {
  for (const name of ['master', 'replica']) await node(name);
  await sentinel('g1', 'p33r');
  await sentinel('g2', 'wrong');
  await sentinel('g3', 'p33r');
  await hurry(sentinels);
}, 240_000);

afterAll(() => bench.stop());

/** Flags of the peers as one sentinel sees them, by their port. */
async function peersOf(viewer: Started): Promise<Map<number, string>> {
  const reply = await tell(viewer, 'SENTINEL', 'SENTINELS', MASTER_NAME);
  const peers = Array.isArray(reply) ? reply.map(fieldsOf) : [];
  return new Map(peers.map((peer) => [Number(peer.get('port')), peer.get('flags') ?? '']));
}

test('the one with the wrong password says so, and sees the others down; they do not suffer from it', async () => {
  const [g1, g2, g3] = sentinels as [Started, Started, Started];
  let seen: string[] = [];
  await waitFor(() => `views ${seen.join(' | ')}\n${bench.logs()}`, 40_000, async () => {
    const [byFirst, bySecond] = await Promise.all([peersOf(g1), peersOf(g2)]);
    seen = [...byFirst, ...bySecond].map(String);
    const isUp = [g2, g3].every(({ access }) => byFirst.get(access.port!) === 'sentinel');
    return isUp && [g1, g3].every(({ access }) => bySecond.get(access.port!)?.includes('s_down') === true);
  });
  expect(bench.logOf(g2)).toMatch(/refuses our commands: .*(?:WRONGPASS|NOAUTH)/);
  expect(bench.logOf(g1)).not.toContain('refuses our commands');
  expect((await masterOf(g2)).get('flags')).toBe('master');
}, 60_000);

test('with all the rules nobody complains; with one taken away the log says which', async () => {
  const [g1, replica] = [sentinels[0]!, nodes[1]!];
  expect(bench.logOf(g1)).not.toContain('lacks');
  await tell(replica, 'ACL', 'SETUSER', 'sen', '-config|rewrite', '-client|pause');
  // A node is asked once a minute at most; a new sentinel asks at once.
  g1.child.kill('SIGKILL');
  await bench.restart(g1);
  const said = `127.0.0.1:${replica.access.port}: user sen lacks +config|rewrite: a failover would fail there`;
  await waitFor(() => `${said}\n${bench.logs()}`, 30_000, () => Promise.resolve(bench.logOf(g1).includes(said)));
  await tell(replica, 'ACL', 'SETUSER', 'sen', '+config|rewrite', '+client|pause');
}, 60_000);

test('nobody else gets anything from a sentinel or a node', async () => {
  const stranger = { host: '127.0.0.1', port: sentinels[0]!.access.port! };
  expect(await tell({ access: stranger }, 'SENTINEL', 'MASTERS')).toMatch(/^NOAUTH/);
  expect(await tell({ access: { ...stranger, username: 'peer', password: 'p33r' } }, 'ACL', 'LIST')).toMatch(/^NOPERM/);
}, 20_000);

test('the failover works with the two that have the right one, and all three follow', async () => {
  nodes[0]!.child.kill('SIGKILL');
  const expected = `127.0.0.1:${nodes[1]!.access.port}`;
  let named: string[] = [];
  await waitFor(() => `${expected} everywhere, not ${named.join(' ')}\n${bench.logs()}`, 40_000, async () => {
    named = await Promise.all(sentinels.map((each) => addressOf(each)));
    return named.every((address) => address === expected);
  });
  expect(((await tell(nodes[1]!, 'ROLE')) as unknown[])[0]).toBe('master');
}, 60_000);
