/**
 * Secondaries for the tests of zone transfer: BIND and Knot with the configurations that docs/dns-transfer.md shows, save addresses, ports
 * and folders; and what dig and named-checkzone think of a transfer.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Child, Children } from '../../src/demo/children.js';
import { programPath } from '../../src/find-program.js';
import { fencesOf } from '../tidy/readme-commands.js';
import { ROOT } from '../tidy/sources.js';
import { freePort, program, query } from './lab.js';

/** The secret that the page shows, in base64. */
export const SECRET = 'c2VjcmV0IGZvciB0aGUgZG9jcywgbm90IGZvciB5b3U=';
export const KEY_NAME = 'pointsman';

const recipes = fencesOf(readFileSync(join(ROOT, 'docs/dns-transfer.md'), 'utf8')).filter(({ language }) => language === 'conf').map(({ text }) => text);

export interface Secondary {
  readonly port: number;
  readonly folder: string;
  child: Child | null;
}

/** A free port and a folder: the primary must know the port before the secondary starts. */
export async function secondaryIn(folder: string): Promise<Secondary> {
  mkdirSync(folder, { recursive: true });
  return { port: await freePort(), folder, child: null };
}

/** Starts BIND as a secondary of `zone` at these ports of 127.0.0.1. */
export function startBind(children: Children, secondary: Secondary, zone: string, ...primaryPorts: readonly number[]): void {
  const { folder, port } = secondary;
  const text = (recipes[0] ?? '')
    .replace('directory "/var/cache/bind"', `directory "${folder}"; pid-file none; session-keyfile none; listen-on-v6 { none; }; dnssec-validation no`)
    .replace('port 53 { 10.0.0.53; }', `port ${port} { 127.0.0.1; }`)
    .replace(/primaries port 5353 \{.*\}/, `primaries { ${primaryPorts.map((primaryPort) => `127.0.0.1 port ${primaryPort} key ${KEY_NAME};`).join(' ')} }`)
    .replace('zone "redis.internal"', `zone "${zone}"`);
  const conf = join(folder, 'named.conf');
  writeFileSync(conf, `controls { };\n${text}\n`);
  secondary.child = children.start('named', [program('named'), '-g', '-n', '1', '-c', conf], folder);
}

/** Starts Knot as a secondary of `zone` at 127.0.0.1:`primaryPort`. */
export function startKnot(children: Children, secondary: Secondary, zone: string, primaryPort: number): void {
  const { folder, port } = secondary;
  const text = (recipes[1] ?? '')
    .replace('listen: 10.0.0.53@53', `listen: 127.0.0.1@${port}\n    rundir: ${folder}`)
    .replace(/address: \[[^\]]*@5353\]/, `address: 127.0.0.1@${primaryPort}`)
    .replace(/address: \[[^\]]*\]/, 'address: 127.0.0.1')
    .replace('domain: redis.internal', `domain: ${zone}\n    storage: ${folder}`);
  const conf = join(folder, 'knot.conf');
  writeFileSync(conf, `${text}\ndatabase:\n    storage: ${folder}\nlog:\n  - target: stderr\n    any: info\n`);
  secondary.child = children.start('knotd', [program('knotd'), '-c', conf], folder);
}

/** Null where these programs are all there; else the line that says why a test is left out. */
export function whyNotHere(what: string, ...programs: readonly string[]): string | null {
  const missing = programs.filter((name) => programPath(name) === null);
  if (missing.length === 0) return null;
  const line = `${what}: ${missing.join(', ')} missing`;
  process.stderr.write(`skipped: ${line}\n`);
  return line;
}

/** What dig says, whatever its exit status is. */
export async function dig(port: number, ...args: readonly string[]): Promise<string> {
  const argv = ['@127.0.0.1', '-p', String(port), '+tries=1', '+time=10', ...args];
  const { stdout } = await promisify(execFile)(program('dig'), argv, { maxBuffer: 64 << 20 }).catch((error: unknown) => error as { stdout: string });
  return stdout;
}

export const SIGNED = ['-y', `hmac-sha256:${KEY_NAME}:${SECRET}`];

/** A transfer as a zone file, its SOA once. Signatures are lines of their own to dig, and no part of a zone. */
export async function fetchZone(port: number, zone: string, ...args: readonly string[]): Promise<string> {
  const text = await dig(port, zone, 'AXFR', '+onesoa', ...args);
  return text.split('\n').filter((line) => !/\sANY\s+TSIG\s/.test(line)).join('\n');
}

/** What named-checkzone says of a zone file; throws when it refuses it. */
export async function checkZone(folder: string, zone: string, text: string): Promise<string> {
  const file = join(folder, `${zone}.fetched`);
  writeFileSync(file, text);
  const { stdout } = await promisify(execFile)(program('named-checkzone'), ['-i', 'local', zone, file]).catch((error: unknown) => {
    throw new Error(`named-checkzone: ${(error as { stdout: string }).stdout}`);
  });
  return stdout;
}

/** The first record of a type at a server, as text: an address, a line of TXT; or the rcode. */
export async function firstOf(port: number, name: string, type: 'A' | 'TXT'): Promise<string> {
  const answer = await query(port, name, type, 300);
  if (answer === null) return 'silence';
  const [record] = answer.answers ?? [];
  return record !== undefined && 'data' in record ? String(record.data) : answer.rcode;
}
