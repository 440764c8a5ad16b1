/**
 * sentinel.conf at the gate: the file, its includes, the command line's overrides, and the questions only a disk can answer.
 *
 * `dir` takes effect as in stock: later relative paths (logfile, scripts) are relative to it, the file's own path is not.
 */
import { accessSync, constants, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf } from '../../errors.js';
import type { ConfFault, ConfMaster, LoadedConf } from '../wire/sentinel-conf.js';
import { loadSentinelConf } from '../wire/sentinel-conf.js';

export interface ConfFile {
  /** Absolute. */
  readonly path: string;
  /** Absolute; where relative paths of the file start. */
  readonly directory: string;
  readonly conf: LoadedConf;
  /** Of the text and of what it names on this machine, in reading order. */
  readonly faults: readonly ConfFault[];
  /** The one of `faults` that says the file can't be rewritten: a fault of the place, not of the text. */
  readonly writeFault: ConfFault | null;
}

/** Reads and checks the file. `overrides` are further lines, as made from `--port 26380` (8.1). Never throws. */
export function readConfFile(path: string, overrides: readonly string[] = []): ConfFile {
  const absolute = resolve(path);
  let text: string;
  try {
    text = readFileSync(absolute, 'utf8');
  } catch (fault) {
    const conf = loadSentinelConf('', { path: absolute, readInclude: () => null });
    const code = (fault as NodeJS.ErrnoException).code;
    const why = code === 'ENOENT' ? 'No such file or directory' : messageOf(fault);
    const unreadable: ConfFault = { path: absolute, line: 0, source: '', message: `Fatal error, can't open config file '${absolute}': ${why}` };
    return { path: absolute, directory: process.cwd(), conf, faults: [unreadable], writeFault: null };
  }
  const conf = loadSentinelConf([text.replace(/\n$/, ''), ...overrides].join('\n'), { path: absolute, readInclude: readOrNull });
  const directory = resolve(conf.server.get('dir')?.at(-1)?.[0] ?? '.');
  const writeFault = writeFaultOf(absolute);
  const faults = [...conf.faults, ...scriptFaults(conf.masters, absolute, directory), ...(writeFault === null ? [] : [writeFault])];
  return { path: absolute, directory, conf, faults, writeFault };
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The loader reports the include that can't be read, with its line.
    return null;
  }
}

function scriptFaults(masters: readonly ConfMaster[], path: string, directory: string): ConfFault[] {
  const faults: ConfFault[] = [];
  for (const master of masters) {
    for (const [directive, what, script] of [
      ['notification-script', 'Notification', master.notificationScript],
      ['client-reconfig-script', 'Client reconfiguration', master.clientReconfigScript],
    ] as const) {
      if (script === null || isExecutable(resolve(directory, script))) continue;
      const source = `sentinel ${directive} ${master.name} ${script}`;
      faults.push({ path, line: 0, source, message: `${what} script seems non existing or non executable.` });
    }
  }
  return faults;
}

function writeFaultOf(path: string): ConfFault | null {
  try {
    accessSync(path, constants.W_OK);
    return null;
  } catch (fault) {
    return { path, line: 0, source: '', message: `Sentinel config file ${path} is not writable: ${messageOf(fault)}` };
  }
}

/** Whether a script exists and may be executed by this process. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** One line per fault: `/etc/redis/sentinel.conf:12 sentinel monitor …: Invalid port number.` */
export function formatConfFaults(faults: readonly ConfFault[]): string {
  return faults
    .map(({ path, line, source, message }) => `${line > 0 ? `${path}:${line}` : path}${source === '' ? '' : ` '${source}'`}: ${message}`)
    .join('\n');
}
