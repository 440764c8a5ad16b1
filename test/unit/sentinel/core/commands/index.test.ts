import { describe, expect, test } from '@jest/globals';
import { SENTINEL_SUBCOMMANDS } from '../../../../../src/sentinel/core/commands/subcommands.js';
import { addMaster, ask, emptyState, MY_ID, NOW, PEERS, world } from './fixture.js';

const NO_MASTER = '-ERR No such master with that name';

describe('dispatch', () => {
  test.each([
    ['SENTINEL', "-ERR wrong number of arguments for 'sentinel' command"],
    ['sentinel FooBar', "-ERR unknown subcommand 'FooBar'. Try SENTINEL HELP."],
    ['sentinel constructor', "-ERR unknown subcommand 'constructor'. Try SENTINEL HELP."],
    ['SENTINEL "" x', "-ERR unknown subcommand ''. Try SENTINEL HELP."],
    ['SENTINEL MASTERS x', "-ERR wrong number of arguments for 'sentinel|masters' command"],
    ['SENTINEL CONFIG GET', "-ERR wrong number of arguments for 'sentinel|config' command"],
    ['SENTINEL INFO-CACHE', "-ERR wrong number of arguments for 'sentinel|info-cache' command"],
    ['SENTINEL SIMULATE-FAILURE', "-ERR wrong number of arguments for 'sentinel|simulate-failure' command"],
    ['SENTINEL SET mymaster fakeoption', "-ERR wrong number of arguments for 'sentinel|set' command"],
    ['ROLE x', "-ERR wrong number of arguments for 'role' command"],
    ['PUBLISH', "-ERR wrong number of arguments for 'publish' command"],
    ['PUBLISH a', "-ERR wrong number of arguments for 'publish' command"],
    ['Save now', "-ERR unknown command 'Save', with args beginning with: 'now' "],
  ])('%s', (line, reply) => {
    const { reply: answer, trace } = ask(world().state, line);
    expect(answer).toBe(reply);
    expect(trace).toEqual(['reply']);
  });

  test.each(SENTINEL_SUBCOMMANDS)('$name checks its arity on both sides', ({ name, arity }) => {
    const words = (count: number): string => ['SENTINEL', name.toUpperCase(), ...Array<string>(count - 2).fill('1')].join(' ');
    const refusal = `-ERR wrong number of arguments for 'sentinel|${name}' command`;
    const least = Math.abs(arity);
    expect(ask(world().state, words(least)).reply).not.toBe(refusal);
    if (least > 2) expect(ask(world().state, words(least - 1)).reply).toBe(refusal);
    expect(ask(world().state, words(least + 1)).reply === refusal).toBe(arity > 0);
  });

  const byName = ['MASTER', 'PRIMARY', 'REPLICAS', 'SLAVES', 'SENTINELS', 'CKQUORUM', 'FAILOVER', 'REMOVE'];
  test.each(byName)('%s of an unknown master', (name) => {
    expect(ask(world().state, `SENTINEL ${name} MyMaster`)).toEqual({ reply: NO_MASTER, ifNotSaved: undefined, trace: ['reply'] });
  });

  test('SET asks for the master before it reads the options', () => {
    expect(ask(world().state, 'SENTINEL SET nope fake 1').reply).toBe(NO_MASTER);
  });
});

describe('ROLE and PUBLISH', () => {
  test('ROLE names the masters', () => {
    const { state } = world();
    addMaster(state, 'other', { host: '10.9.0.1', ip: '10.9.0.1', port: 1 });
    expect(ask(state, 'role').reply).toEqual(['sentinel', ['mymaster', 'other']]);
    expect(ask(emptyState(), 'ROLE').reply).toEqual(['sentinel', []]);
  });

  test('PUBLISH takes hellos only, and processes them', () => {
    const { state, master } = world();
    expect(ask(state, 'PUBLISH news x').reply).toBe('-ERR Only HELLO messages are accepted by Sentinel instances.');
    const newcomer = 'c'.repeat(40);
    const { reply, trace } = ask(state, `PUBLISH __sentinel__:hello 10.0.1.9,26379,${newcomer},5,mymaster,10.0.0.1,6379,0`);
    expect(reply).toBe(1);
    expect(trace.at(-1)).toBe('reply');
    expect([...master.peers.keys()]).toEqual([...PEERS, newcomer]);
    expect(state.currentEpoch).toBe(5);
  });

  const useless = ['nonsense', '10.0.1.9,26379,x,5,unknown,10.0.0.1,6379,0', '""'];
  test.each(useless)('PUBLISH of %s is answered with 1 and changes nothing', (payload) => {
    const { state, master } = world();
    expect(ask(state, `publish __sentinel__:hello ${payload}`)).toEqual({ reply: 1, ifNotSaved: undefined, trace: ['reply'] });
    expect(master.peers.size).toBe(2);
  });
});

describe('small ones', () => {
  test('MYID, FLUSHCONFIG, PENDING-SCRIPTS', () => {
    const { state } = world();
    expect(ask(state, 'SENTINEL MYID').reply).toBe(MY_ID);
    expect(ask(state, 'SENTINEL PENDING-SCRIPTS').reply).toEqual([]);
    const { reply, ifNotSaved, trace } = ask(state, 'SENTINEL FLUSHCONFIG');
    expect([reply, ifNotSaved, trace]).toEqual(['+OK', '-ERR Failed to save config file. Check server logs.', ['persist', 'reply']]);
  });

  test('HELP names every subcommand that is not deprecated, with an indented line each', () => {
    const lines = ask(emptyState(), 'SENTINEL HELP').reply as string[];
    expect(lines[0]).toBe('+SENTINEL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:');
    expect(lines.at(-2)).toBe('+HELP');
    const named = lines.slice(1).filter((_line, index) => index % 2 === 0);
    const shown = SENTINEL_SUBCOMMANDS.filter((row) => row.origin === 'redis' && row.name !== 'slaves');
    const wanted = shown.map((row) => `+${row.name.toUpperCase()}`);
    expect(named.map((line) => line.split(' ')[0]).sort()).toEqual([...wanted].sort());
    expect(lines.slice(1).filter((_line, index) => index % 2 === 1).every((line) => /^\+ {4}\S/.test(line))).toBe(true);
  });

  test('the table has 21 rows of Redis, as COMMAND LIST of 7.0 and 7.2 does', () => {
    expect(SENTINEL_SUBCOMMANDS.filter((row) => row.origin === 'redis')).toHaveLength(21);
  });
});

describe('FAILOVER', () => {
  test('starts at once, forced, under a new epoch', () => {
    const { state, master } = world();
    const { reply, trace } = ask(state, 'SENTINEL FAILOVER mymaster');
    expect(reply).toBe('+OK');
    expect(trace[0]).toBe("log notice Executing user requested FAILOVER of 'mymaster'");
    expect(trace).toContain('+try-failover master mymaster 10.0.0.1 6379');
    expect(master.failover).toMatchObject({ forced: true, epoch: 1 });
    expect(ask(state, 'SENTINEL FAILOVER mymaster').reply).toBe('-INPROG Failover already in progress');
    expect(master.failover?.epoch).toBe(1);
  });

  test('is refused while no replica may be promoted', () => {
    const { state, master } = world();
    for (const replica of master.replicas.values()) replica.sdownSinceMs = NOW;
    expect(ask(state, 'SENTINEL FAILOVER mymaster').reply).toBe('-NOGOODSLAVE No suitable replica to promote');
    expect(master.failover).toBeNull();
    expect(state.currentEpoch).toBe(0);
  });
});
