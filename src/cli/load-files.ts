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
import type { ConfMaster } from '../sentinel/wire/sentinel-conf.js';
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

/** What pointsman.yaml says, and what is wrong with it for the masters that are watched. */
type LoadedYaml = Pick<LoadedFiles, 'config' | 'faults' | 'warnings'>;
type Monitored = Pick<ConfMaster, 'name' | 'host'>;

/** `run` and `check`: pointsman.yaml and the sentinel.conf that it names. */
export function loadBoth(yamlPath: string | null, flags: Readonly<Record<string, string>> = {}): LoadedFiles {
  const yaml = readYaml(yamlPath, flags);
  if (yaml.config === null) return { ...yaml, file: null };
  if (yaml.config.sentinel === null) {
    return { ...yaml, file: null, faults: [`${yamlPath ?? 'configuration'} sentinel.config: missing, name the sentinel.conf to run`] };
  }
  const path = yamlPath === null ? yaml.config.sentinel.config : resolve(dirname(yamlPath), yaml.config.sentinel.config);
  const sentinel = loadSentinel(path);
  const outputs = judgeOutputs(yaml.config, sentinel.file?.conf.masters ?? []);
  return {
    config: yaml.config,
    file: sentinel.file,
    faults: [...sentinel.faults, ...outputs.faults],
    warnings: [...yaml.warnings, ...sentinel.warnings, ...outputs.warnings],
  };
}

/** SIGHUP: pointsman.yaml alone, for the masters that are watched by now. sentinel.conf is ours, and was read at the start. */
export function loadYaml(yamlPath: string | null, flags: Readonly<Record<string, string>>, masters: readonly Monitored[]): LoadedYaml {
  const yaml = readYaml(yamlPath, flags);
  if (yaml.config === null) return yaml;
  const { faults, warnings } = judgeOutputs(yaml.config, masters);
  return { config: yaml.config, faults, warnings: [...yaml.warnings, ...warnings] };
}

function readYaml(path: string | null, flags: Readonly<Record<string, string>>): LoadedYaml {
  const loaded = loadConfig({ path, env: process.env, read: (file) => readFileSync(file, 'utf8'), flags });
  if (loaded.kind === 'faults') return { config: null, faults: formatFaults(loaded.faults).split('\n'), warnings: [] };
  return { config: loaded.config, faults: [], warnings: loaded.warnings.length === 0 ? [] : formatFaults(loaded.warnings).split('\n') };
}

/** What only shows with the masters beside the file. */
function judgeOutputs(config: PointsmanConfig, masters: readonly Monitored[]): Pick<LoadedFiles, 'faults' | 'warnings'> {
  const vips = judgeVips(config.vip, masters);
  return { faults: [...zoneFaultsOf(config, masters), ...faultsOfHooks(config.hooks), ...vips.faults], warnings: vips.warnings };
}

/** `sentinel`: the stock file alone, with the command line's overrides. */
export function loadSentinel(path: string, overrides: readonly string[] = []): LoadedFiles {
  const file = readConfFile(path, overrides);
  const lines = (text: string): string[] => (text === '' ? [] : text.split('\n'));
  return { config: null, file, faults: lines(formatConfFaults(file.faults)), warnings: lines(formatConfFaults(file.conf.warnings)) };
}

/** Master names that the zone can't carry, and faults of the zone itself. */
function zoneFaultsOf(config: PointsmanConfig, monitored: readonly Monitored[]): string[] {
  if (config.dns === null) return [];
  try {
    const masters = monitored.map((master) => master.name);
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
