/**
 * Everything that can happen to a sentinel. One value per fact; the runtime and the simulator make them, `step` consumes them.
 */
import type { Millis } from '../../time.js';
import type { RespValue } from '../wire/resp-value.js';
import type { CommandFacts } from './commands/outcome.js';
import type { ConnectionId, InstanceRef } from './state.js';

/** Which question a reply answers; travels with the command (effect `send`) and comes back with the reply. */
export type ReplyTag =
  | { readonly kind: 'ignored' }
  | { readonly kind: 'ping'; readonly instance: InstanceRef }
  | { readonly kind: 'info'; readonly instance: InstanceRef; readonly askedMs: Millis }
  | { readonly kind: 'publish'; readonly instance: InstanceRef }
  | { readonly kind: 'role'; readonly instance: InstanceRef }
  | { readonly kind: 'subscribe'; readonly instance: InstanceRef }
  | { readonly kind: 'masterDown'; readonly instance: InstanceRef; readonly askedMs: Millis }
  /** Silent failover: does the peer know it, and does it see the target down? */
  | { readonly kind: 'silentAware'; readonly instance: InstanceRef }
  | { readonly kind: 'targetDown'; readonly instance: InstanceRef; readonly askedMs: Millis }
  /** EXEC of a forced resync that was sent at `sentMs`. */
  | { readonly kind: 'resynced'; readonly instance: InstanceRef; readonly sentMs: Millis }
  /** CLIENT PAUSE for `ms`, sent at `sentMs`. */
  | { readonly kind: 'paused'; readonly instance: InstanceRef; readonly sentMs: Millis; readonly ms: number };

export type Input =
  /** Once, after the state was loaded. */
  | { readonly kind: 'start' }
  /** The deadline that `nextDeadline` asked for has come. */
  | { readonly kind: 'wake' }
  /** TCP (and TLS) is up; `localIp` is this end. */
  | { readonly kind: 'connectionUp'; readonly connection: ConnectionId; readonly localIp: string }
  /** Refused, reset, closed or never up. */
  | { readonly kind: 'connectionDown'; readonly connection: ConnectionId; readonly reason: string }
  | { readonly kind: 'reply'; readonly connection: ConnectionId; readonly tag: ReplyTag; readonly reply: RespValue }
  /** A message on a pub/sub connection. */
  | { readonly kind: 'message'; readonly connection: ConnectionId; readonly channel: string; readonly payload: string }
  /** PUBLISH of a hello on our own port, by a peer or anyone. */
  | { readonly kind: 'hello'; readonly payload: string }
  /** `argv` is the whole command: SENTINEL …, ROLE or PUBLISH (commands/index.ts); `facts` is what had to be found out outside. */
  | { readonly kind: 'command'; readonly client: number; readonly argv: readonly string[]; readonly facts?: CommandFacts }
  /** A look-up ended; `ip` null = the name has no address now. */
  | { readonly kind: 'resolved'; readonly host: string; readonly ip: string | null }
  /** A script failed for good (stock's -script-error) or ran too long (-script-timeout). */
  | { readonly kind: 'scriptFailed'; readonly path: string; readonly signal: number; readonly exitCode: number }
  | { readonly kind: 'scriptTimeout'; readonly path: string; readonly pid: number };
