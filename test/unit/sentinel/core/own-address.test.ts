// A former self is no peer (D81): same address, an id that was lost with the state file.
import { expect, test } from '@jest/globals';
import { must } from '../../../../src/assert.js';
import { createState, step } from '../../../../src/sentinel/index.js';
import { formatHello } from '../../../../src/sentinel/wire/hello.js';
import { loadSentinelConf } from '../../../../src/sentinel/wire/sentinel-conf.js';
import { millis } from '../../../../src/time.js';

const hello = (host: string, port: number, id: string): string => formatHello({
  sentinel: { host, port }, runId: id.repeat(40), currentEpoch: 0, masterName: 'm1', master: { host: '10.0.0.1', port: 6379 }, configEpoch: 0, silent: null,
});

test.each([
  ['by announce-ip', 'sentinel announce-ip 198.51.100.7', '198.51.100.7', 2],
  ['by the address of a link', '', '10.9.9.9', 2],
  ['by the address of the connection that brings hellos, up first', '', '10.9.9.9', 1],
])('%s', (_title, line, own, up) => {
  const conf = loadSentinelConf(`port 26379\n${line}\nsentinel monitor m1 10.0.0.1 6379 1\n`, { path: 'sentinel.conf', readInclude: () => null });
  const state = createState({ conf, freshId: 'f'.repeat(40), seed: 1, now: millis(1_000_000) });
  const now = millis(1_000_001);
  const connects = step(state, { kind: 'start' }, now).filter((effect) => effect.kind === 'connect');
  const pubsub = must(state.masters.get('m1')?.link.pubsub, 'a pub/sub connection').id;
  for (const { connection } of connects) if (up === 2 || connection === pubsub) step(state, { kind: 'connectionUp', connection, localIp: '10.9.9.9' }, now);
  for (const [host, port, id] of [[own, 26379, 'a'], [own, 26380, 'b'], ['10.9.9.8', 26379, 'c']] as const) {
    step(state, { kind: 'hello', payload: hello(host, port, id) }, now);
  }
  expect([...must(state.masters.get('m1'), 'm1').peers.keys()].map((runId) => runId[0])).toEqual(['b', 'c']);
});
