/**
 * Subscriptions in both protocols, delivery of events, and subscribers that do not read.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { OutputLimit } from '../../../../../src/sentinel/runtime/server/output-limit.js';
import type { Rig } from './rig.js';
import { startRig, waitFor } from './rig.js';

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const ONLY = 'only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context';

/** Lines said one after the other, and all replies they cause. */
const conversations: readonly (readonly [name: string, said: readonly string[], heard: readonly string[]])[] = [
  ['RESP2', ['SUBSCRIBE a b', 'PING', 'PING x', 'SENTINEL masters', 'HELLO 3', 'ECHO a', 'GET a', 'UNSUBSCRIBE a', 'UNSUBSCRIBE', 'PING'], [
    '["subscribe", "a", :1]', '["subscribe", "b", :2]', '["pong", ""]', '["pong", "x"]',
    `-ERR Can't execute 'sentinel|masters': ${ONLY}`, `-ERR Can't execute 'hello': ${ONLY}`, `-ERR Can't execute 'echo': ${ONLY}`,
    "-ERR unknown command 'GET', with args beginning with: 'a' ", '["unsubscribe", "a", :1]', '["unsubscribe", "b", :0]', '+PONG',
  ]],
  ['RESP3', ['HELLO 3', 'SUBSCRIBE a', 'PING', 'PSUBSCRIBE *', 'SENTINEL myid', 'UNSUBSCRIBE', 'PUNSUBSCRIBE', 'PUNSUBSCRIBE'], [
    '{"server": "redis", "version": "7.2.4", "proto": :3, "id": :1, "mode": "sentinel", "modules": []}', '>["subscribe", "a", :1]', '+PONG',
    '>["psubscribe", "*", :2]', '"SENTINEL myid"', '>["unsubscribe", "a", :1]', '>["punsubscribe", "*", :0]', '>["punsubscribe", nil, :0]',
  ]],
  ['twice the same counts once', ['SUBSCRIBE a a', 'PSUBSCRIBE a', 'PSUBSCRIBE a', 'PUNSUBSCRIBE a', 'PUNSUBSCRIBE a'], [
    '["subscribe", "a", :1]', '["subscribe", "a", :1]', '["psubscribe", "a", :2]', '["psubscribe", "a", :2]', '["punsubscribe", "a", :1]',
    '["punsubscribe", "a", :1]',
  ]],
  ['nothing to leave', ['UNSUBSCRIBE', 'PUNSUBSCRIBE', 'UNSUBSCRIBE x', 'SUBSCRIBE'], [
    '["unsubscribe", nil, :0]', '["punsubscribe", nil, :0]', '["unsubscribe", "x", :0]',
    "-ERR wrong number of arguments for 'subscribe' command",
  ]],
  ['confirmations pass CLIENT REPLY OFF', ['CLIENT REPLY OFF', 'SUBSCRIBE a', 'PING', 'UNSUBSCRIBE a', 'CLIENT REPLY ON', 'PING'], [
    '["subscribe", "a", :1]', '["unsubscribe", "a", :0]', '+OK', '+PONG',
  ]],
];

test.each(conversations)('%s', async (_name, said, heard) => {
  rig = await startRig();
  const client = await rig.client();
  client.send(said.map((line) => `${line}\r\n`).join(''));
  expect(await client.next(heard.length)).toEqual(heard);
});

describe('events', () => {
  test('reach plain subscribers first and each fitting pattern, in the form of their protocol', async () => {
    rig = await startRig();
    const [plain, resp3, deaf] = [await rig.client(), await rig.client(), await rig.client()];
    plain.send('SUBSCRIBE +sdown\r\nPSUBSCRIBE +s*\r\nPSUBSCRIBE *\r\n');
    await plain.next(3);
    resp3.send('HELLO 3\r\nSUBSCRIBE +sdown\r\nCLIENT REPLY OFF\r\n');
    await resp3.next(2);
    await deaf.say('SUBSCRIBE -sdown');
    rig.server.publish('+sdown', 'master m 10.0.0.1 6379');
    expect(await plain.next(3)).toEqual([
      '["message", "+sdown", "master m 10.0.0.1 6379"]', '["pmessage", "+s*", "+sdown", "master m 10.0.0.1 6379"]',
      '["pmessage", "*", "+sdown", "master m 10.0.0.1 6379"]',
    ]);
    expect(await resp3.next(1)).toEqual(['>["message", "+sdown", "master m 10.0.0.1 6379"]']);
    rig.server.publish('-sdown', 'x');
    expect(await deaf.next(1)).toEqual(['["message", "-sdown", "x"]']);
  });

  test('end with the subscription and with the connection', async () => {
    rig = await startRig();
    const [leaving, gone] = [await rig.client(), await rig.client()];
    await leaving.say('SUBSCRIBE a');
    await gone.say('SUBSCRIBE a');
    expect(await (await rig.client()).say('INFO stats')).toContain('pubsub_channels:1\\r\\n');
    await leaving.say('UNSUBSCRIBE a');
    gone.socket.destroy();
    await waitFor('its end', () => rig?.log.some((line) => line.message === 'client gone') ?? false);
    expect(await (await rig.client()).say('INFO stats')).toContain('pubsub_channels:0\\r\\n');
    rig.server.publish('a', 'nobody');
    expect(await leaving.say('PING')).toBe('+PONG');
  });

  test('PUBLISH of a hello goes to the gate and not to subscribers; other channels are refused', async () => {
    rig = await startRig();
    const [subscriber, peer] = [await rig.client(), await rig.client()];
    await subscriber.say('PSUBSCRIBE *');
    expect(await peer.say('PUBLISH __sentinel__:hello x')).toBe('"PUBLISH __sentinel__:hello x"');
    expect(await peer.say('PUBLISH +sdown x')).toBe('-ERR Only HELLO messages are accepted by Sentinel instances.');
    expect(await subscriber.say('PING')).toBe('["pong", ""]');
  });
});

describe('whoever does not read', () => {
  test('a subscriber is dropped beyond 32 MB, others are served on', async () => {
    rig = await startRig();
    const [lazy, eager] = [await rig.client(), await rig.client()];
    await lazy.say('SUBSCRIBE a');
    await eager.say('SUBSCRIBE a');
    lazy.socket.pause();
    const payload = 'x'.repeat(1024 * 1024);
    for (let index = 0; index < 48; index++) {
      rig.server.publish('a', payload);
      await waitFor('the eager one', () => eager.replies.length === index + 2);
    }
    await waitFor('the drop', () => rig?.log.some((line) => line.level === 'warn' && line.message === 'subscriber dropped') ?? false);
    expect(await (await rig.client()).say('CLIENT LIST TYPE pubsub')).toMatch(/^"id=2 [^\n]*"$/);
  });

  test('one that only asks is not read from, so what waits for it stays small', async () => {
    rig = await startRig();
    const greedy = await rig.client();
    greedy.socket.pause();
    const request = `PING ${'x'.repeat(60_000)}\r\n`;
    for (let index = 0; index < 400; index++) greedy.send(request);
    const other = await rig.client();
    const unread = async (): Promise<number> => Number(/id=1 .* omem=(\d+)/.exec(await other.say('CLIENT LIST ID 1'))?.[1]);
    let last = 0;
    const deadlineMs = performance.now() + 5000;
    while (last < 1024 * 1024 && performance.now() < deadlineMs) last = await unread();
    expect(last).toBeGreaterThan(1024 * 1024);
    expect(last).toBeLessThan(3 * 1024 * 1024);
    greedy.socket.resume();
    await waitFor('all replies', () => greedy.replies.length === 400);
  });

  const MB = 1024 * 1024;
  test.each([
    ['much, once', [[33 * MB, 0]], '34603008 bytes of output waited, more than 33554432'],
    ['just not too much', [[32 * MB, 0], [32 * MB, 59_000]], null],
    ['8 MB for a minute', [[9 * MB, 0], [9 * MB, 60_000], [9 * MB, 60_001]], 'more than 8388608 bytes of output waited for 60 s'],
    ['with a pause', [[9 * MB, 0], [8 * MB, 30_000], [9 * MB, 60_001], [9 * MB, 120_001]], null],
  ] as const)('limit: %s', (_name, samples, expected) => {
    const limit = new OutputLimit();
    expect(samples.map(([bytes, atMs]) => limit.judge(bytes, atMs)).at(-1)).toBe(expected);
  });
});
