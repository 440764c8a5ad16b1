/**
 * The main job: the master dies, three agents agree, every DNS answers with the new one, and the old one comes back as a replica
 * whose address no client is ever given again.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { masterNamedBy } from '../../src/demo/agreement.js';
import { Lab, MASTER_NAME, NAME, answerOf, ask, query, textOf, textsOf, roleOf, waitFor, type RedisNode } from './lab.js';

const lab = new Lab();
const FAILOVER_LIMIT_MS = 15_000;
const REJOIN_LIMIT_MS = 30_000;
let old: RedisNode;
let promoted: RedisNode;
const events: string[] = [];
let listener: Redis;

beforeAll(async () => {
  old = await lab.group(2, ['--appendonly', 'yes', '--appendfsync', 'no']);
  for (let index = 0; index < 3; index++) await lab.agent(old);
  await lab.settled(old, 40_000);
  listener = new Redis({ ...lab.sentinels[0]!.address, protocol: 2 });
  listener.on('pmessage', (_pattern: string, channel: string, message: string) => events.push(`${channel} ${message}`));
  await listener.psubscribe('*');
}, 90_000);

afterAll(async () => {
  listener.disconnect();
  await lab.stop();
});

/** The address of the SRV record's target, as it comes along. */
async function serviceHost(dnsPort: number): Promise<string> {
  const reply = await query(dnsPort, `_redis._tcp.${NAME}`, 'SRV');
  return (reply?.additionals ?? []).map((each) => ('data' in each ? String(each.data) : '')).join(' ');
}

/** Everything that any agent tells clients at this moment. */
async function told(): Promise<string[]> {
  return Promise.all(lab.sentinels.flatMap(({ address, dnsPort }) => [
    answerOf(dnsPort!, NAME, 'A'),
    serviceHost(dnsPort!),
    masterNamedBy(address).then(({ host }) => host),
  ]));
}

describe('the master is killed', () => {
  test('all agents answer with one new master, by DNS and by SENTINEL', async () => {
    expect(textOf(await ask(old, 'SET', 'before', 'the crash'))).toBe('OK');
    expect(await ask(old, 'WAIT', '2', '5000')).toEqual({ kind: 'integer', value: 2 });
    old.child.kill('SIGKILL');
    let last: string[] = [];
    await waitFor(() => `one new master everywhere, not ${last.join(' ')}\n${lab.logs()}`, FAILOVER_LIMIT_MS, async () => {
      last = await told();
      return new Set(last).size === 1 && last[0] !== old.address.host;
    });
    promoted = lab.nodes.find(({ address }) => address.host === last[0])!;
    expect(lab.nodes).toContain(promoted);
    expect(textsOf(await ask(promoted, 'ROLE'))[0]).toBe('master');
    expect(textOf(await ask(promoted, 'GET', 'before'))).toBe('the crash');
  }, 30_000);

  test('the other replica follows it, and the switch is announced once', async () => {
    const other = lab.nodes.find((node) => node !== old && node !== promoted)!;
    await waitFor(() => `${other.name} following ${promoted.name}\n${lab.logs()}`, FAILOVER_LIMIT_MS, async () => {
      const [role, host, , link] = await roleOf(other);
      return role === 'slave' && host === promoted.address.host && link === 'connected';
    });
    const { host, port } = promoted.address;
    const expected = `+switch-master ${MASTER_NAME} ${old.address.host} ${old.address.port} ${host} ${port}`;
    await waitFor(() => `${expected} among ${events.join('; ')}`, FAILOVER_LIMIT_MS, () => events.includes(expected));
    expect(events.filter((event) => event.startsWith('+switch-master'))).toEqual([expected]);
    expect(events).toContain(`+sdown master ${MASTER_NAME} ${old.address.host} ${old.address.port}`);
  }, 40_000);
});

describe('the old master comes back with its old data, as a master', () => {
  test('it is demoted, keeps what the new one holds, and its address is never told', async () => {
    expect(textOf(await ask(promoted, 'SET', 'after', 'the crash'))).toBe('OK');
    // Dead already, unless this is the second try.
    old.child.kill('SIGKILL');
    await old.child.ended;
    await lab.restartRedis(old);
    expect(textsOf(await ask(old, 'ROLE'))[0]).toBe('master');
    expect(textOf(await ask(old, 'GET', 'before'))).toBe('the crash');

    let polls = 0;
    const untrue: string[] = [];
    await waitFor(() => `${old.name} demoted\n${lab.logs()}`, REJOIN_LIMIT_MS, async () => {
      polls++;
      untrue.push(...(await told()).filter((address) => address !== promoted.address.host));
      const [role, host, , link] = await roleOf(old);
      return role === 'slave' && host === promoted.address.host && link === 'connected';
    });
    expect(untrue).toEqual([]);
    expect(polls).toBeGreaterThan(10);
    expect(textOf(await ask(old, 'GET', 'after'))).toBe('the crash');
    expect(textOf(await ask(promoted, 'GET', 'after'))).toBe('the crash');
    await lab.settled(promoted, REJOIN_LIMIT_MS);
  }, 90_000);
});
