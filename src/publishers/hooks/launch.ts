/**
 * As whom and with what a hook runs: the words before its own command that change user, rights and limits.
 *
 * The runtime can set neither limits nor capabilities, and a child inherits the agent's ambient ones, so util-linux' prlimit and
 * setpriv do it. Both replace themselves by the hook: one process, one pid, two exec calls more.
 */
import { readFileSync } from 'node:fs';
import { programPath } from '../../find-program.js';

/** What pointsman.yaml says about a hook's process. */
export interface LaunchSettings {
  /** A name or a uid; null: as the agent itself. */
  readonly user: string | null;
  /** `drop`: without the network capabilities that the agent may hold for its VIPs; `keep`: with them. */
  readonly capabilities: 'drop' | 'keep';
  readonly limits: Readonly<Record<string, number>>;
}

export interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly groups: readonly number[];
  /** Null for a uid without a name. */
  readonly name: string | null;
}

const NETWORK = ['net_admin', 'net_raw'] as const;
/** prlimit's names of limits. */
export const LIMIT_NAMES: readonly string[] = [
  'as', 'core', 'cpu', 'data', 'fsize', 'locks', 'memlock', 'msgqueue', 'nice', 'nofile', 'nproc', 'rss', 'rtprio', 'rttime', 'sigpending', 'stack',
];

/** The words before the command; empty where the hook can be started as it is. Throws when prlimit or setpriv is not installed. */
export function wrapOf(settings: LaunchSettings, account: Account | null): string[] {
  const limits = Object.entries(settings.limits).map(([name, limit]) => `--${name}=${limit}`);
  const rights = rightsOf(settings, account);
  return [
    ...(limits.length === 0 ? [] : [installed('prlimit'), ...limits, '--']),
    ...(rights.length === 0 ? [] : [installed('setpriv'), ...rights, '--']),
  ];
}

function rightsOf({ capabilities }: LaunchSettings, account: Account | null): string[] {
  const isRoot = process.getuid?.() === 0;
  const words = account === null || account.uid === process.getuid?.() ? [] : [
    '--reuid', String(account.uid), '--regid', String(account.gid), ...(account.name === null ? ['--clear-groups'] : ['--init-groups']),
  ];
  if (capabilities === 'keep') {
    // The agent's ambient ones are inherited anyway; a change of the user would lose them.
    const both = NETWORK.map((name) => `+${name}`).join();
    return words.length === 0 ? [] : [...words, '--inh-caps', both, '--ambient-caps', both];
  }
  if (!isRoot && ambientCapabilities() === 0n) return words;
  // A root child gets its capabilities back from the bounding set; only root may shrink that.
  const bounds = isRoot ? ['--bounding-set', NETWORK.map((name) => `-${name}`).join()] : [];
  return [...words, '--inh-caps', '-all', '--ambient-caps', '-all', ...bounds];
}

function ambientCapabilities(): bigint {
  const status = readFileSync('/proc/self/status', 'utf8');
  return BigInt(`0x${/^CapAmb:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
}

/** A user of this machine by name or uid, or null. */
export function accountOf(user: string): Account | null {
  const lines = (path: string): string[][] => readFileSync(path, 'utf8').split('\n').map((line) => line.split(':'));
  const entry = lines('/etc/passwd').find(([name, , uid]) => name === user || uid === user);
  if (entry === undefined) return /^\d+$/.test(user) ? { uid: Number(user), gid: Number(user), groups: [], name: null } : null;
  const [name = '', , uid, gid] = entry;
  const groups = lines('/etc/group').filter(([, , , members]) => members?.split(',').includes(name)).map(([, , id]) => Number(id));
  return { uid: Number(uid), gid: Number(gid), groups, name };
}

/** Who this process is. */
export function ownAccount(): Account {
  return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, groups: process.getgroups?.() ?? [], name: null };
}

function installed(name: string): string {
  const path = programPath(name);
  if (path === null) throw new Error(`${name} is not installed (Debian: util-linux)`);
  return path;
}
