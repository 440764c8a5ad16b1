/**
 * `pointsman check`: every fault of both files at once; nothing is started, nothing is written.
 */
import { EXIT } from '../errors.js';
import { loadBoth, loadSentinel } from './load-files.js';

/** Prints to stdout (`ok`) or stderr (one line per fault); resolves to the exit status. */
export function check(yamlPath: string | null, sentinelPath: string | null): number {
  const { faults, warnings } = sentinelPath === null ? loadBoth(yamlPath) : loadSentinel(sentinelPath);
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  if (faults.length > 0) {
    process.stderr.write(`${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}\n`);
    return EXIT.badConfig;
  }
  process.stdout.write('ok\n');
  return EXIT.ok;
}
