/**
 * sentinel.conf, read and written as Redis Sentinel reads and writes it: the one door to the conf-* files.
 *
 * load: text → settings, masters, faults. lines: settings and masters → lines. rewrite: old text + lines → new text.
 */
export { splitArgs, quoteArg } from './conf-tokens.js';
export { loadSentinelConf } from './conf-load.js';
export type { ConfFault, LoadedConf, LoadOptions } from './conf-load.js';
export type { ConfGlobals, ConfMaster, ConfSentinel } from './conf-statements.js';
export { CONF_DEFAULTS, SENTINEL_KEYS, sentinelLines } from './conf-lines.js';
export type { ConfDefaults } from './conf-lines.js';
export { rewriteConf } from './conf-rewrite.js';
export type { ConfLine } from './conf-rewrite.js';
