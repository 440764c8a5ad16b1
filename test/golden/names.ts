/**
 * Names for everything that has an address or a run id in a golden conversation: m1 the first master, r1… its replicas,
 * s1… the sentinels. Texts are shown with names, so that a reader never meets an address.
 */
import { must } from '../../src/assert.js';
import type { Address } from '../../src/sentinel/wire/address.js';

export const MASTER_NAME = 'mymaster';
const MAX_SENTINELS = 9;

/** Where a name lives. Node 1 is m1, node n + 1 is rn. */
export function addressOf(name: string): Address {
  const match = must(/^([mrs])(\d+)$/.exec(name), `${name} is no name: m1, r1, s1 …`);
  const number = Number(match[2]);
  if (match[1] === 's') return { host: `10.0.0.${number}`, port: 26379 };
  return { host: `10.1.0.${match[1] === 'm' ? 1 : number + 1}`, port: 6379 };
}

/** The run id of a sentinel, there or not. */
export function runIdOf(name: string): string {
  const digit = must(/^s([1-9])$/.exec(name), `${name} is no sentinel: s1 … s${MAX_SENTINELS}`)[1];
  return `${digit}`.repeat(40);
}

function nodeName(number: string): string {
  return number === '1' ? 'm1' : `r${Number(number) - 1}`;
}

/** A text with names instead of addresses and run ids; `r1 r1` (name and address of one replica) shrinks to `r1`. */
export function withNames(text: string): string {
  return text
    .replace(/\b10\.1\.0\.(\d+)[: ,]6379\b/g, (_, number: string) => nodeName(number))
    .replace(/\b10\.1\.0\.(\d+)\b/g, (_, number: string) => nodeName(number))
    .replace(/\b10\.0\.0\.(\d+)[: ,]26379\b/g, 's$1')
    .replace(/\bip 10\.0\.0\.(\d+) port 26379\b/g, 'at s$1')
    .replace(/\b(\d)\1{39}\b/g, 's$1')
    .replace(/\b(\d)\1{7}\b/g, 's$1')
    .replace(/\b([mrs]\d) \1\b/g, '$1');
}
