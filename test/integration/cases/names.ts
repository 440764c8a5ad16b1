/**
 * Host names of the bench's own: processes get an /etc/hosts of ours by a mount name space, which can change while they run; and a
 * resolver that takes its time, as a preloaded module.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export class Names {
  readonly #path: string;

  constructor(folder: string, hosts: Readonly<Record<string, string>>) {
    this.#path = join(folder, `hosts-${Object.values(hosts).join('-')}`);
    this.set(hosts);
  }

  /** In place: a bind mount holds the file, not its name. */
  set(hosts: Readonly<Record<string, string>>): void {
    writeFileSync(this.#path, ['127.0.0.1 localhost', ...Object.entries(hosts).map(([name, ip]) => `${ip} ${name}`), ''].join('\n'));
  }

  /** Words before a program's own, which then sees these names. */
  get wrap(): string[] {
    return ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', this.#path];
  }
}

/** An environment in which every look-up takes `delayMs`, and those of `gone` then fail. */
export function slowResolver(folder: string, delayMs: number, gone: readonly string[]): NodeJS.ProcessEnv {
  const path = join(folder, 'slow-resolver.mjs');
  writeFileSync(path, [
    "import dns from 'node:dns';",
    "import { syncBuiltinESMExports } from 'node:module';",
    'const { lookup } = dns.promises;',
    'dns.promises.lookup = async (host, ...rest) => {',
    `  await new Promise((done) => setTimeout(done, ${delayMs}));`,
    `  if (${JSON.stringify(gone)}.includes(host)) throw Object.assign(new Error(\`getaddrinfo ENOTFOUND \${host}\`), { code: 'ENOTFOUND' });`,
    '  return lookup(host, ...rest);',
    '};',
    'syncBuiltinESMExports();',
    '',
  ].join('\n'));
  return { ...process.env, NODE_OPTIONS: `--import=${pathToFileURL(path).href}` };
}
