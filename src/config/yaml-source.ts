/**
 * Text of pointsman.yaml → raw values, and for any setting the line and column where it stands.
 *
 * YAML 1.2: `on` and `yes` are words and `5353:1` is text. Duplicate keys, blocks as keys, a second document, tabs, unknown tags
 * and unknown aliases are faults here; what the values mean is the schema's business.
 */
import { LineCounter, isAlias, isMap, isNode, isPair, isScalar, isSeq, parseDocument, visit } from 'yaml';
import type { Document, Pair } from 'yaml';
import { messageOf } from '../errors.js';
import { show } from './fault.js';
import type { ConfigFault } from './fault.js';

export interface YamlSource {
  /** null when the text is no yaml; then `faults` says why. */
  readonly raw: unknown;
  readonly faults: readonly ConfigFault[];
  /** Where the value at `path` stands, or its key, or the nearest block around it that exists. */
  locate(path: readonly PropertyKey[], what: 'key' | 'value'): { readonly line: number; readonly column: number };
}

/** Parses `text`, which was read from `file`. */
export function parseYaml(file: string, text: string): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const position = (offset: number) => ({ line: lines.linePos(offset).line, column: lines.linePos(offset).col });
  const fault = (offset: number, message: string): ConfigFault => ({ file, ...position(offset), path: '', message });
  const faults = document.errors.map((error) => fault(error.pos[0], explain(error.code, error.message, text.slice(error.pos[0]))));
  for (const warning of document.warnings) faults.push(fault(warning.pos[0], lowerFirst(warning.message)));
  faults.push(...danglingAliases(document).map(({ offset, name }) => fault(offset, `unknown alias "*${name}"`)));
  faults.push(...blockKeys(document).map((offset) => fault(offset, 'a key that is no word')));

  // After a duplicate key alone the rest still has a meaning and is checked too; after a syntax error it would be guesswork.
  const onlyTwins = document.errors.every((error) => error.code === 'DUPLICATE_KEY') && faults.length === document.errors.length;
  let raw: unknown = null;
  try {
    if (onlyTwins) raw = document.toJS({ maxAliasCount: 100 }) as unknown;
  } catch (error) {
    faults.push(fault(0, lowerFirst(messageOf(error))));
  }
  return { raw, faults, locate: (path, what) => position(offsetOf(document, path, what)) };
}

function explain(code: string, message: string, source: string): string {
  if (code === 'DUPLICATE_KEY') return `duplicate key ${show(/^["']?([^\s:"']+)/.exec(source)?.[1] ?? '')}`;
  if (code === 'MULTIPLE_DOCS') return 'a second document, expected one';
  return `bad yaml: ${lowerFirst(message)}`;
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

function danglingAliases(document: Document): { offset: number; name: string }[] {
  const dangling: { offset: number; name: string }[] = [];
  visit(document, {
    Alias: (_, alias) => {
      if (alias.resolve(document) === undefined) dangling.push({ offset: alias.range?.[0] ?? 0, name: alias.source });
    },
  });
  return dangling;
}

/** The yaml package would make some text of them, with a warning of its own on stderr. */
function blockKeys(document: Document): number[] {
  const offsets: number[] = [];
  visit(document, {
    Pair: (_, { key }) => {
      const meant = isAlias(key) ? key.resolve(document) : key;
      const isWord = isScalar(meant) && (typeof meant.value !== 'object' || meant.value === null);
      if (isNode(key) && meant !== undefined && !isWord) offsets.push(key.range?.[0] ?? 0);
    },
  });
  return offsets;
}

/** Walks down as far as the path exists; an alias is followed to what it stands for. */
function offsetOf(document: Document, path: readonly PropertyKey[], what: 'key' | 'value'): number {
  let node: unknown = document.contents;
  let offset = isNode(node) ? (node.range?.[0] ?? 0) : 0;
  for (const [depth, step] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    const last = depth === path.length - 1;
    if (isMap(node)) {
      // Of two equal keys the last one's value counts, as in `raw`.
      const pair = node.items.findLast((item): item is Pair => isPair(item) && isScalar(item.key) && String(item.key.value) === String(step));
      if (pair === undefined) return offset;
      const keyOffset = isNode(pair.key) ? (pair.key.range?.[0] ?? offset) : offset;
      node = pair.value;
      // A missing setting is reported where its block begins: at the block's key, not at the first setting inside it.
      offset = last && what === 'value' && isNode(node) && !isMap(node) && !isSeq(node) ? (node.range?.[0] ?? keyOffset) : keyOffset;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      if (!isNode(node)) return offset;
      offset = node.range?.[0] ?? offset;
    } else return offset;
  }
  return offset;
}
