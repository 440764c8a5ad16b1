/**
 * How clients introduce themselves: raw bytes in RESP2 and RESP3, a load balancer's check, node-redis in its Sentinel mode, and
 * redis_exporter's reading of INFO.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, createSentinel } from '@redis/client';
import { Talk, show } from '../conformance/talk.js';
import { Lab, MASTER_NAME, ask, converse, textOf, waitFor, type RedisNode } from './lab.js';

const lab = new Lab();
let master: RedisNode;
let replica: RedisNode;
let port = 0;

beforeAll(async () => {
  master = await lab.group(1);
  replica = lab.nodes[1]!;
  for (let index = 0; index < 3; index++) await lab.dropIn(master);
  await lab.settled(master, 60_000);
  port = lab.sentinels[0]!.address.port;
}, 120_000);

afterAll(() => lab.stop());

describe('raw, in the order in which libraries say it', () => {
  const dialogues: readonly (readonly [title: string, lines: readonly (readonly [say: string, hear: RegExp])[]])[] = [
    ['RESP2', [
      ['HELLO 2', /"mode"\s+"sentinel"/], ['CLIENT SETNAME app', /^\+OK$/], ['CLIENT SETINFO LIB-NAME lib', /^\+OK$/],
      ['CLIENT SETINFO LIB-VER 1.0', /^\+OK$/],
      ['CLIENT ID', /^:\d+$/], ['CLIENT INFO', /lib-name=lib lib-ver=1\.0/], ['ECHO hi', /^"hi"$/], ['SELECT 0', /^\+OK$/],
      ['COMMAND COUNT', /^:15$/],
      ['ROLE', /^\*2\n {2}"sentinel"\n {2}\*1\n {4}"mymaster"$/], ['INFO', /redis_mode:sentinel/],
      ['SENTINEL GET-MASTER-ADDR-BY-NAME nobody', /^null array$/],
      ['SENTINEL NONSENSE', /^-ERR unknown subcommand/], ['PUBLISH x y', /^-ERR Only HELLO/], ['PING', /^\+PONG$/],
      ['SUBSCRIBE +switch-master', /^\*3/],
      ['PING', /^\*2\n {2}"pong"\n {2}""$/], ['PSUBSCRIBE *', /"psubscribe"/],
      ['SENTINEL MASTERS', /^-ERR Can't execute 'sentinel\|masters'/], ['QUIT', /^\+OK$/],
    ]],
    ['RESP3', [
      ['HELLO 3 AUTH default anything SETNAME app', /^%\d+\n.*"server" = "redis"/s], ['CLIENT GETNAME', /^"app"$/],
      ['CLIENT TRACKING off', /^\+OK$/],
      ['SENTINEL GET-MASTER-ADDR-BY-NAME nobody', /^null$/], ['SENTINEL MASTERS', /^\*1\n {2}%\d+/],
      ['SENTINEL SLAVES mymaster', /^\*1\n {2}%/],
      ['SENTINEL SENTINELS mymaster', /^\*2\n {2}%/], ['PSUBSCRIBE *', /^>3/], ['PING', /^\+PONG$/],
      ['SENTINEL MYID', /^"[0-9a-f]{40}"$/], ['QUIT', /^\+OK$/],
    ]],
  ];

  test.each(dialogues)('%s', async (_title, lines) => {
    const talk = await Talk.open(port);
    for (const [say, hear] of lines) expect(`${say}: ${show(await talk.ask(...say.split(' ')))}`.slice(say.length + 2)).toMatch(hear);
    expect(await talk.next()).toBeNull();
    talk.close();
  });

  test('a wrong password is refused and the connection stays', async () => {
    const talk = await Talk.open(port);
    expect(show(await talk.ask('HELLO', '3', 'AUTH', 'nobody', 'x'))).toMatch(/^-WRONGPASS/);
    expect(show(await talk.ask('PING'))).toBe('+PONG');
    talk.close();
  });

  test('a load balancer\'s check: PING, get-master, QUIT in one segment, closed by us', async () => {
    const { received, closed } = await converse(port, `PING\r\nSENTINEL get-master-addr-by-name ${MASTER_NAME}\r\nQUIT\r\n`, 5000);
    const { host, port: masterPort } = master.address;
    const bulks = [host, String(masterPort)].map((text) => `$${text.length}\r\n${text}\r\n`).join('');
    expect(received.toString()).toBe(`+PONG\r\n*2\r\n${bulks}+OK\r\n`);
    expect(closed).toBe(true);
  });
});

test('redis_exporter finds the group: cut at commas, each part at its equals sign, slaves and sentinels are numbers', async () => {
  const lines = textOf(await ask(lab.sentinels[0]!, 'INFO')).split('\r\n').map((line) => line.split(/:(.*)/s));
  const values = new Map(lines.flatMap(([name = '', value]) => (value === undefined ? [] : [[name, value] as const])));
  expect(values.get('sentinel_masters')).toBe('1');
  for (const name of ['tilt', 'running_scripts', 'scripts_queue_length', 'simulate_failure_flags'].map((each) => `sentinel_${each}`)) {
    expect([name, values.get(name)]).toEqual([name, expect.stringMatching(/^\d+$/)]);
  }
  const parts = (values.get('master0') ?? '').split(',').map((part) => part.split('='));
  const address = `${master.address.host}:${master.address.port}`;
  expect(parts).toEqual([['name', MASTER_NAME], ['status', 'ok'], ['address', address], ['slaves', '1'], ['sentinels', '3']]);
});

describe('node-redis', () => {
  test.each([2, 3] as const)('a plain client, RESP%i', async (RESP) => {
    const client = createClient({ socket: { host: '127.0.0.1', port }, RESP, name: 'app' });
    await client.connect();
    expect(await client.ping()).toBe('PONG');
    const { host, port: masterPort } = master.address;
    expect(await client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME])).toEqual([host, String(masterPort)]);
    expect(await client.sendCommand(['CLIENT', 'GETNAME'])).toBe('app');
    await client.close();
  }, 30_000);

  test('its Sentinel mode writes to the master and follows a failover', async () => {
    const sentinelRootNodes = lab.sentinels.map(({ address }) => ({ ...address }));
    const sentinel = createSentinel({ name: MASTER_NAME, sentinelRootNodes, scanInterval: 500 });
    sentinel.on('error', () => undefined);
    await sentinel.connect();
    try {
      await sentinel.set('key', 'first');
      expect(textOf(await ask(master, 'GET', 'key'))).toBe('first');
      expect(textOf(await ask(lab.sentinels[1]!, 'SENTINEL', 'FAILOVER', MASTER_NAME))).toBe('OK');
      await waitFor(() => `a write on ${replica.name}\n${lab.logs()}`, 60_000, async () => {
        await sentinel.set('key', 'second').catch(() => undefined);
        const role = textOf(await ask(replica, 'INFO', 'replication'));
        return role.includes('role:master') && textOf(await ask(replica, 'GET', 'key')) === 'second';
      });
    } finally {
      await sentinel.destroy();
    }
  }, 120_000);
});
