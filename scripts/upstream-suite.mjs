#!/usr/bin/env node
// upstream-suite: runs the Sentinel test suite that Redis ships against any sentinel command, unit by unit.
//
//   node scripts/upstream-suite.mjs --sentinel "CMD" [--units 00,01] [--src DIR|x.tar.gz|x.git] [--identity NAME] [--server PATH] [--retries N] [--keep]
//
// CMD starts a sentinel when a configuration file's path is appended ("redis-sentinel", "node dist/main.js sentinel").
// Without --src, Debian's source package of redis is fetched by apt-get, from the archive that this machine's own apt
// sources name, and cached. Nothing of the suite is kept in the repository. Each unit runs in a process group of its
// own, which is ended whole after it. Closing line: `N passed, N failed`; exit 1 when anything failed. What a sentinel lists
// depends on its version: POINTSMAN_IDENTITY is set to that of the suite's source, or to --identity; others don't read it.
import { spawn, spawnSync } from 'node:child_process';
import {
  accessSync, chmodSync, constants, cpSync, createWriteStream, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync,
  rmSync, statSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE =
  'usage: upstream-suite.mjs --sentinel "CMD" [--units 00,01] [--src DIR|x.tar.gz|x.git] [--identity NAME] [--server PATH] [--retries N] [--keep]';
const UNIT_LIMIT_MS = 10 * 60_000;
const GRACE_MS = 5_000;
const PARTS = ['tests', 'utils', 'runtest-sentinel', 'src/version.h'];
/** What a source between two releases is taken for. */
const NEWEST = { redis: '7.4.1', valkey: '8.0.1' };

class SuiteError extends Error {
  constructor(exitCode, message) {
    super(message);
    this.exitCode = exitCode;
  }
}

function run(command, args, options = {}) {
  const result = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 64 << 20, ...options });
  if (result.status !== 0) throw new SuiteError(1, `${command} ${args.join(' ')} failed: ${result.error ?? result.stderr}`);
  return result.stdout;
}

function findProgram(name, debianPackage) {
  if (name.includes('/')) return resolve(name);
  const found = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (!found) throw new SuiteError(69, `${name} is missing (Debian: apt-get install ${debianPackage})`);
  return found;
}

/** The deb822 stanzas of a `.sources` file as field maps; continuation lines are kept in their field. */
function stanzasOf(text) {
  return text.split(/\n\s*\n/).map((block) => {
    const fields = {};
    let last = '';
    for (const line of block.split('\n').filter((each) => each.trim() !== '' && !each.startsWith('#'))) {
      const field = /^([A-Za-z-]+):\s*(.*)$/.exec(line);
      if (field) fields[(last = field[1].toLowerCase())] = field[2];
      else if (last) fields[last] += `\n${line}`;
    }
    return fields;
  });
}

/** One apt source that carries this release's packages, turned into a source of source packages. */
export function sourceStanza(release, aptFolder = '/etc/apt') {
  const parts = join(aptFolder, 'sources.list.d');
  const inParts = existsSync(parts) ? readdirSync(parts).sort().map((name) => join(parts, name)) : [];
  const files = [join(aptFolder, 'sources.list'), ...inParts];
  for (const path of files.filter((each) => existsSync(each))) {
    const text = readFileSync(path, 'utf8');
    if (path.endsWith('.sources')) {
      const lists = (field, word) => (field ?? '').split(/\s+/).includes(word);
      const fits = (each) => lists(each.types, 'deb') && lists(each.suites, release) && each.enabled !== 'no';
      const found = stanzasOf(text).find(fits);
      if (!found) continue;
      const signed = found['signed-by'] ? `Signed-By: ${found['signed-by']}\n` : '';
      const fields = `URIs: ${found.uris}\nSuites: ${release}\nComponents: ${found.components}\n`;
      return { name: 'source.sources', text: `Types: deb-src\n${fields}${signed}` };
    }
    if (!path.endsWith('.list')) continue;
    for (const line of text.split('\n')) {
      const entry = /^\s*deb\s+(\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+(.+?)\s*(#.*)?$/.exec(line);
      // An option such as arch= does no harm for source packages.
      if (entry?.[3] === release) return { name: 'source.list', text: `deb-src ${entry[1] ?? ''}${entry[2]} ${release} ${entry[4]}\n` };
    }
  }
  throw new SuiteError(69, `no apt source for ${release} found in ${aptFolder}; give --src`);
}

function releaseName() {
  const found = /^VERSION_CODENAME=(.*)$/m.exec(existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '');
  if (!found) throw new SuiteError(69, 'this is no Debian with a release name; give --src');
  return found[1].replaceAll('"', '');
}

const tarballIn = (folder) => readdirSync(folder).filter((name) => /^redis_.*\.orig\.tar\.\w+$/.test(name)).sort().at(-1);

function debianSource(work) {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'pointsman');
  mkdirSync(cache, { recursive: true });
  if (!tarballIn(cache)) {
    const stanza = sourceStanza(releaseName());
    const [parts, download] = [join(work, 'parts'), join(work, 'download')];
    for (const folder of [parts, download, join(work, 'lists/partial'), join(work, 'apt-cache/archives/partial')]) {
      mkdirSync(folder, { recursive: true });
    }
    writeFileSync(join(parts, stanza.name), stanza.text);
    // Lists and cache of our own: the machine's package lists stay as they are, and no root is needed.
    const settings = {
      'Dir::Etc::sourcelist': '/dev/null', 'Dir::Etc::sourceparts': parts, 'Dir::State::lists': join(work, 'lists'),
      'Dir::Cache': join(work, 'apt-cache'), 'APT::Sandbox::User': 'root',
    };
    const options = ['-qq', ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])];
    console.log('upstream-suite: fetching the source package of redis (apt-get) …');
    run('apt-get', [...options, 'update']);
    run('apt-get', [...options, 'source', '--download-only', 'redis'], { cwd: download });
    const name = tarballIn(download);
    if (!name) throw new SuiteError(1, 'apt-get source brought no redis_*.orig.tar');
    cpSync(join(download, name), join(cache, name));
  }
  return join(cache, tarballIn(cache));
}

/** Lays tests, utils and runtest-sentinel into `tree`, from a source tree, an archive or a bare git repository. */
function unpack(source, tree) {
  mkdirSync(tree, { recursive: true });
  if (!existsSync(source)) throw new SuiteError(64, `--src ${source} does not exist`);
  if (statSync(source).isFile()) {
    run('tar', ['xf', source, '-C', tree, '--strip-components=1', '--wildcards', ...PARTS.map((part) => `*/${part}`)]);
  } else if (existsSync(join(source, 'tests'))) {
    for (const part of PARTS) cpSync(join(source, part), join(tree, part), { recursive: true });
  } else {
    const archive = join(tree, 'tree.tar');
    run('git', ['-C', source, 'archive', '-o', archive, 'HEAD', ...PARTS]);
    run('tar', ['xf', archive, '-C', tree]);
  }
}

/** `redis-7.0.15`, `valkey-8.0.1`: which server's suite this is. */
export function identityOf(tree) {
  const text = readFileSync(join(tree, 'src/version.h'), 'utf8');
  const product = text.includes('VALKEY_VERSION') ? 'valkey' : 'redis';
  const version = new RegExp(`${product.toUpperCase()}_VERSION "([\\d.]+)"`).exec(text)?.[1] ?? '';
  return `${product}-${version.startsWith('255.') ? NEWEST[product] : version}`;
}

/** The suite starts sentinels in folders of its own, so words that name a file from here get their whole path. */
function absoluteCommand(command) {
  const isFileFromHere = (word) => /^[\w./-]+$/.test(word) && word.includes('/') && existsSync(word);
  return command.split(' ').map((word) => (isFileFromHere(word) ? resolve(word) : word)).join(' ');
}

function equip(tree, command, server) {
  const serverPath = findProgram(server, 'redis-server');
  mkdirSync(join(tree, 'src'), { recursive: true });
  mkdirSync(join(tree, 'tests/sentinel/tmp'), { recursive: true });
  const products = ['redis', 'valkey'];
  for (const product of products) {
    symlinkSync(serverPath, join(tree, 'src', `${product}-server`));
    symlinkSync(findProgram('redis-cli', 'redis-tools'), join(tree, 'src', `${product}-cli`));
    // exec: the suite stops, continues and kills the pid it got, which must be the sentinel's own.
    const wrapper = join(tree, 'src', `${product}-sentinel`);
    writeFileSync(wrapper, `#!/bin/sh\nexec ${absoluteCommand(command)} "$@"\n`);
    chmodSync(wrapper, 0o755);
  }
  if (!/valkey/i.test(run(serverPath, ['--version']))) speakRedis(tree);
}

/** Valkey's suite gives its data nodes directives that a redis-server does not know, or knows by another name. */
function speakRedis(tree) {
  const tests = join(tree, 'tests/sentinel/tests');
  for (const path of [join(tree, 'tests/instances.tcl'), ...readdirSync(tests).map((name) => join(tests, name))]) {
    if (!path.endsWith('.tcl')) continue;
    const lines = readFileSync(path, 'utf8').split('\n').filter((line) => !line.includes('enable-debug-assert'));
    writeFileSync(path, lines.join('\n').replaceAll('primaryauth', 'masterauth').replaceAll('primaryuser', 'masteruser'));
  }
}

function unitsIn(tree, wanted) {
  const files = readdirSync(join(tree, 'tests/sentinel/tests')).filter((name) => name.endsWith('.tcl'));
  const all = files.map((name) => name.slice(0, -'.tcl'.length)).sort();
  if (wanted.length === 0) return all;
  return wanted.flatMap((part) => {
    const found = all.filter((name) => name.startsWith(part));
    if (found.length === 0) throw new SuiteError(64, `no unit starts with ${part}; there are ${all.join(' ')}`);
    return found;
  });
}

let group = 0;

function signalGroup(signal) {
  if (group === 0) return;
  try {
    process.kill(-group, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** Runs one unit and counts its verdicts. A unit that neither says it is good nor names a failure counts as one failed. */
async function runUnit(tree, unit, identity, keep) {
  const log = createWriteStream(join(tree, `${unit}.log`));
  const args = ['--single', unit, ...(keep ? ['--dont-clean'] : [])];
  const env = { ...process.env, TERM: 'dumb', POINTSMAN_IDENTITY: identity };
  const child = spawn('./runtest-sentinel', args, { cwd: tree, detached: true, stdio: ['ignore', 'pipe', 'pipe'], env });
  group = child.pid ?? 0;
  const count = { passed: 0, failed: 0, good: false };
  const read = (line) => {
    log.write(`${line}\n`);
    console.log(`  ${line}`);
    if (/> .*: OK$/.test(line)) count.passed += 1;
    if (/FAILED: |\[exception\]|^ERROR: /.test(line)) count.failed += 1;
    if (line.includes('GOOD! No errors.')) count.good = true;
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', read);
  const limit = setTimeout(() => {
    read(`FAILED: ${unit} took more than ${UNIT_LIMIT_MS / 60_000} minutes`);
    signalGroup('SIGKILL');
  }, UNIT_LIMIT_MS);
  // `exit`, not `close`: an instance that outlives the suite would hold the pipe open for ever.
  const closed = new Promise((done) => child.once('close', done).once('error', done));
  const exitCode = await new Promise((done) => child.once('exit', done).once('error', () => done(null)));
  clearTimeout(limit);
  signalGroup('SIGCONT');
  signalGroup('SIGTERM');
  const kill = setTimeout(() => signalGroup('SIGKILL'), GRACE_MS);
  await closed;
  clearTimeout(kill);
  signalGroup('SIGKILL');
  group = 0;
  await new Promise((done) => log.end(done));
  if (count.failed === 0 && !(count.good && exitCode === 0)) count.failed = 1;
  return count;
}

async function main() {
  const { values } = parseArgs({
    options: {
      sentinel: { type: 'string' }, units: { type: 'string' }, src: { type: 'string' }, server: { type: 'string', default: 'redis-server' },
      identity: { type: 'string' }, retries: { type: 'string', default: '0' }, keep: { type: 'boolean', default: false },
    },
  });
  if (!values.sentinel) throw new SuiteError(64, USAGE);
  findProgram('tclsh', 'tcl');
  const work = mkdtempSync(join(tmpdir(), 'pointsman-suite-'));
  const leave = () => (values.keep ? console.log(`upstream-suite: kept ${work}`) : rmSync(work, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      signalGroup('SIGKILL');
      leave();
      process.exit(1);
    });
  }
  const sum = { passed: 0, failed: 0 };
  try {
    const tree = join(work, 'tree');
    unpack(values.src ?? debianSource(work), tree);
    equip(tree, values.sentinel, values.server);
    const identity = values.identity ?? identityOf(tree);
    console.log(`upstream-suite: the suite of ${identity}`);
    for (const unit of unitsIn(tree, (values.units ?? '').split(',').filter(Boolean))) {
      const startedMs = performance.now();
      let count = await runUnit(tree, unit, identity, values.keep);
      for (let again = 1; count.failed > 0 && again <= Number(values.retries); again++) {
        console.log(`unit ${unit}: ${count.passed} passed, ${count.failed} failed; once more (${again} of ${values.retries})`);
        count = await runUnit(tree, unit, identity, values.keep);
      }
      sum.passed += count.passed;
      sum.failed += count.failed;
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
      console.log(`unit ${unit}: ${count.passed} passed, ${count.failed} failed in ${seconds} s`);
    }
  } finally {
    leave();
  }
  console.log(`${sum.passed} passed, ${sum.failed} failed`);
  process.exitCode = sum.failed > 0 ? 1 : 0;
}

function giveUp(error) {
  const usage = typeof error.code === 'string' && error.code.startsWith('ERR_PARSE_ARGS');
  const known = error instanceof SuiteError ? error.message : error.stack;
  console.error(`upstream-suite: ${usage ? `${error.message}\n${USAGE}` : known}`);
  process.exitCode = usage ? 64 : error.exitCode ?? 1;
}

// The tests import this file for its parts.
const isProgram = process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url);
if (isProgram) await main().catch(giveUp);
