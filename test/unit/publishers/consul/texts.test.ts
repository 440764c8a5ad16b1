// Names, answers of Consul, texts of faults, the self-test and the watch's index, each by table.
import { describe, expect, test } from '@jest/globals';
import { parseEntries, parseKey } from '../../../../src/publishers/consul/entry.js';
import { deniedError, faultOf, operationErrors, refusalOf } from '../../../../src/publishers/consul/fault.js';
import type { FailedCall, FaultKind } from '../../../../src/publishers/consul/fault.js';
import { planLocal } from '../../../../src/publishers/consul/local-plan.js';
import type { LocalState, LocalStep } from '../../../../src/publishers/consul/local-plan.js';
import { addressSlug, nameFaults, namesOf } from '../../../../src/publishers/consul/naming.js';
import type { MasterNames } from '../../../../src/publishers/consul/naming.js';
import { judgeSelfTest, selfTestOperations } from '../../../../src/publishers/consul/self-test.js';
import { nextIndex, watchBackoffMs } from '../../../../src/publishers/consul/watch-index.js';
import { wishOf } from '../../../../src/publishers/consul/wish.js';
import { masterLabel } from '../../../../src/dns/name.js';
import type { Route } from '../../../../src/route/route.js';
import { A, B, routeOf } from '../routes.js';

const naming = { service: '{master}', kvPrefix: 'pointsman' };
const names = namesOf('cache', naming, masterLabel) as MasterNames;

describe('names', () => {
  test.each([
    ['cache', 'cache'], ['my_cache', 'my-cache'], ['My.Cache', 'my-cache'], ['a.b', 'a-b'], ['1', '1'],
  ])('%s → %s', (master, service) => {
    expect(namesOf(master, naming, masterLabel)).toMatchObject({ service, replicaService: `${service}-replica`, key: `pointsman/${service}` });
  });

  test.each(['-x', 'x'.repeat(70), 'x'.repeat(60), 'a b', 'käse', ''])('"%s" is refused', (master) => {
    expect(nameFaults([master], naming, masterLabel)).toEqual([expect.stringContaining(`"${master}"`)]);
  });

  test.each<[string[], string]>([
    [['my_cache', 'my-cache'], 'share the consul service "my-cache"'],
    [['Cache', 'cache'], 'share the consul service "cache"'],
    [['cache', 'cache-replica'], 'share the consul service "cache-replica"'],
  ])('%j clash, and both are named', (masters, text) => {
    const [fault = '', ...others] = nameFaults(masters, naming, masterLabel);
    expect(others).toEqual([]);
    for (const master of masters) expect(fault).toContain(`"${master}"`);
    expect(fault).toContain(text);
  });

  test('a pattern without {master} holds one master; one with it, a prefix in the key, an override', () => {
    expect(nameFaults(['a', 'b'], { ...naming, service: 'redis' }, masterLabel)).toHaveLength(1);
    expect(namesOf('a', { service: 'redis-{master}', kvPrefix: 'x/y/' }, () => 'other')).toMatchObject({ service: 'redis-other', key: 'x/y/other' });
  });

  test('addresses: dots and colons become dashes', () => {
    expect(addressSlug(A)).toBe('10-0-0-1-6379');
    expect(addressSlug({ host: '2001:DB8::3', port: 1 })).toBe('2001-db8--3-1');
  });
});

describe('answers of Consul', () => {
  const node = { Node: 'n', Address: 'a', Meta: { k: 'v', bad: 1 } };
  test.each<[string, unknown, number]>([
    ['an entry', [{ Node: node, Service: { ID: 'i', Service: 's', Tags: null, Address: 'x', Port: 1, Meta: null }, Checks: null }], 1],
    ['nothing', null, 0], ['a word', 'x', 0], ['a map', { Node: node }, 0], ['odd items', [null, 7, {}, { Node: node }, { Service: {} }], 0],
    ['odd fields', [{ Node: { Node: 7 }, Service: { Tags: 'x', Port: '1', Meta: [] }, Checks: ['x'] }], 1],
  ])('%s', (_what, body, count) => {
    expect(parseEntries(body)).toHaveLength(count);
  });

  test('a key: absent, ours, somebody else\'s', () => {
    expect(parseKey(undefined)).toEqual({ fence: null, index: 0, unreadable: false });
    expect(parseKey({ Value: 'hello', ModifyIndex: 9 })).toEqual({ fence: null, index: 9, unreadable: true });
    expect(parseKey({ Value: '{"host":"a","port":1,"order":4}', ModifyIndex: 9 })).toMatchObject({ fence: { order: 4 }, index: 9 });
  });
});

describe('faults', () => {
  const failed = (change: Partial<FailedCall>): FailedCall => ({
    call: 'PUT /v1/txn', at: 'h:1', deadlineMs: 2500, statusCode: null, body: '', code: '', message: 'm', isTimeout: false, isAbort: false, ...change,
  });
  test.each<[Partial<FailedCall>, FaultKind, boolean, string]>([
    [{ isTimeout: true }, 'timeout', true, 'consul at h:1 did not answer PUT /v1/txn within 2500 ms'],
    [{ isAbort: true }, 'cancelled', false, 'was given up on'],
    [{ code: 'ECONNREFUSED' }, 'unreachable', true, 'cannot be reached for PUT /v1/txn: ECONNREFUSED'],
    [{ code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, 'unreachable', true, 'set consul.tls-server-name'],
    [{ code: 'SELF_SIGNED_CERT_IN_CHAIN' }, 'unreachable', true, 'not signed by consul.ca-file'],
    [{ code: 'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE' }, 'unreachable', true, 'set consul.cert-file'],
    [{ statusCode: 500, body: 'rpc error making call: EOF' }, 'serverError', true, 'with 500: rpc error making call: EOF'],
    [{ statusCode: 500, body: 'No cluster leader' }, 'noLeader', true, 'has no cluster leader now'],
    [{ statusCode: 429 }, 'busy', false, 'is busy (429'], [{ statusCode: 503 }, 'busy', false, 'is busy (503'],
    [{ statusCode: 403, body: 'ACL not found' }, 'unknownToken', false, 'does not know the token'],
    [{ statusCode: 403, body: "Permission denied: token with AccessorID 'x'" }, 'denied', false, 'refuses PUT /v1/txn: Permission denied: token'],
    [{ statusCode: 500, body: 'No path to datacenter' }, 'refused', false, 'No path to datacenter'],
    [{ statusCode: 400, body: 'Client sent an HTTP request to an HTTPS server.' }, 'refused', false, 'HTTPS server'],
    [{ statusCode: 400, body: 'Error: read ECONNRESET' }, 'refused', false, 'an HTTP request to an HTTPS server? then consul.address begins with https'],
  ])('%j', (change, kind, isUncertain, text) => {
    const error = faultOf(failed(change));
    expect(error).toMatchObject({ kind, isUncertain, code: kind === 'timeout' ? 'PUBLISH_TIMEOUT' : 'PUBLISH_FAILED' });
    expect(error.message).toContain(text);
  });

  test('the errors of a transaction, and bodies that have none', () => {
    const body = { Errors: [{ OpIndex: 1, What: 'w' }, { What: 'v' }, 7, {}] };
    expect(operationErrors(body)).toEqual([{ index: 1, what: 'w' }, { index: 0, what: 'v' }]);
    for (const odd of [null, 'x', {}, { Errors: null }, { Errors: {} }]) expect(operationErrors(odd)).toEqual([]);
  });
});

describe('a refused transaction', () => {
  const operations = selfTestOperations(names, 'pointsman');
  const at = (index: number, what = 'Permission denied'): { index: number; what: string } => ({ index, what });
  const [node, service, replica, key] = [
    'node_prefix "pointsman-"', 'service "cache"', 'service "cache-replica"', 'key_prefix "pointsman/"',
  ].map((rule) => `${rule} { policy = "write" }`) as [string, string, string, string];

  test.each<[string, { index: number; what: string }[], object]>([
    ['stale', [at(0, 'failed to set key "pointsman/cache", index is stale')], { kind: 'stale' }],
    ['guard', [at(0, 'failed to check index, key "pointsman/cache" doesn\'t exist')], { kind: 'stale' }],
    ['stale, and what follows from it', [at(0, 'x, index is stale'), at(1, 'Missing node registration')], { kind: 'stale' }],
    ['node', [at(0)], { kind: 'denied', rules: [node] }],
    ['a service and its check, once', [at(1), at(2)], { kind: 'denied', rules: [service] }],
    ['newer Consul', [at(3, "Permission denied: token with AccessorID 'x' lacks permission 'service:write' on \"cache-replica\"")],
      { kind: 'denied', rules: [replica] }],
    ['key', [at(5), at(6)], { kind: 'denied', rules: [key] }],
    ['beside the list', [at(99)], { kind: 'denied', rules: [] }],
    ['something else', [at(1, 'Missing node registration')], { kind: 'mistaken', text: 'operation 1: Missing node registration' }],
    ['nothing', [], { kind: 'mistaken' }],
  ])('%s', (_what, errors, refusal) => {
    expect(refusalOf(operations, errors, 'pointsman')).toMatchObject(refusal);
  });

  test('the self-test passes by one error alone', () => {
    const last = operations.length - 1;
    expect(judgeSelfTest(operations, [at(last, 'failed to check index, key "pointsman/.never" doesn\'t exist')], 'pointsman')).toEqual([]);
    expect(judgeSelfTest(operations, [at(0), at(5)], 'pointsman')).toEqual([node, key]);
    expect(judgeSelfTest(operations, [], 'pointsman')).toContain('it was applied');
    expect(judgeSelfTest(operations, [at(0, 'odd')], 'pointsman')).toContain('odd');
    expect(deniedError('h:1', [node, key]).message).toBe(`consul at h:1: the token lacks the rules ${node}, ${key}`);
  });
});

describe('the watch', () => {
  test.each([
    ['first answer', 0, 10, 1, 10], ['a change', 10, 12, 3, 12], ['the wait is over', 10, 10, 5_100, 10], ['the same before that', 10, 10, 20, 0],
    ['falling', 10, 9, 5_100, 0], ['none', 10, 0, 1, 0], ['negative', 10, -1, 1, 0], ['no number', 10, NaN, 1, 0],
  ])('%s', (_what, asked, index, elapsedMs, next) => {
    expect(nextIndex(asked, { index, elapsedMs }, 5_000)).toBe(next);
  });

  test('stays away longer and longer, but never so long that 10 s are missed', () => {
    expect([1, 2, 3, 9].map((failures) => watchBackoffMs(failures, false))).toEqual([500, 1_000, 2_000, 2_000]);
    expect(watchBackoffMs(9, true)).toBe(5_000);
  });
});

describe('agent mode', () => {
  const wish = (change: Partial<Route> = {}): ReturnType<typeof wishOf> =>
    wishOf(routeOf({ replicas: [{ address: B, healthy: true }], ...change }), { names, writer: 'me', whyNotPublishable: () => null });
  const NOTHING: LocalState = { services: [], checks: new Map() };
  const shown = (steps: readonly LocalStep[]): string[] => steps.map((step) => {
    if (step.kind === 'check') return `${step.isPassing ? 'pass' : 'fail'} ${step.id}`;
    return step.kind === 'register' ? `register ${step.registration.id} ${step.registration.tags[0]}` : `deregister ${step.id}`;
  });
  const done = (state: LocalState, steps: readonly LocalStep[]): LocalState => {
    const services = new Map(state.services.map((service) => [service.id, service]));
    const checks = new Map(state.checks);
    for (const step of steps) {
      if (step.kind === 'check') checks.set(step.id, step.isPassing ? 'passing' : 'critical');
      else if (step.kind === 'deregister') services.delete(step.id);
      else {
        services.set(step.registration.id, step.registration);
        if (!checks.has(step.registration.checkId)) checks.set(step.registration.checkId, 'critical');
      }
    }
    return { services: [...services.values()], checks };
  };

  test('winner: tags, then check; loser: check, then tags; gone: deregistered', () => {
    const before = wish();
    const state = done(NOTHING, planLocal(before, before.nodes, NOTHING));
    expect(planLocal(before, before.nodes, state)).toEqual([]);
    const after = wish({ configEpoch: 6, primary: B, replicas: [{ address: A, healthy: true }] });
    const steps = planLocal(after, after.nodes, state);
    expect(shown(steps)).toEqual([
      'fail cache-10-0-0-1-6379:role', 'register cache-10-0-0-1-6379 replica', 'fail cache-replica-10-0-0-2-6380:role',
      'register cache-10-0-0-2-6380 master', 'pass cache-10-0-0-2-6380:role', 'pass cache-replica-10-0-0-1-6379:role',
    ]);
    expect(planLocal(after, after.nodes, done(state, steps))).toEqual([]);
    expect(shown(planLocal(after, [], state)).sort()).toEqual(state.services.map(({ id }) => `deregister ${id}`).sort());
  });

  test('services of somebody else stay', () => {
    const foreign = { id: 'cache-1', service: 'cache', tags: [], address: 'x', port: 1, meta: {} };
    expect(planLocal(wish(), [], { services: [foreign], checks: new Map() })).toEqual([]);
  });
});
