/**
 * Our server beside a real redis-sentinel 7.0.15: the same bytes to both, the replies compared as text.
 *
 * Ours presents itself as 7.0.15 too. What still differs stands in `ours`, with its reason in `why`; a row whose difference has
 * vanished fails, so the list can't outlive its reasons. What no two runs share (ids, ports, ages) is masked on both sides.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Children, findProgram } from '../../src/demo/children.js';
import { freePort } from '../../src/demo/free-port.js';
import type { Rig } from '../unit/sentinel/runtime/server/rig.js';
import { RawClient, startRig, waitFor } from '../unit/sentinel/runtime/server/rig.js';

/** One connection. `lines` are said inline, `bytes` as they are; `ours` are our replies where they differ. */
interface Row {
  readonly lines?: readonly string[];
  readonly bytes?: string;
  readonly ours?: readonly string[];
  readonly why?: string;
  /** Order of array elements is nobody's promise. */
  readonly unordered?: boolean;
}

const row = (...lines: readonly string[]): Row => ({ lines });
const raw = (bytes: string): Row => ({ bytes });
const unordered = (...lines: readonly string[]): Row => ({ lines, unordered: true });
const differs = (lines: readonly string[], why: string, ours: readonly string[]): Row => ({ lines, why, ours });

const PASSWORD = 'sekret';
const AL = 'user al on >alpw ~* resetchannels &+sdown +@all -@dangerous -ping +sentinel|masters';
const SU = 'user su on >supw allkeys allchannels +@all';
/** Answered whatever state a connection is in, unless it is closed. */
const MARK = 'end-of-conversation';
const CLOSED = '(closed)';

const framing: readonly Row[] = [
  row('PING', 'ping a', 'PiNg', 'PING a b'), raw('\r\nPING\r\n\n'), raw('*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nPING\r\n$1\r\na\r\n'),
    raw('*-1\r\n*0\r\nPING\r\n'),
  raw("PING 'a b' \r\n"), raw('PING "a\\x41\\n"\r\n'), raw('*x\r\n'), raw('*1\r\nx\r\n'), raw('*1\r\n$-1\r\n'), raw('*1\r\n$x\r\n'),
  raw('*2\r\n$4\r\nPING\r\n+x\r\n'), raw('"abc\r\n'), raw("PING 'a'b\r\n"), raw('*2147483648\r\n'), raw('*1\r\n$536870913\r\n'),
  raw('x'.repeat(65_538)), raw(`*${'1'.repeat(65_538)}`), raw('PING\r\n*x\r\nPING\r\n'),
  raw('POST / HTTP/1.1\r\nHost: x\r\n\r\n'), raw('Host: x\r\n'), raw('post a b c\r\n'), raw('*1\r\n$4\r\npost\r\n'),
    raw('*2\r\n$5\r\nHost:\r\n$1\r\na\r\n'),
  raw('*1\r\n$3\r\na\0b\r\n'), raw('*1\r\n$5\r\na\r\nbc\r\n'), raw('*1\r\n$0\r\n\r\n'),
  {
    bytes: '*1048577\r\n', why: 'our limit for one request (D36)', ours: ['-ERR Protocol error: invalid multibulk length', CLOSED],
  },
];

const words: readonly Row[] = [
  row('get x y', 'GET', 'foo "" a', `foo ${'a'.repeat(200)} b`, `${'f'.repeat(200)} a`,
    `foo ${'a'.repeat(60)} ${'b'.repeat(60)} ${'c'.repeat(60)} d`),
  row('SENTINEL', 'SENTINEL foo', 'sentinel "" x', 'SENTINEL masters x', 'sentinel MASTER', 'SENTINEL set a b'),
  row('PUBLISH a b', 'publish a', 'ROLE x', 'subscribe', 'psubscribe', 'MULTI', 'CONFIG GET x', 'MONITOR', 'DEBUG x', 'RESET',
    'SSUBSCRIBE x', 'PUBSUB channels'),
  row('SHUTDOWN foo', 'SHUTDOWN ABORT', 'SHUTDOWN NOSAVE SAVE', 'SHUTDOWN now foo', 'SHUTDOWN abort now'),
  row('INFO foo', 'INFO ""', 'INFO keyspace memory'),
  differs(['QUIT'], 'D30', ['+OK', CLOSED]), differs(['SELECT 0', 'SELECT 1'], 'D31', ['+OK', '-ERR DB index is out of range']),
    differs(['ECHO x'], 'D32', ['"x"']),
];

const handshake: readonly Row[] = [
  row('HELLO', 'HELLO 2', 'HELLO 3', 'HELLO', 'HELLO 2'), row('HELLO 4', 'HELLO 1', 'HELLO x', 'HELLO 2 foo', 'HELLO 3 auth a',
    'HELLO 3 setname'),
  row('HELLO 3 AUTH a b'), row('HELLO 3 AUTH default x'), row('HELLO 3 SETNAME foo', 'CLIENT GETNAME'), row('HELLO 3 setname "a b"',
    'PING', 'CLIENT GETNAME'),
  row('HELLO 3 auth default x setname y foo', 'CLIENT GETNAME'), row('HELLO 2 setname a', 'HELLO 2 setname ""', 'CLIENT GETNAME'),
  row('AUTH', 'AUTH x', 'AUTH a b', 'AUTH a b c', 'AUTH default b', 'AUTH default ""'),
];

const pubsub: readonly Row[] = [
  row('SUBSCRIBE a b', 'PING', 'PING x', 'SENTINEL masters', 'GET a', 'UNSUBSCRIBE a', 'UNSUBSCRIBE', 'PING'),
  row('UNSUBSCRIBE', 'PUNSUBSCRIBE', 'UNSUBSCRIBE x'), row('PSUBSCRIBE *', 'SUBSCRIBE a a', 'PSUBSCRIBE * q', 'UNSUBSCRIBE',
    'UNSUBSCRIBE', 'PUNSUBSCRIBE * q'),
  row('HELLO 3', 'SUBSCRIBE a', 'PING', 'PSUBSCRIBE *', 'CLIENT GETNAME', 'UNSUBSCRIBE', 'PUNSUBSCRIBE', 'PUNSUBSCRIBE'),
  row('SUBSCRIBE a', 'HELLO 3', 'CLIENT ID', 'PING a b', 'SUBSCRIBE', 'AUTH x', 'COMMAND COUNT'),
  row('CLIENT REPLY OFF', 'SUBSCRIBE a', 'PING', 'UNSUBSCRIBE a', 'CLIENT REPLY ON'),
];

const client: readonly Row[] = [
  row('CLIENT', 'CLIENT foo', 'CLIENT ""', 'CLIENT NO-TOUCH on', 'CLIENT ID x', 'CLIENT KILL', 'client Help x'),
  row('CLIENT GETNAME', 'CLIENT SETNAME ok', 'CLIENT GETNAME', 'CLIENT SETNAME "a b"', 'CLIENT SETNAME "\\xc3\\xa9"', 'CLIENT SETNAME ""',
    'CLIENT GETNAME'),
  row('CLIENT INFO', 'CLIENT NO-EVICT on', 'CLIENT INFO', 'CLIENT NO-EVICT x', 'CLIENT NO-EVICT off'),
  row('CLIENT REPLY foo', 'CLIENT REPLY on', 'CLIENT REPLY SKIP', 'PING 1', 'PING 2', 'CLIENT REPLY OFF', 'PING 3', 'CLIENT REPLY SKIP',
    'PING 4', 'CLIENT REPLY ON', 'PING 5'),
  row('CLIENT PAUSE 0', 'CLIENT PAUSE x', 'CLIENT PAUSE -1', 'CLIENT PAUSE 1 foo', 'CLIENT UNPAUSE', 'CLIENT UNPAUSE x'),
  row('CLIENT UNBLOCK 3', 'CLIENT UNBLOCK x', 'CLIENT UNBLOCK 1 foo', 'CLIENT UNBLOCK 999999 error'),
  row('CLIENT LIST foo', 'CLIENT LIST TYPE foo', 'CLIENT LIST TYPE', 'CLIENT LIST TYPE pubsub', 'CLIENT LIST TYPE SLAVE',
    'CLIENT LIST ID', 'CLIENT LIST ID 99999 x', 'CLIENT LIST ID 99999'),
  row('CLIENT KILL a', 'CLIENT KILL 1.1.1.1:1', 'CLIENT KILL ID 99999', 'CLIENT KILL ID x', 'CLIENT KILL ID 0', 'CLIENT KILL TYPE foo',
    'CLIENT KILL USER nouser'),
  row('CLIENT KILL SKIPME maybe', 'CLIENT KILL ID 1 ADDR', 'CLIENT KILL foo bar', 'CLIENT KILL ADDR 1:1 LADDR 2:2 USER default',
    'CLIENT KILL TYPE pubsub SKIPME no'),
  row('CLIENT KILL TYPE normal SKIPME no'),
  row('CLIENT GETREDIR', 'CLIENT TRACKINGINFO', 'CLIENT CACHING yes', 'CLIENT CACHING foo', 'CLIENT TRACKING x', 'CLIENT TRACKING on foo',
    'CLIENT TRACKING off'),
  row('CLIENT TRACKING on', 'CLIENT TRACKINGINFO', 'CLIENT INFO', 'CLIENT TRACKING on BCAST', 'CLIENT TRACKING off',
    'CLIENT TRACKING on BCAST PREFIX a PREFIX ab'),
  row('CLIENT TRACKING on BCAST', 'CLIENT TRACKINGINFO', 'CLIENT GETREDIR', 'CLIENT TRACKING on'), row('CLIENT TRACKING on PREFIX a',
    'CLIENT TRACKING on REDIRECT 99999', 'CLIENT TRACKING on REDIRECT x'),
  row('CLIENT TRACKING on optin optout', 'CLIENT TRACKING on bcast optin', 'CLIENT TRACKING on optin', 'CLIENT CACHING yes',
    'CLIENT CACHING no', 'CLIENT TRACKINGINFO'),
  row('CLIENT TRACKING on optin', 'CLIENT TRACKING on optout', 'CLIENT TRACKING on bcast', 'CLIENT TRACKING on noloop',
    'CLIENT TRACKINGINFO'),
  row('HELLO 3', 'CLIENT TRACKINGINFO', 'CLIENT GETNAME', 'CLIENT KILL ID 99999'),
];

const command: readonly Row[] = [
  row('COMMAND COUNT', 'COMMAND COUNT x', 'COMMAND FOO', 'COMMAND LIST x', 'COMMAND LIST FILTERBY', 'COMMAND LIST FILTERBY foo bar',
    'COMMAND LIST FILTERBY MODULE x'),
  unordered('COMMAND LIST FILTERBY PATTERN p*', 'COMMAND LIST FILTERBY ACLCAT pubsub', 'COMMAND LIST FILTERBY ACLCAT foo',
    'COMMAND LIST FILTERBY PATTERN sentinel|m*'),
  unordered('COMMAND LIST'),
  row('COMMAND GETKEYS get a', 'COMMAND GETKEYS ping a b', 'COMMAND GETKEYS sentinel masters', 'COMMAND GETKEYS acl foo',
    'COMMAND GETKEYS', 'COMMAND GETKEYS publish a'),
  row('COMMAND DOCS foo save blpop', 'COMMAND INFO foo',
    'COMMAND INFO ping role auth hello info subscribe acl|cat client|kill client|id sentinel|masters sentinel|help shutdown publish'),
  row('HELLO 3', 'COMMAND INFO ping', 'COMMAND DOCS foo'),
  differs(['COMMAND GETKEYS ping'], 'arity -3 from 7.2 on', ['-ERR The command has no key arguments']),
];

const acl: readonly Row[] = [
  row('ACL', 'ACL FOO', 'ACL HELP x', 'ACL SETUSER', 'ACL DELUSER', 'ACL WHOAMI', 'ACL LIST', 'ACL USERS', 'ACL GETUSER default',
    'ACL GETUSER nope'),
  row('ACL CAT', 'ACL CAT foo', 'ACL CAT scripting', 'ACL CAT a b', 'ACL GENPASS 0', 'ACL GENPASS x', 'ACL GENPASS 5000', 'ACL LOAD',
    'ACL SAVE'),
  unordered('ACL CAT pubsub', 'ACL CAT dangerous', 'ACL CAT connection', 'ACL CAT fast', 'ACL CAT admin', 'ACL CAT slow'),
  row('ACL LOG x', 'ACL LOG reset', 'ACL LOG', 'ACL LOG -1', 'ACL LOG reset x'),
  row('ACL SETUSER bob', 'ACL GETUSER bob', 'ACL SETUSER bob on >pw +@all -@dangerous +sentinel|masters ~a* &b*', 'ACL LIST',
    'ACL GETUSER bob'),
  row('ACL SETUSER bob foo', 'ACL SETUSER bob +foo', 'ACL SETUSER bob +@foo', 'ACL SETUSER bob <nope', 'ACL SETUSER bob #abc',
    'ACL SETUSER bob +', 'ACL SETUSER bob +@'),
  row('ACL SETUSER bob +get', 'ACL SETUSER bob +config|rewrite', 'ACL SETUSER bob +sentinel|nosuch', 'ACL SETUSER bob -ping|x',
    'ACL SETUSER bob +ping|x|y', 'ACL SETUSER bob %X~c'),
  row('ACL SETUSER bob allchannels &x', 'ACL SETUSER bob allkeys ~x', 'ACL SETUSER "a b" on', 'ACL SETUSER bob (',
    'ACL SETUSER bob "(+@all ~a"', 'ACL SETUSER bob "(foo)"', 'ACL LIST'),
  row('ACL SETUSER bob resetkeys resetchannels %R~r %RW~b %W~w ~', 'ACL SETUSER bob (+@all ~x)', 'ACL GETUSER bob', 'ACL LIST',
    'ACL SETUSER bob clearselectors', 'ACL LIST'),
  row('ACL DRYRUN default ping', 'ACL DRYRUN default get x', 'ACL DRYRUN bob nosuch', 'ACL DRYRUN nouser ping',
    'ACL DRYRUN bob sentinel nosuch', 'ACL DRYRUN default role x'),
  row('ACL DELUSER default', 'ACL DELUSER bob x', 'ACL DELUSER bob', 'ACL USERS'),
  row('HELLO 3', 'ACL GETUSER default'),
];

const secured: readonly Row[] = [
  row('PING', 'foo', 'ROLE x', 'SENTINEL foo', 'SENTINEL masters', 'PUBLISH a b', 'CLIENT ID', 'ACL WHOAMI', 'AUTH x', 'AUTH default x',
    'AUTH a b c', 'HELLO 3 AUTH default x'),
  raw('*11\r\n'), raw('*10\r\n$16385\r\n'), row(`AUTH ${PASSWORD}`, 'ACL WHOAMI', 'ACL LIST', 'AUTH wrong', 'ACL WHOAMI', 'PING'),
  row(`HELLO 3 AUTH default ${PASSWORD}`, 'ACL WHOAMI'),
  row('AUTH al alpw', 'PING', 'SENTINEL myid', 'SUBSCRIBE +sdown x', 'PSUBSCRIBE *', 'PUBLISH x y', 'ACL WHOAMI', 'ACL LIST',
    'CLIENT LIST', 'CLIENT SETNAME a', 'HELLO 3 AUTH al x', 'SHUTDOWN'),
  row('AUTH al alpw', 'SUBSCRIBE +sdown', 'PSUBSCRIBE +sdown', 'UNSUBSCRIBE', 'PUNSUBSCRIBE'),
  row('AUTH su supw', 'ACL SETUSER default off', 'ACL DRYRUN al auth x', 'ACL DRYRUN su subscribe zz'), row('PING', `AUTH ${PASSWORD}`),
  row('AUTH su supw', 'ACL SETUSER default on', 'ACL SETUSER al -@all +ping|x', 'ACL GETUSER al', 'ACL SETUSER al off', 'AUTH al alpw'),
  row('AUTH su supw', 'ACL DELUSER su', 'PING'),
  row('HELLO 3', 'HELLO', 'HELLO 3 SETNAME x'),
];

/** What differs between any two runs, and what ours tells beyond 7.0 by design: library fields, `sanitize-payload` at every user. */
function mask(reply: string): string {
  return reply
    .replace(/("?id"?[=,:]+ ?:?)\d+/g, '$1N')
    .replace(/(addr|fd|age|events|idle|qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|oll|omem|tot-mem)=\S+/g, '$1=N')
    .replace(/ lib-name=\S* lib-ver=[^\s\\"]*/g, '')
    .replace(/ sanitize-payload\b/g, '')
    .replace(/, "sanitize-payload"/g, '');
}

function sortItems(reply: string): string {
  return reply.startsWith('[') ? `[${reply.slice(1, -1).split(', ').sort().join(', ')}]` : reply;
}

async function converse(port: number, { lines = [], bytes, unordered: isUnordered = false }: Row): Promise<string[]> {
  const connection = await RawClient.connect(port);
  const said = bytes ?? lines.map((line) => `${line}\r\n`).join('');
  // In one write: what arrives after a close would come back as a reset, and could take the last reply with it.
  connection.send(said.endsWith('\n') ? `${said}${MARK}\r\n` : said);
  await waitFor('the end', () => connection.isClosed || connection.replies.some((reply) => reply.includes(MARK)));
  connection.socket.destroy();
  const replies = connection.replies.filter((reply) => !reply.includes(MARK)).map(mask);
  const isOver = replies.length === connection.replies.length;
  return [...(isUnordered ? replies.map(sortItems) : replies), ...(isOver ? [CLOSED] : [])];
}

/** A question that {@link waitFor} may ask: whether somebody answers at `port`. */
function probe(port: number): () => boolean {
  let answers = false;
  const tryOnce = (): void => {
    RawClient.connect(port).then(
      (connection) => {
        answers = true;
        connection.socket.destroy();
      },
      () => setTimeout(tryOnce, 20),
    );
  };
  tryOnce();
  return () => answers;
}

describe.each([
  ['framing', framing, false], ['words', words, false], ['handshake', handshake, false], ['pubsub', pubsub, false],
  ['CLIENT', client, false], ['COMMAND', command, false], ['ACL', acl, false], ['with a password and users', secured, true],
] as const)('%s', (_name, rows, isSecured) => {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-stock-'));
  const children = new Children(folder);
  let ours: Rig;
  let stockPort = 0;

  beforeAll(async () => {
    stockPort = await freePort();
    const conf = join(folder, 'sentinel.conf');
    const users = isSecured ? [AL, SU] : [];
    const lines = [`port ${stockPort}`, 'bind 127.0.0.1', `dir ${folder}`, ...users, ...(isSecured ? [`requirepass ${PASSWORD}`] : [])];
    writeFileSync(conf, `${lines.join('\n')}\n`);
    const stock = children.start('stock', [findProgram('redis-sentinel', 'install redis-sentinel, e.g. with apt'), conf], folder);
    await waitFor(`redis-sentinel: ${stock.status ?? 'runs'}`, probe(stockPort));
    ours = await startRig({ identity: { product: 'redis', version: '7.0.15' }, users, requirePass: isSecured ? PASSWORD : null });
  });
  afterAll(async () => {
    await ours.close();
    await children.endAll();
    rmSync(folder, { recursive: true });
  });

  const titled = rows.map((each) => [(each.lines?.join(' · ') ?? JSON.stringify(each.bytes)).slice(0, 100), each] as const);
  test.each(titled)('%s', async (_title, each) => {
    const [stock, mine] = [await converse(stockPort, each), await converse(ours.port, each)];
    expect(mine).toEqual(each.ours ?? stock);
    // A difference that is none any more leaves the list.
    if (each.ours !== undefined) expect(stock).not.toEqual(each.ours);
  });
});
