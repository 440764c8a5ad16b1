/**
 * Bad input: one clear error each, nothing lost, and the process and its other listeners live on.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { join } from 'node:path';
import {
  Lab, MAIN, MASTER_NAME, NAME, answerOf, ask, converse, datagram, fieldsOf, freePort, program, textOf, waitFor,
  type LabSentinel, type RedisNode,
} from './lab.js';

const END_LIMIT_MS = 40_000;
const NOBODY = 65_534;

interface End {
  readonly status: number | null;
  readonly errors: readonly string[];
}

/** Runs our program to its end. */
function end(args: readonly string[]): Promise<End> {
  return new Promise((done) => {
    const limits = { timeout: END_LIMIT_MS, killSignal: 'SIGKILL' } as const;
    const child = execFile(process.execPath, [MAIN, ...args], limits, (_error, _stdout, stderr) => {
      done({ status: child.exitCode, errors: stderr.split('\n').filter((line) => line !== '') });
    });
  });
}

/** Waits for the end of a started agent; its log lines that are errors. */
async function endOf(agent: LabSentinel): Promise<{ readonly status: string; readonly faults: readonly string[] }> {
  await waitFor(() => `the end of ${agent.name}: ${agent.child.lastWords()}`, END_LIMIT_MS, () => agent.child.status !== null);
  return { status: agent.child.status ?? '', faults: logOf(agent).split('\n').filter((line) => line.startsWith('pointsman: ')) };
}

const logOf = (agent: LabSentinel): string => readFileSync(agent.child.logPath, 'utf8');

let lab: Lab;

describe('files', () => {
  beforeAll(() => {
    lab = new Lab();
    writeFileSync(join(lab.folder, 'sentinel.conf'), `port 26379\nsentinel monitor ${MASTER_NAME} 127.0.0.1 6379 2\n`);
  });
  afterAll(() => lab.stop());

  const yaml = (...lines: string[]): string => {
    const path = join(lab.folder, 'pointsman.yaml');
    writeFileSync(path, ['sentinel: { config: sentinel.conf }', ...lines, ''].join('\n'));
    return path;
  };

  test.each([
    ['an unknown key', ['dns:', '  zoen: redis.test.'], [/pointsman\.yaml:3:.*zoen/]],
    ['a bad duration', ['dns:', '  ttl: 1 second'], [/pointsman\.yaml:3:.*bad duration "1 second"/]],
    ['both', ['dns:', '  zoen: redis.test.', '  ttl: 1 second'], [/pointsman\.yaml:3:.*zoen/, /pointsman\.yaml:4:.*bad duration/]],
  ])('%s: every fault with its line, exit 64', async (_title, lines, expected) => {
    const path = yaml(...lines);
    for (const verb of ['run', 'check']) {
      const { status, errors } = await end([verb, '--config', path]);
      expect({ verb, status }).toEqual({ verb, status: 64 });
      for (const pattern of expected) expect(errors.filter((line) => pattern.test(line))).toHaveLength(1);
    }
  }, 180_000);

  test('a bad line in sentinel.conf: exit 64 and the file as it was', async () => {
    const conf = join(lab.folder, 'sentinel.conf');
    const text = `${readFileSync(conf, 'utf8')}sentinel down-after-milliseconds ${MASTER_NAME} soon\n`;
    writeFileSync(conf, text);
    const { status, errors } = await end(['run', '--config', yaml()]);
    expect(status).toBe(64);
    expect(errors.filter((line) => /sentinel\.conf:3/.test(line))).toHaveLength(1);
    expect(readFileSync(conf, 'utf8')).toBe(text);
  }, 90_000);

  test('no such file: exit 64 and its path', async () => {
    const path = join(lab.folder, 'nowhere.yaml');
    const { status, errors } = await end(['run', '--config', path]);
    expect([status, errors.length]).toEqual([64, 1]);
    expect(errors[0]).toContain(path);
  }, 90_000);
});

describe('ports that are taken', () => {
  let master: RedisNode;
  beforeAll(async () => {
    lab = new Lab();
    master = await lab.group(0);
  });
  afterAll(() => lab.stop());

  test('the sentinel port: one error, exit 71, and the DNS port is free again', async () => {
    const port = await freePort();
    const holder = createServer().listen(port, '127.0.0.1');
    await once(holder, 'listening');
    const agent = await lab.agent(master, { port, unwaited: true });
    const { status, faults } = await endOf(agent);
    holder.close();
    expect(status).toBe('status 71');
    expect(faults).toEqual([expect.stringContaining(`127.0.0.1:${port}`)]);
    expect(faults[0]).toMatch(/in use/);
    const socket = createSocket('udp4').bind(agent.dnsPort!, '127.0.0.1');
    await once(socket, 'listening');
    socket.close();
  }, 90_000);

  test.each(['udp', 'tcp'] as const)('the DNS port by %s: one error, exit 71, and the sentinel port is free again', async (transport) => {
    const dnsPort = await freePort();
    const holder = transport === 'udp' ? createSocket('udp4').bind(dnsPort, '127.0.0.1') : createServer().listen(dnsPort, '127.0.0.1');
    await once(holder, 'listening');
    const agent = await lab.agent(master, { dnsPort, unwaited: true });
    const { status, faults } = await endOf(agent);
    holder.close();
    expect(status).toBe('status 71');
    expect(faults).toEqual([expect.stringContaining(`127.0.0.1:${dnsPort}`)]);
    const server = createServer().listen(agent.address.port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
  }, 90_000);
});

describe('a state file that cannot be written', () => {
  let master: RedisNode;
  beforeAll(async () => {
    lab = new Lab();
    master = await lab.group(0);
  });
  afterAll(() => lab.stop());

  test('at the start: one error that names it, and an exit status of its own', async () => {
    const agent = await lab.agent(master, { unwaited: true });
    agent.child.kill('SIGKILL');
    await endOf(agent);
    // The temporary file beside it can't be made where its name is a folder's; that holds for root too.
    const fresh = readFileSync(agent.conf, 'utf8').split('\n').filter((line) => !/myid/.test(line)).join('\n');
    const sealed = sealFolder(agent, fresh);
    await lab.restartSentinel(agent, { unwaited: true });
    const { status, faults } = await endOf(agent);
    sealed.open();
    expect(status).toBe('status 73');
    expect(faults).toEqual([expect.stringContaining(agent.conf)]);
  }, 90_000);

  test('at run time: commands say so, everything else works, and nothing is lost when it can be written again', async () => {
    const agent = await lab.agent(master);
    await waitFor(() => `running in\n${logOf(agent)}`, 10_000, () => /\brunning\b/.test(logOf(agent)));
    const aside = `${agent.folder}.aside`;
    renameSync(agent.folder, aside);
    try {
      const reply = await ask(agent, 'SENTINEL', 'SET', MASTER_NAME, 'parallel-syncs', '3');
      expect(reply.kind === 'error' || textOf(reply) === 'OK').toBe(true);
      expect((await ask(agent, 'SENTINEL', 'FLUSHCONFIG')).kind).toBe('error');
      await waitFor(() => `an error that names the file in\n${logOf(agent)}`, 5000, () => logOf(agent).includes(agent.conf));
      expect(textOf(await ask(agent, 'PING'))).toBe('PONG');
      expect(await answerOf(agent.dnsPort!, 'example.org', 'A')).toBe('REFUSED');
      expect(existsSync(agent.conf)).toBe(false);
    } finally {
      renameSync(aside, agent.folder);
    }
    expect(textOf(await ask(agent, 'SENTINEL', 'FLUSHCONFIG'))).toBe('OK');
    expect(readFileSync(agent.conf, 'utf8')).toContain(`parallel-syncs ${MASTER_NAME} 3`);
    expect(agent.child.status).toBeNull();
  }, 60_000);
});

/** Makes the folder of a stopped agent one that nobody may write to; as root, by giving the process to somebody else. */
function sealFolder(agent: LabSentinel, conf: string): { open(): void } {
  writeFileSync(agent.conf, conf);
  for (const path of [lab.folder, agent.folder]) chmodSync(path, 0o555);
  if (process.getuid?.() === 0) {
    chownSync(agent.child.logPath, NOBODY, NOBODY);
    const asNobody = [program('setpriv'), `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];
    (agent as { argv: readonly string[] }).argv = [...asNobody, ...agent.argv];
  }
  return { open: () => [lab.folder, agent.folder].forEach((path) => chmodSync(path, 0o755)) };
}

describe('a redis that asks for a password', () => {
  let agent: LabSentinel;
  let master: RedisNode;
  beforeAll(async () => {
    lab = new Lab();
    master = await lab.group(0, ['--requirepass', 'secret']);
    agent = await lab.agent(master);
  }, 60_000);
  afterAll(() => lab.stop());

  test('is said once and clearly, is not published, and works as soon as the password is set', async () => {
    const complaints = (): string[] => logOf(agent).split('\n').filter((line) => /refuses our commands/.test(line));
    await waitFor(() => `a complaint in\n${logOf(agent)}`, 20_000, () => complaints().length > 0);
    expect(await answerOf(agent.dnsPort!, NAME, 'A')).toBe('SERVFAIL');
    expect(textOf(await ask(agent, 'PING'))).toBe('PONG');

    expect(textOf(await ask(agent, 'SENTINEL', 'SET', MASTER_NAME, 'auth-pass', 'secret'))).toBe('OK');
    await waitFor(() => `the master up in\n${logOf(agent)}`, 30_000, async () => {
      return fieldsOf(await ask(agent, 'SENTINEL', 'MASTER', MASTER_NAME)).get('flags') === 'master';
    });
    await waitFor('its address in DNS', 30_000, async () => (await answerOf(agent.dnsPort!, NAME, 'A')) === master.address.host);
    const { host, port } = master.address;
    expect(complaints()).toEqual([expect.stringMatching(new RegExp(` error .*${host}:${port} refuses our commands: NOAUTH`))]);
    expect(logOf(agent)).not.toContain('secret');
  }, 90_000);
});

describe('garbage on the ports', () => {
  let agent: LabSentinel;
  let master: RedisNode;
  beforeAll(async () => {
    lab = new Lab();
    master = await lab.group(0);
    agent = await lab.agent(master);
    await waitFor('its address in DNS', 30_000, async () => (await answerOf(agent.dnsPort!, NAME, 'A')) === master.address.host);
  }, 60_000);
  afterAll(() => lab.stop());

  // Whatever came in, both listeners answer the next client at once.
  afterEach(async () => {
    expect(textOf(await ask(agent, 'PING'))).toBe('PONG');
    expect(await answerOf(agent.dnsPort!, NAME, 'A')).toBe(master.address.host);
    expect(agent.child.status).toBeNull();
  });

  test.each([
    ['random bytes', randomBytes(4096)],
    ['a multibulk without end', Buffer.from('*1000000000\r\n')],
    ['a negative bulk', Buffer.from('*1\r\n$-5\r\n')],
    ['a huge bulk', Buffer.from('*1\r\n$9999999999\r\n')],
    ['no bulk where one must be', Buffer.from('*2\r\n$4\r\nPING\r\n:1\r\n')],
    ['a line without end', Buffer.alloc(128 * 1024, 'x')],
  ])('RESP: %s: an error, or the connection closed', async (_title, bytes) => {
    const { received, closed } = await converse(agent.address.port, bytes);
    expect(closed || received.toString().startsWith('-')).toBe(true);
  });

  test('RESP: an HTTP request is cut off', async () => {
    const { closed } = await converse(agent.address.port, 'POST / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(closed).toBe(true);
  });

  test('RESP: an unknown command is an error and the connection goes on', async () => {
    const { received, closed } = await converse(agent.address.port, 'NONSENSE\r\nPING\r\n', 300);
    expect(received.toString()).toMatch(/^-ERR unknown command.*\r\n\+PONG\r\n$/);
    expect(closed).toBe(false);
  });

  const header = (id: number, questions: number): Buffer => Buffer.from([id >> 8, id & 255, 1, 0, 0, questions, 0, 0, 0, 0, 0, 0]);
  test.each([
    ['nothing', Buffer.alloc(0), null],
    ['half a header', Buffer.alloc(7), null],
    ['a response', Buffer.concat([Buffer.from([1, 2, 0x80]), Buffer.alloc(9)]), null],
    ['no question', header(1, 0), 1],
    ['a question that is not there', header(2, 1), 1],
    ['a pointer to itself', Buffer.concat([header(3, 1), Buffer.from([0xc0, 12, 0, 1, 0, 1])]), 1],
    ['a label of 64', Buffer.concat([header(4, 1), Buffer.from([64]), Buffer.alloc(64, 'a'), Buffer.from([0, 0, 1, 0, 1])]), 1],
    ['counts of 65535', Buffer.concat([Buffer.from([0, 5, 1, 0]), Buffer.alloc(8, 0xff), Buffer.alloc(7)]), 1],
  ])('DNS by UDP: %s', async (_title, bytes, rcode) => {
    const reply = await datagram(agent.dnsPort!, bytes, 300);
    expect(reply === null ? null : (reply[3] ?? 0) & 15).toBe(rcode);
    expect(reply?.length ?? 0).toBeLessThanOrEqual(Math.max(12, bytes.length));
  });

  test('DNS by UDP: a thousand random datagrams', async () => {
    const socket = createSocket('udp4');
    for (let index = 0; index < 1000; index++) socket.send(randomBytes(index % 64), agent.dnsPort!, '127.0.0.1');
    await waitFor('a good answer afterwards', 5000, async () => (await answerOf(agent.dnsPort!, NAME, 'A', 500)) === master.address.host);
    socket.close();
  });

  test('DNS by TCP: random bytes, and a length that nothing follows', async () => {
    for (const bytes of [randomBytes(2000), Buffer.from([0xff, 0xff, 1])]) await converse(agent.dnsPort!, bytes, 300);
    expect(logOf(agent).length).toBeLessThan(200_000);
  });
});
