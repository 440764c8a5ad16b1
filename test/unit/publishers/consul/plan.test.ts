// From wish and snapshot to transactions, by table; a small catalog applies them to see that one round is enough.
import { describe, expect, test } from '@jest/globals';
import type { Entry, Snapshot } from '../../../../src/publishers/consul/entry.js';
import { formatFence, isHealthy, parseFence } from '../../../../src/publishers/consul/entry.js';
import { namesOf, nodeName } from '../../../../src/publishers/consul/naming.js';
import type { MasterNames } from '../../../../src/publishers/consul/naming.js';
import type { Operation } from '../../../../src/publishers/consul/operation.js';
import { planWrite } from '../../../../src/publishers/consul/plan.js';
import type { PlanOptions } from '../../../../src/publishers/consul/plan.js';
import { asksElse, wishOf } from '../../../../src/publishers/consul/wish.js';
import type { Wish } from '../../../../src/publishers/consul/wish.js';
import type { Route } from '../../../../src/route/route.js';
import { A, B, C, routeOf } from '../routes.js';

const names = namesOf('cache', { service: '{master}', kvPrefix: 'pointsman' }, (master) => master) as MasterNames;
const wish = (change: Partial<Route> = {}, writer = 'me'): Wish =>
  wishOf(routeOf(change), { names, writer, whyNotPublishable: () => null });
const EMPTY: Snapshot = { key: { fence: null, index: 0, unreadable: false }, entries: [], replicaEntries: [] };
const KEEPER: PlanOptions = { isKeeper: true };
const OTHER: PlanOptions = { isKeeper: false };
const replicas = (...list: [typeof A, boolean][]): Route['replicas'] => list.map(([address, healthy]) => ({ address, healthy }));
const first = { replicas: replicas([B, true], [C, false]) };
const moved = { configEpoch: 6, primary: B, replicas: replicas([A, false], [C, false]) };

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What Consul would hold after a transaction, as far as these operations go. */
function applied(snapshot: Snapshot, operations: readonly Operation[]): Snapshot {
  let { key } = snapshot;
  let all = [...snapshot.entries, ...snapshot.replicaEntries].map((entry): Mutable<Entry> => ({ ...entry }));
  const nodes = new Map(all.map(({ node, nodeAddress, nodeMeta }) => [node, { nodeAddress, nodeMeta }]));
  for (const operation of operations) {
    if ('KV' in operation) {
      const { Value = '', Index } = operation.KV;
      if (operation.KV.Verb === 'check-index') continue;
      expect(Index).toBe(key.index);
      key = { fence: parseFence(Buffer.from(Value, 'base64').toString()), index: key.index + 1, unreadable: false };
    } else if ('Node' in operation) {
      const { Node: node, Address = '', Meta = {} } = operation.Node.Node;
      const home = { nodeAddress: Address, nodeMeta: Meta };
      if (operation.Node.Verb === 'set') {
        nodes.set(node, home);
        for (const entry of all) if (entry.node === node) Object.assign(entry, home);
      } else all = all.filter((entry) => entry.node !== node);
    } else if ('Service' in operation) {
      const { Node: node, Service: { ID, Service, Tags = [], Address = '', Port = 0, Meta = {} } } = operation.Service;
      const home = nodes.get(node);
      if (home === undefined) throw new Error('Missing node registration');
      const checks = all.find((entry) => entry.node === node && entry.id === ID)?.checks ?? [];
      all = all.filter((entry) => entry.node !== node || entry.id !== ID);
      if (operation.Service.Verb === 'set') {
        all.push({ node, ...home, id: ID, service: Service, tags: Tags, address: Address, port: Port, meta: Meta, checks });
      }
    } else {
      const { Node: node, CheckID: id, Status: status = '', ServiceID: serviceId = '' } = operation.Check.Check;
      const entry = all.find((each) => each.node === node && each.id === serviceId);
      if (entry === undefined) throw new Error('Missing service registration');
      entry.checks = [...entry.checks.filter((check) => check.id !== id), { id, status, serviceId }];
    }
  }
  const [entries, replicaEntries] = ['cache', 'cache-replica'].map((name) => all.filter(({ service }) => service === name));
  return { key, entries: entries ?? [], replicaEntries: replicaEntries ?? [] };
}

/** One plan carried out; it must leave nothing to do for the keeper. */
function carriedOut(snapshot: Snapshot, wanted: Wish, options = KEEPER): Snapshot {
  const plan = planWrite(wanted, snapshot, options);
  if (plan.kind !== 'write') throw new Error(`nothing to write: ${plan.kind}`);
  const after = [plan.first, ...plan.rest].reduce(applied, snapshot);
  expect(planWrite(wanted, after, options)).toEqual({ kind: 'settled' });
  return after;
}

const published = carriedOut(EMPTY, wish(first));
const passing = (entries: readonly Entry[]): string[] => entries.filter(isHealthy).map(({ address }) => address).sort();
const kinds = (operations: readonly Operation[]): string => operations.map((operation) => Object.keys(operation)[0]).join(' ');

describe('what is written', () => {
  test('first: key, then per node: node, service, check, and the replica pair', () => {
    const plan = planWrite(wish(first), EMPTY, OTHER);
    expect(plan).toMatchObject({ kind: 'write', reason: 'change', rest: [] });
    expect(plan.kind === 'write' ? kinds(plan.first) : '').toBe(`KV${' Node Service Check Service Check'.repeat(3)}`);
    expect([passing(published.entries), passing(published.replicaEntries)]).toEqual([[A.host], [B.host]]);
  });

  test.each<[string, Partial<Route>, string]>([
    ['a switch: tags and checks of two nodes', { ...moved, replicas: replicas([A, true], [C, false]) },
      'KV Service Check Check Service Check Check'],
    ['a replica became unhealthy', { replicas: replicas([B, false], [C, false]) }, 'KV Check'],
    ['a replica is gone', { replicas: replicas([B, true]) }, 'KV Node'],
    ['a replica more', { replicas: replicas([B, true], [C, false], [{ host: '10.0.0.9', port: 1 }, true]) },
      'KV Node Service Check Service Check'],
    ['the epoch alone: the primary says the current one', { ...first, configEpoch: 6 }, 'KV Service'],
    ['prepared', { ...first, configEpoch: 6, order: 11, phase: 'prepared' }, 'KV Service'],
  ])('%s', (_what, change, expected) => {
    const plan = planWrite(wish(change), published, KEEPER);
    expect(plan.kind === 'write' ? kinds(plan.first) : plan.kind).toBe(expected);
    carriedOut(published, wish(change));
  });

  test('no `prepared` outlives its phase, on the node that lost its role neither', () => {
    const prepared = carriedOut(published, wish({ ...moved, order: 11, phase: 'prepared' }));
    const after = carriedOut(prepared, wish({ ...moved, order: 12 }));
    expect(after.entries.map(({ meta }) => meta['phase'])).toEqual(['steady', 'steady', 'steady']);
  });

  test.each([11, 12, 13, 40])('%i replicas: never more than 64 operations, the first transaction decides who is primary', (count) => {
    const list = Array.from({ length: count }, (_, at) => ({ address: { host: `10.1.0.${at + 1}`, port: 6379 }, healthy: true }));
    const plan = planWrite(wish({ replicas: list }), EMPTY, KEEPER);
    if (plan.kind !== 'write') throw new Error(plan.kind);
    expect(plan.rest.length > 0).toBe(count > 11);
    expect(plan.first.length).toBeLessThanOrEqual(64);
    expect(plan.rest.every((operations) => operations.length <= 63)).toBe(true);
    carriedOut(EMPTY, wish({ replicas: list }));

    const old = carriedOut(EMPTY, wish({ replicas: list }));
    const [next] = list;
    const turned = wish({ configEpoch: 6, primary: next?.address ?? A, replicas: [{ address: A, healthy: true }, ...list.slice(1)] });
    const turn = planWrite(turned, { ...old, replicaEntries: [] }, KEEPER);
    if (turn.kind !== 'write') throw new Error(turn.kind);
    const half = applied({ ...old, replicaEntries: [] }, turn.first);
    expect(passing(half.entries)).toEqual([next?.address.host]);
  });
});

describe('order', () => {
  test('a higher order is left alone, unless an operator says so', () => {
    const newer = carriedOut(published, wish(moved, 'other'));
    expect(planWrite(wish(first), newer, KEEPER)).toMatchObject({ kind: 'newer', fence: { order: 12, writer: 'other' } });
    expect(planWrite(wish(first), newer, { ...KEEPER, force: true })).toMatchObject({ kind: 'write', reason: 'change' });
  });

  test('the same order with another primary: the keeper settles it, nobody else does', () => {
    const other = wish({ ...first, primary: B, replicas: [] });
    expect(planWrite(other, published, OTHER)).toMatchObject({ kind: 'contradicted', fence: { host: A.host } });
    expect(planWrite(other, published, KEEPER)).toMatchObject({ kind: 'write' });
  });

  test("another writer's key of our order is as good as ours", () => {
    expect(planWrite(wish(first, 'somebody'), published, KEEPER)).toEqual({ kind: 'settled' });
  });

  test('a key that holds something else is no order', () => {
    const spoiled = { ...published, key: { fence: null, index: 7, unreadable: true } };
    const plan = planWrite(wish(first), spoiled, OTHER);
    expect(plan).toMatchObject({ kind: 'write', first: [{ KV: { Verb: 'cas', Index: 7 } }] });
  });
});

describe('at the same order', () => {
  const elsewhere = (node: string, entries: readonly Entry[]): Entry[] => entries.filter((entry) => entry.node !== node);
  const without = (node: string): Snapshot => ({
    ...published, entries: elsewhere(node, published.entries), replicaEntries: elsewhere(node, published.replicaEntries),
  });
  const foreign = { ...published.entries[0] as Entry, node: 'x', nodeMeta: {} };
  const edited = (node: string, change: Partial<Entry>): Snapshot => ({
    ...published, entries: published.entries.map((entry) => (entry.node === node ? { ...entry, ...change } : entry)),
  });
  const [a, b] = [nodeName(names, A), nodeName(names, B)];

  test.each<[string, Snapshot, Partial<Route>, 'write' | 'settled', 'write' | 'settled']>([
    ['nothing differs', published, first, 'settled', 'settled'],
    ['the primary is lost', without(a), first, 'write', 'write'],
    ['a replica is lost', without(b), first, 'write', 'settled'],
    ['another view of a replica', published, { replicas: replicas([B, false], [C, true]) }, 'write', 'settled'],
    ['an unknown replica', published, { replicas: replicas([B, true]) }, 'write', 'settled'],
    ['the primary has lost its tag', edited(a, { tags: ['replica'] }), first, 'write', 'write'],
    ['the primary has lost its check', edited(a, { checks: [] }), first, 'write', 'write'],
    ['a replica carries the primary tag', edited(b, { tags: ['master'] }), first, 'write', 'write'],
    ['a replica passes', edited(b, { checks: [] }), first, 'write', 'write'],
    ['the wrong port', edited(a, { port: 1 }), first, 'write', 'write'],
    ['Meta taken from the node', edited(a, { nodeMeta: { pointsman: 'cache' } }), first, 'write', 'write'],
    ['a foreign entry', { ...published, entries: [...published.entries, foreign] }, first, 'settled', 'settled'],
  ])('%s', (_what, snapshot, route, keeper, other) => {
    expect(planWrite(wish(route), snapshot, KEEPER).kind).toBe(keeper);
    expect(planWrite(wish(route), snapshot, OTHER).kind).toBe(other);
    if (keeper === 'write') carriedOut(snapshot, wish(route));
    if (other === 'write') carriedOut(snapshot, wish(route), OTHER);
  });
});

describe('the wish', () => {
  test('no primary, or one that clients must not get, is an error; such a replica is left out with a reason', () => {
    const why = (host: string): string | null => (host === B.host ? 'is a loopback address' : null);
    const options = { names, writer: 'me', whyNotPublishable: why };
    expect(() => wishOf(routeOf({ primary: null }), options)).toThrow('no primary is confirmed');
    expect(() => wishOf(routeOf({ primary: B }), options)).toThrow('primary 10.0.0.2:6380 is a loopback address');
    expect(wishOf(routeOf(first), options)).toMatchObject({ leftOut: ['replica 10.0.0.2:6380 is a loopback address'] });
    const twins = replicas([{ host: 'redis.a', port: 1 }, true], [{ host: 'redis-a', port: 1 }, true]);
    expect(wishOf(routeOf({ replicas: twins }), options).leftOut).toEqual(['replica redis-a:1 has the consul node name of redis.a:1']);
  });

  test('asks something else for what shows, and for nothing more', () => {
    const route = routeOf(first);
    expect(asksElse(route, { ...route, role: 'leader', previous: C, since: 5 as Route['since'], phase: 'failover' })).toBe(false);
    for (const change of [{ order: 11 }, { primary: B }, { replicas: [] }, { phase: 'prepared' }, { trusted: false }] as Partial<Route>[]) {
      expect(asksElse(route, { ...route, ...change })).toBe(true);
    }
  });
});

test('the key is read back as it was written, and anything else is no fence', () => {
  const fence = wish().fence;
  expect(parseFence(formatFence(fence))).toEqual(fence);
  const faulty = ['{"host":"","port":1,"order":1}', '{"host":"a","port":"1","order":1}', '{"host":"a","port":1}'];
  for (const text of ['', '{', 'null', '[]', '7', ...faulty]) {
    expect(parseFence(text)).toBeNull();
  }
});
