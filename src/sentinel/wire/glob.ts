/**
 * Glob patterns of RESET, CONFIG GET and PSUBSCRIBE.
 *
 * Same verdicts as stringmatchlen in util.c, byte by byte: `*`, `?`, `[abc]`, `[a-z]` (either order), `[^a]`, backslash
 * for the next byte; an unclosed class ends with the pattern, and no pattern but the empty one matches the empty text.
 * Only the last `*` is ever tried again, so the cost is at most pattern times text.
 */

const STAR = 0x2a;
const QUESTION = 0x3f;
const OPEN = 0x5b;
const CLOSE = 0x5d;
const CARET = 0x5e;
const DASH = 0x2d;
const BACKSLASH = 0x5c;

/** How {@link globMatch} compares. */
export interface GlobOptions {
  /** Compare ASCII letters without case. */
  readonly nocase?: boolean;
}

/** Whether the whole `text` matches `pattern`. */
export function globMatch(pattern: string, text: string, options: GlobOptions = {}): boolean {
  const glob = toBytes(pattern, options);
  const bytes = toBytes(text, options);
  if (bytes.length === 0) return glob.length === 0;
  let at = 0;
  let from = 0;
  let starAt = -1;
  let starFrom = 0;
  while (from < bytes.length) {
    if (glob[at] === STAR) {
      starAt = at++;
      starFrom = from;
      continue;
    }
    const next = at < glob.length ? matchOne(glob, at, bytes[from] ?? 0) : -1;
    if (next >= 0) {
      at = next;
      from++;
    } else if (starAt >= 0) {
      // The last star takes one byte more; an earlier one never has to, since the rest can be matched as far left as it goes.
      at = starAt + 1;
      from = ++starFrom;
    } else {
      return false;
    }
  }
  while (glob[at] === STAR) at++;
  return at === glob.length;
}

/** Index behind the element at `at` if it matches `byte`, else -1. */
function matchOne(glob: Uint8Array, at: number, byte: number): number {
  const first = glob[at];
  if (first === QUESTION) return at + 1;
  if (first === OPEN) return matchClass(glob, at + 1, byte);
  const literal = first === BACKSLASH && at + 1 < glob.length ? at + 1 : at;
  return glob[literal] === byte ? literal + 1 : -1;
}

function matchClass(glob: Uint8Array, start: number, byte: number): number {
  const negated = glob[start] === CARET;
  let matched = false;
  let at = negated ? start + 1 : start;
  while (at < glob.length && glob[at] !== CLOSE) {
    if (glob[at] === BACKSLASH && at + 1 < glob.length) {
      matched ||= glob[at + 1] === byte;
      at += 2;
    } else if (glob[at + 1] === DASH && at + 2 < glob.length) {
      const [low, high] = [glob[at] ?? 0, glob[at + 2] ?? 0].sort((a, b) => a - b);
      matched ||= byte >= (low ?? 0) && byte <= (high ?? 0);
      at += 3;
    } else {
      matched ||= glob[at] === byte;
      at++;
    }
  }
  return matched === negated ? -1 : Math.min(at + 1, glob.length);
}

function toBytes(text: string, { nocase = false }: GlobOptions): Uint8Array {
  return new TextEncoder().encode(nocase ? text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) : text);
}
