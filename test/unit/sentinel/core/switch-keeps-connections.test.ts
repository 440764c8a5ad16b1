// What happens to connections when the master's address changes (D97), and when one is cut (D99).
import { describe, expect, test } from '@jest/globals';
import { must } from '../../../../src/assert.js';
import type { Effect, SentinelState } from '../../../../src/sentinel/index.js';
import { createState, step } from '../../../../src/sentinel/index.js';
import type { ReplyTag } from '../../../../src/sentinel/core/input.js';
import { formatHello } from '../../../../src/sentinel/wire/hello.js';
import { bulk, simple } from '../../../../src/sentinel/wire/resp-value.js';
import { loadSentinelConf } from '../../../../src/sentinel/wire/sentinel-conf.js';
import { millis } from '../../../../src/time.js';

const START_MS = 1_000_000;
const CONF = [
  'port 26379',
  'sentinel monitor m1 10.0.0.1 6379 2',
  'sentinel known-replica m1 10.0.0.2 6379',
  'sentinel known-replica m1 10.0.0.3 6379',
].join('\n');

type Sent = Extract<Effect, { kind: 'send' }>;

/** A sentinel whose nodes all answer: one of three, the master at .1. */
class Watch {
  readonly state: SentinelState;
  readonly #hosts = new Map<number, string>();
  now = START_MS;

  constructor() {
    const conf = loadSentinelConf(CONF, { path: 'sentinel.conf', readInclude: () => null });
    this.state = createState({ conf, freshId: 'f'.repeat(40), seed: 1, now: millis(this.now) });
    const effects = step(this.state, { kind: 'start' }, millis(this.now));
    this.#note(effects);
    for (const connection of this.#hosts.keys()) this.step({ kind: 'connectionUp', connection, localIp: '10.9.9.9' });
    this.answer(effects.filter((effect) => effect.kind === 'send'));
  }

  step(input: Parameters<typeof step>[1], afterMs = 0): Effect[] {
    this.now += afterMs;
    const effects = step(this.state, input, millis(this.now));
    this.#note(effects);
    return effects;
  }

  answer(sent: readonly Sent[]): void {
    for (const { connection, tag, argv } of sent) {
      if (argv[0] === 'PING') this.step({ kind: 'reply', connection, tag, reply: simple('PONG') });
      if (argv[0] === 'INFO') this.step({ kind: 'reply', connection, tag, reply: bulk(this.#infoOf(this.hostOf(connection))) });
    }
  }

  hostOf(connection: number): string {
    return must(this.#hosts.get(connection), 'a connection that was opened');
  }

  /** A peer tells of a newer configuration, with the master at `host`. */
  switchTo(host: string): Effect[] {
    const payload = formatHello({
      ...{ sentinel: { host: '10.9.9.1', port: 26379 }, runId: 'a'.repeat(40), currentEpoch: 7, masterName: 'm1' },
      ...{ master: { host, port: 6379 }, configEpoch: 7, silent: null },
    });
    return this.step({ kind: 'hello', payload }, 10);
  }

  #note(effects: readonly Effect[]): void {
    for (const effect of effects) if (effect.kind === 'connect') this.#hosts.set(effect.connection, effect.host);
  }

  #infoOf(host: string): string {
    const role = host === '10.0.0.1' ? 'role:master\r\n' : 'role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:up\r\n';
    return `run_id:${host.at(-1)}${'0'.repeat(39)}\r\n${role}`;
  }
}

const toNodes = (effects: readonly Effect[]): Effect[] => effects.filter((effect) => effect.kind !== 'connect' || effect.host.startsWith('10.0.0.'));
const kinds = (effects: readonly Effect[], kind: Effect['kind']): Effect[] => toNodes(effects).filter((effect) => effect.kind === kind);
const sends = (effects: readonly Effect[], word: string): Sent[] => effects.filter((effect) => effect.kind === 'send' && effect.argv[0] === word) as Sent[];

describe('a switch', () => {
  test('keeps the connections of nodes that answer, and asks them at once who they are', () => {
    const watch = new Watch();
    const effects = watch.switchTo('10.0.0.2');
    expect([kinds(effects, 'close'), kinds(effects, 'connect')]).toEqual([[], []]);
    expect(sends(effects, 'INFO').map(({ connection }) => watch.hostOf(connection)).sort()).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3']);
    const { link, replicas } = must(watch.state.masters.get('m1'), 'm1');
    expect(watch.hostOf(must(link.command, 'a link').id)).toBe('10.0.0.2');
    expect(watch.hostOf(must(replicas.get('10.0.0.1:6379')?.link.pubsub, 'a link').id)).toBe('10.0.0.1');
  });

  test('closes the connection to a node that owes an answer, and opens a new one', () => {
    const watch = new Watch();
    const wake = watch.step({ kind: 'wake' }, 1_000);
    watch.answer(sends(wake, 'PING').filter(({ connection }) => watch.hostOf(connection) !== '10.0.0.1'));
    watch.step({ kind: 'wake' }, 400);
    watch.step({ kind: 'wake' }, 400);
    watch.step({ kind: 'wake' }, 400);
    const effects = watch.switchTo('10.0.0.2');
    expect(kinds(effects, 'close').map((effect) => watch.hostOf(effect.kind === 'close' ? effect.connection : 0))).toContain('10.0.0.1');
    expect(kinds(effects, 'connect').map((effect) => effect.kind === 'connect' && effect.host)).toContain('10.0.0.1');
  });

  test('a reply to what was asked before it says nothing about the new record', () => {
    const watch = new Watch();
    const stale = sends(watch.step({ kind: 'wake' }, 10_000), 'INFO');
    const fresh = sends(watch.switchTo('10.0.0.2'), 'INFO');
    const third = (sent: readonly Sent[]): Sent => must(sent.find(({ connection }) => watch.hostOf(connection) === '10.0.0.3'), 'INFO of .3');
    const replica = must(watch.state.masters.get('m1')?.replicas.get('10.0.0.3:6379'), 'replica');
    const before = replica.link.outdated;
    expect(before).toBeGreaterThan(0);
    for (let count = 0; count < before; count++) watch.answer([third(stale)]);
    expect([replica.runId, replica.link.outdated]).toEqual(['', 0]);
    watch.answer([{ ...third(fresh), tag: third(fresh).tag as ReplyTag }]);
    expect(replica.runId).toMatch(/^3/);
  });

  test('no hello waits on the former master, behind its pause, before it has said that it follows', () => {
    const watch = new Watch();
    watch.switchTo('10.0.0.2');
    const told = new Set<string>();
    for (let second = 0; second < 29; second++) {
      const effects = [...watch.step({ kind: 'wake' }, 500), ...watch.step({ kind: 'wake' }, 500)];
      for (const { connection } of sends(effects, 'PUBLISH')) told.add(watch.hostOf(connection));
      watch.answer(effects.filter((effect) => effect.kind === 'send'));
    }
    expect([...told].filter((host) => host.startsWith('10.0.0.')).sort()).toEqual(['10.0.0.2', '10.0.0.3']);
  });
});

describe('a connection that is cut', () => {
  test('is opened again after 100 ms, and its silence counts from the cut', () => {
    const watch = new Watch();
    watch.answer(sends(watch.step({ kind: 'wake' }, 1_500), 'PING'));
    const { link } = must(watch.state.masters.get('m1'), 'm1');
    const cut = watch.step({ kind: 'connectionDown', connection: must(link.command, 'a link').id, reason: 'cut' }, 10);
    expect([kinds(cut, 'connect'), link.actPingMs]).toEqual([[], watch.now]);
    expect(kinds(watch.step({ kind: 'wake' }, 99), 'connect')).toEqual([]);
    expect(kinds(watch.step({ kind: 'wake' }, 1), 'connect')).toHaveLength(1);
  });

  test('and cut again in less than a second waits for the rest of it', () => {
    const watch = new Watch();
    const { link } = must(watch.state.masters.get('m1'), 'm1');
    const cut = (): Effect[] => watch.step({ kind: 'connectionDown', connection: must(link.command, 'a link').id, reason: 'cut' }, 300);
    expect(kinds(cut(), 'connect')).toEqual([]);
    expect(kinds(watch.step({ kind: 'wake' }, 300), 'connect')).toEqual([]);
    expect(kinds(watch.step({ kind: 'wake' }, 400), 'connect')).toHaveLength(1);
  });
});
