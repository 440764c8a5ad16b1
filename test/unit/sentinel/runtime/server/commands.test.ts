/**
 * CLIENT, COMMAND, INFO and the handshake, by table: what was said and what came back.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { LogThrottle } from '../../../../../src/sentinel/runtime/server/log-throttle.js';
import { RateMeter, newStats } from '../../../../../src/sentinel/runtime/server/stats.js';
import type { CommandEntry } from '../../../../../src/sentinel/runtime/server-command-table.js';
import { ALL_COMMANDS, COMMANDS, findCommand, listedCommands } from '../../../../../src/sentinel/runtime/server-command-table.js';
import { DEFAULT_IDENTITY } from '../../../../../src/sentinel/wire/identity.js';
import type { Rig } from './rig.js';
import { startRig, waitFor } from './rig.js';

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const SYNTAX = '-ERR syntax error';
const BAD_NAME = '-ERR Client names cannot contain spaces, newlines or special characters.';
const NOT_INTEGER = '-ERR value is not an integer or out of range';
const HELLO = /^\["server", "redis", "version", "7\.2\.4", "proto", :2, "id", :1, "mode", "sentinel", "modules", \[\]\]$/;

/** Each row is one new connection: commands (an argument per array element, or a line) with the reply of each. */
const rows: readonly (readonly [said: string | readonly string[], heard: string | RegExp][])[] = [
  [['PING', '+PONG'], ['ping a', '"a"'], ['PING a b', "-ERR wrong number of arguments for 'ping' command"]],
  [['ECHO x', '"x"'], ['ECHO', "-ERR wrong number of arguments for 'echo' command"]],
  [['SELECT 0', '+OK'], ['SELECT 1', '-ERR DB index is out of range'], ['SELECT x', NOT_INTEGER]],
  [['RESET', "-ERR unknown command 'RESET', with args beginning with: "]],
  [[['a\r\nb', 'c\0d', ''], "-ERR unknown command 'a  b', with args beginning with: 'c' '' "]],
  [[['x'.repeat(200), 'y'.repeat(100), 'z'.repeat(100), 'w'],
    `-ERR unknown command '${'x'.repeat(128)}', with args beginning with: '${'y'.repeat(100)}' '${'z'.repeat(25)}' `]],
  [['HELLO', HELLO], ['HELLO 2', HELLO], ['HELLO 4', '-NOPROTO unsupported protocol version'], ['HELLO 1', /^-NOPROTO/],
    ['HELLO x', '-ERR Protocol version is not an integer or out of range'], ['HELLO 3 foo', "-ERR Syntax error in HELLO option 'foo'"],
    ['HELLO 3 AUTH a', "-ERR Syntax error in HELLO option 'AUTH'"], ['HELLO 3 SETNAME', "-ERR Syntax error in HELLO option 'SETNAME'"],
    [['HELLO', '3', 'SETNAME', 'a b'], BAD_NAME], ['HELLO 2 SETNAME n', HELLO], ['CLIENT GETNAME', '"n"'],
    ['HELLO 3 AUTH default x', /^\{"server": "redis", "version": "7\.2\.4", "proto": :3, /], ['HELLO', /^\{.*"proto": :3/], ['HELLO 2',
      HELLO]],
  [['CLIENT ID', ':1'], ['CLIENT GETNAME', 'nil'], ['CLIENT SETNAME n', '+OK'], ['CLIENT GETNAME', '"n"'], [['CLIENT', 'SETNAME', ''],
    '+OK'],
    ['CLIENT GETNAME', 'nil'], [['CLIENT', 'SETNAME', 'a\nb'], BAD_NAME], [['CLIENT', 'SETNAME', 'é'], BAD_NAME]],
  [['CLIENT SETINFO LIB-NAME lib', '+OK'], ['CLIENT SETINFO lib-ver 1.2', '+OK'], ['CLIENT SETINFO foo x',
    "-ERR Unrecognized option 'foo'"],
    [['CLIENT', 'SETINFO', 'LIB-NAME', 'a b'], '-ERR lib-name cannot contain spaces, newlines or special characters.'],
    ['CLIENT INFO', /cmd=client\|info user=default redir=-1 resp=2 lib-name=lib lib-ver=1\.2\\n"$/], ['CLIENT SETINFO x',
      /^-ERR wrong number/]],
  [['CLIENT NO-TOUCH on', "-ERR unknown subcommand 'NO-TOUCH'. Try CLIENT HELP."], ['CLIENT',
    "-ERR wrong number of arguments for 'client' command"],
    ['CLIENT ID x', "-ERR wrong number of arguments for 'client|id' command"], [['CLIENT', ''],
      "-ERR unknown subcommand ''. Try CLIENT HELP."]],
  [['CLIENT NO-EVICT on', '+OK'], ['CLIENT INFO', / flags=e /], ['CLIENT NO-EVICT off', '+OK'], ['CLIENT INFO', / flags=N /],
    ['CLIENT NO-EVICT x', SYNTAX]],
  [['CLIENT PAUSE 1000', '+OK'], ['CLIENT PAUSE 1 write', '+OK'], ['CLIENT PAUSE x', '-ERR timeout is not an integer or out of range'],
    ['CLIENT PAUSE -1', '-ERR timeout is negative'], ['CLIENT PAUSE 1 foo', '-ERR CLIENT PAUSE mode must be WRITE or ALL'],
      ['CLIENT UNPAUSE', '+OK']],
  [['CLIENT UNBLOCK 3', ':0'], ['CLIENT UNBLOCK x', NOT_INTEGER], ['CLIENT UNBLOCK 3 error', ':0'],
    ['CLIENT UNBLOCK 3 foo', '-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR']],
  [['CLIENT LIST TYPE pubsub', '""'], ['CLIENT LIST TYPE normal', /^"id=1 /], ['CLIENT LIST TYPE SLAVE', '""'],
    ['CLIENT LIST TYPE foo', "-ERR Unknown client type 'foo'"], ['CLIENT LIST ID 999 1', /^"id=1 [^\n]*"$/],
    ['CLIENT LIST ID 1 x', '-ERR Invalid client ID'], ['CLIENT LIST ID', SYNTAX], ['CLIENT LIST foo', SYNTAX]],
  [['CLIENT KILL 1.1.1.1:1', '-ERR No such client'], ['CLIENT KILL ID 99', ':0'], ['CLIENT KILL ID 1', ':0'], ['CLIENT KILL ID x',
    /^-ERR client-id/],
    ['CLIENT KILL TYPE foo', "-ERR Unknown client type 'foo'"], ['CLIENT KILL USER no', "-ERR No such user 'no'"],
      ['CLIENT KILL SKIPME maybe', SYNTAX],
    ['CLIENT KILL ID 1 ADDR', SYNTAX], ['CLIENT KILL foo bar', SYNTAX], ['CLIENT KILL ID 0', /^-ERR client-id should be greater than 0/],
    ['CLIENT KILL TYPE pubsub SKIPME no', ':0'], ['CLIENT KILL ADDR 1:1 LADDR 2:2 USER default', ':0'], ['CLIENT KILL ID 1 SKIPME no',
      ':1']],
  [['CLIENT REPLY foo', SYNTAX], ['CLIENT REPLY on', '+OK']],
  [['CLIENT GETREDIR', ':-1'], ['CLIENT TRACKINGINFO', '["flags", ["off"], "redirect", :-1, "prefixes", []]'],
    ['CLIENT CACHING yes', /^-ERR CLIENT CACHING can be called only when/], ['CLIENT TRACKING on', '+OK'], ['CLIENT GETREDIR', ':0'],
    ['CLIENT INFO', / flags=t .* redir=0 /], ['CLIENT TRACKING on BCAST', /^-ERR You can't switch BCAST mode/], ['CLIENT TRACKING off',
      '+OK'],
    ['CLIENT TRACKING on BCAST PREFIX a PREFIX b NOLOOP', '+OK'],
    ['CLIENT TRACKINGINFO', '["flags", ["on", "bcast", "noloop"], "redirect", :0, "prefixes", ["a", "b"]]'],
    ['CLIENT TRACKING on BCAST PREFIX ab', /^-ERR Prefix 'ab' overlaps with an existing prefix 'a'/]],
  [['CLIENT TRACKING on optin', '+OK'], ['CLIENT CACHING yes', '+OK'], ['CLIENT CACHING no',
    /only valid when tracking is enabled in OPTOUT mode/],
    ['CLIENT TRACKINGINFO', /"on", "optin", "caching-yes"/], ['CLIENT TRACKING on optout', /^-ERR You can't switch OPTIN\/OPTOUT mode/],
    ['CLIENT CACHING foo', SYNTAX]],
  [['CLIENT TRACKING on PREFIX a', '-ERR PREFIX option requires BCAST mode to be enabled'], ['CLIENT TRACKING on REDIRECT x', NOT_INTEGER],
    ['CLIENT TRACKING on REDIRECT 999', '-ERR The client ID you want redirect to does not exist'], ['CLIENT TRACKING on REDIRECT 1', '+OK'],
    ['CLIENT TRACKING x', SYNTAX], ['CLIENT TRACKING on foo', SYNTAX]],
  [['COMMAND COUNT', ':15'], ['COMMAND COUNT x', "-ERR wrong number of arguments for 'command|count' command"],
    ['COMMAND FOO', "-ERR unknown subcommand 'FOO'. Try COMMAND HELP."], ['COMMAND LIST x', SYNTAX],
    ['COMMAND LIST FILTERBY PATTERN sentinel|mast*', '["sentinel|master", "sentinel|masters"]'],
    ['COMMAND LIST FILTERBY ACLCAT pubsub', '["psubscribe", "publish", "punsubscribe", "subscribe", "unsubscribe"]'],
    ['COMMAND LIST FILTERBY MODULE x', '[]'], ['COMMAND LIST FILTERBY foo x', SYNTAX], ['COMMAND GETKEYS get a',
      '-ERR Invalid command specified'],
    ['COMMAND GETKEYS ping a', '-ERR The command has no key arguments'], ['COMMAND GETKEYS acl foo', '-ERR Invalid command specified']],
  [['COMMAND INFO foo ping acl|cat', '[nil, ["ping", :-1, [+fast], :0, :0, :0, [+@fast, +@connection], ["request_policy:all_shards", ' +
    '"response_policy:all_succeeded"], [], []], ["acl|cat", :-2, [+noscript, +loading, +stale], :0, :0, :0, [+@slow], [], [], []]]'],
    ['COMMAND DOCS save bgrewriteaof blpop replicaof', '[]'], ['COMMAND DOCS ping', /^\["ping", \["summary", ".+", "since", "1\.0\.0"/],
    ['COMMAND DOCS client|setinfo', /^\["client\|setinfo", /], ['COMMAND DOCS sentinel|slaves',
      /"doc_flags", \[\+deprecated\], "deprecated_since", "5\.0\.0"/]],
  [['INFO foo', '""'], ['INFO cpu foo', /^"# CPU\\r\\nused_cpu_sys:\d+\.\d{6}\\r\\n[^#]*"$/], ['INFO SENTINEL',
    /^"# Sentinel\\r\\nsentinel_masters:1\\r\\n/]],
];

test.each(rows.map((row) => [row.map(([said]) => (typeof said === 'string' ? said : said[0]?.slice(0, 20))).join(' · ').slice(0, 100),
  row] as const))(
  '%s',
  async (_name, row) => {
    rig = await startRig();
    const client = await rig.client();
    for (const [said, heard] of row) {
      const reply = await client.ask(...(typeof said === 'string' ? said.split(' ') : said));
      if (typeof heard === 'string') expect(reply).toBe(heard);
      else expect(reply).toMatch(heard);
    }
  },
);

describe('CLIENT', () => {
  test('REPLY silences one command or all, errors and late replies too', async () => {
    rig = await startRig();
    rig.gate.mode = 'later';
    const client = await rig.client();
    client.send('CLIENT REPLY SKIP\r\nSENTINEL masters\r\nPING 1\r\nCLIENT REPLY OFF\r\nPING 2\r\nnosuch\r\nSENTINEL myid\r\n'
      + 'CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING 3\r\n');
    expect(await client.next(3)).toEqual(['"1"', '+OK', '"3"']);
  });

  test('KILL ends who fits all filters; the caller last, after its reply', async () => {
    rig = await startRig();
    const [boss, normal, listener] = [await rig.client(), await rig.client(), await rig.client()];
    await listener.say('SUBSCRIBE a');
    const address = /id=2 addr=(\S+)/.exec(await boss.say('CLIENT LIST'))?.[1] ?? '';
    expect(await boss.say(`CLIENT KILL ${address}`)).toBe('+OK');
    await waitFor('the close of the one named', () => normal.isClosed);
    expect(await boss.say(`CLIENT KILL LADDR 127.0.0.1:${rig.port} TYPE pubsub`)).toBe(':1');
    await waitFor('the close of the listener', () => listener.isClosed);
    expect(await boss.say('CLIENT KILL TYPE normal')).toBe(':0');
    expect(await boss.say('CLIENT KILL TYPE normal SKIPME no')).toBe(':1');
    await waitFor('its own close', () => boss.isClosed);
  });

  test('PAUSE holds nobody back', async () => {
    rig = await startRig();
    const client = await rig.client();
    client.send('CLIENT PAUSE 100000\r\nPING\r\nSENTINEL masters\r\n');
    expect(await client.next(3)).toEqual(['+OK', '+PONG', '"SENTINEL masters"']);
  });
});

test('QUIT says OK, closes and runs nothing after it; a RESP2 subscriber may say it', async () => {
  rig = await startRig();
  const client = await rig.client();
  client.send('SUBSCRIBE a\r\nQUIT\r\nPING\r\n');
  await waitFor('the close', () => client.isClosed);
  expect(client.replies).toEqual(['["subscribe", "a", :1]', '+OK']);
});

describe('INFO', () => {
  const requests = ['INFO', 'INFO all', 'INFO everything', 'INFO default', 'INFO sentinel cpu clients server stats', 'info keyspace ALL'];
  test.each(requests)('%s: five sections in order', async (line) => {
    rig = await startRig();
    const client = await rig.client();
    await client.say('HELLO 3');
    const text = await client.say(line);
    expect([...text.matchAll(/# (\w+)/g)].map((match) => match[1])).toEqual(['Server', 'Clients', 'Stats', 'CPU', 'Sentinel']);
    for (const field of ['redis_version:7.2.4', 'redis_mode:sentinel', `tcp_port:${rig.port}`, `run_id:${'a'.repeat(40)}`, 'maxclients:100',
      'connected_clients:1', 'sentinel_tilt:0']) expect(text).toContain(`\\r\\n${field}\\r\\n`);
    expect(text).toContain('\\r\\n\\r\\n# Stats\\r\\n');
    expect(text).not.toMatch(/used_memory|rdb_last_bgsave|master_repl_offset|cluster_enabled/);
  });

  test('counts', async () => {
    rig = await startRig();
    const client = await rig.client();
    client.send('PING\r\nnosuch\r\nPING\r\n');
    await client.next(3);
    const text = await client.say('INFO stats');
    expect(text).toMatch(/total_connections_received:1\\r\\ntotal_commands_processed:3\\r\\n/);
    expect(text).toMatch(/total_net_input_bytes:\d+\\r\\n.*total_error_replies:1\\r\\n/);
  });

  test('rates are per second of the time that passed', () => {
    const stats = newStats();
    const meter = new RateMeter(1000);
    Object.assign(stats, { commands: 30, inputBytes: 2048, outputBytes: 4096 });
    meter.sample(stats, 3000);
    expect(meter.rates).toEqual({ commands: 15, inputBytes: 1024, outputBytes: 2048 });
    meter.sample(stats, 4000);
    expect(meter.rates).toEqual({ commands: 0, inputBytes: 0, outputBytes: 0 });
  });
});

test('warnings of strangers: one line in ten seconds, with the number of those held back', () => {
  const lines: object[] = [];
  const log = { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (fields: object) => void lines.push(fields) };
  const throttle = new LogThrottle(log);
  for (const atMs of [0, 1, 9999, 10_000, 10_001]) throttle.warn({ atMs }, 'x', atMs);
  expect(lines).toEqual([{ atMs: 0, heldBack: 0 }, { atMs: 10_000, heldBack: 2 }]);
});

describe('the table', () => {
  test('has the 15 names, and every row a summary and one of @fast and @slow', () => {
    expect([...COMMANDS.keys()].join(' ')).toBe(
      'acl auth client command hello info ping psubscribe publish punsubscribe role sentinel shutdown subscribe unsubscribe');
    const speeds = ({ categories }: CommandEntry): number => categories.filter((each) => each === 'fast' || each === 'slow').length;
    expect(ALL_COMMANDS.filter((command) => command.summary === '' || speeds(command) !== 1)).toEqual([]);
  });

  test('lists what Redis 7.2 has; what only Valkey has works unseen', () => {
    const listed = listedCommands(DEFAULT_IDENTITY).map((command) => command.fullName);
    expect(listed).toHaveLength(73);
    expect(listed).not.toContain('sentinel|primaries');
    expect(findCommand('SENTINEL|PRIMARIES')?.arity).toBe(2);
  });

  test('SENTINEL is for admins, but for its HELP', () => {
    const open = [...(COMMANDS.get('sentinel')?.subcommands.values() ?? [])].filter((command) => !command.categories.includes('admin'));
    expect(open.map((command) => command.fullName)).toEqual(['sentinel|help']);
  });

  test('every subcommand has a handler: none of them answers as unknown', async () => {
    rig = await startRig();
    for (const command of ALL_COMMANDS.filter((each) => each.fullName.includes('|'))) {
      const client = await rig.client();
      const words = command.fullName.split('|');
      const fill = Array.from({ length: Math.max(0, Math.abs(command.arity) - words.length) }, () => 'x');
      client.send(`${[...words, ...fill].join(' ')}\r\nQUIT\r\n`);
      await waitFor('the close', () => client.isClosed);
      expect(client.replies.join()).not.toMatch(/unknown subcommand '/);
    }
  });
});

test.each([['-2'], ['-3']])('redis-cli %s reads what we say', async (protocol) => {
  rig = await startRig();
  const ask = async (...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)('redis-cli', ['-p', String(rig?.port), protocol, ...args], { timeout: 20_000 })).stdout.trim();
  expect(await ask('PING')).toBe('PONG');
  expect(await ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'm')).toBe('SENTINEL GET-MASTER-ADDR-BY-NAME m');
  expect(await ask('CLIENT', 'GETNAME')).toBe('');
  expect(await ask('ACL', 'LIST')).toBe('user default on nopass sanitize-payload ~* &* +@all');
  expect(await ask('COMMAND', 'COUNT')).toBe('15');
});
