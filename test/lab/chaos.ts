/**
 * Carries the steps of the plan out: picks who is hit, breaks it, mends it in time, and notes what was done for the judge.
 */
import { must } from '../../src/assert.js';
import { pause } from '../../src/demo/wait.js';
import { messageOf } from '../../src/errors.js';
import type { Disturbance, Restart } from './lineage.js';
import type { Cut } from './network.js';
import type { NodeWatch } from './node-watch.js';
import type { Operators } from './operators.js';
import type { Step } from './plan.js';
import type { Agent, Node, Site } from './site.js';

/** Everything that was done, planned moves too. `hostNames`: hosts whose network or processes it touched. */
export interface Deed {
  readonly kind: Step['kind'];
  readonly title: string;
  readonly hostNames: readonly string[];
  readonly startMs: number;
  endMs: number;
}

export class Chaos {
  readonly deeds: Deed[] = [];
  readonly disturbances: Disturbance[] = [];
  readonly restarts: Restart[] = [];
  /** Steps that found nobody whom they could hit. */
  skipped = 0;

  constructor(
    readonly site: Site, readonly watch: NodeWatch, readonly operators: Operators, readonly say: (text: string) => void,
    /** How many agents gave this address as their last answer. */
    readonly named: (host: string) => number,
  ) {}

  /** Resolves when the step is over and mended. */
  async perform(step: Step): Promise<void> {
    switch (step.kind) {
      case 'redis-kill':
        return this.#killRedis(step);
      case 'redis-stop':
      case 'agent-stop':
        return this.#stop(step);
      case 'agent-kill':
        return this.#killAgent(step);
      case 'host-down':
        return this.#hostDown(step);
      case 'host-cut':
      case 'island':
      case 'one-way':
      case 'pair':
        return this.#cut(step);
      case 'failover':
      case 'coordinated':
      case 'silent':
      case 'reset':
        return this.#operate(step);
    }
  }

  /** The node that most nodes and most agents' DNS hold for the master; null when nobody says that it is one. */
  master(): Node | null {
    const last = this.site.nodes.filter(({ isWanted }) => isWanted).map((node) => ({ node, sample: this.watch.samples.get(node.address.host)?.at(-1) }));
    const votes = (host: string, replid: string): number => last.filter(({ sample }) => sample?.replid === replid).length + this.named(host);
    const masters = last.flatMap(({ node, sample }) => (sample?.role === 'master' ? [{ node, count: votes(node.address.host, sample.replid) }] : []));
    return masters.sort((a, b) => b.count - a.count)[0]?.node ?? null;
  }

  async #killRedis(step: Step): Promise<void> {
    const victim = this.#pick(step, this.site.nodes);
    if (victim === null) return this.#skip(step);
    const others = this.site.nodes.filter((node) => node !== victim);
    const isElsewhere = others.every((node) => isRunning(node) && this.#holdsAll(node, victim));
    const keepsData = this.site.settings.appendOnly && !(step.losesDisk && isElsewhere);
    // Without an append-only file a death is the end of the data: only while others have it.
    if (!keepsData && !isElsewhere) return this.#skip(step);
    const title = `${this.#nameOf(victim)} killed for ${seconds(step.lastsMs)}${keepsData ? '' : ', its data with it'}`;
    await this.#during(step, title, 'crash', [victim.host], [victim], async () => {
      await this.site.kill(victim);
      await pause(step.lastsMs);
      await this.#bringBack(victim, keepsData);
    });
  }

  async #killAgent(step: Step): Promise<void> {
    const victim = this.#pick(step, this.site.agents);
    if (victim === null) return this.#skip(step);
    const title = `${victim.name} killed for ${seconds(step.lastsMs)}${step.losesDisk ? ', its disk lost' : ''}`;
    await this.#during(step, title, null, [victim.host], [], async () => {
      await this.site.kill(victim);
      await pause(step.lastsMs);
      await this.#bringBack(victim, !step.losesDisk);
    });
  }

  async #stop(step: Step): Promise<void> {
    const victim = step.kind === 'redis-stop' ? this.#pick(step, this.site.nodes) : this.#pick(step, this.site.agents);
    if (victim === null) return this.#skip(step);
    const title = `${this.#nameOf(victim)} stopped (SIGSTOP) for ${seconds(step.lastsMs)}`;
    await this.#during(step, title, victim.kind === 'redis' ? 'partition' : null, [victim.host], victim.kind === 'redis' ? [victim] : [], async () => {
      victim.isStopped = true;
      victim.child.kill('SIGSTOP');
      await pause(step.lastsMs);
      victim.child.kill('SIGCONT');
      victim.isStopped = false;
    });
  }

  async #hostDown(step: Step): Promise<void> {
    const first = this.#pick(step, step.hitsMaster ? this.site.nodes : [...this.site.nodes, ...this.site.agents]);
    if (first === null) return this.#skip(step);
    const all = [...this.site.nodes, ...this.site.agents].filter(({ host }) => host === first.host);
    const nodes = this.site.nodes.filter(({ host }) => host === first.host);
    const isElsewhere = this.site.nodes.every((node) => nodes.includes(node) || (isRunning(node) && this.#holdsAll(node, first)));
    if (!all.every(isRunning) || (!this.site.settings.appendOnly && !isElsewhere)) return this.#skip(step);
    const title = `host ${first.host} (${all.map((each) => this.#nameOf(each)).join(', ')}) down for ${seconds(step.lastsMs)}`;
    await this.#during(step, title, 'crash', [first.host], nodes, async () => {
      const replug = await this.site.network.cut({ kind: 'unplugged', host: first.host });
      await Promise.all(all.map((each) => this.site.kill(each)));
      await pause(step.lastsMs);
      await replug();
      await Promise.all(all.map((each) => this.#bringBack(each, each.kind === 'agent' || this.site.settings.appendOnly)));
    });
  }

  async #cut(step: Step): Promise<void> {
    const victim = this.#pick(step, this.site.nodes, true);
    if (victim === null) return this.#skip(step);
    const { cut, title } = this.#drawCut(step, victim);
    await this.#during(step, `${title} for ${seconds(step.lastsMs)}`, 'partition', this.#hostsCutOff(cut), this.#withoutMajority(cut), async () => {
      const mend = await this.site.network.cut(cut);
      await pause(step.lastsMs);
      await mend();
    });
  }

  #drawCut(step: Step, victim: Node): { cut: Cut; title: string } {
    const [, second] = step.picks;
    const { host } = victim;
    const servers = [...new Set([...this.site.nodes, ...this.site.agents].map((each) => each.host))].filter((each) => each !== host);
    const others = this.site.network.hosts.filter((each) => each !== host);
    switch (step.kind) {
      case 'island': {
        // The digits of one number decide for each host.
        const along = others.filter((_, index) => Math.floor(second * 4 ** (index + 1)) % 4 === 0);
        return { cut: { kind: 'island', hosts: [host, ...along] }, title: `island of ${[this.#nameOf(victim), ...along].join(', ')}` };
      }
      case 'one-way': {
        if (second < 0.5) return { cut: { kind: 'oneWay', from: [host], to: others }, title: `${this.#nameOf(victim)} hears all and is heard by nobody` };
        return { cut: { kind: 'oneWay', from: others, to: [host] }, title: `${this.#nameOf(victim)} hears nobody and could be heard by all` };
      }
      case 'pair': {
        const other = must(servers[Math.floor(second * servers.length)], 'there are other servers');
        return { cut: { kind: 'pair', hosts: [host, other] }, title: `${this.#nameOf(victim)} and host ${other} can't meet` };
      }
      default:
        return { cut: { kind: 'unplugged', host }, title: `${this.#nameOf(victim)} unplugged` };
    }
  }

  /** The nodes that the cut takes away from most agents. */
  #withoutMajority(cut: Cut): Node[] {
    const most = Math.floor(this.site.agents.length / 2) + 1;
    const areCut = (a: string, b: string): boolean => a !== b && separates(cut, a, b);
    return this.site.nodes.filter((node) => this.site.agents.filter((agent) => areCut(node.host, agent.host)).length >= most);
  }

  /** Of an island and the rest, the side that has not most of the agents is the one that is cut off. */
  #hostsCutOff(cut: Cut): readonly string[] {
    switch (cut.kind) {
      case 'unplugged':
        return [cut.host];
      case 'oneWay':
        return cut.from.length === 1 ? cut.from : cut.to;
      case 'pair':
        return cut.hosts;
      case 'island': {
        const inside = this.site.agents.filter(({ host }) => cut.hosts.includes(host)).length;
        return inside > this.site.agents.length / 2 ? this.site.network.hosts.filter((host) => !cut.hosts.includes(host)) : cut.hosts;
      }
    }
  }

  async #operate(step: Step): Promise<void> {
    const start = Date.now();
    const deed: Deed = { kind: step.kind, title: `operator: ${step.kind}`, hostNames: [], startMs: start, endMs: Infinity };
    this.deeds.push(deed);
    await this.operators.perform(step, this.master());
    deed.endMs = Date.now();
  }

  async #during(
    step: Step, title: string, kind: Disturbance['kind'] | null, hostNames: readonly string[], nodes: readonly Node[], act: () => Promise<void>,
  ): Promise<void> {
    this.say(title);
    const startMs = Date.now();
    const deed: Deed = { kind: step.kind, title, hostNames, startMs, endMs: Infinity };
    this.deeds.push(deed);
    const disturbance = kind === null ? null : { title, kind, hosts: nodes.map(({ address }) => address.host), startMs, endMs: Infinity };
    if (disturbance !== null) this.disturbances.push(disturbance);
    await act();
    deed.endMs = Date.now();
    if (disturbance !== null) disturbance.endMs = deed.endMs;
    this.say(`  over: ${title}`);
  }

  async #bringBack(program: Node | Agent, keepsData: boolean): Promise<void> {
    this.site.restart(program, keepsData);
    if (program.kind === 'agent') return;
    this.restarts.push({ host: program.address.host, atMs: Date.now(), keptData: keepsData });
    // One that ends at once is found by the round's check of all processes.
    await this.site.answering(program).then(() => this.operators.restarted(program), (error: unknown) => this.say(`  ${program.name} is not back: ${messageOf(error)}`));
  }

  /** One of those that run; the master, when the step wants it and it can be hit. */
  #pick<T extends Node | Agent>(step: Step, among: readonly T[], isCut = false): T | null {
    const able = among.filter((each) => isCut || isRunning(each));
    const master = this.master();
    const wanted = step.hitsMaster ? able.find((each) => each.host === master?.host) : undefined;
    return wanted ?? able[Math.floor(step.picks[0] * able.length)] ?? null;
  }

  /** Whether `node` shares the history of the present master, or is it; `victim` is about to go. */
  #holdsAll(node: Node, victim: { readonly host: string }): boolean {
    const sample = (each: Node) => this.watch.samples.get(each.address.host)?.at(-1);
    const leader = this.master();
    const own = sample(node);
    if (leader === null || own === undefined) return false;
    return own.replid === sample(leader)?.replid && (leader.host === victim.host || isRunning(leader));
  }

  #nameOf(program: Node | Agent): string {
    return program === this.master() ? `${program.name} (the master)` : program.name;
  }

  #skip(step: Step): void {
    this.skipped++;
    this.say(`${step.kind}: left out, nobody can be hit now without the last copy of the data`);
  }
}

const isRunning = (program: Node | Agent): boolean => program.isWanted && !program.isStopped && program.child.status === null;

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

function separates(cut: Cut, a: string, b: string): boolean {
  switch (cut.kind) {
    case 'unplugged':
      return cut.host === a || cut.host === b;
    case 'island':
      return cut.hosts.includes(a) !== cut.hosts.includes(b);
    case 'pair':
      return cut.hosts.includes(a) && cut.hosts.includes(b);
    case 'oneWay':
      return (cut.from.includes(a) && cut.to.includes(b)) || (cut.from.includes(b) && cut.to.includes(a));
  }
}
