import { describe, expect, test } from '@jest/globals';
import { ask, SAVE_ERROR, world } from './fixture.js';

const USAGE =
  '-ERR Only SENTINEL CONFIG GET <param> [<param> <param> ...]/ SET <param> <value> [<param> <value> ...] are supported.';
const invalid = (value: string, option: string): string => `-ERR Invalid value '${value}' to SENTINEL CONFIG SET '${option}'`;
const NAMES = ['resolve-hostnames', 'announce-hostnames', 'announce-ip', 'announce-port', 'sentinel-user', 'sentinel-pass', 'loglevel'];

describe('CONFIG GET', () => {
  test.each([
    ['*', NAMES],
    ['ANNOUNCE-*', ['announce-hostnames', 'announce-ip', 'announce-port']],
    ['*-hostnames announce*', ['resolve-hostnames', 'announce-hostnames', 'announce-ip', 'announce-port']],
    ['loglevel announce-ip loglevel', ['loglevel', 'announce-ip']],
    ['port "" nope', []],
  ])('%s', (patterns, names) => {
    const pairs = ask(world().state, `SENTINEL CONFIG GET ${patterns}`).reply as readonly (readonly [string, string])[];
    expect(pairs.map(([name]) => name)).toEqual(names);
  });

  test('defaults', () => {
    const values = ['no', 'no', '', '0', '', '', 'notice'];
    expect(ask(world().state, 'sentinel config get *').reply).toEqual(NAMES.map((name, at) => [name, values[at]]));
  });
});

describe('CONFIG SET', () => {
  test.each([
    ['resolve-hostnames YES', 'resolveHostnames', true],
    ['announce-hostnames yes', 'announceHostnames', true],
    ['announce-ip 1.2.3.4', 'announceIp', '1.2.3.4'],
    ['announce-ip ""', 'announceIp', null],
    ['announce-port 65535', 'announcePort', 65_535],
    ['Sentinel-User joe', 'sentinelUser', 'joe'],
    ['sentinel-pass ""', 'sentinelPass', null],
    ['loglevel Warning', 'logLevel', 'warning'],
    ['loglevel nothing', 'logLevel', 'nothing'],
  ] as const)('%s', (args, key, value) => {
    const { state } = world();
    Object.assign(state.settings, { announceIp: 'old', sentinelPass: 'old' });
    const { reply, ifNotSaved, trace } = ask(state, `SENTINEL CONFIG SET ${args}`);
    expect([reply, ifNotSaved, trace.slice(-2)]).toEqual(['+OK', SAVE_ERROR, ['persist', 'reply']]);
    expect(state.settings[key]).toBe(value);
  });

  test.each([
    ['SENTINEL CONFIG SET x', USAGE],
    ['SENTINEL CONFIG DEL announce-ip', USAGE],
    ['SENTINEL CONFIG SET port 1', "-ERR Invalid argument 'port' to SENTINEL CONFIG SET"],
    ['SENTINEL CONFIG SET announce-port 1 nope 2', "-ERR Invalid argument 'nope' to SENTINEL CONFIG SET"],
    ['SENTINEL CONFIG SET announce-port 1 Announce-Port 2', "-ERR Duplicate argument 'Announce-Port' to SENTINEL CONFIG SET"],
    ['SENTINEL CONFIG SET announce-port 1 announce-port', "-ERR Duplicate argument 'announce-port' to SENTINEL CONFIG SET"],
    ['SENTINEL CONFIG SET announce-port 1 announce-ip', "-ERR Missing argument 'announce-ip' value"],
    ['SENTINEL CONFIG SET announce-port 1 resolve-hostnames maybe', invalid('maybe', 'resolve-hostnames')],
    ['SENTINEL CONFIG SET announce-port 65536', invalid('65536', 'announce-port')],
    ['SENTINEL CONFIG SET announce-port -1', invalid('-1', 'announce-port')],
    ['SENTINEL CONFIG SET announce-port ""', invalid('', 'announce-port')],
    ['SENTINEL CONFIG SET announce-ip 1.1.1.1 LogLevel loud', invalid('loud', 'LogLevel')],
    ['SENTINEL CONFIG SET sentinel-user joe announce-hostnames yess', invalid('yess', 'announce-hostnames')],
  ])('%s changes nothing', (line, reply) => {
    const { state } = world();
    const before = JSON.stringify(state.settings);
    expect(ask(state, line)).toEqual({ reply, ifNotSaved: undefined, trace: ['reply'] });
    expect(JSON.stringify(state.settings)).toBe(before);
  });

  test('many pairs at once; new credentials make the peers, and only them, connect again', () => {
    const { state, master } = world();
    expect(ask(state, 'SENTINEL CONFIG SET announce-ip 9.9.9.9 announce-port 1').trace).toEqual(['persist', 'reply']);
    const { trace } = ask(state, 'SENTINEL CONFIG SET loglevel debug sentinel-pass p sentinel-user u');
    expect(trace).toEqual(['close', 'close', 'persist', 'reply']);
    expect(state.settings).toMatchObject({ announceIp: '9.9.9.9', announcePort: 1, logLevel: 'debug' });
    expect(state.settings).toMatchObject({ sentinelPass: 'p', sentinelUser: 'u' });
    expect([...master.peers.values()].map((peer) => peer.link.command)).toEqual([null, null]);
    expect(master.link.command).not.toBeNull();
  });
});
