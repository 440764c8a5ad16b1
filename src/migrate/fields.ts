/**
 * Replies of Redis and sentinels as maps of texts. Pure.
 */

/** `name:value` lines of INFO. */
export function infoFields(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0 && !line.startsWith('#')) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}

/** A flat list of names and values; anything else is an empty map. */
export function pairsOf(reply: unknown): ReadonlyMap<string, string> {
  const texts = Array.isArray(reply) ? reply.map(String) : [];
  return new Map(texts.flatMap((text, index) => (index % 2 === 0 ? [[text, texts[index + 1] ?? ''] as const] : [])));
}

/** A list of such lists. */
export const mapsOf = (reply: unknown): ReadonlyMap<string, string>[] => (Array.isArray(reply) ? reply.map(pairsOf) : []);

/** A whole number, or `otherwise`. */
export function numberIn(fields: ReadonlyMap<string, string>, name: string, otherwise = 0): number {
  const value = Number(fields.get(name));
  return fields.has(name) && Number.isFinite(value) ? value : otherwise;
}

/** INFO commandstats: executions of the commands that are named in `writes`. */
export function countWrites(commandstats: string, writes: ReadonlySet<string>): number {
  let sum = 0;
  for (const [name, value] of infoFields(commandstats)) {
    const command = /^cmdstat_([^|]+)/.exec(name)?.[1];
    if (command !== undefined && writes.has(command)) sum += Number(/calls=(\d+)/.exec(value)?.[1] ?? 0);
  }
  return sum;
}

/** `7.0.15` and `6.2.0` as numbers that compare: -1, 0, 1. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split('.').map((part) => Number.parseInt(part, 10) || 0));
  for (let at = 0; at < 3; at++) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return Math.sign(difference);
  }
  return 0;
}
