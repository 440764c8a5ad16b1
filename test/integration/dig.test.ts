/**
 * What dig says on a running agent: every kind of answer, good and bad, by UDP and TCP.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Lab, NAME, program, type RedisNode } from './lab.js';

const lab = new Lab();
let master: RedisNode;

beforeAll(async () => {
  master = await lab.group(1);
  for (let index = 0; index < 3; index++) await lab.agent(master);
  await lab.settled(master, 40_000);
}, 90_000);

afterAll(() => lab.stop());

interface Dug {
  readonly status: string;
  readonly flags: readonly string[];
  /** Section → its records, blanks squeezed. */
  readonly records: ReadonlyMap<string, readonly string[]>;
}

async function dig(...args: string[]): Promise<Dug> {
  const server = ['@127.0.0.1', '-p', String(lab.sentinels[0]!.dnsPort), '+tries=1', '+time=3'];
  const { stdout } = await promisify(execFile)(program('dig'), [...server, ...args]);
  const records = new Map<string, string[]>();
  let section = '';
  for (const line of stdout.split('\n')) {
    const opened = /^;; (\w+) SECTION:/.exec(line)?.[1];
    if (opened !== undefined) section = opened;
    else if (line === '' || line.startsWith(';')) continue;
    else records.set(section, [...(records.get(section) ?? []), line.replace(/\s+/g, ' ')]);
  }
  return { status: /status: (\w+)/.exec(stdout)?.[1] ?? '', flags: (/flags: ([a-z ]+);/.exec(stdout)?.[1] ?? '').split(' '), records };
}

describe.each([['udp', '+notcp'], ['tcp', '+tcp']])('by %s', (_title, transport) => {
  test('A: the master', async () => {
    const { status, flags, records } = await dig(transport, NAME, 'A');
    expect([status, flags.includes('aa'), flags.includes('ra')]).toEqual(['NOERROR', true, false]);
    expect(records.get('ANSWER')).toEqual([`${NAME}. 1 IN A ${master.address.host}`]);
  });

  test('SRV: its port, and a target inside the zone whose address comes along', async () => {
    const { records } = await dig(transport, `_redis._tcp.${NAME}`, 'SRV');
    const [record = ''] = records.get('ANSWER') ?? [];
    const target = record.split(' ').at(-1) ?? '';
    expect(record).toMatch(new RegExp(`^_redis\\._tcp\\.${NAME}\\. 1 IN SRV 0 \\d+ ${master.address.port} n-\\S+\\.${NAME}\\.$`));
    expect(records.get('ADDITIONAL')).toEqual([`${target} 1 IN A ${master.address.host}`]);
    expect((await dig(transport, target, 'A')).records.get('ANSWER')).toEqual([`${target} 1 IN A ${master.address.host}`]);
  });

  test('AAAA: the name exists, the type does not', async () => {
    const { status, flags, records } = await dig(transport, NAME, 'AAAA');
    expect([status, flags.includes('aa'), records.get('ANSWER')]).toEqual(['NOERROR', true, undefined]);
    expect(records.get('AUTHORITY')).toEqual([expect.stringMatching(/^redis\.test\. 1 IN SOA /)]);
  });

  test('an unknown name: NXDOMAIN with the SOA', async () => {
    const { status, flags, records } = await dig(transport, 'nobody.redis.test', 'A');
    expect([status, flags.includes('aa')]).toEqual(['NXDOMAIN', true]);
    expect(records.get('AUTHORITY')).toEqual([expect.stringMatching(/^redis\.test\. 1 IN SOA /)]);
  });

  test('a foreign name: REFUSED, without authority', async () => {
    const { status, flags, records } = await dig(transport, 'example.org', 'A');
    expect([status, flags.includes('aa'), records.size]).toEqual(['REFUSED', false, 0]);
  });

  test('replicas, TXT, SOA and NS', async () => {
    const answer = async (name: string, type: string): Promise<unknown> => (await dig(transport, name, type)).records.get('ANSWER');
    expect(await answer(`replica.${NAME}`, 'A')).toEqual([`replica.${NAME}. 1 IN A ${lab.nodes[1]!.address.host}`]);
    expect(await answer(NAME, 'TXT')).toEqual([`${NAME}. 1 IN TXT "epoch=0 phase=steady"`]);
    expect(await answer('redis.test', 'SOA')).toEqual([expect.stringMatching(/ IN SOA /)]);
    expect(await answer('redis.test', 'NS')).toEqual([expect.stringMatching(/ IN NS ns\.redis\.test\.$/)]);
  });

  test('the case of the question comes back', async () => {
    const asked = 'MyMaster.Redis.TEST';
    expect((await dig(transport, asked, 'A')).records.get('ANSWER')).toEqual([`${asked}. 1 IN A ${master.address.host}`]);
  });
});
