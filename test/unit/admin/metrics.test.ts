// The metrics page: facts of the status as gauges, nothing left over from before, and the same names as on docs/metrics.md.
import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { Metrics } from '../../../src/admin/metrics.js';
import type { AgentStatus, MasterStatus } from '../../../src/admin/status.js';

const MASTER: MasterStatus = {
  name: 'cache', primary: '10.0.0.1:6379', state: 'odown', failoverState: null, configEpoch: 7, quorum: 2, trusted: true, confirmed: true,
  phase: 'prepared', alarms: ['the master is loading its data set'],
  replicas: [
    { address: '10.0.0.2:6379', state: 'ok', notEligible: null },
    { address: '10.0.0.3:6379', state: 'sdown', notEligible: 'it is down' },
    { address: '10.0.0.4:6379', state: 'ok', notEligible: null },
  ],
  sentinels: [{ address: '10.0.0.5:26379', state: 'disconnected', notEligible: null }],
  outputs: [{
    output: 'dns', master: 'cache', state: 'failing', wantedOrder: 14, wantedEpoch: 7, publishedOrder: 12, publishedEpoch: 6,
    sinceMs: 0 as never, attempts: 3, lastError: null, lagMs: 250, detail: '',
  }],
};
const DNS = {
  udpQueries: 10, tcpQueries: 2, replies: { 0: 8, 3: 2, 9: 1 }, silent: 1, slipped: 3, dropped: 4, exceptions: 0, socketErrors: 5, tcpOpen: 6,
  tcpRefused: 7, tcpTimeouts: 8, transfers: 9,
};
const view = (masters: readonly MasterStatus[]): AgentStatus => ({ sentinel: { id: 'a', epoch: 9, tilt: false }, masters });
const lines = (page: string): string[] => page.split('\n').filter((line) => line.startsWith('pointsman_')).sort();

test('facts are gauges, and a master that is gone leaves nothing behind', async () => {
  let masters: readonly MasterStatus[] = [MASTER];
  const metrics = new Metrics(() => view(masters), () => ({ silentFailovers: { prepare: 2, done: 1, abort: 0 }, dns: DNS }));
  expect(lines(await metrics.page())).toMatchSnapshot();
  masters = [];
  const after = lines(await metrics.page());
  expect(after.filter((line) => line.includes('cache'))).toEqual([]);
  expect(after).toContain('pointsman_silent_failovers_total{step="prepare"} 2');
});

test('docs/metrics.md names each of them, and no other', async () => {
  const metrics = new Metrics(() => view([MASTER]), () => ({ silentFailovers: { prepare: 0, done: 0, abort: 0 }, dns: DNS }));
  const named = [...(await metrics.page()).matchAll(/^# TYPE (pointsman_\w+)/gm)].map((match) => match[1] ?? '');
  const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8');
  const listed = [...page.matchAll(/^\| `(pointsman_\w+)/gm)].map((match) => match[1] ?? '');
  expect(listed.sort()).toEqual(named.sort());
});
