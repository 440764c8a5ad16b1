/**
 * Everything a sentinel wants done. The runtime carries effects out in array order.
 *
 * `persist` is a barrier: effects behind it wait until the state is on disk (or the write has failed). So a vote, a hello or
 * `+switch-master` never outruns the file that remembers it.
 */
import type { RespValue } from '../wire/resp-value.js';
import type { ReplyTag } from './input.js';
import type { ChannelKind, ConnectionId, LogLevelName } from './state.js';

export type EventLevel = 'debug' | 'verbose' | 'notice' | 'warning';

export type Effect =
  /** Start a non-blocking connect to `host` (an IP, or a name when look-ups are on). The outcome comes as connectionUp/Down. */
  | { readonly kind: 'connect'; readonly connection: ConnectionId; readonly channel: ChannelKind; readonly host: string; readonly port: number }
  /** Drop the connection; no connectionDown follows. */
  | { readonly kind: 'close'; readonly connection: ConnectionId }
  /** Queue a command; may be sent before the connection is up. The reply comes with the same tag. */
  | { readonly kind: 'send'; readonly connection: ConnectionId; readonly argv: readonly string[]; readonly tag: ReplyTag }
  /** Log, and (unless level is debug) publish to subscribers of channel `name`. */
  | { readonly kind: 'event'; readonly name: string; readonly payload: string; readonly level: EventLevel }
  /** Run a notification-script with the event's name and payload. */
  | { readonly kind: 'notify'; readonly path: string; readonly event: string; readonly payload: string }
  | { readonly kind: 'log'; readonly level: Exclude<LogLevelName, 'nothing'>; readonly text: string }
  | { readonly kind: 'persist' }
  /** `ifNotSaved` replaces `value` when the last persist before it in the same step failed. */
  | { readonly kind: 'reply'; readonly client: number; readonly value: RespValue; readonly ifNotSaved?: RespValue }
  /** Look a host name up; the answer comes as `resolved`. */
  | { readonly kind: 'resolve'; readonly host: string }
  /** SENTINEL SIMULATE-FAILURE: stop the process at once. */
  | { readonly kind: 'exit'; readonly code: number };
