/**
 * What the tidy tests look at: the files of this repository and what the compiler's own parser sees in them.
 *
 * Pure functions take text, so that each rule can be shown to fail on an example before it judges the real files.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** Every TypeScript file below a folder of the repository, as paths from its root. */
export function typescriptBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .sort();
}

/** Every file that git tracks and that is there. */
export function trackedFiles(): string[] {
  const names = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean);
  return names.filter((name) => existsSync(join(ROOT, name)));
}

export interface Import {
  readonly from: string;
  /** Only types come through: nothing is loaded at run time. */
  readonly typesOnly: boolean;
}

const parse = (text: string): ts.SourceFile => ts.createSourceFile('x.ts', text, ts.ScriptTarget.Latest, true);

function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  ts.forEachChild(node, (child) => visit(child, see));
}

/** All imports of a file: static, re-exported and dynamic. */
export function importsOf(text: string): Import[] {
  const found: Import[] = [];
  const add = (specifier: ts.Node | undefined, typesOnly: boolean): void => {
    if (specifier && ts.isStringLiteral(specifier)) found.push({ from: specifier.text, typesOnly });
  };
  visit(parse(text), (node) => {
    if (ts.isImportDeclaration(node)) {
      const named = node.importClause?.namedBindings;
      const allTypes = named !== undefined && ts.isNamedImports(named) && named.elements.every((each) => each.isTypeOnly);
      add(node.moduleSpecifier, node.importClause?.isTypeOnly === true || (allTypes && node.importClause?.name === undefined));
    } else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly);
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) add(node.arguments[0], false);
  });
  return found;
}

export interface FunctionSize {
  readonly name: string;
  readonly line: number;
  /** Lines that are neither blank nor comment. */
  readonly lines: number;
}

const isDescribe = (node: ts.Node): boolean => ts.isCallExpression(node.parent) && /^describe\b/.test(node.parent.expression.getText());

/** Every function with a body, but for the callbacks of `describe`, which are chapters rather than functions. */
export function functionsOf(text: string): FunctionSize[] {
  const source = parse(text);
  const sizes: FunctionSize[] = [];
  visit(source, (node) => {
    if (!ts.isFunctionLike(node) || !('body' in node) || node.body === undefined || isDescribe(node)) return;
    const code = node.getText(source).replace(/\/\*[\s\S]*?\*\//g, '').split('\n').filter((line) => !/^\s*(\/\/.*)?$/.test(line));
    const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
    sizes.push({ name: node.name?.getText(source) ?? 'anonymous', line, lines: code.length });
  });
  return sizes;
}

/** The names a file declares: what its reader has to remember. */
export function declaredNames(text: string): string[] {
  const names: string[] = [];
  visit(parse(text), (node) => {
    if (ts.isVariableDeclaration(node) || ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node)
      || ts.isTypeAliasDeclaration(node) || ts.isMethodDeclaration(node)) {
      if (node.name && ts.isIdentifier(node.name)) names.push(node.name.text);
    }
  });
  return names;
}
