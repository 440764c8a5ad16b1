/**
 * ACL with default deny and the minimal policy of docs/consul.md, token files, TLS with client certificates.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConsulSettings } from '../../src/publishers/consul/settings.js';
import { A, B, routeOf, waitFor } from '../unit/publishers/routes.js';
import { ConsulProxy, ConsulServer, MASTER_TOKEN, PublishingAgent, documentedRules, makeCertificates, settingsOf } from './consul-lab.js';

const first = routeOf({ replicas: [{ address: B, healthy: true }] });
const moved = routeOf({ configEpoch: 6, primary: B, replicas: [{ address: A, healthy: true }] });

describe('ACL, default deny', () => {
  let server: ConsulServer;
  let proxy: ConsulProxy;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pointsman-token-'));
    server = await ConsulServer.start({ acl: true });
    proxy = await new ConsulProxy(server).open();
  });
  afterAll(async () => {
    await proxy.close();
    await server.end();
    rmSync(folder, { recursive: true, force: true });
  });

  async function tokenWith(rules: readonly string[], name: string): Promise<string> {
    await server.put('/v1/acl/policy', { Name: name, Rules: rules.join('\n') }, MASTER_TOKEN);
    const made = (await server.put('/v1/acl/token', { Policies: [{ Name: name }] }, MASTER_TOKEN)) as { SecretID: string };
    return made.SecretID;
  }

  const agentWith = (change: Partial<ConsulSettings>): PublishingAgent => new PublishingAgent('agent-1', settingsOf(proxy.url, change));

  test('the documented policy is enough for all of it, and is four rules', async () => {
    expect(documentedRules()).toHaveLength(4);
    const token = await tokenWith(documentedRules(), 'minimal');
    const agent = agentWith({ token });
    await agent.publish(first);
    await agent.publish(moved);
    await waitFor(() => proxy.requests.filter(({ path }) => path.includes('index=')).length >= 3, 'watches');
    expect(await server.passing('cache', MASTER_TOKEN)).toEqual([`${B.host}:6380`]);
    // Anonymous DNS sees nothing until its own token may read services and nodes.
    expect(server.dig('cache.service.consul', 'A')).toEqual([]);
    const reading = ['service_prefix', 'node_prefix'].map((prefix) => `${prefix} "" { policy = "read" }`).join('\n');
    await server.put('/v1/acl/policy', { Name: 'dns', Rules: reading }, MASTER_TOKEN);
    await server.put('/v1/acl/token/00000000-0000-0000-0000-000000000002', { Policies: [{ Name: 'dns' }] }, MASTER_TOKEN);
    await waitFor(() => server.dig('cache.service.consul', 'A').join() === B.host, 'DNS with a token of its own', 35_000);

    agent.reconciler.forget('cache');
    await waitFor(async () => (await server.key('cache', MASTER_TOKEN)) === null, 'the key to go');
    expect(agent.lines.filter((line) => / (warn|error) /.test(line))).toEqual([]);
    expect(agent.lines.join('')).not.toContain(token);
    await agent.close();
  }, 60_000);

  test.each([0, 1, 2, 3])('without rule %i of the policy: the error names it, nothing is written', async (missing) => {
    const rules = documentedRules();
    const agent = agentWith({ token: await tokenWith(rules.filter((_, at) => at !== missing), `without-${missing}`) });
    const from = proxy.requests.length;
    agent.reconciler.submit(first);
    await waitFor(() => agent.lastError() !== '', 'an error');
    expect(agent.lastError()).toBe(`consul at 127.0.0.1:${proxy.port}: the token lacks the rule ${rules[missing]}`);
    await waitFor(() => agent.results.length >= 3, 'three attempts');
    expect(proxy.requests.slice(from).filter(({ method, body }) => method !== 'GET' && !body.includes('.never'))).toEqual([]);
    expect(await server.key('cache', MASTER_TOKEN)).toBeNull();
    await agent.close();
  }, 30_000);

  test('a right that is taken away later: reads come back empty, and still nothing is written over and over', async () => {
    const token = await tokenWith(documentedRules(), 'shrinking');
    const agent = new PublishingAgent('agent-1', settingsOf(proxy.url, { token }), { recheckMs: 300 });
    await agent.publish(first);
    const policies = (await server.get('/v1/acl/policies', MASTER_TOKEN)) as { ID: string; Name: string }[];
    const id = policies.find(({ Name }) => Name === 'shrinking')?.ID;
    const rules = documentedRules().filter((rule) => !rule.startsWith('node_prefix')).join('\n');
    await server.put(`/v1/acl/policy/${id}`, { ID: id, Name: 'shrinking', Rules: rules }, MASTER_TOKEN);
    await waitFor(() => agent.lastError().includes('node_prefix "pointsman-"'), 'the rule by name', 40_000);
    const writes = proxy.writes.length;
    const attempts = agent.results.length;
    await waitFor(() => agent.results.length >= attempts + 2, 'two more attempts');
    expect(proxy.writes.length).toBe(writes);
    await agent.close();
  }, 60_000);

  test('a token file: unknown token, then the right one, then a rotated one', async () => {
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, '99999999-2222-3333-4444-555555555555\n');
    const agent = new PublishingAgent('agent-1', settingsOf(proxy.url, { tokenFile }), { recheckMs: 300 });
    agent.reconciler.submit(first);
    await waitFor(() => agent.lastError().includes('does not know the token'), 'an error');

    const [one, two] = [await tokenWith(documentedRules(), 'one'), await tokenWith(documentedRules(), 'two')];
    writeFileSync(tokenFile, `${one}\n`);
    await agent.published(first);
    const self = (await server.get('/v1/acl/token/self', one)) as { AccessorID: string };
    writeFileSync(tokenFile, two);
    await server.request('DELETE', `/v1/acl/token/${self.AccessorID}`, undefined, MASTER_TOKEN);
    await agent.publish(moved);
    expect(await server.passing('cache', MASTER_TOKEN)).toEqual([`${B.host}:6380`]);
    expect(agent.lines.join('')).not.toMatch(new RegExp(`${one}|${two}`));
    await agent.close();
  }, 60_000);

  test('a token file that is not there is an error with its name', async () => {
    const agent = agentWith({ tokenFile: join(folder, 'nowhere') });
    agent.reconciler.submit(first);
    await waitFor(() => agent.lastError().includes(`token file ${join(folder, 'nowhere')} cannot be read`), 'an error');
    await agent.close();
  });
});

describe('TLS with client certificates', () => {
  let tls: string;
  let server: ConsulServer;
  beforeAll(async () => {
    tls = makeCertificates();
    server = await ConsulServer.start({ tls });
  });
  afterAll(async () => {
    await server.end();
    rmSync(tls, { recursive: true, force: true });
  });

  const files = (): Partial<ConsulSettings> => ({
    caFile: join(tls, 'consul-agent-ca.pem'),
    certFile: join(tls, 'dc1-client-consul-0.pem'),
    keyFile: join(tls, 'dc1-client-consul-0-key.pem'),
  });

  async function errorWith(address: string, change: Partial<ConsulSettings>): Promise<string> {
    const agent = new PublishingAgent('agent-1', settingsOf(address, change));
    agent.reconciler.submit(first);
    await waitFor(() => agent.lastError() !== '', 'an error');
    const error = agent.lastError();
    await agent.close();
    return error;
  }

  test('publishes, with the name that the certificate carries', async () => {
    const named = { ...files(), tlsServerName: 'server.dc1.consul', datacenter: 'dc1' };
    const agent = new PublishingAgent('agent-1', settingsOf(server.url, named));
    await agent.publish(first);
    expect(await server.passing('cache')).toEqual([`${A.host}:6379`]);
    await agent.close();
  });

  test.each<[string, () => Partial<ConsulSettings>, RegExp]>([
    ['no CA', () => ({ ...files(), caFile: null }), /not signed by consul\.ca-file/],
    ['another name', () => ({ ...files(), tlsServerName: 'server.dc2.consul' }), /set consul\.tls-server-name/],
    ['no client certificate', () => ({ ...files(), certFile: null, keyFile: null, tlsServerName: 'server.dc1.consul' }),
      /cannot be reached .*(client certificate|ECONNRESET|EPIPE)/],
    ['a missing file', () => ({ ...files(), keyFile: join(tls, 'nowhere.pem') }), /nowhere\.pem cannot be read/],
    ['an unknown datacenter', () => ({ ...files(), tlsServerName: 'server.dc1.consul', datacenter: 'dc9' }), /No path to datacenter/],
    ['a namespace', () => ({ ...files(), tlsServerName: 'server.dc1.consul', namespace: 'team' }), /X-Consul-Namespace/],
  ])('%s: the error says what to set', async (_what, change, text) => {
    expect(await errorWith(server.url, change())).toMatch(text);
  });

  test('plain HTTP to the TLS port', async () => {
    expect(await errorWith(server.url.replace('https', 'http'), {})).toMatch(/HTTP request to an HTTPS server/);
  });
});
