#!/usr/bin/env node
// resolved-binary: prints the path of a systemd-resolved that tests can run, and the folder of its libraries, a line each.
//
//   node scripts/resolved-binary.mjs
//
// Its package is only unpacked, never installed: installing it turns the machine's own name resolution over. Both packages come by
// apt-get from the machine's own sources into ${XDG_CACHE_HOME:-~/.cache}/pointsman/systemd-resolved. No root needed.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGES = ['systemd-resolved', 'libsystemd-shared'];
const EXIT_MISSING = 69;
const cacheFolder = () => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'pointsman');

function run(command, args, cwd) {
  const result = spawnSync(command, args, { encoding: 'utf8', cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  if (result.status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${result.error ?? result.stderr}`);
}

/** The binary and the folder that LD_LIBRARY_PATH must name; throws when they cannot be fetched. */
export function resolvedBinary() {
  const target = join(cacheFolder(), 'systemd-resolved');
  if (!existsSync(target)) {
    mkdirSync(cacheFolder(), { recursive: true });
    const work = mkdtempSync(join(cacheFolder(), 'resolved-'));
    try {
      run('apt-get', ['-qq', '-o', 'APT::Sandbox::User=root', 'download', ...PACKAGES], work);
      for (const archive of readdirSync(work).filter((name) => name.endsWith('.deb'))) run('dpkg', ['-x', archive, 'tree'], work);
      // In one step, so that a second run beside this one sees a whole tree or none.
      rmSync(target, { recursive: true, force: true });
      renameSync(join(work, 'tree'), target);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  const libraries = readdirSync(join(target, 'usr/lib')).map((name) => join(target, 'usr/lib', name, 'systemd')).find((path) => existsSync(path));
  const found = [join(target, 'usr/lib/systemd/systemd-resolved'), join(target, 'lib/systemd/systemd-resolved')].find((path) => existsSync(path));
  if (!found || !libraries) throw new Error('the package brought no systemd-resolved');
  return { binary: found, libraries };
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    const { binary, libraries } = resolvedBinary();
    process.stdout.write(`${binary}\n${libraries}\n`);
  } catch (error) {
    process.stderr.write(`resolved-binary: ${error.message}\n`);
    process.exitCode = EXIT_MISSING;
  }
}
