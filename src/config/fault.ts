/**
 * Faults of pointsman.yaml and of the environment: plain values, collected, never thrown.
 *
 * A user mends a file once when all faults come at once; each names where it stands, the setting, and the value that was bad.
 */

/** One thing that is wrong (or, as a warning, without effect). */
export interface ConfigFault {
  /** The file as it was named on the command line, or `env NAME`, or `flag`. */
  readonly file: string;
  /** From 1; 0 where there is no line (environment, flag, unreadable file). */
  readonly line: number;
  /** From 1; 0 where there is no line. */
  readonly column: number;
  /** `dns.listen[0]`; empty for the file as a whole. */
  readonly path: string;
  /** Lower case, names the value: `bad duration "1 sec", expected e.g. 250ms, 1s, 2m`. */
  readonly message: string;
}

/** One line per fault: `pointsman.yaml:12:5 dns.ttl: bad duration …`. */
export function formatFaults(faults: readonly ConfigFault[]): string {
  return faults.map(formatFault).join('\n');
}

function formatFault({ file, line, column, path, message }: ConfigFault): string {
  const place = line > 0 ? `${file}:${line}:${column}` : file;
  return path === '' ? `${place} ${message}` : `${place} ${path}: ${message}`;
}

/** `['dns', 'listen', 0]` → `dns.listen[0]`; a key that is no plain word is quoted. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    const word = String(key);
    if (!/^[\w-]+$/.test(word)) return `${text}[${JSON.stringify(word)}]`;
    return text === '' ? word : `${text}.${word}`;
  }, '');
}

/** A value as a message shows it: text quoted, a whole block only by its kind. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a block';
  return JSON.stringify(value);
}

/** The candidate that `word` was probably meant to be, or null when none is near. */
export function closest(word: string, candidates: readonly string[]): string | null {
  const limit = Math.max(1, Math.floor(word.length / 3));
  let best: string | null = null;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Insertions, deletions, replacements: one row of the usual table at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
