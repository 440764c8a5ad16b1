/**
 * Reads both files for the verbs that need them; every fault of both at once, in the form people see.
 */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { PointsmanConfig } from '../config/config.js';
import { formatFaults } from '../config/fault.js';
import { loadConfig } from '../config/load.js';
import { DnsPublisher } from '../publishers/dns-publisher.js';
import { EXIT, FatalError, messageOf } from '../errors.js';
import type { ConfFile } from '../sentinel/runtime/conf-file.js';
import { formatConfFaults, readConfFile } from '../sentinel/runtime/conf-file.js';
import { zoneSettingsOf } from '../dns-wiring.js';
import { faultsOfHooks } from '../hooks-wiring.js';
import { judgeVips } from '../vip-wiring.js';
import { millis } from '../time.js';

export interface LoadedFiles {
  readonly config: PointsmanConfig | null;
  readonly file: ConfFile | null;
  /** One line each; empty = both files are fine. */
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
}

/** `run` and `check`: pointsman.yaml and the sentinel.conf that it names. */
export function loadBoth(yamlPath: string | null, flags: Readonly<Record<string, string>> = {}): LoadedFiles {
  const loaded = loadConfig({ path: yamlPath, env: process.env, read: (path) => readFileSync(path, 'utf8'), flags });
  if (loaded.kind === 'faults') return { config: null, file: null, faults: formatFaults(loaded.faults).split('\n'), warnings: [] };
  const { config } = loaded;
  const warnings = loaded.warnings.length === 0 ? [] : formatFaults(loaded.warnings).split('\n');
  if (config.sentinel === null) {
    return { config, file: null, faults: [`${yamlPath ?? 'configuration'} sentinel.config: missing, name the sentinel.conf to run`], warnings };
  }
  const path = yamlPath === null ? config.sentinel.config : resolve(dirname(yamlPath), config.sentinel.config);
  const sentinel = loadSentinel(path);
  const vips = judgeVips(config.vip, sentinel.file?.conf.masters ?? []);
  const faults = [...sentinel.faults, ...zoneFaultsOf(config, sentinel.file), ...faultsOfHooks(config.hooks), ...vips.faults];
  return { config, file: sentinel.file, faults, warnings: [...warnings, ...sentinel.warnings, ...vips.warnings] };
}

/** `sentinel`: the stock file alone, with the command line's overrides. */
export function loadSentinel(path: string, overrides: readonly string[] = []): LoadedFiles {
  const file = readConfFile(path, overrides);
  const lines = (text: string): string[] => (text === '' ? [] : text.split('\n'));
  return { config: null, file, faults: lines(formatConfFaults(file.faults)), warnings: lines(formatConfFaults(file.conf.warnings)) };
}

/** Master names that the zone can't carry, and faults of the zone itself: known only when both files are read. */
function zoneFaultsOf(config: PointsmanConfig, file: ConfFile | null): string[] {
  if (config.dns === null || file === null) return [];
  try {
    const masters = file.conf.masters.map((master) => master.name);
    const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
    new DnsPublisher({ settings: zoneSettingsOf(config.dns, config.route.allowLoopback), masters, listeners: () => [], clock: () => millis(0), log });
    return [];
  } catch (fault) {
    return messageOf(fault).split('; ').map((text) => `dns: ${text}`);
  }
}

const ignore = (): void => undefined;

/** Ends the program with every fault on its own line. Nothing wrong but that the state can't be kept has a status of its own. */
export function refuseFaults(faults: readonly string[], file: ConfFile | null = null): never {
  const isOnlyUnwritable = file !== null && file.writeFault !== null && file.faults.length === 1;
  if (isOnlyUnwritable) throw new FatalError('STATE_UNWRITABLE', faults.join('\n'), EXIT.stateUnwritable);
  throw new FatalError('CONFIG_INVALID', faults.join('\n'), EXIT.badConfig);
}
