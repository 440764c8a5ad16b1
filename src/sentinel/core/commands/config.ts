/**
 * SENTINEL CONFIG GET and SET: settings of this process, in the form of Redis 7.2 and later (6.8).
 *
 * GET takes many globs and names each option once; SET takes many pairs, checks them all and only then applies them.
 * Mirrors sentinelConfigGetCommand and sentinelConfigSetCommand.
 */
import { globMatch } from '../../wire/glob.js';
import type { ServerIdentity } from '../../wire/identity.js';
import { isIn } from '../../wire/identity.js';
import { bulkMap } from '../../wire/resp-value.js';
import { restartLink } from '../instance.js';
import type { LogLevelName, Settings } from '../state.js';
import type { Turn } from '../turn.js';
import { touch } from '../turn.js';
import { strictInteger } from './integer.js';
import type { Outcome } from './outcome.js';
import { refuse, reply, savedOk } from './outcome.js';

type Assign = (settings: Settings) => void;

interface Option {
  read(settings: Readonly<Settings>): string;
  /** What SET would do; null for a bad value. */
  parse(text: string): Assign | null;
  /** Peers must authenticate anew after a change. */
  readonly peersReconnect?: true;
}

type TextKey = 'announceIp' | 'sentinelUser' | 'sentinelPass';

const yesNoOption = (key: 'resolveHostnames' | 'announceHostnames'): Option => ({
  read: (settings) => (settings[key] ? 'yes' : 'no'),
  parse(text) {
    const value = /^(?:(yes)|no)$/i.exec(text);
    return value === null ? null : (settings) => void (settings[key] = value[1] !== undefined);
  },
});

/** Divergence D25: an empty announce-ip means none, as for the others; stock then sends hellos without an address. */
const textOption = (key: TextKey): Option => ({
  read: (settings) => settings[key] ?? '',
  parse: (text) => (settings) => void (settings[key] = text === '' ? null : text),
});

const announcePort: Option = {
  read: (settings) => String(settings.announcePort),
  parse(text) {
    const port = strictInteger(text, 0, 65_535);
    return port === null ? null : (settings) => void (settings.announcePort = port);
  },
};

const LOG_LEVELS: readonly LogLevelName[] = ['debug', 'verbose', 'notice', 'warning', 'nothing'];

const logLevel: Option = {
  read: (settings) => settings.logLevel,
  parse(text) {
    const level = LOG_LEVELS.find((name) => name === text.toLowerCase());
    return level === undefined ? null : (settings) => void (settings.logLevel = level);
  },
};

/** In the order of GET's reply. */
const OPTIONS: ReadonlyMap<string, Option> = new Map<string, Option>([
  ['resolve-hostnames', yesNoOption('resolveHostnames')],
  ['announce-hostnames', yesNoOption('announceHostnames')],
  ['announce-ip', textOption('announceIp')],
  ['announce-port', announcePort],
  ['sentinel-user', { ...textOption('sentinelUser'), peersReconnect: true }],
  ['sentinel-pass', { ...textOption('sentinelPass'), peersReconnect: true }],
  ['loglevel', logLevel],
]);

/** The wording changed twice without a reason of its own. */
function usage(identity: ServerIdentity): Outcome {
  if (!isIn(identity, '7.2.0')) return refuse('ERR Only SENTINEL CONFIG GET <option> / SET <option> <value> are supported.');
  const gap = identity.product === 'valkey' || isIn(identity, '7.4.0') ? ' ' : '';
  return refuse(`ERR Only SENTINEL CONFIG GET <param> [<param> <param> ...]${gap}/ SET <param> <value> [<param> <value> ...] are supported.`);
}

export function config(turn: Turn, [verb = '', ...args]: readonly string[]): Outcome {
  if (verb.toLowerCase() === 'get') return get(turn, args);
  if (verb.toLowerCase() === 'set' && args.length >= 2) return set(turn, args);
  return usage(turn.state.settings.identity);
}

function get(turn: Turn, patterns: readonly string[]): Outcome {
  const named = new Map<string, string>();
  for (const pattern of patterns) {
    for (const [name, option] of OPTIONS) {
      if (!named.has(name) && globMatch(pattern, name, { nocase: true })) named.set(name, option.read(turn.state.settings));
    }
  }
  return reply(bulkMap([...named]));
}

function set(turn: Turn, args: readonly string[]): Outcome {
  const changes = new Map<Option, Assign>();
  for (let at = 0; at < args.length; at += 2) {
    const [word = '', value] = args.slice(at, at + 2);
    const option = OPTIONS.get(word.toLowerCase());
    if (option === undefined) return refuse(`ERR Invalid argument '${word}' to SENTINEL CONFIG SET`);
    if (changes.has(option)) return refuse(`ERR Duplicate argument '${word}' to SENTINEL CONFIG SET`);
    if (value === undefined) return refuse(`ERR Missing argument '${word}' value`);
    const assign = option.parse(value);
    if (assign === null) return refuse(`ERR Invalid value '${value}' to SENTINEL CONFIG SET '${word}'`);
    changes.set(option, assign);
  }
  for (const assign of changes.values()) assign(turn.state.settings);
  if ([...changes.keys()].some((option) => option.peersReconnect === true)) dropPeers(turn);
  return savedOk();
}

function dropPeers(turn: Turn): void {
  for (const master of turn.state.masters.values()) {
    for (const peer of master.peers.values()) restartLink(turn, peer.link);
    touch(turn, master.name);
  }
}
