/**
 * What has to be found out outside before a command may enter the core, which knows neither files nor DNS.
 *
 * The runtime asks here, looks, and only then hands the command over: names go into `hostIps` as `resolved` inputs, scripts
 * that can't be run into CommandFacts. Too many questions do no harm: a command that asks in vain is refused anyway.
 */
import { isIpAddress } from '../../wire/ip.js';

export interface OutsideQuestions {
  /** Host names to look up (with resolve-hostnames yes only). */
  readonly hosts: readonly string[];
  /** Script paths to test for existence and the right to execute. */
  readonly scripts: readonly string[];
}

const NOTHING: OutsideQuestions = { hosts: [], scripts: [] };

/** The questions behind SENTINEL MONITOR and SENTINEL SET; none for every other command. */
export function outsideQuestions(argv: readonly string[]): OutsideQuestions {
  const [command = '', subcommand = ''] = argv.slice(0, 2).map((word) => word.toLowerCase());
  if (command !== 'sentinel') return NOTHING;
  switch (subcommand) {
    case 'monitor':
      return { ...NOTHING, hosts: argv.filter((word, at) => at === 3 && argv.length === 6 && word !== '' && !isIpAddress(word)) };
    case 'set':
      return { ...NOTHING, scripts: argv.filter((word, at) => at > 3 && word !== '' && isScriptOption(argv[at - 1])) };
    default:
      return NOTHING;
  }
}

const isScriptOption = (word = ''): boolean => /^(?:notification|client-reconfig)-script$/i.test(word);
