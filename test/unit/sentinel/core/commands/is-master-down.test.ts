import { describe, expect, test } from '@jest/globals';
import { addMaster, ask, MY_ID, NOW, PEERS, world } from './fixture.js';

const [CANDIDATE, RIVAL] = PEERS;
const HERE = '10.0.0.1 6379';

describe('IS-MASTER-DOWN-BY-ADDR: the opinion', () => {
  test.each([
    ['up', HERE, null, null, 0],
    ['down', HERE, NOW, null, 1],
    ['down, but we are in TILT', HERE, NOW, NOW, 0],
    ['another address', '10.0.0.9 6379', NOW, null, 0],
    ['a replica', '10.0.0.2 6379', NOW, null, 0],
    ['another port', '10.0.0.1 6380', NOW, null, 0],
    ['no port at all', '10.0.0.1 70000', NOW, null, 0],
    ['negative port', '10.0.0.1 -5', NOW, null, 0],
    ['no address', 'redis-a 6379', NOW, null, 0],
  ])('%s', (_case, address, sdownSinceMs, tiltSinceMs, down) => {
    const { state, master } = world();
    Object.assign(master, { sdownSinceMs, leader: CANDIDATE, leaderEpoch: 3 });
    state.tiltSinceMs = tiltSinceMs;
    for (const name of ['is-master-down-by-addr', 'IS-PRIMARY-DOWN-BY-ADDR']) {
      expect(ask(state, `SENTINEL ${name} ${address} 9 *`)).toEqual({ reply: [down, '*', 0], ifNotSaved: undefined, trace: ['reply'] });
    }
    expect(state.currentEpoch).toBe(0);
  });

  test('of two names with one address the first counts', () => {
    const { state } = world();
    addMaster(state, 'twin', { host: '10.0.0.1', ip: '10.0.0.1', port: 6379 }).sdownSinceMs = NOW;
    expect(ask(state, `SENTINEL is-master-down-by-addr ${HERE} 0 *`).reply).toEqual([0, '*', 0]);
  });

  test('a host name counts with resolve-hostnames: by name, by last known IP, else it is looked up', () => {
    const { state, master } = world();
    master.sdownSinceMs = NOW;
    state.hostIps.set('redis-a', '10.0.0.1');
    const question = (host: string): string => `SENTINEL is-master-down-by-addr ${host} 6379 0 *`;
    expect(ask(state, question('Redis-A')).reply).toEqual([0, '*', 0]);
    state.settings.resolveHostnames = true;
    expect(ask(state, question('Redis-A')).reply).toEqual([1, '*', 0]);
    expect(ask(state, question('redis-z'))).toMatchObject({ reply: [0, '*', 0], trace: ['resolve redis-z', 'reply'] });
    master.address = { ...master.address, host: 'REDIS-Z' };
    expect(ask(state, question('redis-z')).reply).toEqual([1, '*', 0]);
  });
});

describe('IS-MASTER-DOWN-BY-ADDR: the vote', () => {
  const vote = (epoch: number, runId: string): string => `SENTINEL is-master-down-by-addr ${HERE} ${epoch} ${runId}`;

  test('is given once per epoch, persisted before the reply, also without SDOWN and in TILT', () => {
    const { state, master } = world();
    state.tiltSinceMs = NOW;
    const { reply, trace } = ask(state, vote(5, CANDIDATE));
    expect(reply).toEqual([0, CANDIDATE, 5]);
    expect(trace).toEqual(['persist', '+new-epoch 5', 'persist', `+vote-for-leader ${CANDIDATE} 5`, 'reply']);
    expect([state.currentEpoch, master.leaderEpoch]).toEqual([5, 5]);
    expect(master.failoverStartMs).toBeGreaterThanOrEqual(NOW);

    expect(ask(state, vote(5, RIVAL))).toMatchObject({ reply: [0, CANDIDATE, 5], trace: ['reply'] });
    expect(ask(state, vote(4, RIVAL)).reply).toEqual([0, CANDIDATE, 5]);
    expect(ask(state, vote(6, RIVAL)).reply).toEqual([0, RIVAL, 6]);
  });

  test('after a restart the leader is forgotten, the epoch is not', () => {
    const { state, master } = world();
    Object.assign(master, { leader: null, leaderEpoch: 7 });
    state.currentEpoch = 7;
    expect(ask(state, vote(7, RIVAL)).reply).toEqual([0, '*', 7]);
  });

  test('for ourselves leaves our next failover alone', () => {
    const { state, master } = world();
    expect(ask(state, vote(2, MY_ID)).reply).toEqual([0, MY_ID, 2]);
    expect(master.failoverStartMs).toBe(0);
  });
});

describe('IS-MASTER-DOWN-BY-ADDR: bad numbers (Divergence D20 for the epochs)', () => {
  test.each([
    '10.0.0.1 x 0',
    '10.0.0.1 "" 0',
    '10.0.0.1 06379 0',
    '10.0.0.1 99999999999999999999 0',
    '10.0.0.1 6379 x',
    '10.0.0.1 6379 1.0',
    '10.0.0.1 6379 -1',
    '10.0.0.1 6379 9007199254740992',
    '10.0.0.1 6379 18446744073709551615',
  ])('%s', (numbers) => {
    const { state } = world();
    const { reply, trace } = ask(state, `SENTINEL IS-MASTER-DOWN-BY-ADDR ${numbers} ${CANDIDATE}`);
    expect([reply, trace]).toEqual(['-ERR value is not an integer or out of range', ['reply']]);
    expect(state.currentEpoch).toBe(0);
  });
});
