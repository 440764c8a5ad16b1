/**
 * sentinel.conf text to settings, masters and faults.
 *
 * Three passes as in loadSentinelConfigFromQueue, so that the order of lines is free: global settings, monitors, the rest.
 * Unlike the server, which stops at the first, all faults come at once, in file order and in the server's words.
 * What each `sentinel` line means is in conf-statements.ts; this file reads lines, follows includes and keeps order.
 */
import { whyNotDirective } from './conf-directives.js';
import { applyStatement, createSettings, forgetUnique, passOf, uniqueKeyOf } from './conf-statements.js';
import type { ConfGlobals, ConfMaster } from './conf-statements.js';
import { splitArgs, trimLine } from './conf-tokens.js';

/** A line that is refused (fault) or accepted with a remark (warning). */
export interface ConfFault {
  readonly path: string;
  /** From 1. */
  readonly line: number;
  /** The trimmed line; secrets in it are masked (Divergence D22: stock prints them to stderr and so into logs). */
  readonly source: string;
  readonly message: string;
}

/** How to reach beyond the text at hand. */
export interface LoadOptions {
  /** Name of the file in faults. */
  readonly path: string;
  /** The text of an included file, by the name as written; null when it cannot be read. */
  readInclude(path: string): string | null;
}

/** Everything the file says. With faults the rest is what could be understood, fit for `check` but not for a start. */
export interface LoadedConf {
  readonly globals: ConfGlobals;
  readonly masters: readonly ConfMaster[];
  /** Every directive but `sentinel`: lower-cased name → argument lists in file order, includes in place. */
  readonly server: ReadonlyMap<string, readonly (readonly string[])[]>;
  readonly faults: readonly ConfFault[];
  readonly warnings: readonly ConfFault[];
}

/** A line with its place. `order` counts over all files, so that faults of the three passes sort back into reading order. */
interface Line {
  readonly path: string;
  readonly number: number;
  readonly text: string;
  readonly order: number;
  readonly isIncluded: boolean;
}

type Remark = ConfFault & { readonly order: number };

/** Longest chain of includes; the server has no limit and dies of a loop. */
const MAX_INCLUDE_DEPTH = 16;

/** Loads the text of a configuration file. Reads nothing itself and never throws. */
export function loadSentinelConf(text: string, options: LoadOptions): LoadedConf {
  const reader = new LineReader(options);
  reader.read(text, options.path, 0);
  const settings = createSettings();
  const { faults, warnings, statements, server } = reader;
  // Divergence D26: what is rewritten is the main file, so its statements count over those of its includes, wherever they stand.
  const ordered = [...statements.filter(({ line }) => line.isIncluded), ...statements.filter(({ line }) => !line.isIncluded)];
  for (const pass of [1, 2, 3]) {
    for (const { args, line } of ordered) {
      if (passOf(args) !== pass) continue;
      const unique = uniqueKeyOf(args);
      if (line.isIncluded && unique !== '') settings.included.add(unique);
      else if (settings.included.delete(unique)) forgetUnique(settings, args);
      const outcome = applyStatement(settings, args);
      if (outcome.kind !== 'applied') (outcome.kind === 'refused' ? faults : warnings).push(remark(line, outcome.message));
    }
  }
  const masters = [...settings.masters.values()];
  return { globals: settings.globals, masters, server, faults: inOrder(faults), warnings: inOrder(warnings) };
}

function inOrder(remarks: Remark[]): ConfFault[] {
  return remarks.sort((a, b) => a.order - b.order).map(({ path, line, source, message }) => ({ path, line, source, message }));
}

/** The first half: files to server directives (kept) and sentinel statements (queued). */
class LineReader {
  readonly faults: Remark[] = [];
  readonly warnings: Remark[] = [];
  readonly statements: { readonly args: readonly string[]; readonly line: Line }[] = [];
  readonly server = new Map<string, (readonly string[])[]>();
  readonly #options: LoadOptions;
  #order = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  read(text: string, path: string, depth: number): void {
    for (const [index, raw] of text.split('\n').entries()) {
      const line = { path, number: index + 1, text: trimLine(raw), order: this.#order++, isIncluded: depth > 0 };
      if (line.text !== '' && !line.text.startsWith('#')) this.#readLine(line, depth);
    }
  }

  #readLine(line: Line, depth: number): void {
    const args = splitArgs(line.text);
    if (args === null) return this.#fault(line, 'Unbalanced quotes in configuration line');
    const [word = '', ...rest] = args;
    const name = word.toLowerCase();
    if (name === 'sentinel') {
      // A bare `sentinel` only says which mode is meant.
      if (rest.length > 0) this.statements.push({ args: rest, line });
      return;
    }
    const reason = whyNotDirective(name, rest.length);
    if (reason === 'unknown') this.warnings.push(remark(line, `unknown directive '${name}' is kept but has no effect`));
    else if (reason !== null) return this.#fault(line, reason);
    const earlier = this.server.get(name);
    if (earlier === undefined) this.server.set(name, [rest]);
    else earlier.push(rest);
    if (name === 'include') this.#include(line, rest[0] ?? '', depth + 1);
  }

  #include(line: Line, path: string, depth: number): void {
    if (depth > MAX_INCLUDE_DEPTH) return this.#fault(line, `includes are nested deeper than ${MAX_INCLUDE_DEPTH}`);
    const text = this.#options.readInclude(path);
    if (text === null) return this.#fault(line, `Fatal error, can't open config file '${path}'`);
    this.read(text, path, depth);
  }

  #fault(line: Line, message: string): void {
    this.faults.push(remark(line, message));
  }
}

function remark(line: Line, message: string): Remark {
  return { path: line.path, line: line.number, source: maskSecrets(line.text), message, order: line.order };
}

const SECRET = new RegExp(
  '^((?:sentinel\\s+(?:auth-pass\\s+\\S+|sentinel-pass)|requirepass|masterauth|primaryauth|user\\s+\\S+|tls-\\S*key-file-pass)\\s+)\\S.*$',
  'i',
);

/** The line without what only its owner should read. */
function maskSecrets(text: string): string {
  return text.replace(SECRET, '$1***');
}
