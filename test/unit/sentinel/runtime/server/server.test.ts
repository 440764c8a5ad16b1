/**
 * Connections: order of replies, framing, garbage, limits, listeners.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { AgentError, EXIT, FatalError } from '../../../../../src/errors.js';
import { freePort } from '../../../../../src/demo/free-port.js';
import { SentinelServer } from '../../../../../src/sentinel/runtime/server/server.js';
import { encodeCommand } from '../../../../../src/sentinel/wire/resp-encoder.js';
import { FEEDINGS, chunksOf } from '../../wire/feeding.js';
import type { LogLine, Rig } from './rig.js';
import { FakeGate, RawClient, optionsFor, startRig, waitFor } from './rig.js';

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

describe('order', () => {
  const lines = ['PING', 'SENTINEL masters', 'PING a', 'SENTINEL master x', 'ROLE', 'nosuch', 'SENTINEL myid', 'PING b'];
  const replies = ['+PONG', '"SENTINEL masters"', '"a"', '"SENTINEL master x"', '"ROLE"',
    "-ERR unknown command 'nosuch', with args beginning with: ", '"SENTINEL myid"', '"b"'];

  for (const mode of ['atOnce', 'later'] as const) {
    for (const feeding of FEEDINGS) {
      test(`of replies is that of the commands: core answers ${mode}, bytes come ${feeding}`, async () => {
        rig = await startRig();
        rig.gate.mode = mode;
        const client = await rig.client();
        const bytes = Buffer.concat(lines.map((line, index) =>
          index % 2 === 0 ? encodeCommand(line.split(' ')) : Buffer.from(`${line}\r\n`)));
        for (const chunk of chunksOf(bytes, feeding)) client.send(chunk);
        expect(await client.next(replies.length)).toEqual(replies);
      });
    }
  }

  test('holds while one client waits: others go on, its own next commands do not reach the gate', async () => {
    rig = await startRig();
    rig.gate.mode = 'held';
    const [slow, quick] = [await rig.client(), await rig.client()];
    slow.send('SENTINEL masters\r\nSENTINEL myid\r\nPING\r\n');
    await waitFor('the first command', () => rig?.gate.held.length === 1);
    expect(await quick.say('PING')).toBe('+PONG');
    expect(slow.replies).toEqual([]);
    for (let index = 0; index < 2; index++) {
      await waitFor('the next command', () => rig?.gate.held.length === index + 1);
      const { client, argv } = rig.gate.held[index] ?? { client: 0, argv: [] };
      rig.gate.answer(client, argv);
    }
    expect(await slow.next(3)).toEqual(['"SENTINEL masters"', '"SENTINEL myid"', '+PONG']);
  });

  test('a reply for a client that is gone, or that waits for none, is dropped', async () => {
    rig = await startRig();
    rig.gate.mode = 'held';
    const client = await rig.client();
    client.send('SENTINEL masters\r\n');
    await waitFor('the command', () => rig?.gate.held.length === 1);
    client.socket.resetAndDestroy();
    const other = await rig.client();
    const id = rig.gate.held[0]?.client ?? 0;
    await waitFor('the end of the client', () => rig?.log.some((line) => line.message === 'client gone') ?? false);
    rig.gate.answer(id, ['late']);
    expect(await other.say('PING')).toBe('+PONG');
    rig.gate.answer(id + 1, ['unasked']);
    expect(await other.say('PING x')).toBe('"x"');
  });

  test('a client that says all and closes its end still gets all', async () => {
    rig = await startRig();
    rig.gate.mode = 'later';
    const client = await rig.client();
    client.socket.end('PING\r\nSENTINEL masters\r\nPING\r\n');
    expect(await client.next(3)).toEqual(['+PONG', '"SENTINEL masters"', '+PONG']);
    await waitFor('the close', () => client.isClosed);
  });

  test('a deep pipeline with a slow reader is answered whole and in order', async () => {
    rig = await startRig();
    const client = await rig.client();
    const text = 'x'.repeat(2000);
    client.socket.pause();
    const count = 2000;
    for (let index = 0; index < count; index++) client.send(encodeCommand(['PING', `${index}-${text}`]));
    await new Promise((done) => setImmediate(done));
    client.socket.resume();
    await waitFor('all replies', () => client.replies.length === count);
    expect(client.replies.every((reply, index) => reply.startsWith(`"${index}-`))).toBe(true);
  });
});

describe('garbage ends only its own connection', () => {
  test.each([
    ['*x\r\n', '-ERR Protocol error: invalid multibulk length'],
    ['*1\r\nx\r\n', "-ERR Protocol error: expected '$', got 'x'"],
    ['*1\r\n$-1\r\n', '-ERR Protocol error: invalid bulk length'],
    ['"abc\r\n', '-ERR Protocol error: unbalanced quotes in request'],
    ['x'.repeat(70_000), '-ERR Protocol error: too big inline request'],
    ['PING\r\n*x\r\nPING\r\n', '+PONG|-ERR Protocol error: invalid multibulk length'],
  ])('row %#', async (bytes, expected) => {
    rig = await startRig();
    const client = await rig.client();
    client.send(bytes);
    await waitFor('the close', () => client.isClosed);
    expect(client.replies.join('|')).toBe(expected);
    expect(await (await rig.client()).say('PING')).toBe('+PONG');
  });

  test.each(['POST / HTTP/1.1\r\nHost: x\r\n\r\n', 'Host: x\r\n', '*1\r\n$4\r\npost\r\n'])('HTTP gets no answer: %j', async (bytes) => {
    rig = await startRig();
    const client = await rig.client();
    client.send(`PING\r\n${bytes}PING\r\n`);
    await waitFor('the close', () => client.isClosed);
    expect(client.replies.filter((reply) => reply !== '+PONG')).toEqual([]);
    expect(client.replies.length).toBeLessThan(2);
  });

  test('a hundred of them make one line of log, and the listener lives', async () => {
    rig = await startRig();
    for (let index = 0; index < 100; index++) {
      const client = await RawClient.connect(rig.port);
      client.send(Buffer.from([42, 0, 255, 13, 10]));
      await waitFor('the close', () => client.isClosed);
    }
    expect(rig.log.filter((line) => line.level === 'warn')).toHaveLength(1);
    expect(await (await rig.client()).say('PING')).toBe('+PONG');
  });
});

describe('strangers', () => {
  test('get small limits until they log in', async () => {
    rig = await startRig({ requirePass: 'secret' });
    const big = Buffer.from('*11\r\n');
    const stranger = await rig.client();
    stranger.send(big);
    expect(await stranger.next(1)).toEqual(['-ERR Protocol error: unauthenticated multibulk length']);
    const friend = await rig.client();
    friend.send(Buffer.concat([encodeCommand(['AUTH', 'secret']), encodeCommand(['nosuch', ...'abcdefghijkl'])]));
    const [ok, unknown] = await friend.next(2);
    expect(ok).toBe('+OK');
    expect(unknown).toMatch(/^-ERR unknown command 'nosuch'/);
  });

  test('one too many is told so', async () => {
    rig = await startRig({ maxClients: 2 });
    const [first] = [await rig.client(), await rig.client()];
    const third = await rig.client();
    expect(await third.next(1)).toEqual(['-ERR max number of clients reached']);
    await waitFor('the close', () => third.isClosed);
    expect(await first?.say('PING')).toBe('+PONG');
    first?.socket.destroy();
    await waitFor('its end', () => rig?.log.some((line) => line.message === 'client gone') ?? false);
    expect(await (await rig.client()).say('PING')).toBe('+PONG');
  });

  test('idle ones are ended, subscribers are not', async () => {
    rig = await startRig({ timeoutSeconds: 1 });
    const [idle, subscriber] = [await rig.client(), await rig.client()];
    await subscriber.say('SUBSCRIBE x');
    await waitFor('the close of the idle one', () => idle.isClosed);
    expect(subscriber.isClosed).toBe(false);
  });

  test('protected mode serves this machine', async () => {
    rig = await startRig({ protectedMode: true });
    expect(await (await rig.client()).say('PING')).toBe('+PONG');
  });
});

describe('listening', () => {
  const serverAt = (changes: object): SentinelServer => {
    const log: LogLine[] = [];
    return new SentinelServer({ ...optionsFor(0, log), ...changes }, new FakeGate());
  };

  test('a taken port is fatal, names the address, and leaves nothing open', async () => {
    const port = await freePort();
    const squatter = createServer().listen(port, '127.0.0.1');
    await once(squatter, 'listening');
    const server = serverAt({ port, bind: ['127.0.0.2', '127.0.0.1'] });
    const fault = await server.listen().catch((cause: unknown) => cause);
    expect(fault).toBeInstanceOf(FatalError);
    const { code, message, exitCode } = fault as FatalError;
    expect({ code, message, exitCode }).toEqual({
      code: 'PORT_IN_USE', message: `sentinel cannot listen on 127.0.0.1:${port}: address already in use`, exitCode: EXIT.portInUse,
    });
    const probe = connect(port, '127.0.0.2');
    await expect(once(probe, 'connect')).rejects.toThrow('ECONNREFUSED');
    squatter.close();
  });

  test('an address that is not here is fatal, unless a minus forgives it', async () => {
    const port = await freePort();
    await expect(serverAt({ port, bind: ['127.0.0.1', '192.0.2.1'] }).listen()).rejects.toMatchObject({ code: 'LISTEN_FAILED' });
    await expect(serverAt({ port, bind: ['-192.0.2.1'] }).listen()).rejects.toBeInstanceOf(AgentError);
    const server = serverAt({ port, bind: ['127.0.0.1', '-192.0.2.1'] });
    expect(await server.listen()).toEqual([{ address: '127.0.0.1', port }]);
    await server.close();
  });

  test('a unix socket is served, and one left behind is taken over', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pointsman-server-'));
    const unixSocket = join(folder, 's');
    const first = serverAt({ unixSocket });
    expect(await first.listen()).toEqual([{ address: unixSocket, port: 0 }]);
    const second = serverAt({ unixSocket });
    await second.listen();
    const client = new RawClient(connect(unixSocket));
    expect(await client.say('CLIENT INFO')).toMatch(new RegExp(`addr=${unixSocket}:0 laddr=${unixSocket}:0 .* flags=U `));
    client.socket.destroy();
    await second.close();
    await first.close();
    rmSync(folder, { recursive: true });
  });

  test('close ends clients and can be repeated; SHUTDOWN only tells the owner', async () => {
    rig = await startRig();
    let asked = 0;
    rig.server.onShutdown(() => asked++);
    const [client, other] = [await rig.client(), await rig.client()];
    expect(await other.say('SHUTDOWN nosave save')).toBe('-ERR syntax error');
    expect(await other.say('SHUTDOWN abort')).toBe('-ERR No shutdown in progress.');
    client.send('SHUTDOWN nosave\r\n');
    await waitFor('the close', () => client.isClosed);
    expect(client.replies).toEqual([]);
    expect(asked).toBe(1);
    await rig.server.close();
    await waitFor('the close', () => other.isClosed);
    await rig.server.close();
  });
});

test('a client library connects, asks, listens and quits', async () => {
  rig = await startRig({ requirePass: 'secret' });
  const redis = new Redis({ port: rig.port, password: 'secret', connectionName: 'app', lazyConnect: true, enableReadyCheck: true });
  await redis.connect();
  expect(await redis.call('SENTINEL', 'get-master-addr-by-name', 'm')).toBe('SENTINEL get-master-addr-by-name m');
  expect(await redis.client('GETNAME')).toBe('app');
  const listener = redis.duplicate();
  const heard: string[] = [];
  listener.on('message', (channel, message) => heard.push(`${channel} ${message}`));
  await listener.subscribe('+switch-master');
  rig.server.publish('+switch-master', 'm 10.0.0.1 1 10.0.0.2 2');
  await waitFor('the event', () => heard.length === 1);
  expect(heard).toEqual(['+switch-master m 10.0.0.1 1 10.0.0.2 2']);
  expect(await redis.quit()).toBe('OK');
  await listener.quit();
});
