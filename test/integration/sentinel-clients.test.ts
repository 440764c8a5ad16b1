/**
 * Clients that speak the Sentinel protocol find master and replicas through our agents: ioredis, redis-cli, and the steps that
 * redis-py takes.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Lab, MASTER_NAME, ask, fieldsOf, program, textOf, textsOf, waitFor, type RedisNode } from './lab.js';

const lab = new Lab();
let master: RedisNode;
let replica: RedisNode;

beforeAll(async () => {
  master = await lab.group(1);
  replica = lab.nodes[1]!;
  for (let index = 0; index < 3; index++) await lab.agent(master);
  await lab.settled(master, 40_000);
}, 90_000);

afterAll(() => lab.stop());

describe('redis-cli', () => {
  const cli = async (...args: string[]): Promise<string> => {
    const { port } = lab.sentinels[0]!.address;
    return (await promisify(execFile)(program('redis-cli'), ['-p', String(port), ...args])).stdout.trimEnd();
  };

  test('gets the address by name', async () => {
    expect(await cli('sentinel', 'get-master-addr-by-name', MASTER_NAME)).toBe(`${master.address.host}\n${master.address.port}`);
  });

  test('gets nothing for an unknown name', async () => {
    expect(await cli('sentinel', 'get-master-addr-by-name', 'nobody')).toBe('');
  });

  test('reads INFO sentinel', async () => {
    const { host, port } = master.address;
    expect(await cli('info', 'sentinel')).toContain(`master0:name=${MASTER_NAME},status=ok,address=${host}:${port},slaves=1,sentinels=3`);
  });
});

describe('the steps of redis-py', () => {
  test('discover_master: SENTINEL MASTERS, flags, enough sentinels, then ROLE', async () => {
    const reply = await ask(lab.sentinels[1]!, 'SENTINEL', 'MASTERS');
    const masters = reply.kind === 'array' ? reply.items.map(fieldsOf) : [];
    expect(masters.map((each) => each.get('name'))).toEqual([MASTER_NAME]);
    const [state] = masters;
    const flags = new Set(state?.get('flags')?.split(','));
    expect([flags.has('master'), flags.has('s_down'), flags.has('o_down')]).toEqual([true, false, false]);
    expect(Number(state?.get('num-other-sentinels'))).toBe(2);
    expect({ host: state?.get('ip'), port: Number(state?.get('port')) }).toEqual(master.address);
    expect(textsOf(await ask(master, 'ROLE'))[0]).toBe('master');
  });

  test('discover_slaves: SENTINEL SLAVES, without those that are down', async () => {
    const reply = await ask(lab.sentinels[1]!, 'SENTINEL', 'SLAVES', MASTER_NAME);
    const replicas = reply.kind === 'array' ? reply.items.map(fieldsOf) : [];
    expect(replicas.map((each) => ({ host: each.get('ip'), port: Number(each.get('port')) }))).toEqual([replica.address]);
    expect(replicas[0]?.get('flags')).toBe('slave');
  });

  test('an unknown name is an error reply', async () => {
    const reply = await ask(lab.sentinels[1]!, 'SENTINEL', 'SLAVES', 'nobody');
    expect([reply.kind, textOf(reply)]).toEqual(['error', 'ERR No such master with that name']);
  });
});

describe('ioredis in sentinel mode', () => {
  const clients: Redis[] = [];
  const client = (role: 'master' | 'slave'): Redis => {
    const sentinels = lab.sentinels.map(({ address }) => ({ ...address }));
    const made = new Redis({ sentinels, name: MASTER_NAME, role, sentinelRetryStrategy: () => 100, retryStrategy: () => 100 });
    made.on('error', () => undefined);
    clients.push(made);
    return made;
  };
  /** The node at the other end says which address it is bound to. */
  const addressOf = async (redis: Redis): Promise<string> => String((await redis.config('GET', 'bind') as string[])[1]);

  afterAll(() => clients.forEach((each) => each.disconnect()));

  test('writes to the master, reads from the replica', async () => {
    expect(await addressOf(client('master'))).toBe(master.address.host);
    expect(await addressOf(client('slave'))).toBe(replica.address.host);
  }, 30_000);

  test('follows a manual failover', async () => {
    const writer = client('master');
    await writer.set('key', 'first');
    expect(textOf(await ask(lab.sentinels[2]!, 'SENTINEL', 'FAILOVER', MASTER_NAME))).toBe('OK');
    await waitFor(() => `the writer at ${replica.name}\n${lab.logs()}`, 40_000, async () => {
      try {
        await writer.set('key', 'second');
        return (await addressOf(writer)) === replica.address.host;
      } catch {
        // Read-only or cut off, until it has found the new master.
        return false;
      }
    });
    expect(textOf(await ask(replica, 'GET', 'key'))).toBe('second');
  }, 60_000);
});
