/**
 * syslog-enabled, syslog-ident, syslog-facility: the lines arrive at the machine's socket with the priorities that stock gives them.
 * The socket is a receiver of the test, in a mount name space where it is /dev/log.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { freePort, MAIN, waitFor } from '../lab.js';

const folder = mkdtempSync(join(tmpdir(), 'pointsman-syslog-'));
const can = spawnSync('unshare', ['-m', 'sh', '-c', 'mount -t tmpfs none /mnt && command -v logger perl']).status === 0;
if (!can) console.warn('skipped: no right to make a mount name space, or no logger or perl here');

const children: ChildProcess[] = [];
afterAll(() => {
  for (const { pid, exitCode } of children) if (pid !== undefined && exitCode === null) process.kill(-pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** Prints each datagram as a line. */
const RECEIVER = `
use Socket; $| = 1;
socket(my $s, PF_UNIX, SOCK_DGRAM, 0) or die $!;
bind($s, sockaddr_un("/dev/log")) or die $!;
while (defined recv($s, my $m, 65536, 0)) { $m =~ s/\\0//g; print "$m\\n"; }
`;

(can ? test : test.skip)('each line of the log is a message with ident, pid and the right priority', async () => {
  const port = await freePort();
  const [conf, received] = [join(folder, 'sentinel.conf'), join(folder, 'received')];
  writeFileSync(join(folder, 'receive.pl'), RECEIVER);
  writeFileSync(conf, [
    ...[`dir ${folder}`, `port ${port}`, 'bind 127.0.0.1', 'logfile own.log', 'syslog-enabled yes', 'syslog-ident watcher'],
    ...['syslog-facility local3', 'sentinel monitor m1 127.0.0.1 1 1', 'sentinel down-after-milliseconds m1 100', ''],
  ].join('\n'));
  const script = [
    `perl ${join(folder, 'receive.pl')} > ${received} & receiver=$!`,
    'while [ ! -S /dev/log ]; do sleep 0.05; done',
    `${process.execPath} ${MAIN} sentinel ${conf}; kill $receiver`,
  ].join('\n');
  // A /dev of its own, with what Node needs in it.
  const ownDev = [
    'mkdir -p "$0/dev"; mount -t tmpfs none "$0/dev"',
    'cp -a /dev/null /dev/urandom /dev/random /dev/zero "$0/dev/"; mount --bind "$0/dev" /dev',
  ].join('\n');
  const child = spawn('unshare', ['-m', 'sh', '-c', `${ownDev}\n${script}`, folder], { stdio: 'ignore', detached: true });
  children.push(child);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const lines = (): string[] => {
    try {
      return readFileSync(received, 'utf8').split('\n');
    } catch {
      return [];
    }
  };
  await waitFor(() => `+sdown in ${lines().join('\n')}`, 30_000, () => Promise.resolve(lines().some((line) => line.includes('+sdown'))));
  const local3 = 19 * 8;
  expect(lines().find((line) => line.includes('+sdown'))).toMatch(new RegExp(`^<${local3 + 4}>.* watcher\\[\\d+\\]: sentinel \\+sdown master m1`));
  expect(lines().find((line) => line.includes('Sentinel ID is'))).toMatch(new RegExp(`^<${local3 + 5}>`));
  // The log file has them, too.
  expect(readFileSync(join(folder, 'own.log'), 'utf8')).toContain('+sdown master m1');
  const pid = Number(/watcher\[(\d+)\]/.exec(lines().join('\n'))?.[1]);
  process.kill(pid, 'SIGTERM');
  await ended;
}, 60_000);
