/**
 * What we do with more care than stock, where a golden conversation with one master can't show it: peers and nodes under two masters.
 */
import { describe, expect, test } from '@jest/globals';
import { must } from '../../../../src/assert.js';
import { isForeign, judgeForeign } from '../../../../src/sentinel/core/caution/foreign.js';
import type { Effect } from '../../../../src/sentinel/core/effect.js';
import { applyHello } from '../../../../src/sentinel/core/gossip.js';
import { createPeer, createReplica } from '../../../../src/sentinel/core/instance.js';
import { whyNotEligible } from '../../../../src/sentinel/core/promotion.js';
import type { Turn } from '../../../../src/sentinel/core/turn.js';
import { formatHello } from '../../../../src/sentinel/wire/hello.js';
import { addMaster, ask, at, NOW, PEERS, world } from './commands/fixture.js';

const NEW_ID = 'e'.repeat(40);
const turnOf = (state: Turn['state']): Turn & { effects: Effect[] } => ({ state, now: NOW, effects: [] });
const events = ({ effects }: Turn): string[] => effects.flatMap((effect) => (effect.kind === 'event' ? [`${effect.name} ${effect.payload}`] : []));

function hello(turn: Turn, runId: string, address: { host: string; port: number }): void {
  applyHello(turn, formatHello({
    ...{ sentinel: address, runId, currentEpoch: 0, masterName: 'mymaster', master: { host: '10.0.0.1', port: 6379 }, configEpoch: 0, silent: null },
  }));
}

describe('D72: the address of a peer has a new run id', () => {
  test('the old one counts under no master any more, though the hello is about one of them', () => {
    const { state, master } = world();
    const other = addMaster(state, 'other', at('10.0.9.1', 6379));
    // Not known under the master that the hello is about.
    createPeer(state, other, 'c'.repeat(40), at('10.0.1.9', 26379), NOW);
    createPeer(state, other, PEERS[0], at('10.0.1.2', 26379), NOW);
    const turn = turnOf(state);
    hello(turn, NEW_ID, { host: '10.0.1.9', port: 26379 });
    expect([...other.peers.keys()]).toEqual([PEERS[0]]);
    hello(turn, 'd'.repeat(40), { host: '10.0.1.2', port: 26379 });
    expect([...other.peers.keys()]).toEqual([]);
    expect([...master.peers.keys()].sort()).toEqual([PEERS[1], 'd'.repeat(40), NEW_ID].sort());
    expect(events(turn).filter((event) => event.startsWith('+sentinel-invalid-addr'))).toHaveLength(3);
  });

  test('a known peer that moves to the address of another one takes its place', () => {
    const { state, master } = world();
    const turn = turnOf(state);
    hello(turn, PEERS[1], { host: '10.0.1.2', port: 26379 });
    expect([...master.peers.keys()]).toEqual([PEERS[1]]);
    expect(ask(state, 'SENTINEL CKQUORUM mymaster').reply).toBe('+OK 2 usable Sentinels. Quorum and failover authorization can be reached');
  });
});

describe('D71: a node under two masters', () => {
  test('who has it with the same run id, and is not our own group, owns it', () => {
    const { state, master } = world();
    const replica = must(master.replicas.get('10.0.0.2:6379'), 'replica');
    const other = addMaster(state, 'other', at('10.0.9.1', 6379));
    const turn = turnOf(state);
    Object.assign(replica, { runId: NEW_ID, roleReported: 'master' });
    judgeForeign(turn, master, replica);
    expect(isForeign(master, replica)).toBe(false);

    Object.assign(other, { runId: NEW_ID, address: at('10.0.0.2', 6379) });
    judgeForeign(turn, master, replica);
    judgeForeign(turn, master, replica);
    expect(isForeign(master, replica)).toBe(true);
    expect(events(turn)).toEqual(['+foreign-replica slave 10.0.0.2:6379 10.0.0.2 6379 @ mymaster 10.0.0.1 6379 belongs to 10.0.0.2:6379']);
    expect(whyNotEligible(state, master, replica, NOW)).toBe('it belongs to another master, 10.0.0.2:6379');
    expect(JSON.stringify(ask(state, 'SENTINEL REPLICAS mymaster').reply)).toContain('slave,foreign');

    // Our master follows it: then it is the head of our own group, seen under another name before us.
    Object.assign(master, { roleReported: 'replica', masterHost: '10.0.0.2', masterPort: 6379 });
    judgeForeign(turn, master, replica);
    expect(isForeign(master, replica)).toBe(false);
  });

  test.each([
    ['listed by our living master', { listed: true, link: true, history: 'b', follows: '10.9.9.9' }],
    ['of the same history', { listed: false, link: true, history: 'a', follows: '10.9.9.9' }],
    ['its link is down', { listed: false, link: false, history: 'b', follows: '10.9.9.9' }],
    ['behind another replica of ours', { listed: false, link: true, history: 'b', follows: '10.0.0.3' }],
  ])('not foreign: %s', (_what, { listed, link, history, follows }) => {
    const { state, master } = world();
    const replica = must(master.replicas.get('10.0.0.2:6379'), 'replica');
    const listing = listed ? ['slave0:ip=10.0.0.2,port=6379,state=online'] : [];
    master.infoText = [`master_replid:${'a'.repeat(40)}`, 'role:master', ...listing, ''].join('\r\n');
    Object.assign(replica, { infoText: `master_replid:${history.repeat(40)}\r\n`, masterHost: follows, masterLinkUp: link });
    judgeForeign(turnOf(state), master, replica);
    expect(isForeign(master, replica)).toBe(false);
    // The proof of the test: without the one exception it would be.
    if (history === 'b' && !listed) {
      Object.assign(replica, { masterHost: '10.9.9.9', masterLinkUp: true });
      judgeForeign(turnOf(state), master, replica);
      expect(isForeign(master, replica)).toBe(true);
    }
  });
});

test('D70: a replica can be forgotten by a name of either family, and the promoted one cannot', () => {
  const { state, master } = world();
  must(createReplica(state, master, at('::1', 7002), NOW), 'replica');
  const event = '-slave slave [::1]:7002 ::1 7002 @ mymaster 10.0.0.1 6379';
  expect(ask(state, 'SENTINEL FORGET mymaster [::1]:7002').trace).toEqual([event, 'persist', 'reply']);
  Object.assign(master, { failover: { promoted: '10.0.0.2:6379' } });
  expect(ask(state, 'SENTINEL FORGET mymaster 10.0.0.2:6379').reply).toBe('-ERR This replica is being promoted');
  expect(ask(state, 'SENTINEL FORGET mymaster').reply).toBe("-ERR wrong number of arguments for 'sentinel|forget' command");
});
