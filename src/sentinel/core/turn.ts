/**
 * One turn of the core: the state, the time, and the list of effects that grows while the turn lasts.
 *
 * The small verbs here are the only way in which the rest of the core speaks to the outside.
 */
import type { Millis } from '../../time.js';
import type { NamedInstance } from '../wire/event-text.js';
import { eventPayload } from '../wire/event-text.js';
import type { Effect, EventLevel } from './effect.js';
import type { Instance, LogLevelName, Master, SentinelState } from './state.js';
import { announcedHost } from './state.js';

export interface Turn {
  readonly state: SentinelState;
  readonly now: Millis;
  readonly effects: Effect[];
}

/** The master that an instance belongs to (itself for a master); undefined when it was removed meanwhile. */
export function masterOf(state: Readonly<SentinelState>, instance: Readonly<Instance>): Master | undefined {
  return instance.kind === 'master' ? state.masters.get(instance.name) : state.masters.get(instance.master);
}

/** The name an instance carries in events and replies: the master's name, `host:port`, or the run id. */
export function nameOf(instance: Readonly<Instance>): string {
  switch (instance.kind) {
    case 'master':
      return instance.name;
    case 'replica':
      return instance.key;
    case 'sentinel':
      return instance.runId;
  }
}

/** `master mymaster 127.0.0.1 6379` or `slave … @ mymaster 127.0.0.1 6379`, and a suffix (sentinelEvent's `%@`). */
export function describeInstance(state: Readonly<SentinelState>, instance: Readonly<Instance>, suffix = ''): string {
  const master = masterOf(state, instance);
  const shown = (node: Readonly<Instance>): NamedInstance => ({
    name: nameOf(node),
    address: { host: announcedHost(state.settings, node.address), port: node.address.port },
  });
  if (instance.kind === 'master' || master === undefined) return eventPayload({ kind: 'master', ...shown(instance) }, suffix);
  return eventPayload({ kind: instance.kind, ...shown(instance), master: shown(master) }, suffix);
}

/** Publishes and logs an event about an instance; a `warning` also runs the master's notification-script. */
export function announce(turn: Turn, level: EventLevel, name: string, instance: Readonly<Instance>, suffix = ''): void {
  announceText(turn, level, name, describeInstance(turn.state, instance, suffix), instance);
}

/** The same for a payload that doesn't begin with an instance; `about` says whose notification-script runs, if any. */
export function announceText(turn: Turn, level: EventLevel, name: string, payload: string, about: Readonly<Instance> | null): void {
  turn.effects.push({ kind: 'event', name, payload, level });
  if (level !== 'warning' || about === null) return;
  const path = masterOf(turn.state, about)?.notificationScript ?? null;
  if (path !== null) turn.effects.push({ kind: 'notify', path, event: name, payload });
}

export function log(turn: Turn, level: Exclude<LogLevelName, 'nothing'>, text: string): void {
  turn.effects.push({ kind: 'log', level, text });
}

/** Everything emitted after this waits until the state, as it is now or later, is on disk. */
export function persist(turn: Turn): void {
  turn.effects.push({ kind: 'persist' });
}

/** The master has to be looked at before the turn ends. */
export function touch(turn: Turn, master: string): void {
  turn.state.touched.add(master);
}
