/**
 * pointsman.yaml + environment + flags → {@link PointsmanConfig}, or all their faults at once.
 *
 * Order: flag, POINTSMAN_ variable, file, then for Consul the CONSUL_ variables, default. Without a file everything is off save
 * what the environment switches on, so a bare sentinel stays a bare sentinel.
 */
import { dirname, resolve } from 'node:path';
import type { z } from 'zod';
import { readSecret } from '../dns/tsig.js';
import { messageOf } from '../errors.js';
import type { ConsulSection, DnsSection, PointsmanConfig } from './config.js';
import { closest, formatPath, show } from './fault.js';
import type { ConfigFault } from './fault.js';
import { applyOverrides, environmentOverrides, flagOverrides } from './overrides.js';
import type { Override } from './overrides.js';
import { ROOT, crossFaults, keysAt } from './schema.js';
import type { CheckedFile } from './schema.js';
import * as values from './values.js';
import { parseYaml } from './yaml-source.js';
import type { YamlSource } from './yaml-source.js';

export interface LoadOptions {
  /** The file as the user named it; null for none. */
  readonly path: string | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads a file as text; throws when it can't (`(path) => readFileSync(path, 'utf8')`). */
  readonly read: (path: string) => string;
  /** Settings of the command line by dotted path, e.g. `{ 'log.level': 'debug' }`. */
  readonly flags?: Readonly<Record<string, string>>;
}

export type LoadedConfig =
  | { readonly kind: 'ok'; readonly config: PointsmanConfig; readonly warnings: readonly ConfigFault[] }
  | { readonly kind: 'faults'; readonly faults: readonly ConfigFault[] };

/** Reads, overrides and checks the whole configuration. Never throws for what a user wrote. */
export function loadConfig({ path, env, read, flags = {} }: LoadOptions): LoadedConfig {
  const file = path ?? 'pointsman.yaml';
  let text = '';
  try {
    if (path !== null) text = read(path);
  } catch (error) {
    return { kind: 'faults', faults: [fromOutside(file, '', `cannot be read: ${messageOf(error)}`)] };
  }
  const source = parseYaml(file, text);
  if (source.raw === null && source.faults.length > 0) return { kind: 'faults', faults: source.faults };

  const environment = environmentOverrides(env);
  const overrides = [...environment.overrides, ...flagOverrides(flags)];
  // An empty file is a file with no settings.
  const raw = applyOverrides(source.raw ?? {}, overrides);
  const place = placer(file, source, overrides);
  const folder = path === null ? null : dirname(resolve(path));
  const checked = ROOT.safeParse(raw);
  const secret = tsigSecret(raw, folder, read);
  const faults = [
    ...source.faults,
    ...(checked.error?.issues ?? []).flatMap((issue) => faultsOf(issue, place)),
    ...crossFaults(raw).map((fault) => place(fault.path, fault.message, 'value')),
    ...(secret.kind === 'misfit' ? [place(SECRET_FILE, secret.message, 'value')] : []),
  ];
  const consul = consulVariables(env, checked.data?.consul);
  if (checked.data?.consul !== undefined) faults.push(...consul.faults);
  if (!checked.success || secret.kind === 'misfit' || faults.length > 0) return { kind: 'faults', faults: faults.sort(byPlace) };

  const warnings = environment.unknown.map(({ name, message }): ConfigFault => fromOutside(`env ${name}`, '', message));
  return { kind: 'ok', config: toConfig(checked.data, consul.read, secret.text, folder), warnings };
}

const SECRET_FILE = ['dns', 'transfer', 'tsig', 'secret-file'];

/** The secret in base64, read and tried here so that a bad one is told with its line; empty where none is configured. */
function tsigSecret(raw: unknown, folder: string | null, read: LoadOptions['read']): { kind: 'text'; text: string } | { kind: 'misfit'; message: string } {
  const file = valueAt(raw, SECRET_FILE);
  // What is no path has a fault of its own.
  if (values.path(file).kind === 'misfit') return { kind: 'text', text: '' };
  const path = String(file);
  let text: string;
  try {
    text = read(folder === null ? path : resolve(folder, path));
  } catch (error) {
    return { kind: 'misfit', message: `${show(path)} cannot be read: ${messageOf(error)}` };
  }
  const reading = readSecret(text);
  return reading.kind === 'misfit' ? { ...reading, message: `${show(path)} ${reading.message}` } : { kind: 'text', text: reading.secret.toString('base64') };
}

const fromOutside = (file: string, path: string, message: string): ConfigFault => ({ file, line: 0, column: 0, path, message });

type Place = (path: readonly PropertyKey[], message: string, what: 'key' | 'value') => ConfigFault;

/** A fault stands in the file, unless the value came from outside: then it names the variable or the flag. */
function placer(file: string, source: YamlSource, overrides: readonly Override[]): Place {
  return (path, message, what) => {
    const override = overrides.findLast((candidate) => candidate.path.every((key, depth) => key === path[depth]));
    const place = override === undefined ? { file, ...source.locate(path, what) } : { file: override.origin, line: 0, column: 0 };
    return { ...place, path: formatPath(path), message };
  };
}

function faultsOf(issue: z.core.$ZodIssue, place: Place): ConfigFault[] {
  if (issue.code !== 'unrecognized_keys') return [place(issue.path, issue.message, 'value')];
  return issue.keys.map((key) => {
    const near = closest(key, keysAt(issue.path) ?? []);
    return place([...issue.path, key], near === null ? 'unknown key' : `unknown key, did you mean ${show(near)}?`, 'key');
  });
}

const byPlace = (a: ConfigFault, b: ConfigFault): number =>
  Number(a.line === 0) - Number(b.line === 0) || a.line - b.line || a.column - b.column || a.path.localeCompare(b.path);

function valueAt(raw: unknown, path: readonly string[]): unknown {
  let value = raw;
  for (const key of path) value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  return value;
}

type ConsulDefaults = Omit<ConsulSection, 'mode' | 'service' | 'kvPrefix'>;

/** What Consul's own variables say; they fill what the file leaves open and never switch the block on. */
function consulVariables(env: LoadOptions['env'], section: CheckedFile['consul']): { read: ConsulDefaults; faults: ConfigFault[] } {
  const get = (name: string): string | null => env[name] || null;
  const faults: ConfigFault[] = [];
  const ssl = /^(1|t|true)$/i.test(get('CONSUL_HTTP_SSL') ?? '');
  const spelled = get('CONSUL_HTTP_ADDR') ?? '127.0.0.1:8500';
  const address = values.httpUrl(spelled.includes('://') ? spelled : `${ssl ? 'https' : 'http'}://${spelled}`);
  if (address.kind === 'misfit' && !section?.address) {
    faults.push(fromOutside('env CONSUL_HTTP_ADDR', 'consul.address', address.message));
  }
  return {
    read: {
      address: address.kind === 'value' ? address.value : '',
      token: get('CONSUL_HTTP_TOKEN'),
      tokenFile: get('CONSUL_HTTP_TOKEN_FILE'),
      caFile: get('CONSUL_CACERT'),
      certFile: get('CONSUL_CLIENT_CERT'),
      keyFile: get('CONSUL_CLIENT_KEY'),
      tlsServerName: get('CONSUL_TLS_SERVER_NAME'),
      namespace: get('CONSUL_NAMESPACE'),
      datacenter: get('CONSUL_DATACENTER'),
    },
    faults,
  };
}

function toConfig(file: CheckedFile, consul: ConsulDefaults, secret: string, folder: string | null): PointsmanConfig {
  const absolute = (path: string): string => (folder === null ? path : resolve(folder, path));
  return {
    sentinel: file.sentinel === undefined ? null : { config: absolute(file.sentinel.config), identity: file.sentinel.identity },
    route: {
      allowLoopback: file.route?.['allow-loopback'] ?? false,
      isolationAfterMs: file.route?.['isolation-after'] ?? null,
      addressMap: file.route?.['address-map'] ?? [],
    },
    dns: file.dns === undefined ? null : toDns(file.dns, absolute, secret),
    consul: file.consul === undefined ? null : toConsul(file.consul, consul, absolute),
    hooks: (file.hooks ?? []).map(({ timeout, limits, ...hook }) => ({ ...hook, timeoutMs: timeout, limits: Object.fromEntries(limits) })),
    vip: (file.vip ?? []).map(({ 'when-isolated': whenIsolated, ...vip }) => ({ ...vip, whenIsolated })),
    admin: file.admin ?? null,
    journal: file.journal === undefined
      ? null
      : { path: absolute(file.journal.path), maxBytes: file.journal['max-size'], keep: file.journal.keep },
    log: file.log ?? { level: 'info', format: 'json' },
  };
}

function toDns(dns: NonNullable<CheckedFile['dns']>, absolute: (path: string) => string, secret: string): DnsSection {
  const { transfer, 'rate-limit': limit } = dns;
  return {
    listen: dns.listen,
    zone: dns.zone,
    ttlSeconds: dns.ttl,
    negativeTtlSeconds: dns['negative-ttl'],
    ns: dns.ns.map(([name, addresses]) => ({ name, addresses })),
    whenIsolated: dns['when-isolated'],
    replicaFallback: dns['replica-fallback'],
    labels: Object.fromEntries(dns.labels),
    transfer: transfer === undefined ? null : {
      allow: transfer.allow,
      notify: transfer.notify,
      tsig: transfer.tsig === undefined ? null : {
        name: transfer.tsig.name,
        algorithm: transfer.tsig.algorithm,
        secretFile: absolute(transfer.tsig['secret-file']),
        secret,
      },
    },
    rateLimit: limit === undefined ? null : { responsesPerSecond: limit['responses-per-second'], slip: limit.slip, exempt: limit.exempt },
    workers: dns.workers,
  };
}

function toConsul(consul: NonNullable<CheckedFile['consul']>, defaults: ConsulDefaults, absolute: (path: string) => string): ConsulSection {
  const fileOf = (path: string | null, fallback: string | null): string | null => (path === null ? fallback : absolute(path));
  return {
    address: consul.address ?? defaults.address,
    mode: consul.mode,
    service: consul.service,
    kvPrefix: consul['kv-prefix'],
    token: consul['token-file'] === null ? defaults.token : null,
    tokenFile: fileOf(consul['token-file'], defaults.tokenFile),
    caFile: fileOf(consul['ca-file'], defaults.caFile),
    certFile: fileOf(consul['cert-file'], defaults.certFile),
    keyFile: fileOf(consul['key-file'], defaults.keyFile),
    tlsServerName: consul['tls-server-name'] ?? defaults.tlsServerName,
    namespace: consul.namespace ?? defaults.namespace,
    datacenter: consul.datacenter ?? defaults.datacenter,
  };
}
