/**
 * The sentinel, as the rest of the program sees it: the pure core's entry points and views.
 */
export { step, nextDeadline } from './core/step.js';
export { createState, configLines } from './core/load.js';
export type { Birth } from './core/load.js';
export { describe } from './core/describe.js';
export { LIMITS } from './core/limits.js';
export type { Effect, EventLevel } from './core/effect.js';
export type { Input, ReplyTag } from './core/input.js';
export type { Instance, LogLevelName, Master, NodeAddress, Peer, Replica, SentinelState } from './core/state.js';
export { announcedHost, currentMasterAddress, isDisconnected, promotedReplica } from './core/state.js';
export { whyNotEligible } from './core/promotion.js';
export type { MissingRules } from './runtime/rule-check.js';
