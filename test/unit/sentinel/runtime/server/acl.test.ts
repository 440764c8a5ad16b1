/**
 * Users: rules by table, log-in, permissions on the wire, what a change does to open connections, ACL files.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FatalError } from '../../../../../src/errors.js';
import { AclLog } from '../../../../../src/sentinel/runtime/server/acl-log.js';
import type { AclUser } from '../../../../../src/sentinel/runtime/server/acl-user.js';
import { applyRules, describeUser, hashPassword, newUser, passwordFits,
  whyDenied } from '../../../../../src/sentinel/runtime/server/acl-user.js';
import { findCommand } from '../../../../../src/sentinel/runtime/server-command-table.js';
import type { Rig } from './rig.js';
import { startRig, waitFor } from './rig.js';

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const P1 = `#${hashPassword('p1')}`;
const user = (rules: string): AclUser => {
  const made = applyRules(newUser('u'), rules.split(' '));
  if (typeof made === 'string') throw new Error(made);
  return made;
};

describe('rules', () => {
  test.each([
    ['on >p1', `on sanitize-payload ${P1} resetchannels -@all`],
    ['on >p1 >p1 >p2 <p2', `on sanitize-payload ${P1} resetchannels -@all`],
    [`on ${P1} nopass`, 'on nopass sanitize-payload resetchannels -@all'],
    ['nopass >p1', `off sanitize-payload ${P1} resetchannels -@all`],
    ['>p1 resetpass skip-sanitize-payload', 'off skip-sanitize-payload resetchannels -@all'],
    ['+@all allkeys allchannels on nopass', 'on nopass sanitize-payload ~* &* +@all'],
    ['+@all -@dangerous +sentinel|masters -ping', 'off sanitize-payload resetchannels +@all -@dangerous +sentinel|masters -ping'],
    ['+ping +PING -ping +Ping', 'off sanitize-payload resetchannels -@all +ping'],
    ['+sentinel|masters +sentinel|myid +sentinel', 'off sanitize-payload resetchannels -@all +sentinel'],
    ['+ping|x +ping|y', 'off sanitize-payload resetchannels -@all +ping|x +ping|y'],
    ['~a* ~a* %R~b %W~c %RW~d &x* &y', 'off sanitize-payload ~a* %R~b %W~c ~d resetchannels &x* &y -@all'],
    ['(+@all ~x) (&a +ping)', 'off sanitize-payload resetchannels -@all (~x resetchannels +@all) (resetchannels &a -@all +ping)'],
    ['(+@all ~x) clearselectors', 'off sanitize-payload resetchannels -@all'],
    ['on nopass +@all ~* &* reset', 'off sanitize-payload resetchannels -@all'],
    ['+@all nocommands +auth', 'off sanitize-payload resetchannels -@all +auth'],
  ])('%s', (rules, expected) => {
    const made = user(rules);
    expect(describeUser(made)).toBe(`user u ${expected}`);
    // The description makes the same user.
    expect(describeUser(user(expected))).toBe(describeUser(made));
  });

  const modifier = (rule: string, why: string): [string, string] => [rule, `Error in ACL SETUSER modifier '${rule}': ${why}`];
  const UNKNOWN = 'Unknown command or category name in ACL';
  test.each([
    modifier('foo', 'Syntax error'), modifier('%X~a', 'Syntax error'), modifier('%~a', 'Syntax error'), modifier('', 'Syntax error'),
    modifier('+get', UNKNOWN), modifier('+@foo', UNKNOWN), modifier('+', UNKNOWN), modifier('+@', UNKNOWN), modifier('-ping|x', UNKNOWN),
    modifier('+sentinel|nosuch', UNKNOWN), modifier('+ping|', UNKNOWN), modifier('+ping|x|y', UNKNOWN), modifier('(foo)', 'Syntax error'),
    modifier('<nope', 'The password you are trying to remove from the user does not exist'),
    modifier('#abc', 'The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters'),
    modifier(`#${'A'.repeat(64)}`, 'The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters'),
    ['(+ping', "Unmatched parenthesis in acl selector starting at '(+ping'."],
  ])('%j is refused and changes nothing', (rule, expected) => {
    const before = user('on +ping');
    const line = describeUser(before);
    expect(applyRules(before, ['+auth', '&z', rule])).toBe(expected);
    expect(describeUser(before)).toBe(line);
  });

  test.each([
    ['~*', '~x', "pattern after the * pattern (or the 'allkeys' flag)"], ['&*', '&x',
      "pattern after the * pattern (or the 'allchannels' flag)"],
  ])('%s makes %s pointless', (first, second, text) => expect(applyRules(user(first), [second])).toContain(text));

  test.each([
    ['+@all', 'sentinel|masters', [], null], ['+@all -sentinel|masters', 'sentinel|masters', [], 'command'],
    ['+@all -sentinel|masters', 'sentinel|myid', [], null], ['-@all', 'auth', [], null], ['-@all', 'ping', [], 'command'],
    ['+@connection', 'ping', [], null], ['+@all -@admin', 'sentinel|help', [], null], ['+@all -@admin', 'sentinel|reset', [], 'command'],
    ['+ping|x', 'ping', ['x'], null], ['+ping|x', 'ping', ['y'], 'command'], ['+ping|x -ping', 'ping', ['x'], 'command'],
    ['+subscribe', 'subscribe', ['a'], 'channel a'], ['+subscribe &a*', 'subscribe', ['ab', 'a'], null],
    ['+subscribe &a*', 'subscribe', ['ab', 'b'], 'channel b'], ['+psubscribe &a*', 'psubscribe', ['ab'], 'channel ab'],
    ['+psubscribe &a*', 'psubscribe', ['a*'], null], ['+psubscribe &*', 'psubscribe', ['*'], null], ['+publish &x', 'publish', ['x', 'y'],
      null],
    ['+publish &x', 'publish', ['y', 'x'], 'channel y'], ['+unsubscribe', 'unsubscribe', ['a'], null],
    ['(+ping)', 'ping', [], null], ['+subscribe (&a)', 'subscribe', ['a'], 'channel a'], ['-@all (+subscribe &a)', 'subscribe', ['a'],
      null],
  ] as const)('%s lets %s %j pass: %s', (rules, name, args, expected) => {
    const command = findCommand(name);
    if (command === undefined) throw new Error(name);
    const denial = whyDenied(user(rules), command, [...name.split('|'), ...args]);
    expect(denial?.kind === 'channel' ? `channel ${denial.channel}` : denial?.kind ?? null).toBe(expected);
  });

  test.each([
    ['on >p1', 'p1', true], ['on >p1', 'p2', false], ['on >p1 >p2', 'p2', true], ['off >p1', 'p1', false], ['on nopass', 'any', true],
    ['on', '', false], ['on >', '', true],
  ])('%s opens for %j: %s', (rules, password, expected) => expect(passwordFits(user(rules), password)).toBe(expected));
});

test('the log counts what repeats within a minute and keeps 128 entries, newest first', () => {
  const log = new AclLog();
  const refusal = { reason: 'auth', object: 'AUTH', username: 'u', clientInfo: 'one' } as const;
  log.add(refusal, 0);
  log.add({ ...refusal, clientInfo: 'two' }, 60_000);
  log.add(refusal, 120_001);
  expect(log.entries.map(({ id, count, clientInfo, createdMs, updatedMs }) => [id, count, clientInfo, createdMs, updatedMs])).toEqual([
    [1, 1, 'one', 120_001, 120_001], [0, 2, 'two', 0, 60_000],
  ]);
  for (let index = 0; index < 200; index++) log.add({ ...refusal, object: String(index) }, 200_000);
  expect(log.entries).toHaveLength(128);
  expect(log.entries[0]?.object).toBe('199');
});

describe('on the wire', () => {
  const NOAUTH = '-NOAUTH Authentication required.';
  const WRONGPASS = '-WRONGPASS invalid username-password pair or user is disabled.';

  test('requirepass is asked of everybody; what does not exist is said first', async () => {
    rig = await startRig({ requirePass: 'secret' });
    const client = await rig.client();
    for (const line of ['PING', 'SENTINEL masters', 'PUBLISH a b', 'ECHO x', 'SELECT 0']) expect(await client.say(line)).toBe(NOAUTH);
    expect(await client.say('nosuch')).toMatch(/^-ERR unknown command/);
    expect(await client.say('SENTINEL nosuch')).toMatch(/^-ERR unknown subcommand/);
    expect(await client.say('HELLO 3')).toMatch(/^-NOAUTH HELLO must be called with the client already authenticated/);
    expect(await client.say('AUTH wrong')).toBe(WRONGPASS);
    expect(await client.say('HELLO 3 AUTH default wrong')).toBe(WRONGPASS);
    expect(await client.say('AUTH a b c')).toBe('-ERR syntax error');
    expect(await client.say('AUTH secret')).toBe('+OK');
    expect(await client.say('PING')).toBe('+PONG');
    expect(await client.say('AUTH wrong')).toBe(WRONGPASS);
    expect(await client.say('ACL WHOAMI')).toBe('"default"');
    expect(await (await rig.client()).say('QUIT')).toBe('+OK');
    expect(await (await rig.client()).say('HELLO 3 AUTH default secret SETNAME x')).toMatch(/^\{"server": "redis"/);
  });

  test('the password can change: open connections stay, new ones need the new one', async () => {
    rig = await startRig();
    const early = await rig.client();
    expect(await early.say('AUTH x')).toMatch(/^-ERR AUTH <password> called without any password configured/);
    rig.server.setRequirePass('new');
    expect(await early.say('PING')).toBe('+PONG');
    const late = await rig.client();
    expect(await late.say('PING')).toBe(NOAUTH);
    expect(await late.say('AUTH new')).toBe('+OK');
    rig.server.setRequirePass(null);
    expect(await (await rig.client()).say('PING')).toBe('+PONG');
  });

  test('a user gets what it was given, and refusals are logged and counted', async () => {
    rig = await startRig({ users: ['user al on >pw ~* &+sdown +@all -@dangerous +sentinel|masters -ping'] });
    const al = await rig.client();
    expect(await al.say('AUTH al pw')).toBe('+OK');
    expect(await al.say('PING')).toBe("-NOPERM User al has no permissions to run the 'ping' command");
    expect(await al.say('SENTINEL masters')).toBe('"SENTINEL masters"');
    expect(await al.say('SENTINEL myid')).toBe("-NOPERM User al has no permissions to run the 'sentinel|myid' command");
    expect(await al.say('SUBSCRIBE x')).toBe('-NOPERM No permissions to access a channel');
    expect(await al.say('PSUBSCRIBE *')).toBe('-NOPERM No permissions to access a channel');
    expect(await al.say('PUBLISH __sentinel__:hello x')).toBe('-NOPERM No permissions to access a channel');
    expect(await al.say('AUTH al no')).toBe(WRONGPASS);
    expect(await al.say('SUBSCRIBE +sdown')).toBe('["subscribe", "+sdown", :1]');
    const boss = await rig.client();
    const log = await boss.say('ACL LOG 2');
    expect(log).toMatch(/^\[\["count", :1, "reason", "auth", "context", "toplevel", "object", "AUTH", "username", "al", "age-seconds", /);
    expect(log).toMatch(/"reason", "channel", "context", "toplevel", "object", "__sentinel__:hello", "username", "al"/);
    expect(await boss.say('INFO stats')).toMatch(
      /acl_access_denied_auth:1\\r\\nacl_access_denied_cmd:2\\r\\nacl_access_denied_key:0\\r\\nacl_access_denied_channel:3/,
    );
    expect(await boss.say('ACL LOG reset')).toBe('+OK');
    expect(await boss.say('ACL LOG')).toBe('[]');
  });

  test('what the suite of the server does: default off, others log in, the old connections are killed', async () => {
    rig = await startRig();
    const [admin, peer] = [await rig.client(), await rig.client()];
    expect(await admin.ask('ACL', 'SETUSER', 'boss', 'allcommands', 'allkeys', 'allchannels', 'on', '>pw')).toBe('+OK');
    expect(await admin.say('AUTH boss pw')).toBe('+OK');
    expect(await admin.say('ACL SETUSER default off')).toBe('+OK');
    expect(await peer.say('PING')).toBe('+PONG');
    expect(await admin.say('CLIENT KILL USER default SKIPME no')).toBe(':1');
    await waitFor('the close of the peer', () => peer.isClosed);
    expect(await (await rig.client()).say('PING')).toBe(NOAUTH);
    expect(await (await rig.client()).say('AUTH default x')).toBe(WRONGPASS);
    expect(await admin.say('ACL SETUSER default on')).toBe('+OK');
    expect(await admin.say('ACL DELUSER default')).toBe("-ERR The 'default' user cannot be removed");
    expect(await admin.say('ACL DELUSER boss nobody')).toBe(':1');
    await waitFor('its own close', () => admin.isClosed);
  });

  test('whoever may not listen any more is disconnected, others are not', async () => {
    rig = await startRig({ users: ['user al on >pw &a* &b +@all'] });
    const subscribed = async (line: string): Promise<Awaited<ReturnType<Rig['client']>>> => {
      const client = await (rig as Rig).client();
      await client.say('AUTH al pw');
      await client.say(line);
      return client;
    };
    const [a, b, pattern] = [await subscribed('SUBSCRIBE ab'), await subscribed('SUBSCRIBE b'), await subscribed('PSUBSCRIBE a*')];
    const boss = await rig.client();
    expect(await boss.say('ACL SETUSER al resetchannels &b &a?')).toBe('+OK');
    await waitFor('the close of the pattern', () => pattern.isClosed);
    expect([a.isClosed, b.isClosed]).toEqual([false, false]);
    expect(await boss.say('ACL SETUSER al resetchannels &b')).toBe('+OK');
    await waitFor('the close of a', () => a.isClosed);
    expect(b.isClosed).toBe(false);
    expect(await boss.say('ACL DELUSER al')).toBe(':1');
    await waitFor('the close of b', () => b.isClosed);
  });

  test.each([
    ['ACL CAT pubsub', '["psubscribe", "publish", "punsubscribe", "subscribe", "unsubscribe"]'], ['ACL CAT scripting', '[]'],
    ['ACL CAT foo', "-ERR Unknown category 'foo'"], ['ACL GENPASS 0', /^-ERR ACL GENPASS argument must be/], ['ACL GENPASS x',
      /^-ERR value is not/],
    ['ACL GENPASS 5', /^"[0-9a-f]{2}"$/], ['ACL GENPASS', /^"[0-9a-f]{64}"$/], ['ACL USERS', '["al", "default"]'], ['ACL GETUSER nope',
      'nil'],
    ['ACL GETUSER al', `["flags", ["on", "sanitize-payload"], "passwords", ["${hashPassword('pw')}"], "commands", "-@all +ping", ` +
      '"keys", "~a", "channels", "&b", "selectors", [["commands", "-@all +role", "keys", "", "channels", ""]]]'],
    ['ACL DRYRUN al ping', '+OK'], ['ACL DRYRUN al role', '+OK'], ['ACL DRYRUN al sentinel masters', /^"User al has no permissions to run/],
    ['ACL DRYRUN al nosuch', "-ERR Command 'nosuch' not found"], ['ACL DRYRUN al sentinel nosuch', "-ERR Command 'sentinel' not found"],
    ['ACL DRYRUN no ping', "-ERR User 'no' not found"], ['ACL DRYRUN default subscribe x', '+OK'], ['ACL DRYRUN al role x',
      /^-ERR wrong number/],
    ['ACL LOG x', '-ERR value is not an integer or out of range'], ['ACL LOG -1', '[]'], ['ACL LOG reset x',
      /^-ERR unknown subcommand or wrong/],
    ['ACL LOAD', /^-ERR This Redis instance is not configured to use an ACL file/], ['ACL NOSUCH',
      "-ERR unknown subcommand 'NOSUCH'. Try ACL HELP."],
    ['ACL', "-ERR wrong number of arguments for 'acl' command"], ['ACL SETUSER',
      "-ERR wrong number of arguments for 'acl|setuser' command"],
  ] as const)('%s', async (line, expected) => {
    rig = await startRig({ users: ['user al on >pw ~a &b +ping (+role)'] });
    const reply = await (await rig.client()).say(line);
    if (typeof expected === 'string') expect(reply).toBe(expected);
    else expect(reply).toMatch(expected);
  });
});

describe('files', () => {
  test('sentinel.conf: lines come back as they make the same users; faults are fatal, all at once', async () => {
    const users = ['user "a\\x01b" on nopass +@all', 'user al on >pw &x -@all +ping', 'USER default on >d ~* &* +@all'];
    rig = await startRig({ users, requirePass: 'other' });
    const lines = rig.server.userLines();
    expect(lines).toHaveLength(3);
    expect(lines.join('\n')).not.toContain('>');
    await rig.close();
    rig = await startRig({ users: lines });
    expect(rig.server.userLines()).toEqual(lines);
    expect(await (await rig.client()).say('AUTH d')).toBe('+OK');
    const bad = startRig({ users: ['user a +nosuch', 'b on', 'user "x y" on', 'user c on', 'user c off'] });
    await expect(bad).rejects.toBeInstanceOf(FatalError);
    await expect(bad).rejects.toThrow(/line 1: .*\+nosuch.*line 2: .*line 3: .*line 5: duplicate user 'c'/);
  });

  test('aclfile: read at the start, by ACL LOAD and written by ACL SAVE; a faulty one changes nothing', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pointsman-acl-'));
    const aclFile = join(folder, 'users.acl');
    writeFileSync(aclFile, '# users\n\nuser al on >pw +@all\nuser bo on >pw +@all\n');
    rig = await startRig({ aclFile, requirePass: 'secret' });
    expect(rig.server.userLines()).toEqual([]);
    const [al, bo] = [await rig.client(), await rig.client()];
    // The file says nothing of the default user: the password holds.
    expect(await al.say('PING')).toBe('-NOAUTH Authentication required.');
    expect([await al.say('AUTH al pw'), await bo.say('AUTH bo pw')]).toEqual(['+OK', '+OK']);
    writeFileSync(aclFile, 'user al on +nosuch\nuser\n');
    const refused = await al.say('ACL LOAD');
    expect(refused).toMatch(/users\.acl:1: .*\+nosuch.*users\.acl:2: .*no change to the previously active ACL rules was performed$/);
    expect(await al.say('ACL SAVE')).toBe('+OK');
    expect(readFileSync(aclFile,
      'utf8')).toMatch(/^user al on .*\nuser bo on .*\nuser default on sanitize-payload #[0-9a-f]{64} ~\* &\* \+@all\n$/);
    expect(readdirSync(folder)).toEqual(['users.acl']);
    writeFileSync(aclFile, readFileSync(aclFile, 'utf8').replace(/user bo.*\n/, ''));
    expect(await al.say('ACL LOAD')).toBe('+OK');
    await waitFor('the close of bo', () => bo.isClosed);
    rmSync(folder, { recursive: true });
    expect(await al.say('ACL SAVE')).toMatch(/^-ERR There was an error trying to save the ACLs/);
    expect(await al.say('ACL LOAD')).toMatch(/^-ERR Error loading ACLs, opening file/);
    expect(await al.say('PING')).toBe('+PONG');
  });

  test('aclfile: a faulty one at the start is fatal, and so is one beside user lines', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pointsman-acl-'));
    const aclFile = join(folder, 'users.acl');
    writeFileSync(aclFile, 'user al +nosuch\n');
    chmodSync(aclFile, 0o600);
    await expect(startRig({ aclFile })).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
    await expect(startRig({ aclFile, users: ['user a on'] })).rejects.toThrow('only one may be');
    rmSync(folder, { recursive: true });
  });
});
