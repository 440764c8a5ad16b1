/**
 * The simulator's nodes on its virtual clock, without chance: every packet takes a millisecond, every drawn time its longest.
 */
import { must } from '../../../src/assert.js';
import type { RespValue } from '../../../src/sentinel/wire/resp-value.js';
import { EventQueue } from '../../sim/clock.js';
import { Draw } from '../../sim/draw.js';
import type { Socket } from '../../sim/network.js';
import { Network } from '../../sim/network.js';
import { RedisNode } from '../../sim/redis-node.js';
import { infoText, roleReply } from '../../sim/redis-texts.js';
import type { Servers, Step } from './step.js';
import { HELD_AFTER_MS } from './step.js';
import { brief, Letters, viewOf } from './view.js';

const SETTLE_MS = 4_000;
const WATCHER = { replicaOf: () => undefined, note: () => undefined };
/** A kilobyte each: so many fit into 16 KiB. */
const BACKLOG = 16;
const FAST_LOADING_MS = 20;

class Longest extends Draw {
  override between(_low: number, high: number): number {
    return high;
  }
}

interface Asked {
  readonly socket: Socket;
  readonly replies: RespValue[];
  readonly heard: string[];
  isClosed: boolean;
}

export class ModelledServers implements Servers {
  readonly #clock = new EventQueue(1_000_000_000_000);
  readonly #network = new Network(this.#clock, new Draw(1), { minDelayMs: 1, maxDelayMs: 1, connectTimeoutMs: 5_000, maxRetransmitMs: 0 });
  readonly #nodes: RedisNode[] = [];
  readonly #client = this.#network.addMachine('client', '10.9.1.1', 1);
  readonly #later: { readonly node: number; readonly text: () => string }[] = [];
  readonly #letters = new Letters();

  constructor(count: number) {
    for (let index = 1; index <= count; index++) {
      const machine = this.#network.addMachine(String(index), `10.9.0.${index}`, 6379);
      const options = { backlogSize: BACKLOG, maxHandshakeMs: 5, maxSnapshotMs: 20, maxLoadingMs: FAST_LOADING_MS, replTimeoutMs: 60_000, streamPingMs: 3_600_000 };
      const node = new RedisNode(this.#network, machine, new Longest(index), options, WATCHER, null);
      this.#nodes.push(node);
      node.start(true);
    }
  }

  #at(number: number): RedisNode {
    return must(this.#nodes[number - 1], `no node ${number}`);
  }

  #words(argv: readonly string[]): string[] {
    return argv.flatMap((word) => (word.startsWith('@') ? [`10.9.0.${word.slice(1)}`, '6379'] : [word]));
  }

  #ask(node: number, commands: readonly (readonly string[])[]): Asked {
    const { machine } = this.#at(node);
    const asked: Asked = {
      replies: [], heard: [], isClosed: false,
      socket: this.#network.connect(this.#client, machine.ip, machine.port, {
        receive: (message) => {
          if (message.kind === 'reply') asked.replies.push(message.value);
          if (message.kind === 'push') asked.heard.push(message.payload);
        },
        closed: () => (asked.isClosed = true),
      }),
    };
    for (const argv of commands) asked.socket.send({ kind: 'request', argv: this.#words(argv) });
    return asked;
  }

  #orHeld(node: number, commands: readonly (readonly string[])[], anyNumber = false): string {
    const asked = this.#ask(node, commands);
    for (let ms = 0; ms < HELD_AFTER_MS && asked.replies.length < commands.length && !asked.isClosed; ms++) this.#run(1);
    const text = (): string => {
      const last = asked.replies[commands.length - 1];
      return last === undefined ? (asked.isClosed ? 'closed' : 'held') : brief(last, anyNumber);
    };
    if (text() === 'held') this.#later.push({ node, text });
    else asked.socket.close();
    return text();
  }

  #run(ms: number): void {
    this.#clock.runUntil(this.#clock.nowMs + ms);
  }

  carryOut(step: Step): Promise<string> {
    return Promise.resolve(this.#carryOut(step));
  }

  #carryOut(step: Step): string {
    switch (step.kind) {
      case 'ask':
        return this.#orHeld(step.node, [step.argv], step.anyNumber);
      case 'all':
        return this.#orHeld(step.node, [['MULTI'], ...step.commands, ['EXEC']]);
      case 'write': {
        const expiry = step.expiresMs === null ? [] : ['PX', String(step.expiresMs)];
        return this.#orHeld(step.node, step.values.map((value) => ['SET', String(value), 'x', ...expiry]));
      }
      case 'wait':
        this.#run(step.ms);
        return '';
      case 'listen':
      case 'idle': {
        const asked = this.#ask(step.node, [step.kind === 'listen' ? ['SUBSCRIBE', 'c'] : ['PING']]);
        this.#later.push({ node: step.node, text: () => [`${step.kind}:`, ...asked.heard, ...(asked.isClosed ? ['closed'] : [])].join(' ') });
        this.#run(50);
        return '';
      }
      default:
        this.#process(this.#at(step.node), step.node, step.kind);
        return '';
    }
  }

  #process(node: RedisNode, number: number, deed: 'stop' | 'go' | 'kill' | 'start' | 'start-empty' | 'slow' | 'script'): void {
    if (deed === 'stop') node.machine.pause();
    if (deed === 'go') node.machine.resume();
    if (deed === 'kill') node.kill(false);
    if (deed === 'start' || deed === 'start-empty') node.start(deed === 'start');
    if (deed === 'slow') Object.assign(node.options, { maxLoadingMs: 40 * 100 });
    if (deed === 'script') this.#orHeld(number, [['EVAL', 'while true do end', '0']]);
  }

  view(): Promise<string[]> {
    this.#run(SETTLE_MS);
    const looks = this.#nodes.map((node) => {
      if (!node.isRunning) return 'dead';
      if (node.machine.isPaused) return 'stopped';
      if (node.isBusy) return '-BUSY';
      return { info: infoText(node), role: roleReply(node), keys: node.isLoading ? '-LOADING' : `:${node.log.values.length}` };
    });
    const numberOf = (host: string): string => host.slice(host.lastIndexOf('.') + 1);
    const lines = viewOf(looks, this.#letters, numberOf);
    return Promise.resolve([...lines, ...this.#later.map(({ node, text }) => `${node}: ${text()}`)]);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
