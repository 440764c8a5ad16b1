/**
 * What would keep a hook from running, found at the start and by `check`: a hook is needed at the worst moment.
 */
import { statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf } from '../../errors.js';
import { whyNotRunnable } from './child.js';
import type { HookSettings } from './hook.js';
import { LIMIT_NAMES, accountOf, ownAccount, wrapOf } from './launch.js';
import type { Account } from './launch.js';

const EXECUTE = 0o1;
const WORLD_WRITABLE = 0o002;
const STICKY = 0o1000;

/** One sentence per fault, without the hook's name; empty when it can run. */
export function hookFaults(hook: HookSettings): string[] {
  const faults = Object.keys(hook.limits)
    .filter((name) => !LIMIT_NAMES.includes(name))
    .map((name) => `unknown limit "${name}", expected one of ${LIMIT_NAMES.join(', ')}`);
  const account = hook.user === null ? ownAccount() : accountOf(hook.user);
  if (account === null) return [...faults, `user "${hook.user ?? ''}" does not exist on this machine`];
  if (process.getuid?.() !== 0 && account.uid !== process.getuid?.()) {
    faults.push(`user "${hook.user ?? ''}": only root can run a hook as another user`);
  }
  try {
    if (faults.length === 0) wrapOf(hook, hook.user === null ? null : account);
  } catch (fault) {
    faults.push(messageOf(fault));
  }
  return [...faults, ...fileFaults(hook.command[0] ?? '', account)];
}

function fileFaults(path: string, account: Account): string[] {
  let file: Stats;
  try {
    file = statSync(path);
  } catch (fault) {
    return [`command ${path}: ${messageOf(fault)}`];
  }
  if (!file.isFile()) return [`command ${path} is no regular file`];
  const folder = dirname(path);
  const magic = whyNotRunnable(path);
  return [
    ...(mayExecute(file, account) ? [] : [`command ${path} may not be executed by uid ${account.uid}`]),
    ...closedFolders(folder, account).map((closed) => `command ${path}: uid ${account.uid} may not enter ${closed}`),
    ...(magic === null ? [] : [`command ${magic}`]),
    ...(file.mode & WORLD_WRITABLE ? [`command ${path} is writable by everybody`] : []),
    ...(isOpenToAll(statSync(folder)) ? [`command ${path}: its folder is writable by everybody`] : []),
  ];
}

function closedFolders(folder: string, account: Account): string[] {
  const above = folder === dirname(folder) ? [] : closedFolders(dirname(folder), account);
  return mayExecute(statSync(folder), account) ? above : [...above, folder];
}

/** Anybody may put a file in the place of another; with the sticky bit only its owner may. */
const isOpenToAll = ({ mode }: Stats): boolean => (mode & WORLD_WRITABLE) !== 0 && (mode & STICKY) === 0;

/** By the mode bits; root enters any folder and executes what anybody may execute. */
function mayExecute(found: Stats, account: Account): boolean {
  const { mode, uid, gid } = found;
  if (account.uid === 0) return found.isDirectory() || (mode & 0o111) !== 0;
  if (account.uid === uid) return (mode & (EXECUTE << 6)) !== 0;
  if (account.gid === gid || account.groups.includes(gid)) return (mode & (EXECUTE << 3)) !== 0;
  return (mode & EXECUTE) !== 0;
}
