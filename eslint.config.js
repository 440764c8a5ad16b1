// Lint rules that matter here: promises, exhaustive switches, sizes, and the purity of the core and the codecs.
// Taste is left to the reader. Which files are pure is said once, in test/tidy/layers.json, for this file and the tidy tests.
import { readFileSync } from 'node:fs';
import tseslint from 'typescript-eslint';

const layers = JSON.parse(readFileSync(new URL('test/tidy/layers.json', import.meta.url), 'utf8'));
const pure = layers.pure.map((glob) => `src/${glob}`);
const impureDns = layers.layers.find((layer) => layer.name === 'dns-transport').files.map((glob) => `src/${glob}`);
const tests = ['test/**/*.ts', 'bench/**/*.ts'];

const sizes = {
  'max-lines': ['error', { max: 500 }],
  'max-lines-per-function': ['error', { max: 70, skipBlankLines: true, skipComments: true }],
  'max-len': ['error', { code: 170, tabWidth: 2 }],
};
const noEnum = { selector: 'TSEnumDeclaration', message: 'use a union of string literals' };
const noExit = { object: 'process', property: 'exit', message: 'only src/main.ts ends the process; throw a FatalError' };
const impure = [
  'Date', 'process', 'setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'fetch', 'console', 'performance', 'crypto',
].map((name) => ({ name, message: 'this layer is pure: time and randomness are arguments' }));

export default tseslint.config(
  { ignores: ['dist/', 'dist.*.tmp/', 'node_modules/', 'coverage/'] },
  {
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: { 'no-empty': 'error', eqeqeq: ['error', 'always', { null: 'ignore' }], 'no-var': 'error', 'prefer-const': 'error' },
  },
  { files: ['src/**/*.ts', '**/*.mjs', '*.js'], rules: sizes },
  { files: tests, rules: { ...sizes, 'max-lines-per-function': 'off' } },
  {
    files: ['src/**/*.ts', ...tests],
    languageOptions: { parser: tseslint.parser, parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { '@typescript-eslint': tseslint.plugin },
    rules: {
      'no-restricted-syntax': ['error', noEnum],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/only-throw-error': 'error',
    },
  },
  { files: ['src/**/*.ts'], ignores: ['src/main.ts'], rules: { 'no-restricted-properties': ['error', noExit] } },
  {
    files: pure,
    ignores: impureDns,
    rules: {
      'no-restricted-globals': ['error', ...impure],
      'no-restricted-imports': ['error', { patterns: [{ group: ['node:*'], message: 'this layer is pure: no IO' }] }],
      'no-restricted-properties': ['error', noExit, { object: 'Math', property: 'random', message: 'use the seeded generator (prng.ts)' }],
    },
  },
);
