/**
 * Domain names as bytes (RFC 1035 3.1: length-prefixed labels, closed by the root) and as text, and the labels of masters.
 *
 * The zone keeps names lower-cased, since names match without case (RFC 4343); answers repeat the asker's own spelling. The
 * rule from a master's name to its label is in {@link masterLabel}; {@link labelFaults} finds the names that it cannot serve.
 */
import { must } from '../assert.js';

/** Longest name on the wire, root label included. */
export const MAX_NAME_BYTES = 255;
/** Longest label, length byte not counted. */
export const MAX_LABEL_BYTES = 63;
/** The longest owner below a master's label: `_redis._tcp.replica`, or `n-` with a full IPv6 address. */
const MAX_PREFIX_BYTES = 42;

/** Byte to byte, A-Z to a-z. Length bytes are at most 63, below 'A', so a whole wire name may go through it. */
export const LOWER_CASE: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte));

/** A wire name with every letter lower-cased. */
export function lowerCaseName(name: Buffer): Buffer {
  return Buffer.from(name.map((byte) => LOWER_CASE[byte] ?? 0));
}

/** Reads presentation format (RFC 1035 5.1, with `\.` and `\DDD`); always absolute, with or without the last dot. Null = no name. */
export function parseName(text: string): Buffer | null {
  if (text === '.') return Buffer.from([0]);
  const labels: number[][] = [[]];
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (text[at] === '.') {
      labels.push([]);
    } else if (text[at] === '\\') {
      const escape = /^(?:(\d{3})|([\x20-\x2f\x3a-\x7e]))/.exec(text.slice(at + 1));
      const byte = escape?.[1] !== undefined ? Number(escape[1]) : escape?.[2]?.charCodeAt(0);
      if (escape === null || byte === undefined || byte > 255) return null;
      labels.at(-1)?.push(byte);
      at += escape[0].length;
    } else if (char <= 0x20 || char >= 0x7f) {
      return null;
    } else {
      labels.at(-1)?.push(char);
    }
  }
  if (labels.at(-1)?.length === 0) labels.pop();
  if (labels.length === 0 || labels.some((label) => label.length === 0 || label.length > MAX_LABEL_BYTES)) return null;
  const name = Buffer.from([...labels.flatMap((label) => [label.length, ...label]), 0]);
  return name.length <= MAX_NAME_BYTES ? name : null;
}

/** {@link parseName} for names that the program itself makes, lower-cased. */
export function knownName(text: string): Buffer {
  return lowerCaseName(must(parseName(text), `"${text}" is no domain name`));
}

/** Presentation format with the last dot; anything but letters, digits, `-` and `_` is escaped. */
export function formatName(name: Buffer): string {
  let text = '';
  for (let at = 0; at < name.length && name[at] !== 0; at += 1 + (name[at] ?? 0)) {
    for (const byte of name.subarray(at + 1, at + 1 + (name[at] ?? 0))) text += formatByte(byte);
    text += '.';
  }
  return text === '' ? '.' : text;
}

function formatByte(byte: number): string {
  const char = String.fromCharCode(byte);
  if (/[A-Za-z0-9_-]/.test(char)) return char;
  return byte > 0x20 && byte < 0x7f ? `\\${char}` : `\\${String(byte).padStart(3, '0')}`;
}

/** The labels of a wire name as text, root excluded. Only for names made of letters, digits, `-` and `_`. */
export function labelsOf(name: Buffer): string[] {
  return formatName(name).split('.').filter((label) => label !== '');
}

/** Whether `name` is `origin` or below it; both lower-cased. */
export function isBelow(name: Buffer, origin: Buffer): boolean {
  for (let at = 0; name.length - at >= origin.length; at += 1 + (name[at] ?? 0)) {
    if (name.length - at === origin.length) return name.subarray(at).equals(origin);
  }
  return false;
}

/** One label on the wire, without the root: length byte and lower-cased text. */
export function wireLabel(label: string): Buffer {
  return Buffer.concat([Buffer.from([label.length]), Buffer.from(label.toLowerCase(), 'latin1')]);
}

/**
 * The label of a master: its name in lower case, each `_` and `.` made a `-`.
 *
 * Null when the result is no host name label (RFC 1123: letters, digits and inner hyphens, 1 to 63 of them); such a master
 * needs an entry in `labels` before DNS can carry it.
 */
export function masterLabel(master: string): string | null {
  return asHostLabel(master.toLowerCase().replace(/[_.]/g, '-'));
}

function asHostLabel(text: string): string | null {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text) ? text : null;
}

/** The label that serves `master`: the operator's own one where there is one, else by {@link masterLabel}. */
export function labelFor(master: string, overrides: ReadonlyMap<string, string>): string | null {
  const override = overrides.get(master);
  return override === undefined ? masterLabel(master) : asHostLabel(override.toLowerCase());
}

/** What {@link labelFaults} must know of the zone: its origin and the names of its own servers. */
export interface LabelSpace {
  readonly origin: string;
  readonly ns: readonly { readonly name: string }[];
}

/** Every reason why the zone cannot carry these masters side by side; each names the masters that it concerns. */
export function labelFaults(masters: readonly string[], overrides: ReadonlyMap<string, string>, zone: LabelSpace): string[] {
  const faults: string[] = [];
  const takenBy = reservedLabels(zone);
  const room = MAX_NAME_BYTES - (parseName(zone.origin)?.length ?? 1) - MAX_PREFIX_BYTES;
  for (const master of new Set(masters)) {
    const label = labelFor(master, overrides);
    if (label === null) {
      const reason = `"${overrides.get(master) ?? master}" makes no dns label (letters, digits and inner hyphens, at most 63)`;
      faults.push(`master "${master}": ${reason}; give it a label of its own`);
      continue;
    }
    const holder = takenBy.get(label);
    if (holder !== undefined) faults.push(`master "${master}" and ${holder} share the dns label "${label}"; give one a label of its own`);
    else takenBy.set(label, `master "${master}"`);
    if (label.length + 1 > room) faults.push(`master "${master}": dns names below "${label}.${zone.origin}" are longer than 255 bytes`);
  }
  return faults;
}

/** The labels right below the origin that name servers of the zone itself occupy. */
function reservedLabels(zone: LabelSpace): Map<string, string> {
  const taken = new Map<string, string>();
  const origin = parseName(zone.origin);
  if (origin === null) return taken;
  const depth = labelsOf(origin).length;
  for (const { name } of zone.ns) {
    const wire = parseName(name);
    if (wire === null || !isBelow(lowerCaseName(wire), lowerCaseName(origin))) continue;
    const label = labelsOf(lowerCaseName(wire)).at(-depth - 1);
    if (label !== undefined) taken.set(label, `name server "${name}"`);
  }
  return taken;
}
