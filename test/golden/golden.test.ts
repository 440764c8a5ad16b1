/**
 * Conversations with the core, one file per phenomenon: commands, a line of dashes, and what the sentinels did.
 *
 * REWRITE=1 writes what they do now; read the difference before you commit it, and commit only what you understand.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { converse } from './interpreter.js';

const folder = new URL('.', import.meta.url);
const files = readdirSync(folder).filter((file) => file.endsWith('.txt')).sort();

describe('golden', () => {
  test('has conversations', () => expect(files.length).toBeGreaterThan(20));

  test.each(files)('%s', (file) => {
    const path = new URL(file, folder);
    const told = readFileSync(path, 'utf8');
    const tells = converse(told);
    if (process.env['REWRITE'] === '1' && tells !== told) writeFileSync(path, tells);
    else expect(tells).toBe(told);
    expect(told).toMatch(/^# .+\.txt\. /);
    expect(converse(told)).toBe(tells);
  });
});
