/**
 * CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR: settings without effect, since a sentinel has no keys to track.
 *
 * Kept faithful (clientCommand in networking.c) because client libraries switch tracking on at connect and read it back.
 */
import type { RespValue } from '../../wire/resp-value.js';
import { OK, array, bulk, bulks, error, integer, map } from '../../wire/resp-value.js';
import type { Client } from './client.js';
import { integerOf } from './replies.js';

export interface Tracking {
  readonly on: boolean;
  readonly mode: 'default' | 'bcast' | 'optin' | 'optout';
  readonly noLoop: boolean;
  /** Client that gets the notices; 0: this one. */
  readonly redirect: number;
  readonly prefixes: readonly string[];
  readonly caching: boolean;
}

export const NO_TRACKING: Tracking = { on: false, mode: 'default', noLoop: false, redirect: 0, prefixes: [], caching: false };

interface Options {
  bcast: boolean;
  optin: boolean;
  optout: boolean;
  noLoop: boolean;
  redirect: number;
  prefixes: string[];
}

/** CLIENT TRACKING ON|OFF [option ...] */
export function setTracking(client: Client, argv: readonly string[], exists: (id: number) => boolean): RespValue {
  const options = readOptions(argv.slice(3), exists);
  if (typeof options === 'string') return error(`ERR ${options}`);
  const { bcast, optin, optout, noLoop, redirect, prefixes } = options;
  switch (argv[2]?.toLowerCase()) {
    case 'off':
      client.tracking = NO_TRACKING;
      return OK;
    case 'on': {
      const fault = whyNot(client.tracking, options);
      if (fault !== null) return error(`ERR ${fault}`);
      const mode = bcast ? 'bcast' : optin ? 'optin' : optout ? 'optout' : 'default';
      const kept = bcast ? [...client.tracking.prefixes, ...prefixes] : [];
      client.tracking = { on: true, mode, noLoop, redirect, prefixes: bcast && kept.length === 0 ? [''] : kept, caching: false };
      return OK;
    }
    default:
      return error('ERR syntax error');
  }
}

function readOptions(words: readonly string[], exists: (id: number) => boolean): Options | string {
  const options: Options = { bcast: false, optin: false, optout: false, noLoop: false, redirect: 0, prefixes: [] };
  for (let at = 0; at < words.length; at++) {
    const value = words[at + 1];
    switch (words[at]?.toLowerCase()) {
      case 'bcast':
        options.bcast = true;
        break;
      case 'optin':
        options.optin = true;
        break;
      case 'optout':
        options.optout = true;
        break;
      case 'noloop':
        options.noLoop = true;
        break;
      case 'redirect': {
        if (value === undefined) return 'syntax error';
        if (options.redirect !== 0) return 'A client can only redirect to a single other client';
        const id = integerOf(value);
        if (id === null) return 'value is not an integer or out of range';
        if (!exists(id)) return 'The client ID you want redirect to does not exist';
        options.redirect = id;
        at++;
        break;
      }
      case 'prefix':
        if (value === undefined) return 'syntax error';
        options.prefixes.push(value);
        at++;
        break;
      default:
        return 'syntax error';
    }
  }
  return options;
}

function whyNot(before: Tracking, options: Options): string | null {
  const { bcast, optin, optout, prefixes } = options;
  if (!bcast && prefixes.length > 0) return 'PREFIX option requires BCAST mode to be enabled';
  if (before.on && (before.mode === 'bcast') !== bcast) {
    return "You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.";
  }
  if (bcast && (optin || optout)) return 'OPTIN and OPTOUT are not compatible with BCAST';
  if (optin && optout) return "You can't specify both OPTIN mode and OPTOUT mode";
  if ((optin && before.mode === 'optout') || (optout && before.mode === 'optin')) {
    return "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.";
  }
  for (const [index, prefix] of prefixes.entries()) {
    const known = before.prefixes.find((other) => overlap(other, prefix));
    if (known !== undefined) {
      return `Prefix '${prefix}' overlaps with an existing prefix '${known}'. Prefixes for a single client must not overlap.`;
    }
    const other = prefixes.slice(index + 1).find((each) => overlap(each, prefix));
    if (other !== undefined) {
      return `Prefix '${prefix}' overlaps with another provided prefix '${other}'. Prefixes for a single client must not overlap.`;
    }
  }
  return null;
}

const overlap = (a: string, b: string): boolean => a.startsWith(b) || b.startsWith(a);

/** CLIENT CACHING YES|NO */
export function setCaching(client: Client, word: string): RespValue {
  const { on, mode } = client.tracking;
  if (!on || (mode !== 'optin' && mode !== 'optout')) {
    return error('ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled');
  }
  const wanted = word.toLowerCase();
  if (wanted !== 'yes' && wanted !== 'no') return error('ERR syntax error');
  const needed = wanted === 'yes' ? 'optin' : 'optout';
  if (mode !== needed) {
    return error(`ERR CLIENT CACHING ${wanted.toUpperCase()} is only valid when tracking is enabled in ${needed.toUpperCase()} mode.`);
  }
  client.tracking = { ...client.tracking, caching: true };
  return OK;
}

/** CLIENT GETREDIR */
export function redirection({ on, redirect }: Tracking): number {
  return on ? redirect : -1;
}

/** CLIENT TRACKINGINFO */
export function describeTracking(tracking: Tracking): RespValue {
  const { on, mode, noLoop, caching, prefixes } = tracking;
  const flags = [
    on ? 'on' : 'off',
    ...(mode === 'default' ? [] : [mode]),
    ...(caching ? [mode === 'optin' ? 'caching-yes' : 'caching-no'] : []),
    ...(noLoop ? ['noloop'] : []),
  ];
  return map([
    [bulk('flags'), { kind: 'set', items: flags.map(bulk) }],
    [bulk('redirect'), integer(redirection(tracking))],
    [bulk('prefixes'), prefixes.length === 0 ? array([]) : bulks(prefixes)],
  ]);
}
