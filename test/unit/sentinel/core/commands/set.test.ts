import { describe, expect, test } from '@jest/globals';
import { instancesOf } from '../../../../../src/sentinel/core/instance.js';
import type { Master } from '../../../../../src/sentinel/core/state.js';
import { ask, SAVE_ERROR, world } from './fixture.js';

const PREFIX = '+set master mymaster 10.0.0.1 6379';
const unknown = (option: string): string => `-ERR Unknown option or number of arguments for SENTINEL SET '${option}'`;
const invalid = (value: string, option: string): string => `-ERR Invalid argument '${value}' for SENTINEL SET '${option}'`;

describe('SET applies', () => {
  const rows: readonly (readonly [args: string, shown: string, expected: Partial<Master>])[] = [
    ['failover-timeout 1', 'failover-timeout 1', { failoverTimeoutMs: 1 }],
    ['Parallel-Syncs 2147483647', 'Parallel-Syncs 2147483647', { parallelSyncs: 2_147_483_647 }],
    ['quorum 5', 'quorum 5', { quorum: 5 }],
    ['master-reboot-down-after-period 0', 'master-reboot-down-after-period 0', { masterRebootDownAfterMs: 0 }],
    ['primary-reboot-down-after-period 9', 'primary-reboot-down-after-period 9', { masterRebootDownAfterMs: 9 }],
    ['notification-script /n', 'notification-script /n', { notificationScript: '/n' }],
    ['client-reconfig-script /c', 'client-reconfig-script /c', { clientReconfigScript: '/c' }],
    ['client-reconfig-script ""', 'client-reconfig-script ', { clientReconfigScript: null }],
  ];
  test.each(rows)('%s', (args, shown, expected) => {
    const { state, master } = world();
    Object.assign(master, { masterRebootDownAfterMs: 1, clientReconfigScript: '/old' });
    expect(ask(state, `SENTINEL SET mymaster ${args}`)).toMatchObject({ reply: '+OK', ifNotSaved: SAVE_ERROR });
    const { trace } = ask(state, `SENTINEL SET mymaster ${args}`);
    expect(trace.filter((line) => line !== 'notify')).toEqual([`${PREFIX} ${shown}`, 'persist', 'reply']);
    expect(master).toMatchObject(expected);
    expect(state.touched.has('mymaster')).toBe(true);
  });

  test('down-after-milliseconds to all its instances', () => {
    const { state, master } = world();
    ask(state, 'SENTINEL SET mymaster DOWN-AFTER-MILLISECONDS 1234');
    expect([...instancesOf(master)].map((instance) => instance.downAfterMs)).toEqual([1234, 1234, 1234, 1234, 1234]);
  });

  test('credentials: hidden where secret, and the links to master and replicas start again', () => {
    const { state, master } = world();
    const pass = ask(state, 'SENTINEL SET mymaster auth-pass s3cret');
    expect(pass.trace).toEqual([...Array<string>(6).fill('close'), `${PREFIX} auth-pass ******`, 'persist', 'reply']);
    expect([...instancesOf(master)].map((instance) => instance.link.command !== null)).toEqual([false, false, false, true, true]);
    expect(ask(state, 'SENTINEL SET mymaster auth-user joe').trace).toEqual([`${PREFIX} auth-user joe`, 'persist', 'reply']);
    expect(master).toMatchObject({ authUser: 'joe', authPass: 's3cret' });
    ask(state, 'SENTINEL SET mymaster auth-user "" auth-pass ""');
    expect(master).toMatchObject({ authUser: null, authPass: null });
  });

  test('rename-command, without case; to itself takes the entry away', () => {
    const { state, master } = world();
    const { trace } = ask(state, 'SENTINEL SET mymaster rename-command ping XPING rename-command Config c0');
    expect(trace).toEqual([`${PREFIX} rename-command ping XPING`, `${PREFIX} rename-command Config c0`, 'persist', 'reply']);
    expect([...master.renamedCommands]).toEqual([['PING', 'XPING'], ['CONFIG', 'c0']]);
    ask(state, 'SENTINEL SET mymaster rename-command PING pInG');
    expect([...master.renamedCommands]).toEqual([['CONFIG', 'c0']]);
  });

  test('a notification-script from this command on runs for its own event', () => {
    expect(ask(world().state, 'SENTINEL SET mymaster notification-script /n').trace).toContain('notify');
  });
});

describe('SET refuses', () => {
  test.each([
    ['down-after-milliseconds -20', invalid('-20', 'down-after-milliseconds')],
    ['down-after-milliseconds abc', invalid('abc', 'down-after-milliseconds')],
    ['down-after-milliseconds 0', invalid('0', 'down-after-milliseconds')],
    ['Quorum 4294967296', invalid('4294967296', 'Quorum')],
    ['parallel-syncs " 1"', invalid(' 1', 'parallel-syncs')],
    ['failover-timeout +1', invalid('+1', 'failover-timeout')],
    ['failover-timeout 9007199254740992', invalid('9007199254740992', 'failover-timeout')],
    ['master-reboot-down-after-period -1', invalid('-1', 'master-reboot-down-after-period')],
    ['rename-command ping ""', invalid('', 'rename-command')],
    ['rename-command "" ping', invalid('', 'rename-command')],
    ['rename-command ping', unknown('rename-command')],
    ['fakeoption fakevalue', unknown('fakeoption')],
    ['constructor 1', unknown('constructor')],
  ])('%s', (args, reply) => {
    const { state, master } = world();
    const before = JSON.stringify([master.quorum, master.downAfterMs, master.failoverTimeoutMs, [...master.renamedCommands]]);
    expect(ask(state, `SENTINEL SET mymaster ${args}`)).toEqual({ reply, ifNotSaved: undefined, trace: ['reply'] });
    expect(JSON.stringify([master.quorum, master.downAfterMs, master.failoverTimeoutMs, [...master.renamedCommands]])).toBe(before);
  });

  test.each([
    ['notification-script', '-ERR Notification script seems non existing or non executable'],
    ['client-reconfig-script', '-ERR Client reconfiguration script seems non existing or non executable'],
  ])('%s that can not be run, or that may not be changed', (option, reply) => {
    const { state, master } = world();
    const facts = { unusableScripts: ['test.txt'] };
    expect(ask(state, `SENTINEL SET mymaster ${option} test.txt`, { facts }).reply).toBe(reply);
    state.settings.denyScriptsReconfig = true;
    for (const path of ['/ok', '""']) {
      expect(ask(state, `SENTINEL SET mymaster ${option} ${path}`).reply).toBe(
        '-ERR Reconfiguration of scripts path is denied for security reasons. ' +
          'Check the deny-scripts-reconfig configuration directive in your Sentinel configuration',
      );
    }
    expect([master.notificationScript, master.clientReconfigScript]).toEqual([null, null]);
  });

  test('what comes before the bad option stays, is announced and saved', () => {
    const { state, master } = world();
    const tails = [
      ['foo', unknown('foo')],
      ['quorum 0', invalid('0', 'quorum')],
      ['failover-timeout', unknown('failover-timeout')],
    ] as const;
    for (const [tail, reply] of tails) {
      const { reply: answer, ifNotSaved, trace } = ask(state, `SENTINEL SET mymaster quorum 3 ${tail} `);
      expect([answer, ifNotSaved, trace]).toEqual([reply, undefined, [`${PREFIX} quorum 3`, 'persist', 'reply']]);
    }
    expect(master.quorum).toBe(3);
  });
});
