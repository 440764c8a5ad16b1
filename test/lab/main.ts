/**
 * npm run chaos -- [--seed N] [--minutes M] [--layout together|apart] [--down-after 3s] [--only KIND,…] [--lossy] [--json] [--keep]
 *
 * Real redis-servers, agents and clients in network namespaces, broken in drawn ways. Exit status: 0 good, 1 a fault was found or
 * the run was interrupted, 64 bad options, 69 this machine can't.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { duration } from '../../src/config/values.js';
import { EXIT, FatalError, messageOf } from '../../src/errors.js';
import { ROOT } from '../tidy/sources.js';
import { ChaosRun } from './chaos-run.js';
import { Network, whyNoNamespaces } from './network.js';
import { FAULT_KINDS, type FaultKind } from './plan.js';
import { showReport, type ChaosReport } from './report.js';
import { drawSettings, showSettings, type ChaosSettings, type Layout } from './settings.js';
import { Site, hostsOf } from './site.js';

interface Options {
  readonly settings: ChaosSettings;
  readonly isJson: boolean;
  readonly keepsLogs: boolean;
}

const refuse = (message: string): FatalError => new FatalError('CONFIG_INVALID', message, EXIT.usage);

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' }, minutes: { type: 'string', default: '3' }, layout: { type: 'string' }, 'down-after': { type: 'string' },
      only: { type: 'string' }, lossy: { type: 'boolean', default: false }, json: { type: 'boolean', default: false }, keep: { type: 'boolean', default: false },
    },
  });
  const seed = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(values.seed);
  if (!Number.isSafeInteger(seed) || seed < 0) throw refuse(`--seed: bad number ${JSON.stringify(values.seed)}, expected 0 or more`);
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= 24 * 60)) throw refuse(`--minutes: bad number ${JSON.stringify(values.minutes)}, expected more than 0, at most 1440`);
  if (values.layout !== undefined && values.layout !== 'together' && values.layout !== 'apart') {
    throw refuse(`--layout: bad value ${JSON.stringify(values.layout)}, expected together or apart`);
  }
  const downAfter = values['down-after'] === undefined ? undefined : duration(values['down-after']);
  if (downAfter?.kind === 'misfit') throw refuse(`--down-after: ${downAfter.message}`);
  const settings = drawSettings({
    seed, minutes, isLossy: values.lossy, ...(values.only !== undefined && { only: readKinds(values.only) }),
    ...(values.layout !== undefined && { layout: values.layout as Layout }), ...(downAfter !== undefined && { downAfterMs: downAfter.value }),
  });
  return { settings, isJson: values.json, keepsLogs: values.keep };
}

function readKinds(text: string): FaultKind[] {
  return text.split(',').map((word) => {
    const kind = FAULT_KINDS.find((each) => each === word);
    if (kind === undefined) throw refuse(`--only: bad value ${JSON.stringify(word)}, expected some of ${FAULT_KINDS.join(', ')}`);
    return kind;
  });
}

/** Everything that was started is ended, however this ends. */
async function play({ settings, isJson, keepsLogs }: Options): Promise<number> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort(new Error('interrupted'));
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt).on('SIGHUP', interrupt);
  const print = (text: string): void => void (isJson ? process.stderr : process.stdout).write(`${text}\n`);
  print(showSettings(settings));
  const unable = whyNoNamespaces();
  if (unable !== null) throw new FatalError('SETUP_MISSING', unable, EXIT.missingTool);
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-chaos-'));
  let network: Network | null = null;
  let site: Site | null = null;
  let report: ChaosReport | null = null;
  try {
    network = await Network.create(hostsOf(settings.layout).all);
    site = new Site(settings, network, folder, join(ROOT, 'dist', 'main.js'));
    await site.start();
    report = await new ChaosRun(settings, site, print).play(stop.signal);
    process.stdout.write(isJson ? `${JSON.stringify(report)}\n` : `\n${showReport(report)}\n`);
  } catch (error) {
    if (error instanceof FatalError) throw error;
    process.stderr.write(`${stop.signal.aborted ? 'interrupted' : `the run failed: ${messageOf(error)}`}\n`);
  } finally {
    await site?.children.endAll();
    await network?.remove();
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt).off('SIGHUP', interrupt);
    const isClean = report?.isOk === true || (report === null && stop.signal.aborted);
    if (isClean && !keepsLogs) rmSync(folder, { recursive: true, force: true });
    else process.stderr.write(`the logs of all processes are in ${folder}\n`);
  }
  return report?.isOk === true ? EXIT.ok : EXIT.failed;
}

let exitCode: number = EXIT.usage;
try {
  exitCode = await play(readOptions());
} catch (error) {
  process.stderr.write(`chaos: ${messageOf(error)}\n`);
  if (error instanceof FatalError) exitCode = error.exitCode;
}
// Steps of an interrupted run still wait for something; what they start meanwhile dies with this process.
process.stdout.write('', () => process.exit(exitCode));
