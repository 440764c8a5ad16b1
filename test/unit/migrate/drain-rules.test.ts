/**
 * Whom to cut next: who counts, in which order, how fast, and when the rest is taken for pinned.
 */
import { describe, expect, test } from '@jest/globals';
import { beginDrain, describeClients, drainRound, parseClients, type ClientKind, type ClientLine } from '../../../src/migrate/drain-rules.js';

const line = (id: number, more: string): string =>
  `id=${id} addr=10.0.0.9:5${id} laddr=10.0.0.1:6379 fd=8 name= age=9 idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=0 obl=0 oll=0 cmd=set user=default ${more}`;
const client = (id: number, kind: ClientKind): ClientLine => ({ id, host: '10.0.0.9', name: '', user: 'default', kind });

describe('CLIENT LIST', () => {
  test.each([
    ['flags=S', null], ['flags=M', null], ['name=sentinel-0123abcd-cmd', null], ['name=sentinel-0123abcd-pubsub', null], ['name=own', null],
    ['idle=1', 'idle'], ['', 'active'], ['flags=P', 'pubsub'], ['psub=1', 'pubsub'], ['flags=b', 'blocked'], ['flags=x', 'busy'], ['multi=0', 'busy'],
    ['qbuf=9', 'busy'], ['oll=1', 'busy'], ['flags=O', 'active'], ['name=sentinel-impostor', 'active'], ['flags=rP', 'pubsub'],
  ])('%s is %s', (more, kind) => {
    expect(parseClients(`${line(7, more)}\n`, 'own').map((each) => each.kind)).toEqual(kind === null ? [] : [kind]);
  });

  test('IPv6, names and users are kept; an empty list is empty', () => {
    expect(parseClients(line(3, 'addr=[::1]:99 name=worker user=app'), 'own')).toEqual([{ id: 3, host: '[::1]', name: 'worker', user: 'app', kind: 'active' }]);
    expect(parseClients('\n', 'own')).toEqual([]);
  });
});

describe('a round', () => {
  test('idle first, then active, subscribers, blocked; busy ones after their patience', () => {
    const all = [client(1, 'busy'), client(2, 'blocked'), client(3, 'pubsub'), client(4, 'active'), client(5, 'idle')];
    let [left, memory] = [all, beginDrain(all)];
    const order: number[] = [];
    for (let nowMs = 0; left.length > 0 && nowMs < 10_000; nowMs += 100) {
      const round = drainRound(left, memory, nowMs);
      order.push(...round.cut);
      left = left.filter(({ id }) => !round.cut.includes(id));
      ({ memory } = round);
      if (round.cut.includes(1)) expect(nowMs).toBeGreaterThanOrEqual(2_000);
    }
    expect(order).toEqual([5, 4, 3, 2, 1]);
    expect(memory.cut).toBe(5);
    expect(drainRound([], memory, 10_000).verdict).toBe('empty');
  });

  test('batches are small, and grow with the number', () => {
    const many = Array.from({ length: 2_000 }, (_, index) => client(index + 1, 'idle'));
    expect(drainRound(many, beginDrain(many), 0).cut).toHaveLength(50);
    expect(drainRound(many.slice(0, 20), beginDrain(many), 0).cut).toHaveLength(8);
    expect(drainRound(many, beginDrain(many), 0, true).cut).toHaveLength(2_000);
  });

  test('who comes back is cut once a second, and after four times taken for pinned', () => {
    let memory = beginDrain([client(5, 'active')]);
    const verdicts: string[] = [];
    let cuts = 0;
    for (let nowMs = 0; nowMs < 6_000; nowMs += 100) {
      const round = drainRound([client(100 + nowMs, 'active')], memory, nowMs);
      cuts += round.cut.length;
      ({ memory } = round);
      verdicts.push(round.verdict);
    }
    expect(cuts).toBe(4);
    expect(verdicts.indexOf('pinned')).toBe(40);
    expect(memory.newcomersCut).toBe(4);
  });

  test('newcomers do not keep old ones from being cut', () => {
    const memory = beginDrain([client(5, 'idle')]);
    expect(drainRound([client(5, 'idle'), client(9, 'active')], memory, 0).cut).toEqual([5]);
  });
});

test('who is left, in groups', () => {
  const named = { id: 3, host: '10.0.0.8', name: 'worker', user: 'app', kind: 'busy' } as const;
  expect(describeClients([client(1, 'idle'), client(2, 'busy'), named])).toBe('10.0.0.9 (2), 10.0.0.8 user=app name=worker');
});
