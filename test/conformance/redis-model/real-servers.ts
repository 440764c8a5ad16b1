/**
 * Real redis-servers on free ports of 127.0.0.1, with an append-only file, so that a killed one comes back with its data.
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../src/demo/free-port.js';
import type { RespValue } from '../../../src/sentinel/wire/resp-value.js';
import { Talk } from '../talk.js';
import type { Servers, Step } from './step.js';
import { HELD_AFTER_MS } from './step.js';
import type { Look } from './view.js';
import { brief, Letters, textOf, viewOf } from './view.js';

const pause = (ms: number): Promise<void> => new Promise((done) => void setTimeout(done, ms));
const CONF = [
  'bind 127.0.0.1', 'save ""', 'appendonly yes', 'repl-diskless-sync-delay 0', 'repl-backlog-size 16384', 'repl-ping-replica-period 3600', 'busy-reply-threshold 50',
  'loglevel warning', 'logfile redis.log', 'loading-process-events-interval-bytes 1024', 'rdbcompression no',
];

interface Server {
  readonly folder: string;
  readonly port: number;
  child: ChildProcess | null;
  stopped: boolean;
}

export class RealServers implements Servers {
  readonly #folder = mkdtempSync(join(tmpdir(), 'pointsman-model-'));
  readonly #servers: Server[] = [];
  /** Replies that were not there at once, and what open connections hear, by their place in the view. */
  readonly #later: { readonly node: number; text: string }[] = [];
  readonly #open: Talk[] = [];
  #letters = new Letters();

  static async start(count: number): Promise<RealServers> {
    const servers = new RealServers();
    for (let index = 1; index <= count; index++) {
      const folder = join(servers.#folder, String(index));
      mkdirSync(folder);
      const port = await freePort();
      writeFileSync(join(folder, 'redis.conf'), [...CONF, `dir ${folder}`, `port ${port}`, ''].join('\n'));
      const server: Server = { folder, port, child: null, stopped: false };
      servers.#servers.push(server);
      await servers.#launch(server);
    }
    return servers;
  }

  async #launch(server: Server): Promise<void> {
    server.child = spawn('redis-server', ['redis.conf'], { cwd: server.folder, stdio: 'ignore' });
    const deadline = performance.now() + 10_000;
    for (;;) {
      try {
        const reply = await this.#ask(server, ['PING']);
        if (reply?.kind === 'simple') return;
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
      await pause(20);
    }
  }

  #at(number: number): Server {
    const server = this.#servers[number - 1];
    if (server === undefined) throw new Error(`no node ${number}`);
    return server;
  }

  #words(argv: readonly string[]): string[] {
    return argv.flatMap((word) => (word.startsWith('@') ? ['127.0.0.1', String(this.#at(Number(word.slice(1))).port)] : [word]));
  }

  async #ask(server: Server, argv: readonly string[]): Promise<RespValue | null> {
    const talk = await Talk.open(server.port);
    try {
      return await talk.ask(...argv);
    } finally {
      talk.close();
    }
  }

  /** The reply, or `held`: it then shows in the view when it comes. */
  async #orHeld(node: number, patienceMs: number, anyNumber: boolean, ask: (talk: Talk) => Promise<RespValue | null>): Promise<string> {
    const talk = await Talk.open(this.#at(node).port);
    this.#open.push(talk);
    const reply = ask(talk).then((value) => brief(value, anyNumber), () => 'never');
    const first = await Promise.race([reply, pause(patienceMs).then(() => null)]);
    if (first !== null) {
      talk.close();
      return first;
    }
    const slot = { node, text: 'held' };
    this.#later.push(slot);
    void reply.then((text) => {
      slot.text = text;
      talk.close();
    });
    return 'held';
  }

  async carryOut(step: Step, patienceMs: number): Promise<string> {
    switch (step.kind) {
      case 'ask':
        return this.#orHeld(step.node, patienceMs, step.anyNumber, (talk) => talk.ask(...this.#words(step.argv)));
      case 'all':
        return this.#orHeld(step.node, patienceMs, false, async (talk) => {
          await talk.ask('MULTI');
          for (const argv of step.commands) await talk.ask(...this.#words(argv));
          return talk.ask('EXEC');
        });
      case 'write':
        return this.#write(step.node, step.values, step.expiresMs);
      case 'wait':
        await pause(step.ms);
        return '';
      case 'listen':
      case 'idle':
        await this.#stay(step.node, step.kind);
        return '';
      case 'script':
        void this.#orHeld(step.node, HELD_AFTER_MS, false, (talk) => talk.ask('EVAL', 'while true do end', '0'));
        await pause(HELD_AFTER_MS + 100);
        return '';
      default:
        await this.#process(this.#at(step.node), step.kind);
        return '';
    }
  }

  async #write(node: number, values: readonly number[], expiresMs: number | null): Promise<string> {
    let last = '';
    const talk = await Talk.open(this.#at(node).port);
    for (const value of values) {
      const expiry = expiresMs === null ? [] : ['PX', String(expiresMs)];
      last = brief(await talk.ask('SET', String(value), 'x'.repeat(1_024), ...expiry));
    }
    talk.close();
    return last;
  }

  async #stay(node: number, kind: 'listen' | 'idle'): Promise<void> {
    const talk = await Talk.open(this.#at(node).port);
    this.#open.push(talk);
    await (kind === 'listen' ? talk.ask('SUBSCRIBE', 'c') : talk.ask('PING'));
    const slot = { node, text: `${kind}:` };
    this.#later.push(slot);
    const hear = async (): Promise<void> => {
      for (;;) {
        const message = await talk.next().catch(() => undefined);
        if (message === undefined) continue;
        slot.text += ` ${message?.kind === 'array' || message?.kind === 'push' ? textOf(message.items[2] ?? message) : 'closed'}`;
        if (message === null) return;
      }
    };
    void hear();
  }

  async #process(server: Server, deed: 'stop' | 'go' | 'kill' | 'start' | 'start-empty' | 'slow'): Promise<void> {
    const { child } = server;
    if (deed === 'slow') await this.#ask(server, ['CONFIG', 'SET', 'key-load-delay', '100000']);
    if (deed === 'stop') child?.kill('SIGSTOP');
    if (deed === 'go') child?.kill('SIGCONT');
    if (deed === 'stop' || deed === 'go') server.stopped = deed === 'stop';
    if (deed === 'kill' && child !== null) {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
      server.child = null;
    }
    if (deed === 'start-empty') rmSync(join(server.folder, 'appendonlydir'), { recursive: true, force: true });
    if (deed === 'start' || deed === 'start-empty') await this.#launch(server);
  }

  async view(): Promise<string[]> {
    const looks: Look[] = [];
    for (const server of this.#servers) looks.push(await this.#look(server));
    const numberOf = (_host: string, port: string): string => String(this.#servers.findIndex((server) => String(server.port) === port) + 1);
    const lines = viewOf(looks, this.#letters.copy(), numberOf);
    return [...lines, ...this.#later.map(({ node, text }) => `${node}: ${text}`)];
  }

  /** The view counts: its letters stay. */
  async keep(): Promise<void> {
    const looks: Look[] = [];
    for (const server of this.#servers) looks.push(await this.#look(server));
    viewOf(looks, this.#letters, () => '');
  }

  async #look(server: Server): Promise<Look> {
    if (server.child === null) return 'dead';
    if (server.stopped) return 'stopped';
    const [info, role, keys] = [await this.#ask(server, ['INFO']), await this.#ask(server, ['ROLE']), await this.#ask(server, ['DBSIZE'])];
    if (info?.kind !== 'bulk' || role === null || keys === null) return brief(info);
    return { info: info.text, role, keys: brief(keys) };
  }

  async close(): Promise<void> {
    for (const talk of this.#open) talk.close();
    for (const { child } of this.#servers) {
      if (child === null || child.exitCode !== null) continue;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
