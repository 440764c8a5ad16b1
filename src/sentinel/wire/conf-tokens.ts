/**
 * One line to arguments and back, by the server's quoting rules (sdssplitargs and sdscatrepr in sds.c).
 *
 * Shared by sentinel.conf and inline requests. Double quotes know `\n \r \t \a \b \xHH` and backslash as itself for any
 * other character; single quotes know only `\'`; a closing quote must end its argument. Vertical tab and form feed are
 * blanks between arguments, but do not end a bare one.
 */

const BLANK = /[ \t\n\v\f\r]/;
const END_OF_BARE = /[ \t\n\r]/;
const NAMED_ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' };

/** The arguments of a line; `[]` for an empty one, null for unbalanced quotes. */
export function splitArgs(line: string): string[] | null {
  // Without quotes and odd blanks, as nearly all lines are, an argument is what stands between blanks.
  if (!/["'\v\f]/.test(line)) return line.match(/[^ \t\n\r]+/g) ?? [];
  const args: string[] = [];
  let at = 0;
  for (;;) {
    while (at < line.length && BLANK.test(line.charAt(at))) at++;
    if (at >= line.length) return args;
    let arg = '';
    while (at < line.length && !END_OF_BARE.test(line.charAt(at))) {
      const char = line.charAt(at);
      if (char !== '"' && char !== "'") {
        arg += char;
        at++;
        continue;
      }
      const quoted = char === '"' ? readDoubleQuoted(line, at + 1) : readSingleQuoted(line, at + 1);
      if (quoted === null || (quoted.end < line.length && !BLANK.test(line.charAt(quoted.end)))) return null;
      arg += quoted.text;
      at = quoted.end;
      break;
    }
    args.push(arg);
  }
}

/** `text` as one argument, in quotes only where it would not survive without; {@link splitArgs} gives it back. */
export function quoteArg(text: string): string {
  return /^[^\x00-\x20"'\x7f]+$/.test(text) ? text : quoteAlways(text);
}

/** `text` in double quotes. Characters beyond ASCII stay as they are, so that people can read their own names. */
export function quoteAlways(text: string): string {
  return `"${text.replace(/[\x00-\x1f"\\\x7f]/g, escapeChar)}"`;
}

/** A line as the server sees it: blanks, tabs and line ends cut on both sides. */
export function trimLine(raw: string): string {
  return raw.replace(/^[ \t\r\n]+/, '').replace(/[ \t\r\n]+$/, '');
}

interface Quoted {
  readonly text: string;
  /** Index behind the closing quote. */
  readonly end: number;
}

function readDoubleQuoted(line: string, from: number): Quoted | null {
  let text = '';
  for (let at = from; at < line.length; ) {
    const char = line.charAt(at);
    if (char === '"') return { text, end: at + 1 };
    const bytes = char === '\\' ? readHexRun(line, at) : null;
    if (bytes !== null) {
      text += bytes.text;
      at = bytes.end;
    } else if (char === '\\' && at + 1 < line.length) {
      const escaped = line.charAt(at + 1);
      text += NAMED_ESCAPES[escaped] ?? escaped;
      at += 2;
    } else {
      text += char;
      at++;
    }
  }
  return null;
}

function readSingleQuoted(line: string, from: number): Quoted | null {
  let text = '';
  for (let at = from; at < line.length; at++) {
    const char = line.charAt(at);
    if (char === "'") return { text, end: at + 1 };
    if (char === '\\' && line.charAt(at + 1) === "'") at++;
    text += line.charAt(at);
  }
  return null;
}

/** Neighbouring `\xHH` are the bytes of one UTF-8 text: the server escapes every byte beyond ASCII on its own. */
function readHexRun(line: string, from: number): Quoted | null {
  const run = /(?:\\x[0-9a-fA-F]{2})+/y;
  run.lastIndex = from;
  const match = run.exec(line)?.[0];
  if (match === undefined) return null;
  const bytes = Uint8Array.from(match.slice(2).split('\\x'), (pair) => Number.parseInt(pair, 16));
  return { text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes), end: from + match.length };
}

function escapeChar(char: string): string {
  if (char === '"' || char === '\\') return `\\${char}`;
  const name = Object.keys(NAMED_ESCAPES).find((key) => NAMED_ESCAPES[key] === char);
  return name === undefined ? `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}` : `\\${name}`;
}
