import { describe, expect, test } from '@jest/globals';
import { cutToBytes, eventPayload, instancePrefix } from '../../../../src/sentinel/wire/event-text.js';
import type { EventInstance, NamedInstance } from '../../../../src/sentinel/wire/event-text.js';

const master: NamedInstance = { name: 'cache', address: { host: '10.0.0.1', port: 6379 } };
const MASTER: EventInstance = { ...master, kind: 'master' };
const REPLICA: EventInstance = { kind: 'replica', name: '[fd00::2]:6380', address: { host: 'fd00::2', port: 6380 }, master };
const SENTINEL: EventInstance = { kind: 'sentinel', name: 'f00', address: { host: '', port: 26379 }, master };

describe('event payloads', () => {
  test.each<readonly [EventInstance, string]>([
    [MASTER, 'master cache 10.0.0.1 6379'],
    [REPLICA, 'slave [fd00::2]:6380 fd00::2 6380 @ cache 10.0.0.1 6379'],
    [SENTINEL, 'sentinel f00  26379 @ cache 10.0.0.1 6379'],
  ])('prefix of a $kind', (instance, prefix) => {
    expect(instancePrefix(instance)).toBe(prefix);
    expect(eventPayload(instance)).toBe(prefix);
    expect(eventPayload(instance, '#quorum 2/2')).toBe(`${prefix} #quorum 2/2`);
  });

  test('without an instance only the text', () => {
    expect(eventPayload(null, '#tilt mode entered')).toBe('#tilt mode entered');
  });

  test('ends after 1023 bytes, prefix included, and never inside a character', () => {
    const long = eventPayload({ ...MASTER, name: 'n'.repeat(1100) }, 'quorum 2');
    expect(long).toBe(`master ${'n'.repeat(1016)}`);
    expect(eventPayload(null, 'x'.repeat(1023))).toHaveLength(1023);
    expect(eventPayload(null, `${'x'.repeat(1021)}€`)).toBe('x'.repeat(1021));
    expect(eventPayload(null, `${'x'.repeat(1020)}€y`)).toBe(`${'x'.repeat(1020)}€`);
    expect(cutToBytes('a😀', 4)).toBe('a');
    expect(cutToBytes('a😀', 5)).toBe('a😀');
  });
});
