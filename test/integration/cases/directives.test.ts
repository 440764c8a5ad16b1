/**
 * Directives of sentinel.conf that concern the process: sockets, passwords, users, log, pid file, daemon; each on a real process.
 */
import { afterAll, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, MAIN, waitFor } from '../lab.js';
import { Bench, open, outsideAddress, tell, type Access } from './bench.js';

const bench = new Bench();
const pids: number[] = [];
afterAll(async () => {
  for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  await bench.stop();
});

function isAlive(pid: number): boolean {
  // A daemon is nobody's child here: its state tells a dead one that nobody has collected yet.
  return existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}

test('a daemon with pid file, log file, three sockets, a password and users that outlive SIGKILL', async () => {
  const folder = join(bench.folder, 'daemon');
  mkdirSync(folder, { recursive: true });
  const port = await freePort(['127.0.0.1']);
  const [conf, pidFile, logFile] = [join(folder, 'sentinel.conf'), join(folder, 'pid'), join(folder, 'sentinel.log')];
  const lines = [
    ...[`dir ${folder}`, `port ${port}`, 'bind 127.0.0.1 ::1', `unixsocket ${join(folder, 'socket')}`, 'unixsocketperm 700'],
    ...['requirepass s3cret', 'daemonize yes', `pidfile ${pidFile}`, `logfile ${logFile}`, ''],
  ];
  writeFileSync(conf, lines.join('\n'));
  const start = async (): Promise<number> => {
    // Returns at once: the daemon lives on without it.
    execFileSync(process.execPath, [MAIN, 'sentinel', conf], { cwd: folder, timeout: 30_000 });
    const isRunning = (): boolean => existsSync(pidFile) && existsSync(logFile) && readFileSync(logFile, 'utf8').includes('running');
    await waitFor('the pid file and a running sentinel', 30_000, isRunning);
    const pid = Number(readFileSync(pidFile, 'utf8'));
    pids.push(pid);
    return pid;
  };
  const first = await start();
  expect(isAlive(first)).toBe(true);

  const ways: Access[] = [{ host: '127.0.0.1', port }, { host: '::1', port }, { path: join(folder, 'socket') }];
  for (const access of ways) {
    expect(await tell({ access }, 'PING')).toMatch(/^NOAUTH/);
    expect(await tell({ access: { ...access, password: 'wrong' } }, 'PING')).not.toBe('PONG');
    expect(await tell({ access: { ...access, password: 's3cret' } }, 'PING')).toBe('PONG');
  }
  expect(statSync(join(folder, 'socket')).mode & 0o777).toBe(0o700);
  const log = (): string => readFileSync(logFile, 'utf8');

  // The running log changes with CONFIG SET loglevel, and the file with it.
  const access = { ...ways[0]!, password: 's3cret' };
  expect(log()).not.toContain('client connected');
  expect(await tell({ access }, 'SENTINEL', 'CONFIG', 'SET', 'loglevel', 'verbose')).toBe('OK');
  await tell({ access }, 'PING');
  await waitFor('a line of level verbose', 5_000, () => log().includes('client connected'));
  expect(readFileSync(conf, 'utf8')).toContain('loglevel verbose\n');

  expect(await tell({ access }, 'ACL', 'SETUSER', 'bob', 'on', '>pw', '+ping')).toBe('OK');
  await waitFor('the user in the file', 5_000, () => readFileSync(conf, 'utf8').includes('user bob on'));
  expect(readFileSync(conf, 'utf8')).not.toContain('user default');
  process.kill(first, 'SIGKILL');
  await waitFor('its end', 5_000, () => !isAlive(first));
  writeFileSync(logFile, '');
  writeFileSync(pidFile, '');
  await start();
  const bob = { ...ways[0]!, username: 'bob', password: 'pw' };
  expect(await tell({ access: bob }, 'PING')).toBe('PONG');
  expect(await tell({ access: bob }, 'ACL', 'WHOAMI')).toMatch(/^NOPERM/);
  expect(await tell({ access }, 'ACL', 'DELUSER', 'bob')).toBe(1);
  await waitFor('the user gone from the file', 5_000, () => !readFileSync(conf, 'utf8').includes('user bob'));
  await tell({ access }, 'SHUTDOWN');
  await waitFor('the pid file gone', 10_000, () => !existsSync(pidFile));
}, 120_000);

test('an ACL file: users are read from it, and written to it by ACL SAVE alone', async () => {
  const aclFile = join(bench.folder, 'users.acl');
  writeFileSync(aclFile, 'user default on >first ~* &* +@all\nuser watcher on >w &* -@all +ping +subscribe\n');
  const place = { host: '127.0.0.1', port: await freePort() };
  const lines = [`port ${place.port}`, 'bind 127.0.0.1', `aclfile ${aclFile}`];
  const sentinel = await bench.sentinel('aclfile', lines, { access: { ...place, password: 'first' } });
  expect(await tell({ access: { ...place, username: 'watcher', password: 'w' } }, 'SENTINEL', 'MYID')).toMatch(/^NOPERM/);
  expect(await tell(sentinel, 'ACL', 'SETUSER', 'new', 'on', '>n', '+ping')).toBe('OK');
  expect(readFileSync(aclFile, 'utf8')).not.toContain('user new');
  expect(await tell(sentinel, 'ACL', 'SAVE')).toBe('OK');
  expect(readFileSync(aclFile, 'utf8')).toContain('user new on');
  expect(await tell(sentinel, 'SENTINEL', 'FLUSHCONFIG')).toBe('OK');
  expect(readFileSync(sentinel.conf, 'utf8')).not.toMatch(/^user /m);
}, 60_000);

test('protected mode: an address of this machine that is not loopback is refused until there is a password', async () => {
  // 127.x is loopback to the server; a client that comes from elsewhere has to be one of the machine's own other addresses.
  const outside = outsideAddress();
  const place = { host: '127.0.0.1', port: await freePort() };
  const sentinel = await bench.sentinel('protected', [`port ${place.port}`, 'bind * -::*', 'protected-mode yes'], { access: place });
  expect(await tell(sentinel, 'PING')).toBe('PONG');
  expect(await tell({ access: { ...place, host: outside } }, 'PING')).toMatch(/DENIED|closed|reset|EPIPE/i);
  expect(await tell(sentinel, 'ACL', 'SETUSER', 'default', 'resetpass', '>pw')).toBe('OK');
  expect(await tell({ access: { ...place, host: outside, password: 'pw' } }, 'PING')).toBe('PONG');
}, 60_000);

test('bad TLS files end the start with every fault and status 64', async () => {
  const folder = join(bench.folder, 'badtls');
  mkdirSync(folder);
  const conf = join(folder, 'sentinel.conf');
  const lines = ['port 0', `tls-port ${await freePort()}`, 'tls-cert-file nowhere.crt', 'tls-auth-clients perhaps', 'tls-protocols "TLSv9"', ''];
  writeFileSync(conf, lines.join('\n'));
  let output = '';
  let status = 0;
  try {
    execFileSync(process.execPath, [MAIN, 'sentinel', conf], { cwd: folder, timeout: 30_000, stdio: 'pipe' });
  } catch (fault) {
    const ended = fault as { readonly status: number; readonly stderr: Buffer };
    [output, status] = [ended.stderr.toString(), ended.status];
  }
  expect(status).toBe(64);
  for (const word of ['nowhere.crt', 'tls-auth-clients perhaps', 'tls-ca-cert-file', 'tlsv9']) expect(output).toContain(word);
  expect(await open({ host: '127.0.0.1', port: 1 })).toMatch(/ECONNREFUSED/);
}, 40_000);
