/**
 * TLS everywhere: nodes, peers and our own port without a plain one beside it, in a group with a redis-sentinel that does the same.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { converse, freePort, MASTER_NAME, waitFor } from '../lab.js';
import { addressOf, Bench, hurry, masterOf, open, ready, tell, type Access, type Started } from './bench.js';
import { KEY_PASSWORD, makeCertificates } from './certificates.js';

const bench = new Bench();
const certificates = makeCertificates(bench.folder);
const { path } = certificates;
const sentinels: Started[] = [];
const nodes: Started[] = [];

const secured = async (): Promise<Access> => ({ host: '127.0.0.1', port: await freePort(), tls: certificates.client('node') });

async function node(name: string, master: number | null): Promise<void> {
  const access = await secured();
  const files = ['--tls-cert-file', path('node.crt'), '--tls-key-file', path('node.key'), '--tls-ca-cert-file', path('ca.crt')];
  const replicaOf = master === null ? [] : ['--replicaof', '127.0.0.1', String(master)];
  const place = ['--port', '0', '--tls-port', String(access.port), '--bind', '127.0.0.1', '--tls-replication', 'yes'];
  nodes.push(await bench.redis(name, [...place, ...files, ...replicaOf], { access }));
}

const group = (access: Access): string[] => [
  'port 0', `tls-port ${access.port}`, 'bind 127.0.0.1', 'tls-replication yes', `tls-cert-file ${path('node.crt')}`,
  `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${nodes[0]!.access.port} 2`, `sentinel down-after-milliseconds ${MASTER_NAME} 1500`,
];

beforeAll(async () => {
  await node('master', null);
  for (const name of ['replica1', 'replica2']) await node(name, nodes[0]!.access.port!);
  const first = await secured();
  const own = [
    ...[`tls-key-file ${path('locked.key')}`, `tls-key-file-pass ${KEY_PASSWORD}`],
    ...[`tls-ca-cert-dir ${certificates.authorityFolder}`, 'tls-protocols "TLSv1.3"'],
  ];
  sentinels.push(await bench.sentinel('ours1', [...group(first), ...own], { access: first }));
  const second = await secured();
  const another = [
    ...[`tls-key-file ${path('node.key')}`, `tls-ca-cert-file ${path('ca.crt')}`, 'tls-auth-clients optional'],
    ...[`tls-client-cert-file ${path('node.crt')}`, `tls-client-key-file ${path('locked.key')}`, `tls-client-key-file-pass ${KEY_PASSWORD}`],
  ];
  sentinels.push(await bench.sentinel('ours2', [...group(second), ...another], { access: second }));
  const third = await secured();
  const plain = [`tls-key-file ${path('node.key')}`, `tls-ca-cert-file ${path('ca.crt')}`];
  sentinels.push(await bench.stock('stock', [...group(third), ...plain], { access: third }));
  await hurry(sentinels);
  await ready(bench, sentinels, 2);
}, 240_000);

afterAll(() => bench.stop());

test('nobody without a certificate of ours gets in, and no word in the clear', async () => {
  const [strict, lenient] = [sentinels[0]!.access, sentinels[1]!.access];
  const attempt = (access: Access, name: 'node' | 'stranger' | null): Promise<unknown> =>
    tell({ access: { ...access, tls: certificates.client(name) } }, 'PING');
  expect(await attempt(strict, 'node')).toBe('PONG');
  expect(await attempt(strict, null)).not.toBe('PONG');
  expect(await attempt(strict, 'stranger')).not.toBe('PONG');
  expect(await attempt(lenient, 'node')).toBe('PONG');
  expect(await attempt(lenient, null)).toBe('PONG');
  expect(await attempt(lenient, 'stranger')).not.toBe('PONG');
  const plain = await converse(strict.port!, 'PING\r\n');
  expect(plain.received.toString('latin1')).not.toContain('PONG');
  expect(plain.closed).toBe(true);
  // Only what tls-protocols names.
  expect(typeof (await open({ ...strict, tls: { ...certificates.client('node'), maxVersion: 'TLSv1.2' } }))).toBe('string');
}, 40_000);

test('INFO names the TLS port, and a crash of the master is a failover like any other', async () => {
  expect(String(await tell(sentinels[0]!, 'INFO', 'server'))).toContain(`tcp_port:${sentinels[0]!.access.port}\r\n`);
  nodes[0]!.child.kill('SIGKILL');
  const old = `127.0.0.1:${nodes[0]!.access.port}`;
  let named: string[] = [];
  await waitFor(() => `one new master, not ${named.join(' ')}\n${bench.logs()}`, 30_000, async () => {
    named = await Promise.all(sentinels.map((each) => addressOf(each)));
    return new Set(named).size === 1 && named[0] !== old;
  });
  const promoted = nodes.find(({ access }) => named[0] === `127.0.0.1:${access.port}`)!;
  expect((await tell(promoted, 'ROLE')) as unknown[]).toContain('master');
  await waitFor(() => `both peers still known\n${bench.logs()}`, 20_000, async () => (await masterOf(sentinels[0]!)).get('num-other-sentinels') === '2');
}, 90_000);
