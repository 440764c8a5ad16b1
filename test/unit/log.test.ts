// Log lines: one record, one line; secrets never in it.
import { describe, expect, test } from '@jest/globals';
import { createLog, formatTextLine } from '../../src/log.js';
import type { Log } from '../../src/log.js';
import { AgentError } from '../../src/errors.js';

function capture(format: 'json' | 'text', write: (log: Log) => void, level: 'info' | 'warn' = 'info'): string[] {
  const lines: string[] = [];
  write(createLog({ level, format, destination: { write: (line) => lines.push(line) } }));
  return lines;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /;

describe('text', () => {
  test('time, level, part, message, fields', () => {
    const [line = ''] = capture('text', (log) => log.child({ part: 'sentinel' }).info({ master: 'my master', port: 6379 },
      '+sdown master m 127.0.0.1 6379'));
    expect(line).toMatch(TIME);
    expect(line.replace(TIME, '')).toBe('info  sentinel +sdown master m 127.0.0.1 6379 master="my master" port=6379\n');
  });

  test('an error gives its message and code, not its stack', () => {
    const [line = ''] = capture('text', (log) => log.warn({ err: new AgentError('LINK_FAILED', 'no route to host') }, 'link lost'));
    expect(line.replace(TIME, '')).toBe('warn  link lost error="no route to host" code=LINK_FAILED\n');
  });

  test('foreign text forges no line and no colour', () => {
    const lines = capture('text', (log) => log.info({ output: 'a\nb\u001b[31m' }, 'said\n2026-01-01T00:00:00.000Z fatal x\u001b[2J'));
    expect(lines).toHaveLength(1);
    expect(lines[0]?.trimEnd()).not.toMatch(/[\n\u001b]/);
  });

  test('levels below the set one are silent', () => {
    expect(capture('text', (log) => log.info('x'), 'warn')).toEqual([]);
  });

  test.each(['not json\n', '5\n', ''])('what is no record passes: %j', (line) => expect(formatTextLine(line)).toBe(line));
});

describe('json', () => {
  test('NDJSON with ISO time and the level as a word', () => {
    const [line = ''] = capture('json', (log) => log.child({ part: 'dns' }).error({ zone: 'z.' }, 'bad'));
    expect(JSON.parse(line)).toEqual({ level: 'error', time: expect.stringMatching(/Z$/), part: 'dns', zone: 'z.', msg: 'bad' });
  });
});

describe.each(['json', 'text'] as const)('secrets in %s', (format) => {
  test.each([
    { password: 'hunter2' }, { auth_pass: 'hunter2' }, { authPass: 'hunter2' }, { 'auth-pass': 'hunter2' }, { token: 'hunter2' },
    { a: { b: [{ secret: 'hunter2' }] } }, { consulToken: 'hunter2' }, { requirepass: 'hunter2' }, { sentinelPass: { x: 'hunter2' } },
    { url: 'redis://default:hunter2@10.0.0.1:6379' }, { err: Object.assign(new Error('redis://:hunter2@h'), { token: 'hunter2' }) },
    { err: new Error('connect to redis://:hunter2@h failed') },
  ])('%j', (fields) => {
    const lines = capture(format, (log) => { log.info(fields, 'm'); log.child(fields as Record<string, unknown>).info('m'); });
    expect(lines).toHaveLength(2);
    expect(lines.join('')).not.toContain('hunter2');
    expect(lines.join('')).toContain('[redacted]');
  });

  test('a secret in a URL of the message', () => {
    expect(capture(format, (log) => log.info('using rediss://u:hunter2@h:1')).join('')).not.toContain('hunter2');
  });

  test('names that only sound like one stay', () => {
    const lines = capture(format, (log) => log.info({ tokenFile: '/t', bypass: 1, password: null, passed: 'x' }, 'm'));
    expect(lines.join('')).not.toContain('redacted');
  });
});
