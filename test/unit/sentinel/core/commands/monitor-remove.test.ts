import { describe, expect, test } from '@jest/globals';
import { addMaster, ask, at, emptyState, NOW, SAVE_ERROR, world } from './fixture.js';

describe('MONITOR', () => {
  test('monitors, persists and then announces', () => {
    const { state } = world();
    const { reply, ifNotSaved, trace } = ask(state, 'SENTINEL MONITOR new 10.9.0.1 7000 3');
    expect([reply, ifNotSaved]).toEqual(['+OK', SAVE_ERROR]);
    expect(trace).toEqual(['persist', '+monitor master new 10.9.0.1 7000 quorum 3', 'reply']);
    expect(state.masters.get('new')).toMatchObject({ quorum: 3, address: at('10.9.0.1', 7000), downAfterMs: 30_000 });
    expect(state.touched.has('new')).toBe(true);
  });

  test.each([
    ['x h p q', 'Invalid quorum'],
    ['x h p 1.5', 'Invalid quorum'],
    ['x h p 4294967297', 'Invalid quorum'],
    ['x h p 0', 'Invalid port'],
    ['x h 06379 0', 'Invalid port'],
    ['x h 1 0', 'Quorum must be 1 or greater.'],
    ['x h 1 -1', 'Quorum must be 1 or greater.'],
    ['x h 99999 1', 'Invalid IP address or hostname specified'],
    ['x "" 1 1', 'Invalid IP address or hostname specified'],
    ['x 10.0.0.256 1 1', 'Invalid IP address or hostname specified'],
    ['mymaster 10.0.0.1 65536 1', 'Invalid port number.'],
    ['x 10.0.0.1 -1 1', 'Invalid port number.'],
    ['mymaster 10.0.0.1 1 1', 'Duplicate master name.'],
  ])('%s: %s', (args, text) => {
    const { state } = world();
    expect(ask(state, `SENTINEL MONITOR ${args}`)).toEqual({ reply: `-ERR ${text}`, ifNotSaved: undefined, trace: ['reply'] });
    expect([...state.masters.keys()]).toEqual(['mymaster']);
  });

  test('a name needs resolve-hostnames and a look-up before', () => {
    const state = emptyState();
    const refusal = '-ERR Invalid IP address or hostname specified';
    state.hostIps.set('redis-a', '10.0.0.7');
    expect(ask(state, 'SENTINEL MONITOR m Redis-A 1 1').reply).toBe(refusal);
    state.settings.resolveHostnames = true;
    expect(ask(state, 'SENTINEL MONITOR m redis-b 1 1').reply).toBe(refusal);
    expect(ask(state, 'SENTINEL MONITOR m Redis-A 1 1').reply).toBe('+OK');
    expect(state.masters.get('m')?.address).toEqual({ host: 'Redis-A', ip: '10.0.0.7', port: 1 });
    expect(ask(state, 'SENTINEL MONITOR six ::1 0 1').reply).toBe('+OK');
  });
});

describe('REMOVE', () => {
  test('announces, lets go of every link, persists', () => {
    const { state } = world();
    const { reply, ifNotSaved, trace } = ask(state, 'SENTINEL REMOVE mymaster');
    expect([reply, ifNotSaved]).toEqual(['+OK', SAVE_ERROR]);
    expect(trace).toEqual(['-monitor master mymaster 10.0.0.1 6379', ...Array<string>(8).fill('close'), 'persist', 'reply']);
    expect([state.masters.size, state.connections.size]).toEqual([0, 0]);
  });
});

describe('RESET', () => {
  test.each([
    ['my*', ['mymaster']],
    ['*', ['mymaster', 'aather', 'other']],
    ['[a-c]?ther', ['aather']],
    ['?ther', ['other']],
    ['MY*', []],
    ['mymaster', ['mymaster']],
    ['', []],
  ])('%s matches %j', (pattern, names) => {
    const { state } = world();
    for (const [index, name] of ['aather', 'other'].entries()) addMaster(state, name, at('10.9.0.1', index + 1));
    const { reply, trace } = ask(state, `SENTINEL RESET "${pattern}"`);
    expect(reply).toBe(names.length);
    expect(trace.filter((line) => line.startsWith('+reset-master')).map((line) => line.split(' ')[2])).toEqual(names);
  });

  test('forgets replicas, peers and failover, keeps the rest, writes nothing', () => {
    const { state, master } = world();
    Object.assign(master, { configEpoch: 9, leaderEpoch: 8, infoRefreshMs: NOW, sdownSinceMs: NOW });
    const { trace } = ask(state, 'SENTINEL RESET mymaster');
    expect(trace.slice(-2)).toEqual(['+reset-master master mymaster 10.0.0.1 6379', 'reply']);
    expect(trace).not.toContain('persist');
    expect(master).toMatchObject({ configEpoch: 9, leaderEpoch: 8, infoRefreshMs: NOW, failover: null });
    expect([master.replicas.size, master.peers.size, state.connections.size]).toEqual([0, 0, 0]);
  });
});
