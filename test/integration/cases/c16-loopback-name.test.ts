/**
 * Case C16: on one machine the master's name means loopback. Its agent tells clients nothing, says why and who sees it otherwise; the
 * others are not touched by it.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { answerOf, freePort, MASTER_NAME, NAME, waitFor } from '../lab.js';
import { Bench, hurry, outsideAddress, tell, type Started } from './bench.js';
import { Names } from './names.js';

const bench = new Bench();
const agents: (Started & { readonly dnsPort: number })[] = [];
const LOOPBACK = '127.0.1.1';
const outside = outsideAddress();
let port = 0;

beforeAll(async () => {
  port = await freePort([LOOPBACK, outside]);
  const args = ['--port', String(port), '--bind', LOOPBACK, outside, '--protected-mode', 'no'];
  await bench.redis('master', args, { access: { host: LOOPBACK, port } });
  for (const [name, ip] of [['g1', LOOPBACK], ['g2', outside], ['g3', outside]] as const) {
    const [own, dnsPort] = [await freePort(['127.0.0.1', outside]), await freePort()];
    const lines = [
      // All three are on one machine here; each has the address that its peers would see from elsewhere.
      ...[`port ${own}`, `sentinel announce-ip ${outside}`, 'sentinel resolve-hostnames yes'],
      ...[`sentinel monitor ${MASTER_NAME} host-a ${port} 2`, `sentinel down-after-milliseconds ${MASTER_NAME} 5000`],
    ];
    const started = await bench.agent(name, lines, [`dns: { listen: ["127.0.0.1:${dnsPort}"], zone: redis.test., ttl: 1s }`], {
      access: { host: '127.0.0.1', port: own },
      wrap: new Names(bench.folder, { 'host-a': ip }).wrap,
    });
    agents.push({ ...started, dnsPort });
  }
  await hurry(agents);
}, 240_000);

afterAll(() => bench.stop());

test('two publish the real address; the third publishes nothing, and logs the fault once and the other view', async () => {
  const [g1, g2, g3] = agents as [(typeof agents)[0], (typeof agents)[0], (typeof agents)[0]];
  let answers: string[] = [];
  await waitFor(() => `${outside} at g2 and g3, not ${answers.join(' ')}\n${bench.logs()}`, 40_000, async () => {
    answers = await Promise.all([g2, g3].map(({ dnsPort }) => answerOf(dnsPort, NAME, 'A')));
    return answers.every((answer) => answer === outside);
  });
  const views = (): number => (bench.logOf(g1).match(/both in configuration 0: one address is wrong/g) ?? []).length;
  await waitFor(() => `the other view in the log of g1\n${bench.logs()}`, 20_000, () => views() === 2);
  expect(bench.logOf(g1)).toContain(`names ${outside}:${port} as the master ${MASTER_NAME}, we ${LOOPBACK}:${port}`);
  for (let ask = 0; ask < 20; ask++) expect(await answerOf(g1.dnsPort, NAME, 'A')).not.toMatch(/^127\./);
  expect((bench.logOf(g1).match(/loopback/g) ?? []).length).toBeLessThanOrEqual(3);
  expect(await tell(g2, 'SENTINEL', 'CKQUORUM', MASTER_NAME)).toMatch(/^OK 3 usable/);
}, 90_000);
