/**
 * The processes that answer UDP beside the agent, on one shared socket per address (node:cluster), each with the whole zone.
 *
 * A change counts as told when every living worker has it. One that ends is replaced, and hears no query before it has the zone.
 */
import cluster from 'node:cluster';
import type { Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import { codeOf } from '../../errors.js';
import type { DnsLog } from '../limited-log.js';
import type { DnsCounters } from '../responder.js';
import { freshCounters, sumOf } from '../responder.js';
import type { Zone } from '../zone.js';
import { changeOf, imageOf } from '../zone-image.js';
import type { FromWorker, Order, UdpAddress, WorkerService } from './messages.js';

/** What workers answer from, asked when one begins. */
export interface Served {
  readonly zone: Zone;
  readonly service: WorkerService;
}

const RESTART_MS = [100, 1_000, 5_000];
/** One that lived so long was no failed start. */
const SOUND_MS = 60_000;
const ENDED = 'WORKER_ENDED';
/** The id under which its first word is awaited. */
const READY = 0;

interface Member {
  readonly worker: Worker;
  readonly startedMs: number;
  readonly waiting: Map<number, (fault: { code: string; message: string } | null) => void>;
  counters: DnsCounters;
  /** deaf: not yet told anything; informed: it has the zone, and hears of each change; ready: it listens on all addresses. */
  stage: 'deaf' | 'informed' | 'ready';
}

export class WorkerPool {
  readonly #size: number;
  readonly #served: () => Served;
  readonly #log: DnsLog;
  readonly #members = new Set<Member>();
  readonly #addresses = new Map<string, UdpAddress>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #pastCounters = freshCounters();
  #failedStarts = 0;
  #nextId = 1;
  #isClosed = false;

  constructor(size: number, served: () => Served, log: DnsLog) {
    this.#size = size;
    this.#served = served;
    this.#log = log;
  }

  /** Resolves when all of them have the zone; rejects when one can't begin. */
  async start(): Promise<void> {
    cluster.setupPrimary({ exec: fileURLToPath(new URL('worker.js', import.meta.url)), args: [], serialization: 'advanced' });
    await Promise.all(Array.from({ length: this.#size }, () => this.#begin()));
  }

  /** All of them answer from the served zone, whatever they had. */
  async replaced(): Promise<void> {
    await this.#tellAll(this.#whole());
  }

  /** All of them know what is new about `master`; the served zone has it already. */
  async changed(master: string): Promise<void> {
    await this.#tellAll({ kind: 'change', change: changeOf(this.#served().zone, master) });
  }

  /** All of them listen there. Rejects with what the socket said (EADDRINUSE …), and none of them does. */
  async open(address: UdpAddress): Promise<void> {
    const key = `${address.host} ${address.port}`;
    this.#addresses.set(key, address);
    const answers = await Promise.allSettled(this.#ready().map((member) => this.#ask(member, { kind: 'open', address })));
    const refused = answers.find((answer) => answer.status === 'rejected' && codeOf(answer.reason) !== ENDED);
    if (refused?.status !== 'rejected') return;
    this.#addresses.delete(key);
    await this.#tellAll({ kind: 'close', address });
    throw refused.reason;
  }

  async shut(address: UdpAddress): Promise<void> {
    this.#addresses.delete(`${address.host} ${address.port}`);
    await this.#tellAll({ kind: 'close', address });
  }

  /** Of all workers that ever were. */
  counters(): DnsCounters {
    return sumOf([this.#pastCounters, ...[...this.#members].map(({ counters }) => counters)]);
  }

  /** They keep nothing that could be lost. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const { worker } of this.#members) worker.process.kill('SIGKILL');
  }

  #ready(): Member[] {
    return [...this.#members].filter(({ stage }) => stage === 'ready');
  }

  #whole(): Order {
    const { zone, service } = this.#served();
    return { kind: 'zone', zone: imageOf(zone), service };
  }

  async #tellAll(order: Order): Promise<void> {
    const informed = [...this.#members].filter(({ stage }) => stage !== 'deaf');
    await Promise.all(informed.map((member) => this.#ask(member, order).catch((error: unknown) => this.#replace(member, order, error))));
  }

  /** What a worker could not take, its answers would contradict for ever; its successor gets the whole. */
  #replace(member: Member, order: Order, error: unknown): void {
    // One that ended meanwhile has nothing to learn any more.
    if (codeOf(error) === ENDED) return;
    this.#log.error({ pid: member.worker.process.pid, order: order.kind, err: error }, 'dns worker cannot follow');
    member.worker.process.kill('SIGKILL');
  }

  #ask(member: Member, order: Order): Promise<void> {
    const id = this.#nextId++;
    const answer = this.#answer(member, id);
    member.worker.send({ ...order, id }, (error) => {
      if (error !== null) member.waiting.get(id)?.({ code: 'EPIPE', message: error.message });
    });
    return answer;
  }

  #answer(member: Member, id: number): Promise<void> {
    return new Promise((resolve, reject) => {
      member.waiting.set(id, (fault) => {
        member.waiting.delete(id);
        if (fault === null) resolve();
        else reject(Object.assign(new Error(fault.message), { code: fault.code }));
      });
    });
  }

  async #begin(): Promise<void> {
    const worker = cluster.fork();
    const member: Member = { worker, startedMs: performance.now(), waiting: new Map(), counters: freshCounters(), stage: 'deaf' };
    this.#members.add(member);
    worker.on('message', (message: FromWorker) => this.#heard(member, message));
    worker.on('error', (error) => this.#log.warn({ pid: worker.process.pid, error: error.message }, 'dns worker cannot be reached'));
    worker.once('exit', (code, signal) => this.#ended(member, code, signal));
    await this.#answer(member, READY);
    // What changes from here on is told to it too, behind the whole.
    member.stage = 'informed';
    await this.#ask(member, this.#whole());
    for (const address of this.#addresses.values()) await this.#ask(member, { kind: 'open', address });
    member.stage = 'ready';
    this.#log.debug({ pid: worker.process.pid }, 'dns worker answers');
  }

  #heard(member: Member, message: FromWorker): void {
    if (message.kind === 'ready') member.waiting.get(READY)?.(null);
    else if (message.kind === 'done') member.waiting.get(message.id)?.(message.fault);
    else if (message.kind === 'counters') member.counters = message.counters;
    else this.#log[message.level](message.context, message.message);
  }

  #ended(member: Member, code: number | null, signal: string | null): void {
    this.#members.delete(member);
    this.#pastCounters = sumOf([this.#pastCounters, member.counters]);
    const { pid } = member.worker.process;
    for (const answer of [...member.waiting.values()]) answer({ code: ENDED, message: `dns worker ${pid} ended with ${signal ?? code}` });
    if (this.#isClosed) return;
    this.#failedStarts = performance.now() - member.startedMs < SOUND_MS ? this.#failedStarts + 1 : 0;
    const waitMs = RESTART_MS[Math.min(Math.max(this.#failedStarts - 1, 0), RESTART_MS.length - 1)] ?? 0;
    this.#log.warn({ pid, code, signal, left: this.#members.size, restartMs: waitMs }, 'dns worker ended');
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      // Why it could not begin is told when it ends, too.
      this.#begin().catch((error: unknown) => this.#log.error({ err: error }, 'dns worker cannot begin'));
    }, waitMs);
    this.#timers.add(timer);
  }
}
