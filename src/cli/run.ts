/**
 * `pointsman run` and `pointsman sentinel`: one agent until a signal, SHUTDOWN, or a simulated crash ends it.
 */
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { AgentOptions } from '../agent.js';
import { Agent, enterDirectory } from '../agent.js';
import type { PointsmanConfig } from '../config/config.js';
import { identity as readIdentity } from '../config/values.js';
import { EXIT, messageOf } from '../errors.js';
import type { Log } from '../log.js';
import { createLog, setLogLevel } from '../log.js';
import type { Input, LogLevelName } from '../sentinel/index.js';
import { describe } from '../sentinel/index.js';
import type { ServerIdentity } from '../sentinel/wire/identity.js';
import { DEFAULT_IDENTITY, bannerOf } from '../sentinel/wire/identity.js';
import { tlsSettingsOf } from '../sentinel/runtime/tls-settings.js';
import { Syslog } from '../syslog.js';
import { loadBoth, loadSentinel, loadYaml, refuseFaults } from './load-files.js';

/** Set in the child of `daemonize yes`, so that it does not fork again. */
const DAEMON_MARK = 'POINTSMAN_DAEMONIZED';

/** The agent: sentinel, outputs, DNS, admin. Resolves to the exit status. */
export async function run(yamlPath: string | null, flags: Readonly<Record<string, string>>): Promise<number> {
  const { config, file, faults, warnings } = loadBoth(yamlPath, flags);
  if (faults.length > 0 || file === null || config === null) refuseFaults(faults, file);
  // `dir` in sentinel.conf changes the folder; SIGHUP must find the same file again.
  const path = yamlPath === null ? null : resolve(yamlPath);
  return serve({ file, config, identity: identityOf(config), reread: (masters) => loadYaml(path, flags, masters) }, warnings);
}

/** The drop-in: `redis-sentinel <conf> [--directive value …]`. */
export async function runSentinel(path: string, overrides: readonly string[]): Promise<number> {
  const { file, faults, warnings } = loadSentinel(path, overrides);
  const identity = identityOf(null);
  if (faults.length > 0 || file === null) refuseFaults([`*** FATAL CONFIG FILE ERROR (${bannerOf(identity)}) ***`, ...faults], file);
  return serve({ file, config: null, identity, reread: null }, warnings);
}

/** Turns `--port 26380 --sentinel "monitor m 127.0.0.1 6379 2"` into lines of configuration (8.1). */
export function overrideLines(words: readonly string[]): string[] {
  const lines: string[] = [];
  for (const word of words) {
    if (word.startsWith('--')) lines.push(word.slice(2));
    else if (lines.length > 0) lines.push(`${lines.pop() ?? ''} ${word}`);
  }
  return lines;
}

/** The environment is above the file; a value of no use is a fault like any other. */
function identityOf(config: PointsmanConfig | null): ServerIdentity {
  const text = process.env['POINTSMAN_IDENTITY'] ?? '';
  const read = text === '' ? null : readIdentity(text);
  if (read?.kind === 'misfit') refuseFaults([`env POINTSMAN_IDENTITY: ${read.message}`]);
  return read?.value ?? config?.sentinel?.identity ?? DEFAULT_IDENTITY;
}

type Plan = Pick<AgentOptions, 'file' | 'config' | 'identity'> & {
  /** Reads pointsman.yaml again, for the masters of now; null for a plain sentinel, which has none. */
  readonly reread: ((masters: Parameters<typeof loadYaml>[2]) => ReturnType<typeof loadYaml>) | null;
};

async function serve({ file, config, identity, reread }: Plan, warnings: readonly string[]): Promise<number> {
  const word = (name: string): string => file.conf.server.get(name)?.at(-1)?.[0] ?? '';
  if (word('daemonize').toLowerCase() === 'yes' && process.env[DAEMON_MARK] === undefined) return daemonize();
  enterDirectory(file);
  const syslog = word('syslog-enabled').toLowerCase() === 'yes' ? openSyslog(word('syslog-ident'), word('syslog-facility')) : undefined;
  const log = makeLog(config, word('logfile'), word('loglevel'), syslog);
  for (const warning of warnings) log.warn(warning);
  const tls = tlsSettingsOf(file);
  const removePidFile = writePidFile(word('pidfile'), log);

  let crashed = false;
  let end: (status: number) => void = () => undefined;
  const ended = new Promise<number>((resolve) => (end = resolve));
  const onCrash = (code: number): void => {
    crashed = true;
    end(code);
  };
  const onLogLevel = (level: LogLevelName): void => setLogLevel(log, levelOf(level));
  const agent = new Agent({ file, config, identity, tls, log, onShutdown: () => end(EXIT.ok), onCrash, onLogLevel });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => {
    log.info({ signal }, 'stopping');
    end(EXIT.ok);
  });
  process.on('SIGHUP', () => void reload(agent, reread, log));
  process.on('SIGUSR1', () => log.info(`state\n${describe(agent.sentinel.state)}`));
  dumpOnBug(() => agent, log);
  await agent.start();
  log.info({ id: agent.sentinel.state.myId, masters: [...agent.sentinel.state.masters.keys()] }, 'running');
  const status = await ended;
  // A simulated crash leaves everything as it lies.
  if (crashed) return status;
  await agent.stop();
  removePidFile();
  syslog?.close();
  return status;
}

/** SIGHUP: a bad file is told, fault by fault, and the running configuration stays. */
async function reload(agent: Agent, reread: Plan['reread'], log: Log): Promise<void> {
  if (reread === null) return log.warn('SIGHUP: there is no pointsman.yaml to read again');
  const masters = [...agent.sentinel.state.masters.values()].map(({ name, address }) => ({ name, host: address.host }));
  const { config, faults, warnings } = reread(masters);
  if (config === null || faults.length > 0) {
    for (const fault of faults) log.error({ fault }, 'SIGHUP: pointsman.yaml is not taken over');
    return;
  }
  for (const warning of warnings) log.warn(warning);
  try {
    const waiting = await agent.reload(config);
    setLogLevel(log, config.log.level);
    log.info('SIGHUP: pointsman.yaml was read again');
    if (waiting.length > 0) log.warn({ sections: waiting }, `SIGHUP: what changed under ${waiting.join(', ')} takes effect with a restart`);
  } catch (fault) {
    log.error({ error: messageOf(fault) }, 'SIGHUP: pointsman.yaml is not taken over');
  }
}

/** Stock's defaults for what is not set. */
function openSyslog(ident: string, facility: string): Syslog {
  const onFault = (reason: string): void => void process.stderr.write(`syslog: ${reason}; the log itself goes on\n`);
  return new Syslog({ ident: ident || 'redis', facility: facility || 'local0', onFault });
}

/** A failed assertion anywhere: the state and the last inputs are worth more than a stack. main.ts ends the process. */
function dumpOnBug(agent: () => Agent, log: Log): void {
  process.on('uncaughtExceptionMonitor', (fault) => {
    const { state, recentInputs } = agent().sentinel;
    log.fatal({ error: messageOf(fault), stack: fault.stack }, 'bug');
    log.fatal(`state at the bug\n${describe(state)}`);
    for (const input of recentInputs) log.fatal(`input before the bug ${describeInput(input)}`);
  });
}

/** SENTINEL SET and CONFIG SET carry passwords: of a command only its name is shown. */
function describeInput(input: Input): string {
  const shown = input.kind === 'command' ? { ...input, argv: input.argv.slice(0, 2) } : input;
  return JSON.stringify(shown).slice(0, 500);
}

function makeLog(config: PointsmanConfig | null, logFile: string, logLevel: string, syslog: Syslog | undefined): Log {
  const destination = logFile === '' ? 2 : logFile;
  const copy = syslog === undefined ? {} : { copyTo: syslog };
  if (config !== null) return createLog({ ...config.log, destination, ...copy });
  return createLog({ level: levelOf(logLevel), format: 'text', destination, ...copy });
}

/** sentinel.conf's words for the log levels of this program. */
function levelOf(word: string): 'trace' | 'debug' | 'info' | 'warn' | 'silent' {
  switch (word.toLowerCase()) {
    case 'debug':
      return 'trace';
    case 'verbose':
      return 'debug';
    case 'warning':
      return 'warn';
    case 'nothing':
      return 'silent';
    default:
      return 'info';
  }
}

function writePidFile(path: string, log: Log): () => void {
  if (path === '') return () => undefined;
  try {
    writeFileSync(path, `${process.pid}\n`);
  } catch (fault) {
    // Stock goes on without it, too.
    log.warn({ path, error: messageOf(fault) }, 'pidfile not written');
  }
  return () => rmSync(path, { force: true });
}

function daemonize(): number {
  const env = { ...process.env, [DAEMON_MARK]: '1' };
  const child = spawn(process.execPath, process.argv.slice(1), { detached: true, stdio: 'ignore', env });
  child.unref();
  return EXIT.ok;
}
