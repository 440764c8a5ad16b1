/** A sentinel at 100 seconds that monitors `mymaster` with two replicas and two peers, all connected and freshly read. */
import type { CommandFacts } from '../../../../../src/sentinel/core/commands/outcome.js';
import { executeCommand } from '../../../../../src/sentinel/core/commands/index.js';
import type { Effect } from '../../../../../src/sentinel/core/effect.js';
import { createMaster, createPeer, createReplica, instancesOf, openConnection } from '../../../../../src/sentinel/core/instance.js';
import { createState } from '../../../../../src/sentinel/core/load.js';
import type { Master, NodeAddress, SentinelState } from '../../../../../src/sentinel/core/state.js';
import { splitArgs, loadSentinelConf } from '../../../../../src/sentinel/wire/sentinel-conf.js';
import type { RespValue } from '../../../../../src/sentinel/wire/resp-value.js';
import { must } from '../../../../../src/assert.js';
import { addMs, millis } from '../../../../../src/time.js';

export const NOW = millis(100_000);
export const MY_ID = 'f'.repeat(40);
export const PEERS = ['a'.repeat(40), 'b'.repeat(40)] as const;

export const at = (host: string, port: number): NodeAddress => ({ host, ip: host, port });

export interface World {
  readonly state: SentinelState;
  readonly master: Master;
}

/** A sentinel without masters. */
export function emptyState(): SentinelState {
  const conf = loadSentinelConf('sentinel deny-scripts-reconfig no\n', { path: 'sentinel.conf', readInclude: () => null });
  return createState({ conf, freshId: MY_ID, seed: 1, now: NOW });
}

export function world(): World {
  const state = emptyState();
  const master = addMaster(state, 'mymaster', at('10.0.0.1', 6379));
  for (const host of ['10.0.0.2', '10.0.0.3']) {
    const replica = must(createReplica(state, master, at(host, 6379), NOW), 'replica');
    Object.assign(replica, { infoRefreshMs: NOW, infoText: `# ${host}`, masterLinkUp: true, masterHost: '10.0.0.1', masterPort: 6379 });
  }
  for (const [index, runId] of PEERS.entries()) createPeer(state, master, runId, at(`10.0.1.${index + 2}`, 26379), NOW);
  for (const instance of instancesOf(master)) connect(state, instance);
  return { state, master };
}

export function addMaster(state: SentinelState, name: string, address: NodeAddress): Master {
  return createMaster(state, { name, address, quorum: 2 }, NOW);
}

function connect(state: SentinelState, instance: Parameters<typeof openConnection>[1]): void {
  const turn = { state, now: NOW, effects: [] };
  openConnection(turn, instance, 'command');
  if (instance.kind !== 'sentinel') openConnection(turn, instance, 'pubsub');
  instance.link.pending = 0;
  instance.link.actPingMs = null;
}

/** What a client types and sees: `+simple`, `-error`, numbers, strings, null, arrays; a map is an array of pairs. */
export type Plain = string | number | null | readonly Plain[];

export function plain(value: RespValue): Plain {
  switch (value.kind) {
    case 'simple':
      return `+${value.text}`;
    case 'error':
      return `-${value.text}`;
    case 'integer':
      return value.value;
    case 'bulk':
      return value.text;
    case 'null':
    case 'nullArray':
      return null;
    case 'map':
      return value.entries.map((entry) => entry.map(plain));
    default:
      return value.items.map(plain);
  }
}

export interface Asked {
  readonly reply: Plain;
  readonly ifNotSaved: Plain | undefined;
  /** `persist`, `reply`, `+event payload`, `close`, …: the order of what was emitted. */
  readonly trace: readonly string[];
}

export interface AskOptions {
  readonly facts?: CommandFacts;
  /** Milliseconds after {@link NOW}. */
  readonly afterMs?: number;
}

/** Runs a command line with the quoting of the server's own files. */
export function ask(state: SentinelState, line: string, { facts, afterMs = 0 }: AskOptions = {}): Asked {
  const effects: Effect[] = [];
  executeCommand({ state, now: addMs(NOW, afterMs), effects }, 7, must(splitArgs(line), line), facts);
  const replies = effects.filter((effect) => effect.kind === 'reply');
  const [answer] = replies;
  if (answer === undefined || replies.length !== 1 || answer.client !== 7) throw new Error(`not one reply to client 7: ${line}`);
  return { reply: plain(answer.value), ifNotSaved: answer.ifNotSaved && plain(answer.ifNotSaved), trace: effects.map(traceOf) };
}

function traceOf(effect: Effect): string {
  switch (effect.kind) {
    case 'event':
      return `${effect.name} ${effect.payload}`;
    case 'log':
      return `log ${effect.level} ${effect.text}`;
    case 'resolve':
      return `resolve ${effect.host}`;
    default:
      return effect.kind;
  }
}

export const SAVE_ERROR = '-ERR Failed to save config file. Check server logs.';
