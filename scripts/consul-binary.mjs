#!/usr/bin/env node
// consul-binary: prints the path of a Consul that tests can run, fetching one if there is none.
//
//   node scripts/consul-binary.mjs
//
// The binary in PATH comes first (CONSUL_BINARY beats it). Else Debian's bullseye has Consul 1.8.7, later releases have
// none: the package is fetched by apt-get through a list of its own, made from this machine's own Debian source with the
// suite changed, and only unpacked, never installed, into ${XDG_CACHE_HOME:-~/.cache}/pointsman/consul. No root needed.
import { spawnSync } from 'node:child_process';
import {
  accessSync, constants, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, renameSync, rmSync, writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sourceStanza } from './upstream-suite.mjs';

const SUITE = 'bullseye';
const EXIT_MISSING = 69;

const cacheFolder = () => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'pointsman');
const unpacked = () => join(cacheFolder(), 'consul', 'usr', 'bin', 'consul');

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function run(command, args, cwd) {
  const result = spawnSync(command, args, { encoding: 'utf8', cwd, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 64 << 20 });
  if (result.status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${result.error ?? result.stderr}`);
}

function releaseName() {
  const found = /^VERSION_CODENAME=(.*)$/m.exec(existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '');
  if (!found) throw new Error('this is no Debian with a release name: put a consul into PATH');
  return found[1].replaceAll('"', '');
}

/** The machine's own source of packages, pointed at the older suite. */
function olderSource() {
  const release = releaseName();
  const { name, text } = sourceStanza(release);
  return { name, text: text.replaceAll('deb-src', 'deb').replace(new RegExp(`\\b${release}\\b`, 'g'), SUITE) };
}

function fetchPackage() {
  mkdirSync(cacheFolder(), { recursive: true });
  const work = mkdtempSync(join(cacheFolder(), 'consul-'));
  try {
    const [parts, download, tree] = ['parts', 'download', 'tree'].map((name) => join(work, name));
    for (const folder of [parts, download, join(work, 'lists/partial'), join(work, 'cache/archives/partial')]) {
      mkdirSync(folder, { recursive: true });
    }
    const { name, text } = olderSource();
    writeFileSync(join(parts, name), text);
    const settings = {
      'Dir::Etc::sourcelist': '/dev/null', 'Dir::Etc::sourceparts': parts, 'Dir::State::lists': join(work, 'lists'),
      'Dir::Cache': join(work, 'cache'), 'APT::Sandbox::User': 'root', 'Acquire::Languages': 'none',
    };
    const options = ['-qq', ...Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`])];
    run('apt-get', [...options, 'update']);
    run('apt-get', [...options, 'download', 'consul'], download);
    const archive = readdirSync(download).find((each) => each.endsWith('.deb'));
    if (!archive) throw new Error('apt-get download brought no package');
    run('dpkg', ['-x', join(download, archive), tree]);
    // In one step, so that a second run beside this one sees a whole tree or none.
    rmSync(join(cacheFolder(), 'consul'), { recursive: true, force: true });
    renameSync(tree, join(cacheFolder(), 'consul'));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The path of a Consul binary; throws when there is none and none can be fetched. */
export function consulBinary() {
  const given = process.env.CONSUL_BINARY;
  const inPath = (process.env.PATH ?? '').split(delimiter).filter(Boolean).map((folder) => join(folder, 'consul'));
  const found = [...(given ? [given] : []), ...inPath, unpacked()].find(isExecutable);
  if (found) return found;
  fetchPackage();
  return unpacked();
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    process.stdout.write(`${consulBinary()}\n`);
  } catch (error) {
    process.stderr.write(`consul-binary: ${error.message}\n`);
    process.exitCode = EXIT_MISSING;
  }
}
