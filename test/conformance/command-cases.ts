/**
 * What is said to both sentinels, in this order, and where their answers may differ.
 *
 * A line is split into words as in a configuration file; `{port}` is the master's port, `{name}` the group. Second column: null =
 * word for word the same; else the id of a divergence, or `7.0: …` where the release that we are compared with differs from
 * later ones. A listed difference must be one: where both agree the entry is out of date and the test fails.
 */
export type Reason = `D${number}` | `7.0: ${string}`;

/**
 * `shape`: only kinds, keys and counts are compared. `sorted`: the order is nobody's promise. `kind`: only the kinds. `fields`: the
 * names before the colons of a text.
 */
export type How = 'shape' | 'sorted' | 'kind' | 'fields';

export interface CommandCase {
  readonly line: string;
  readonly reason: Reason | null;
  readonly how?: How;
}

const same = (...lines: readonly string[]): CommandCase[] => lines.map((line) => ({ line, reason: null }));
const like = (how: How, ...lines: readonly string[]): CommandCase[] => lines.map((line) => ({ line, reason: null, how }));
const differs = (reason: Reason, ...lines: readonly string[]): CommandCase[] => lines.map((line) => ({ line, reason }));

const MULTI: Reason = '7.0: CONFIG GET and SET take one option only';

export const SENTINEL_CASES: readonly CommandCase[] = [
  ...same(
    'SENTINEL', 'SENTINEL NOPE', 'SENTINEL "" x', 'SENTINEL MASTERS', 'sentinel masters', 'SENTINEL MASTERS x',
    'SENTINEL MASTER {name}', 'SENTINEL MASTER nope', 'SENTINEL MASTER', 'SENTINEL MASTER a b', 'SENTINEL MASTER {NAME}',
    'SENTINEL REPLICAS {name}', 'SENTINEL SLAVES {name}', 'SENTINEL REPLICAS nope', 'SENTINEL SLAVES', 'SENTINEL SENTINELS {name}',
    'SENTINEL SENTINELS nope', 'SENTINEL SENTINELS', 'SENTINEL MYID', 'SENTINEL MYID x', 'SENTINEL GET-MASTER-ADDR-BY-NAME {name}',
    'sentinel get-master-addr-by-name nope', 'SENTINEL GET-MASTER-ADDR-BY-NAME ""', 'SENTINEL GET-MASTER-ADDR-BY-NAME',
    'SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 {port} 0 *', 'SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 {port} 0 * extra',
    'SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 x 0 *', 'SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 {port} x *',
    'SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 {port} 1.5 *', 'SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 " 6379" 0 *',
    'SENTINEL IS-MASTER-DOWN-BY-ADDR 10.9.9.9 6379 0 *', 'SENTINEL IS-MASTER-DOWN-BY-ADDR no.such.host 6379 0 *',
    'SENTINEL IS-MASTER-DOWN-BY-ADDR "" 0 0 *', 'SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 99999 0 abc',
  ),
  ...differs('D20', 'SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 {port} -1 *'),
  ...same(
    'SENTINEL PENDING-SCRIPTS', 'SENTINEL PENDING-SCRIPTS x', 'SENTINEL MONITOR', 'SENTINEL MONITOR a b c',
    'SENTINEL MONITOR other 127.0.0.1 1 x', 'SENTINEL MONITOR other 127.0.0.1 x 1', 'SENTINEL MONITOR other 127.0.0.1 1 0',
    'SENTINEL MONITOR other 127.0.0.1 1 -5', 'SENTINEL MONITOR other no.such.host 1 1', 'SENTINEL MONITOR other "" 1 1',
    'SENTINEL MONITOR other 127.0.0.1 70000 1', 'SENTINEL MONITOR other 127.0.0.1 -1 1', 'SENTINEL MONITOR {name} 127.0.0.1 1 1',
    'SENTINEL MONITOR other 127.0.0.1 1 2', 'SENTINEL MONITOR other 127.0.0.1 1 2', 'SENTINEL GET-MASTER-ADDR-BY-NAME other',
    'SENTINEL CKQUORUM other', 'SENTINEL FAILOVER other', 'SENTINEL REPLICAS other', 'SENTINEL SENTINELS other',
    'SENTINEL RESET nope-*', 'SENTINEL RESET othe?', 'SENTINEL RESET OTHER', 'SENTINEL RESET', 'SENTINEL RESET a b',
    'SENTINEL FAILOVER nope', 'SENTINEL FAILOVER', 'SENTINEL FAILOVER a b c', 'SENTINEL REMOVE nope', 'SENTINEL REMOVE',
    'SENTINEL REMOVE other', 'SENTINEL REMOVE other', 'SENTINEL FLUSHCONFIG', 'SENTINEL FLUSHCONFIG x', 'SENTINEL CKQUORUM {name}',
    'SENTINEL CKQUORUM nope', 'SENTINEL CKQUORUM', 'SENTINEL SET', 'SENTINEL SET {name}', 'SENTINEL SET {name} quorum',
    'SENTINEL SET nope quorum 2', 'SENTINEL SET {name} quorum 2', 'SENTINEL SET {name} QUORUM 2', 'SENTINEL SET {name} quorum 0',
    'SENTINEL SET {name} quorum x', 'SENTINEL SET {name} quorum 1.5', 'SENTINEL SET {name} quorum " 2"',
    'SENTINEL SET {name} down-after-milliseconds 0', 'SENTINEL SET {name} down-after-milliseconds 30000 failover-timeout 20000',
    'SENTINEL SET {name} down-after-milliseconds -1', 'SENTINEL SET {name} failover-timeout x',
    'SENTINEL SET {name} parallel-syncs 1', 'SENTINEL SET {name} parallel-syncs 0', 'SENTINEL SET {name} nope 1',
    'SENTINEL SET {name} quorum 2 nope 1', 'SENTINEL SET {name} quorum 2 parallel-syncs',
    'SENTINEL SET {name} notification-script /bin/true', 'SENTINEL SET {name} client-reconfig-script ""',
    'SENTINEL SET {name} auth-pass secret', 'SENTINEL SET {name} auth-pass ""', 'SENTINEL SET {name} auth-user u',
    'SENTINEL SET {name} auth-user ""', 'SENTINEL SET {name} rename-command GET HGET', 'SENTINEL SET {name} rename-command GET',
    'SENTINEL SET {name} rename-command GET ""', 'SENTINEL SET {name} rename-command GET GET',
    'SENTINEL SET {name} master-reboot-down-after-period 5000', 'SENTINEL SET {name} master-reboot-down-after-period 0',
    'SENTINEL SET {name} master-reboot-down-after-period -1',
  ),
  ...differs('D24', 'SENTINEL SET {name} quorum 4294967298', 'SENTINEL SET {name} quorum 2 down-after-milliseconds 9007199254740993'),
  ...same('SENTINEL SET {name} quorum 2 down-after-milliseconds 30000', 'SENTINEL MASTER {name}'),
  ...like('kind', 'SENTINEL INFO-CACHE {name}'),
  ...same('SENTINEL INFO-CACHE', 'SENTINEL INFO-CACHE nope', 'SENTINEL INFO-CACHE nope nope2', 'SENTINEL SIMULATE-FAILURE'),
  ...like('sorted', 'SENTINEL SIMULATE-FAILURE HELP'),
  ...same(
    'SENTINEL SIMULATE-FAILURE nope', 'SENTINEL SIMULATE-FAILURE crash-after-election nope',
    'SENTINEL simulate-failure CRASH-AFTER-PROMOTION', 'SENTINEL SIMULATE-FAILURE help',
  ),
  ...differs('D39', 'INFO sentinel'),
  ...same(
    'SENTINEL DEBUG', 'SENTINEL DEBUG info-period', 'SENTINEL DEBUG info-period 10000', 'SENTINEL DEBUG INFO-PERIOD x',
    'SENTINEL DEBUG info-period 0', 'SENTINEL DEBUG nope 1', 'SENTINEL DEBUG ping-period 1000 ask-period 1000',
    'SENTINEL DEBUG ping-period 1000 ask-period',
    'SENTINEL DEBUG default-down-after 30000 default-failover-timeout 180000 tilt-trigger 2000 tilt-period 30000',
    'SENTINEL DEBUG slave-reconf-timeout 10000 min-link-reconnect-period 15000 election-timeout 10000',
    'SENTINEL DEBUG script-max-runtime 60000 script-retry-delay 30000 publish-period 2000',
  ),
  ...same(
    'SENTINEL CONFIG', 'SENTINEL CONFIG NOPE x', 'SENTINEL CONFIG GET nope', 'SENTINEL CONFIG GET announce-ip',
    'SENTINEL config get ANNOUNCE-PORT', 'SENTINEL CONFIG GET resolve-*', 'SENTINEL CONFIG SET announce-port x',
    'SENTINEL CONFIG SET announce-port 70000', 'SENTINEL CONFIG SET announce-port 0', 'SENTINEL CONFIG SET nope 1',
    'SENTINEL CONFIG SET resolve-hostnames maybe', 'SENTINEL CONFIG SET resolve-hostnames YES',
    'SENTINEL CONFIG GET resolve-hostnames', 'SENTINEL CONFIG SET resolve-hostnames no', 'SENTINEL CONFIG SET announce-hostnames x',
    'SENTINEL CONFIG SET sentinel-user u', 'SENTINEL CONFIG GET sentinel-user', 'SENTINEL CONFIG SET sentinel-user ""',
    'SENTINEL CONFIG SET sentinel-pass ""', 'SENTINEL CONFIG SET announce-ip 127.0.0.1', 'SENTINEL CONFIG SET announce-ip ""',
    'SENTINEL CONFIG GET announce-ip',
  ),
  ...differs(
    '7.0: loglevel is no option of SENTINEL CONFIG', 'SENTINEL CONFIG GET *', 'SENTINEL CONFIG GET loglevel',
    'SENTINEL CONFIG SET loglevel notice',
  ),
  ...differs('7.0: CONFIG SET without a value passes the arity check of 3', 'SENTINEL CONFIG GET'),
  ...differs(MULTI, 'SENTINEL CONFIG GET announce-ip announce-port', 'SENTINEL CONFIG SET announce-port 0 announce-hostnames no'),
  ...like('shape', 'ROLE'),
  ...same(
    'ROLE x', 'PUBLISH x y', 'PUBLISH x', 'PUBLISH', 'PUBLISH __sentinel__:hello garbage',
    'PUBLISH __sentinel__:hello 1,2,3,4,5,6,7,8',
  ),
  ...differs('D38', 'SENTINEL HELP'),
  ...same('SENTINEL HELP x'),
  ...differs(
    '7.0: Valkey spellings are unknown', 'SENTINEL PRIMARIES', 'SENTINEL PRIMARY {name}', 'SENTINEL GET-PRIMARY-ADDR-BY-NAME {name}',
  ),
];

export const SERVER_CASES: readonly CommandCase[] = [
  ...same(
    'PING', 'ping', 'PING x', 'PING ""', 'PING a b', 'AUTH', 'AUTH x', 'AUTH nobody x', 'AUTH default x', 'AUTH a b c', 'CLIENT',
    'CLIENT NOPE', 'CLIENT GETNAME', 'CLIENT SETNAME me', 'CLIENT GETNAME', 'CLIENT SETNAME "a b"', 'CLIENT SETNAME ""',
    'CLIENT SETNAME', 'CLIENT GETNAME x', 'CLIENT LIST TYPE nope', 'CLIENT LIST TYPE master', 'CLIENT LIST TYPE', 'CLIENT LIST ID x',
    'CLIENT LIST ID 999999', 'CLIENT LIST nope', 'CLIENT KILL', 'CLIENT KILL 1.2.3.4:5', 'CLIENT KILL ID x', 'CLIENT KILL ID 999999',
    'CLIENT KILL TYPE nope', 'CLIENT KILL USER nobody', 'CLIENT KILL SKIPME maybe', 'CLIENT KILL ADDR 1.2.3.4:5 SKIPME yes',
    'CLIENT KILL ID 999999 TYPE', 'CLIENT NO-EVICT', 'CLIENT NO-EVICT on', 'CLIENT NO-EVICT off', 'CLIENT NO-EVICT maybe',
    'CLIENT NO-TOUCH on', 'CLIENT REPLY maybe', 'CLIENT REPLY ON', 'CLIENT TRACKING', 'CLIENT TRACKING off', 'CLIENT TRACKING maybe',
    'CLIENT TRACKING on BCAST OPTIN', 'CLIENT TRACKING on REDIRECT x', 'CLIENT TRACKING on PREFIX a', 'CLIENT TRACKINGINFO',
    'CLIENT CACHING yes', 'CLIENT GETREDIR', 'CLIENT UNBLOCK x', 'CLIENT UNBLOCK 999999', 'CLIENT UNBLOCK 1 nope', 'CLIENT UNPAUSE',
    'CLIENT PAUSE x', 'CLIENT PAUSE -1', 'CLIENT PAUSE 0 nope', 'CLIENT PAUSE', 'CLIENT ID x', 'CLIENT INFO x', 'COMMAND COUNT',
    'COMMAND COUNT x', 'COMMAND NOPE', 'COMMAND INFO nope', 'COMMAND INFO get', 'COMMAND DOCS nope', 'COMMAND DOCS get',
    'COMMAND LIST FILTERBY', 'COMMAND LIST FILTERBY nope x', 'COMMAND LIST FILTERBY module x', 'COMMAND GETKEYS',
    'COMMAND LIST nope',
  ),
  ...differs(
    '7.0: COMMAND GETKEYS wants one word more', 'COMMAND GETKEYS ping', 'COMMAND GETKEYS nope', 'COMMAND GETKEYSANDFLAGS ping',
  ),
  ...like('kind', 'CLIENT ID', 'CLIENT INFO', 'CLIENT LIST'),
  ...like(
    'sorted', 'COMMAND LIST', 'COMMAND LIST FILTERBY pattern sentinel*', 'COMMAND LIST FILTERBY aclcat connection',
    'COMMAND LIST FILTERBY ACLCAT nope',
  ),
  ...differs('7.0: CLIENT SETINFO is unknown', 'CLIENT SETINFO lib-name x', 'CLIENT SETINFO nope x'),
  ...like(
    'sorted', 'COMMAND INFO ping', 'COMMAND INFO sentinel|masters nope', 'COMMAND INFO publish', 'COMMAND INFO subscribe',
    'COMMAND INFO hello', 'COMMAND INFO role',
  ),
  ...differs('D38', 'COMMAND DOCS ping', 'COMMAND HELP', 'CLIENT HELP', 'ACL HELP'),
  ...same(
    'ACL', 'ACL NOPE', 'ACL CAT nope', 'ACL CAT a b', 'ACL WHOAMI', 'ACL WHOAMI x', 'ACL USERS', 'ACL GETUSER nope', 'ACL GETUSER',
    'ACL SETUSER u on >p +ping &ch*', 'ACL SETUSER u nope', 'ACL SETUSER u +nope', 'ACL SETUSER u >', 'ACL SETUSER u <nope',
    'ACL SETUSER "u v" on', 'ACL SETUSER u -@all +@connection', 'ACL DRYRUN u ping', 'ACL DRYRUN u nope', 'ACL DRYRUN nope ping',
    'ACL DRYRUN default sentinel masters', 'ACL SETUSER u off', 'AUTH u p',
  ),
  ...differs('7.0: sanitize-payload does not show', 'ACL LIST', 'ACL GETUSER default', 'ACL GETUSER u'),
  ...same(
    'ACL DELUSER nope', 'ACL DELUSER default', 'ACL DELUSER u', 'ACL DELUSER u', 'ACL DELUSER', 'ACL SETUSER', 'ACL GENPASS x',
    'ACL GENPASS 0', 'ACL GENPASS 5000', 'ACL LOG x', 'ACL LOG -1', 'ACL LOG RESET', 'ACL LOG', 'ACL LOAD', 'ACL SAVE', 'ACL CAT',
  ),
  ...like('kind', 'ACL GENPASS', 'ACL GENPASS 8'),
  ...like('sorted', 'ACL CAT connection', 'ACL CAT pubsub', 'ACL CAT dangerous'),
  ...same(
    'HELLO 4', 'HELLO x', 'HELLO 2 NOPE', 'HELLO 2 AUTH nobody x', 'HELLO 2 AUTH', 'HELLO 2 SETNAME', 'HELLO 2 SETNAME "a b"',
    'HELLO 1',
  ),
  ...like('shape', 'HELLO'),
  ...like('fields', 'INFO server', 'INFO SERVER clients', 'INFO stats', 'INFO cpu', 'INFO cpu nope', 'INFO stats server nope'),
  ...like('kind', 'INFO', 'INFO all', 'INFO everything', 'INFO default'),
  ...same('INFO nope', 'INFO replication', 'INFO keyspace memory'),
  ...same('SHUTDOWN nope', 'SHUTDOWN save nosave', 'SHUTDOWN abort', 'SHUTDOWN abort now'),
  ...same(
    'GET x', 'SET a b', 'MULTI', 'EXEC', 'CONFIG GET port', 'DEBUG SLEEP 0', 'MONITOR', 'RESET', 'PUBSUB CHANNELS', 'SSUBSCRIBE x',
    'SLAVEOF NO ONE', 'REPLICAOF a 1', 'EVAL "return 1" 0', 'nope a b c', '"" x', 'TIME', 'WAIT 0 0', 'LATENCY LATEST', 'SENTINELS',
    'FAILOVER',
  ),
  ...differs('D31', 'SELECT 0', 'SELECT', 'SELECT 1'),
  ...differs('D32', 'ECHO x', 'ECHO'),
];

const bulk = (word: string): string => `$${word.length}\r\n${word}\r\n`;
const multi = (...words: readonly string[]): string => `*${words.length}\r\n${words.map(bulk).join('')}`;

/** Raw bytes, segment by segment; compared as text, with how the connection ends. */
export const RAW_CASES: readonly (readonly [name: string, chunks: readonly string[], reason: Reason | null])[] = [
  ['an inline command', ['PING\r\n'], null],
  ['an inline command ended by LF', ['PING\n'], null],
  ['inline with quotes', ["SENTINEL GET-MASTER-ADDR-BY-NAME 'no''pe'\r\n"], null],
  ['inline with quoted escapes', ['PING "\\x41\\n\\t"\r\n'], null],
  ['inline with unbalanced quotes', ['PING "x\r\n'], null],
  ['blank lines', ['\r\n\r\n  \r\nPING\r\n'], null],
  ['the harness\'s PING', ['PING\r\n\n'], null],
  ['an inline command byte by byte', [...'PING\r\n'], null],
  ['a multibulk byte by byte', [...multi('PING', 'x')], null],
  ['a pipeline', [multi('PING') + multi('SENTINEL', 'MASTER', 'nope') + multi('PING', 'y') + 'PING\r\n'], null],
  ['a pipeline with a mistake in the middle', [multi('PING') + multi('GET', 'x') + multi('PING')], null],
  ['an empty multibulk', ['*0\r\n' + multi('PING')], null],
  ['a negative multibulk', ['*-1\r\n' + multi('PING')], null],
  ['a multibulk length that is no number', ['*x\r\n'], null],
  ['a multibulk of too many', ['*1048577\r\n'], 'D36'],
  ['a multibulk of 2^31', ['*2147483648\r\n'], null],
  ['a multibulk length without number', ['*\r\n'], null],
  ['something else than a bulk', ['*1\r\n:1\r\n'], null],
  ['a bulk length that is no number', ['*1\r\n$x\r\n'], null],
  ['a negative bulk length', ['*1\r\n$-1\r\n'], null],
  ['a bulk of more than 512 MB', ['*1\r\n$536870913\r\n'], null],
  ['binary in a name', [multi('SENTINEL', 'MASTER', 'a\0b')], null],
  ['CR LF in a command name', [multi('a\r\nb', 'c')], null],
  ['a very long unknown command', [multi('x'.repeat(200), 'y'.repeat(200))], null],
  ['many arguments of an unknown command', [multi('nope', ...Array.from({ length: 60 }, (_, at) => `arg${at}`))], null],
  ['an inline of 70 kB', ['x'.repeat(70_000)], null],
  ['HTTP', ['GET / HTTP/1.1\r\nHost: x\r\n\r\n'], null],
  ['HTTP POST', ['POST / HTTP/1.1\r\n\r\n'], null],
  ['subscribe mode of RESP2', [
    multi('SUBSCRIBE', 'a', 'b'), multi('PING'), multi('PING', 'x'), multi('SENTINEL', 'MASTERS'), multi('CLIENT', 'ID'),
    multi('PSUBSCRIBE', 'p*'),
    multi('UNSUBSCRIBE', 'a'), multi('UNSUBSCRIBE'), multi('PUNSUBSCRIBE'), multi('PING'),
  ], null],
  ['subscribe mode of RESP3', [
    multi('CLIENT', 'REPLY', 'SKIP'), multi('HELLO', '3'), multi('SUBSCRIBE', 'a', 'a'), multi('PING'), multi('UNSUBSCRIBE', 'a', 'z'),
    multi('UNSUBSCRIBE'), multi('PUNSUBSCRIBE', 'q'), multi('SENTINEL', 'MASTER', 'nope'),
  ], null],
  ['leaving without having come', [multi('UNSUBSCRIBE') + multi('PUNSUBSCRIBE') + multi('UNSUBSCRIBE', 'x')], null],
  ['SUBSCRIBE without a channel', [multi('SUBSCRIBE') + multi('PSUBSCRIBE')], null],
  ['CLIENT REPLY', [
    multi('CLIENT', 'REPLY', 'SKIP') + multi('PING') + multi('PING', 'a') + multi('CLIENT', 'REPLY', 'OFF') + multi('PING'),
    multi('CLIENT', 'REPLY', 'ON'),
  ], null],
  ['QUIT', [multi('QUIT')], 'D30'],
];
