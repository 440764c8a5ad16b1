#!/usr/bin/env node
/**
 * The command line: verbs, signals, exit statuses. The only file that ends the process.
 */
import { Command, CommanderError } from 'commander';
import { readFileSync } from 'node:fs';
import { check } from './cli/check.js';
import { runDemo } from './cli/demo.js';
import { history } from './cli/history.js';
import { migrate } from './cli/migrate.js';
import type { MigrateOptions } from './cli/migrate.js';
import { publish } from './cli/publish.js';
import { overrideLines, run, runSentinel } from './cli/run.js';
import { status } from './cli/status.js';
import { watch } from './cli/watch.js';
import { AgentError, EXIT, FatalError, messageOf } from './errors.js';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
const CONFIG_OPTION = ['--config <file>', 'pointsman.yaml (default: $POINTSMAN_CONFIG)'] as const;

function configPath(options: { config?: string }): string | null {
  return options.config ?? process.env['POINTSMAN_CONFIG'] ?? null;
}

function buildProgram(end: (status: number) => void): Command {
  const program = new Command('pointsman')
    .description('a complete Redis Sentinel that makes DNS and scripts follow the master')
    .version(version)
    .showHelpAfterError()
    .enablePositionalOptions()
    .exitOverride();
  program
    .command('run')
    .description('run the agent: sentinel, DNS and other outputs')
    .option(...CONFIG_OPTION)
    .option('--log-level <level>', 'trace, debug, info, warn, error')
    .action(async (options: { config?: string; logLevel?: string }) => {
      end(await run(configPath(options), options.logLevel === undefined ? {} : { 'log.level': options.logLevel }));
    });
  program
    .command('sentinel')
    .description('drop-in for redis-sentinel: run from a stock sentinel.conf alone')
    .argument('<sentinel.conf>')
    .argument('[directives...]', 'overrides as redis-sentinel takes them, e.g. --port 26380')
    .allowUnknownOption()
    .passThroughOptions()
    .action(async (path: string, words: string[]) => end(await runSentinel(path, overrideLines(words))));
  program
    .command('check')
    .description('every fault of pointsman.yaml and its sentinel.conf at once; exit 0 ok, 64 bad')
    .option(...CONFIG_OPTION)
    .option('--sentinel <sentinel.conf>', 'check a stock file alone')
    .action((options: { config?: string; sentinel?: string }) => end(check(configPath(options), options.sentinel ?? null)));
  addOutputVerbs(program, end);
  program
    .command('status')
    .description('what the running agent sees and has published')
    .argument('[master]')
    .option(...CONFIG_OPTION)
    .option('--admin <host:port>', "the agent's admin port")
    .option('--json', 'for programs')
    .action(async (master: string | undefined, options: { config?: string; admin?: string; json?: boolean }) => {
      end(await status({ config: configPath(options), admin: options.admin ?? null, master: master ?? null, json: options.json ?? false }));
    });
  addMigrate(program, end);
  program
    .command('demo')
    .description('local Redis 1 + 2, three agents and a ledger client; --once crashes the master and prints what it cost')
    .option('--once', 'kill, wait, restart, print the table and end')
    .option('--json', 'the result as one object')
    .option('--rounds <n>', 'crashes to measure with --once', '1')
    .option('--down-after <duration>', 'down-after-milliseconds of the sentinels', '1000ms')
    .action(async (options: { once?: boolean; json?: boolean; rounds: string; downAfter: string }) => end(await runDemo(options)));
  return program;
}

function addMigrate(program: Command, end: (status: number) => void): void {
  program
    .command('migrate')
    .description('a planned move of a master: plan, drain, switch, verify; or --resume, --abort, --status of one')
    .argument('[master]')
    .option('--to <ip:port>', 'the replica that becomes the master')
    .option('--mode <mode>', 'silent or coordinated', 'silent')
    .option('--barrier', 'silent: hold writes at the old master from the flip on')
    .option('--sentinel <ip:port,...>', 'sentinels of the group, one is enough (default: $POINTSMAN_SENTINELS, else the configuration)')
    .option(...CONFIG_OPTION)
    .option('--dry-run', 'show plan and findings, change nothing')
    .option('--yes', 'do not ask')
    .option('--json', 'one line per step, for programs')
    .option('--wait-sync [duration]', 'wait until the target is in sync (1h)')
    .option('--drain-timeout <duration>', 'how long connections at the old master may take to go', '60s')
    .option('--on-drain-timeout <what>', 'proceed (who is left is cut and told READONLY) or abort (writes of the window are lost)', 'proceed')
    .option('--on-failure <what>', 'a failure in the window, with nobody to ask: abort or done', 'abort')
    .option('--publish-timeout <duration>', 'how long outputs may take to acknowledge', '30s')
    .option('--resync-timeout <duration>', 'how long full copies may take', '1h')
    .option('--journal <file>', 'where the journal is (default: a file per master in the state folder)')
    .option('--resume', 'go on with an interrupted move')
    .option('--abort', 'take an interrupted move back')
    .option('--status', 'show what the journal says')
    .action(async (master: string | undefined, options: MigrateOptions) => end(await migrate(master, options)));
}

function addOutputVerbs(program: Command, end: (status: number) => void): void {
  const adminOption = ['--admin <host:port>', "the agent's admin port"] as const;
  program
    .command('publish')
    .description("look at a master's outputs again; --force overrules a higher order that is published (state `fenced`)")
    .argument('<master>')
    .option(...CONFIG_OPTION)
    .option(...adminOption)
    .option('--force', 'publish what this agent knows, whatever stands there')
    .action(async (master: string, options: { config?: string; admin?: string; force?: boolean }) => {
      end(await publish({ config: configPath(options), admin: options.admin ?? null, master, force: options.force ?? false }));
    });
  program
    .command('watch')
    .description('what happens from now on: sentinel events, changes of masters, results of outputs')
    .argument('[master]')
    .option(...CONFIG_OPTION)
    .option(...adminOption)
    .option('--json', 'a line of JSON each')
    .action(async (master: string | undefined, options: { config?: string; admin?: string; json?: boolean }) => {
      end(await watch({ config: configPath(options), admin: options.admin ?? null, master: master ?? null, json: options.json ?? false }));
    });
  program
    .command('history')
    .description('what happened: the journal, oldest first')
    .argument('[master]')
    .option(...CONFIG_OPTION)
    .option('--journal <file>', "the journal's path (default: journal.path of pointsman.yaml)")
    .option('--last <n>', 'only the last n entries')
    .option('--json', 'a line of JSON each')
    .action(async (master: string | undefined, options: { config?: string; journal?: string; last?: string; json?: boolean }) => {
      const { journal = null, last = null, json = false } = options;
      end(await history({ config: configPath(options), journal, master: master ?? null, last, json }));
    });
}

function exitStatusOf(fault: unknown): number {
  if (fault instanceof CommanderError) return fault.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (fault instanceof FatalError) return fault.exitCode;
  return fault instanceof AgentError ? EXIT.failed : EXIT.bug;
}

function report(fault: unknown): void {
  // commander has said its own message already.
  if (fault instanceof CommanderError) return;
  const text = fault instanceof AgentError || !(fault instanceof Error) ? messageOf(fault) : (fault.stack ?? fault.message);
  process.stderr.write(text.split('\n').map((line) => `pointsman: ${line}\n`).join(''));
}

// A bug anywhere in a running agent: run.ts has dumped the state through its monitor; here the process ends.
process.on('uncaughtException', (fault) => {
  report(fault);
  process.exit(EXIT.bug);
});

try {
  await buildProgram((code) => process.exit(code)).parseAsync();
} catch (fault) {
  report(fault);
  process.exit(exitStatusOf(fault));
}
