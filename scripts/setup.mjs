#!/usr/bin/env node
// setup: makes a fresh clone ready for `demo`, `test` or `build`, and does nothing (fast) when it already is.
//
//   node scripts/setup.mjs [--for demo|test|bench|build]
//
// Steps: Node's version, npm packages, dist/, Debian packages. Each keeps a stamp or looks for the thing itself, so
// the order of runs does not matter. Plain Node without packages, since it runs before `npm ci`. Where it may not
// install (neither root nor sudo without a password), it says what is missing and exits 69.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync, chmodSync, constants, cpSync, existsSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const EXIT_FAILED = 1;
const EXIT_USAGE = 64;
const EXIT_MISSING = 69;
const OLDEST_NODE = 20;
const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Program looked for, Debian package that brings it, purposes that need it. */
const TOOLS = [
  { program: 'redis-server', debian: 'redis-server', purposes: ['demo', 'test', 'bench'] },
  { program: 'redis-cli', debian: 'redis-tools', purposes: ['test'] },
  { program: 'redis-sentinel', debian: 'redis-sentinel', purposes: ['test'] },
  { program: 'dig', debian: 'dnsutils', purposes: ['test'] },
  { program: 'tclsh', debian: 'tcl', purposes: ['test'] },
  { program: 'ps', debian: 'procps', purposes: ['test'] },
  { program: 'ip', debian: 'iproute2', purposes: ['test'] },
  { program: 'arping', debian: 'iputils-arping', purposes: ['test'] },
  { program: 'ndptool', debian: 'libndp-tools', purposes: ['test'] },
  { program: 'dnsmasq', debian: 'dnsmasq-base', purposes: ['test'] },
  { program: 'unbound', debian: 'unbound', purposes: ['test'] },
  { program: 'named', debian: 'bind9', purposes: ['test', 'bench'] },
  { program: 'dnsperf', debian: 'dnsperf', purposes: ['bench'] },
  { program: 'named-checkzone', debian: 'bind9-utils', purposes: ['test'] },
  { program: 'knotd', debian: 'knot', purposes: ['test'] },
  { program: 'kdig', debian: 'knot-dnsutils', purposes: ['test'] },
  { program: 'drill', debian: 'ldnsutils', purposes: ['test'] },
];

const say = (text) => process.stdout.write(`setup: ${text}\n`);

function give(exitCode, text) {
  process.stderr.write(`setup: ${text}\n`);
  process.exit(exitCode);
}

/** Runs a command in the clone; the output is shown only when it fails, or live when `loud`. */
function run(command, args, { loud = false, env = {} } = {}) {
  const options = { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', loud ? 'inherit' : 'pipe', loud ? 'inherit' : 'pipe'] };
  const result = spawnSync(command, args, { ...options, encoding: 'utf8', maxBuffer: 64 << 20 });
  return { ok: result.status === 0, output: `${result.stdout ?? ''}${result.stderr ?? ''}${result.error ? String(result.error) : ''}` };
}

function findProgram(name) {
  // Debian keeps some of them in sbin, which a user's PATH often leaves out.
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/bin', '/usr/bin', '/usr/local/sbin', '/usr/sbin'];
  return folders.filter(Boolean).map((folder) => join(folder, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return statSync(path).isFile();
    } catch {
      return false;
    }
  });
}

const readOr = (path, otherwise) => (existsSync(path) ? readFileSync(path, 'utf8') : otherwise);

function checkNode() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < OLDEST_NODE) give(EXIT_MISSING, `Node ${process.versions.node} is too old: install Node ${OLDEST_NODE} or later`);
}

/** Whether npm's own note of what it installed has every package of the lock file; those for other platforms may be absent. */
function isInstalled(lock, note) {
  if (!existsSync(note)) return false;
  const installed = JSON.parse(readFileSync(note, 'utf8')).packages ?? {};
  const wanted = Object.entries(JSON.parse(readFileSync(lock, 'utf8')).packages).filter(([path]) => path !== '');
  return wanted.every(([path, { version, optional }]) => (optional && !installed[path]) || installed[path]?.version === version);
}

/** The npm packages, exactly as the lock file names them; native parts depend on Node's ABI and the platform. */
function installPackages() {
  const lock = join(root, 'package-lock.json');
  const modules = join(root, 'node_modules');
  const stamp = join(modules, '.pointsman-setup');
  const platform = `${process.versions.modules} ${process.platform} ${process.arch}`;
  const wanted = `${createHash('sha256').update(readFileSync(lock)).digest('hex')} ${platform}\n`;
  if (readOr(stamp, '') === wanted) return;

  // Somebody ran npm by hand, with the same result: as good as our own run, and node_modules may be in use.
  const samePlatform = readOr(stamp, wanted).endsWith(`${platform}\n`);
  if (!(samePlatform && isInstalled(lock, join(modules, '.package-lock.json')))) {
    say('npm packages (npm ci) …');
    const done = run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], { env: { NODE_ENV: 'development' } });
    if (!done.ok) give(EXIT_FAILED, `npm ci failed:\n${done.output}`);
  }
  writeFileSync(stamp, wanted);
}

function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

function digestOfSources() {
  const hash = createHash('sha256');
  const settings = ['tsconfig.json', 'tsconfig.build.json', 'package-lock.json'].map((name) => join(root, name));
  for (const path of [...settings, ...filesBelow(join(root, 'src'))]) {
    hash.update(`${relative(root, path)}\0`).update(readFileSync(path)).update('\0');
  }
  return `${hash.digest('hex')}\n`;
}

/** Compiles beside dist/ and swaps the folder: a failed compile leaves the last good one, a running agent sees no half. */
function compile() {
  const dist = join(root, 'dist');
  const stamp = join(dist, '.built-from');
  const wanted = digestOfSources();
  if (readOr(stamp, '') === wanted && existsSync(join(dist, 'main.js'))) return;

  say('compiling src/ to dist/ …');
  const fresh = join(root, `dist.${process.pid}.tmp`);
  const old = join(root, `dist.${process.pid}.old.tmp`);
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  try {
    const done = run(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--noEmitOnError', '--outDir', fresh]);
    if (!done.ok) give(EXIT_FAILED, `the compiler found faults:\n${done.output}`);
    for (const path of filesBelow(join(root, 'src')).filter((name) => !name.endsWith('.ts'))) {
      cpSync(path, join(fresh, relative(join(root, 'src'), path)));
    }
    const main = join(fresh, 'main.js');
    if (!existsSync(main)) give(EXIT_FAILED, 'src/main.ts is missing, so there is no dist/main.js');
    chmodSync(main, 0o755);
    writeFileSync(join(fresh, '.built-from'), wanted);
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(fresh, dist);
  } finally {
    for (const path of [fresh, old]) rmSync(path, { recursive: true, force: true });
  }
}

/** How this user may run apt-get: directly, through sudo without a password, or not at all (null). */
function aptPrefix() {
  if (!findProgram('apt-get')) return null;
  if (process.getuid?.() === 0) return [];
  return findProgram('sudo') && run('sudo', ['-n', 'true']).ok ? ['sudo', '-n'] : null;
}

/**
 * Keeps Debian's packages from starting their services: a redis on port 6379 is not what a test or demo wants.
 * invoke-rc.d and deb-systemd-invoke both ask /usr/sbin/policy-rc.d; status 101 forbids the action.
 */
function withoutServices(asRoot, action) {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  if (ours) asRoot(['sh', '-c', `printf '#!/bin/sh\\nexit 101\\n' > ${policy} && chmod 755 ${policy}`]);
  try {
    return action();
  } finally {
    if (ours) asRoot(['rm', '-f', policy]);
  }
}

function hasPackageLists() {
  const lists = '/var/lib/apt/lists';
  return existsSync(lists) && readdirSync(lists).some((name) => name.endsWith('_Packages') || name.includes('_Packages.'));
}

function installTools(purpose) {
  const missing = TOOLS.filter((tool) => tool.purposes.includes(purpose) && !findProgram(tool.program));
  if (missing.length === 0) return;

  const packages = missing.map((tool) => tool.debian);
  const programs = missing.map((tool) => tool.program).join(', ');
  const advice = `install ${programs} (Debian: apt-get install ${packages.join(' ')}), then run this again`;
  const prefix = aptPrefix();
  if (!prefix) give(EXIT_MISSING, `no right to install what is missing: ${advice}`);
  const asRoot = (argv) => {
    const [command, ...args] = [...prefix, ...argv];
    return run(command, args);
  };
  const aptGet = ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q', '-y', '-o', 'DPkg::Lock::Timeout=120'];
  const apt = (...args) => asRoot([...aptGet, ...args]);
  say(`Debian packages ${packages.join(' ')} (apt-get) …`);
  const install = () => apt('install', '--no-install-recommends', ...packages);
  const done = withoutServices(asRoot, () => {
    if (!hasPackageLists()) apt('update');
    const first = install();
    if (first.ok) return first;
    // Old lists name versions that the mirror has dropped: one refresh, one more try.
    apt('update');
    return install();
  });
  if (!done.ok) give(EXIT_MISSING, `apt-get failed; ${advice}\n${done.output}`);
  const still = missing.filter((tool) => !findProgram(tool.program)).map((tool) => tool.program);
  if (still.length > 0) give(EXIT_MISSING, `still missing after the installation: ${still.join(', ')}`);
}

function purposeFrom(argv) {
  if (argv.length === 0) return 'build';
  const [flag, purpose] = argv;
  if (flag === '--for' && argv.length === 2 && ['demo', 'test', 'bench', 'build'].includes(purpose)) return purpose;
  return give(EXIT_USAGE, 'usage: node scripts/setup.mjs [--for demo|test|bench|build]');
}

const purpose = purposeFrom(process.argv.slice(2));
checkNode();
installTools(purpose);
installPackages();
compile();
