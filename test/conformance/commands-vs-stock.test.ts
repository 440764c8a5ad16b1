/**
 * Some 300 commands, and bytes that are none, to the redis-sentinel that is installed and to ours, who watch the same group with
 * the same file: the answers are the same, or docs/divergences.md says why not.
 *
 * Each command goes to both sides over RESP2, then RESP3, so that what changes something changes it on both.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { must } from '../../src/assert.js';
import { splitArgs } from '../../src/sentinel/wire/sentinel-conf.js';
import { Lab, MASTER_NAME, type LabSentinel, type RedisNode } from '../integration/lab.js';
import { read } from '../tidy/sources.js';
import type { CommandCase } from './command-cases.js';
import { RAW_CASES, SENTINEL_CASES, SERVER_CASES } from './command-cases.js';
import { Talk, converse, mask, shapeOf, show } from './talk.js';

const CASES = [...SENTINEL_CASES, ...SERVER_CASES];
const lab = new Lab();
let master: RedisNode;
let sides: readonly LabSentinel[] = [];
let talks: Talk[] = [];

beforeAll(async () => {
  master = await lab.group(1);
  const spec = { downAfterMs: 30_000, lines: ['sentinel deny-scripts-reconfig yes'] };
  const ours = await lab.dropIn(master, { ...spec, env: { POINTSMAN_IDENTITY: 'redis-7.0.15' } });
  sides = [await lab.stock(master, spec), ours];
  await lab.settled(master, 40_000);
}, 90_000);

afterAll(() => lab.stop());

function wordsOf(line: string): readonly string[] {
  const { host, port } = master.address;
  const filled = line.replaceAll('{port}', String(port)).replaceAll('{name}', MASTER_NAME).replaceAll('{NAME}', MASTER_NAME.toUpperCase());
  return must(splitArgs(filled.replace('127.0.0.1 ' + String(port), `${host} ${port}`)), line);
}

function comparable(text: string, how: CommandCase['how']): string {
  const masked = mask(text.replaceAll(String(sides[0]!.address.port), '<port>').replaceAll(String(sides[1]!.address.port), '<port>'));
  switch (how) {
    case 'shape':
      return shapeOf(masked);
    case 'sorted':
      return masked.split('\n').map((line) => line.trim()).sort().join('\n');
    case 'kind':
      return shapeOf(masked).replace(/""/g, '"');
    case 'fields':
      return masked.split('\\r\\n').map((line) => line.split(':')[0]).join('\n');
    case undefined:
      return masked;
  }
}

describe.each([2, 3])('RESP%i', (protocol) => {
  beforeAll(async () => {
    for (const side of sides) {
      const talk = await Talk.open(side.address.port);
      await talk.ask('HELLO', String(protocol));
      talks.push(talk);
    }
  });
  afterAll(() => {
    for (const talk of talks) talk.close();
    talks = [];
  });

  test.each(CASES.map((each) => [each.line, each] as const))('%s', async (_line, { line, how, reason }) => {
    const argv = wordsOf(line);
    const [stock, ours] = await Promise.all(talks.map(async (talk) => comparable(show(await talk.ask(...argv)), how)));
    if (reason === null) expect(ours).toBe(stock);
    else expect(ours).not.toBe(stock);
  });
});

test.each(RAW_CASES)('bytes: %s', async (_name, chunks, reason) => {
  const [stock, ours] = await Promise.all(sides.map(({ address }) => converse(address.port, chunks)));
  if (reason === null) expect(ours).toBe(stock);
  else expect(ours).not.toBe(stock);
});

test('every accepted difference has its line in docs/divergences.md', () => {
  const rows = new Set([...read('docs/divergences.md').matchAll(/^\| (D\d+) \|/gm)].map((match) => match[1]));
  const reasons = [...CASES.map(({ reason }) => reason), ...RAW_CASES.map(([, , reason]) => reason)];
  const named = reasons.filter((reason) => reason?.startsWith('D'));
  expect(named.filter((reason) => !rows.has(reason ?? ''))).toEqual([]);
  expect(named.length).toBeGreaterThan(3);
});
