/**
 * The plan and the settings come from the seed alone; what the lab reads from its tools is read right.
 */
import { expect, test } from '@jest/globals';
import { Draw } from '../sim/draw.js';
import { readDig } from './dig.js';
import { readSample } from './node-watch.js';
import { FAULT_KINDS, ROUND_MS, drawRound } from './plan.js';
import { drawSettings } from './settings.js';

const rounds = (seed: number): ReturnType<typeof drawRound>[] => {
  const draw = new Draw(seed);
  return Array.from({ length: 100 }, () => drawRound(draw));
};

test('the same seed gives the same rounds, another one others', () => {
  expect(rounds(7)).toEqual(rounds(7));
  expect(rounds(7)).not.toEqual(rounds(8));
});

test('every kind of fault comes about, and every round has one', () => {
  const all = rounds(1);
  expect(new Set(all.flat().map(({ kind }) => kind))).toEqual(new Set(FAULT_KINDS));
  expect(all.filter((steps) => steps.length === 0 || steps.some(({ atMs }) => atMs >= ROUND_MS))).toEqual([]);
});

test('what the command line says wins over the seed', () => {
  expect(drawSettings({ seed: 5, minutes: 20, layout: 'apart', downAfterMs: 1234 })).toMatchObject({ seed: 5, minutes: 20, layout: 'apart', downAfterMs: 1234 });
  expect(drawSettings({ seed: 5 })).toEqual(drawSettings({ seed: 5 }));
});

test('what dig prints', () => {
  const head = (status: string): string => `;; ->>HEADER<<- opcode: QUERY, status: ${status}, id: 1\n;; QUESTION SECTION:\n;m.redis.test.\tIN\tA\n`;
  expect(readDig(`${head('NOERROR')}\n;; ANSWER SECTION:\nm.redis.test.\t1\tIN\tA\t198.18.0.12\n`)).toBe('198.18.0.12');
  expect([readDig(head('NOERROR')), readDig(head('SERVFAIL')), readDig('')]).toEqual(['no address', 'SERVFAIL', 'no answer']);
});

test('what a node says of itself', () => {
  const text = '# Server\r\nrun_id:abc\r\n# Replication\r\nrole:slave\r\nmaster_replid:aa\r\nmaster_replid2:00\r\nmaster_repl_offset:17\r\nsecond_repl_offset:-1\r\n';
  expect(readSample(text, 1, 2)).toEqual({
    askedMs: 1, answeredMs: 2, runId: 'abc', role: 'slave', replid: 'aa', offset: 17, replid2: '00', secondOffset: -1,
  });
  expect(readSample('-LOADING', 1, 2)).toBeNull();
});
