/**
 * People at the command line: planned moves at drawn moments and sentinels, now and then twice, or two at once; and others who
 * meddle: RESET, SET, REMOVE and MONITOR, FAILOVER, whatever is going on.
 *
 * They make a target writable before they ask for it, and take that back once it is a master. `finish` is the patience of an
 * operator after the storm: every prepared state is ended by done or abort, tried until one works; what was removed is monitored.
 */
import { formatAddress } from '../../src/sentinel/wire/address.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import type { Master } from '../../src/sentinel/index.js';
import type { Deeds } from './deeds.js';
import type { Draw } from './draw.js';
import type { GroupOptions } from './options.js';
import { settingsOf } from './first-conf.js';
import type { MeddlingKind, OperationKind } from './planned-options.js';
import type { RedisNode } from './redis-node.js';
import type { SentinelHost } from './sentinel-host.js';
import type { World } from './world.js';

const FINISH_EVERY_MS = 2_000;
const MAX_TRIES = 4;

export class Operators {
  #isActive = true;

  constructor(
    readonly world: World,
    readonly draw: Draw,
    /** For what comes after the storm, which depends on how the storm went. */
    readonly finishDraw: Draw,
    readonly deeds: Deeds,
  ) {}

  start(): void {
    this.#plan();
    this.#meddle();
  }

  #after(delayMs: number, run: () => void): void {
    this.world.clock.at(this.world.clock.nowMs + delayMs, run, 'words');
  }

  #plan(): void {
    const { planned } = this.world.options;
    if (planned === null) return;
    this.#after(1 + this.draw.waitMs(planned.meanGapMs), () => {
      if (!this.#isActive) return;
      this.#operate(this.draw.oneOf(planned.operations), this.draw.oneOf(this.world.options.groups), planned.operations.includes('plain'));
      this.#plan();
    });
  }

  #meddle(): void {
    const { meddling } = this.world.options;
    if (meddling === null) return;
    this.#after(1 + this.draw.waitMs(meddling.meanGapMs), () => {
      if (!this.#isActive) return;
      this.#meddleWith(this.draw.oneOf(meddling.kinds), this.draw.oneOf(this.world.options.groups));
      this.#meddle();
    });
  }

  /** No new moves; what is prepared is brought to an end. */
  finish(): void {
    this.#isActive = false;
    const { planned, meddling, groups } = this.world.options;
    if (planned === null && meddling === null) return;
    this.#after(FINISH_EVERY_MS, () => {
      for (const group of groups) this.#endOne(group);
      this.finish();
    });
  }

  #endOne(group: GroupOptions): void {
    const { name } = group;
    for (const host of this.world.hosts) {
      if (host.state !== null && masterAt(host, name) === undefined) this.#monitor(host, group, this.finishDraw, false);
      // Who has set one thing here and another one there makes it equal again.
      else if (this.world.options.meddling !== null) this.#settle(host, group);
    }
    if (this.world.options.meddling !== null) {
      this.#crown(group);
      this.#adoptForgotten(group);
    }
    for (const host of this.finishDraw.shuffled(this.world.hosts)) {
      const silent = masterAt(host, name)?.silent;
      if (silent == null) continue;
      return this.#order(host, ['SILENT-FAILOVER', name, silent.target, this.finishDraw.oneOf(['done', 'abort'])]);
    }
  }

  /** Nodes that were all made to follow each other, and sentinels that were made to forget who led: somebody has to say who does. */
  #crown(group: GroupOptions): void {
    const nodes = this.world.nodesIn(group.name);
    const isKnown = this.world.hosts.some((host) => (masterAt(host, group.name)?.configEpoch ?? 0) > 0);
    if (isKnown || nodes.some((node) => !node.isRunning || node.isLoading || node.master === null)) return;
    nodes[0]?.follow(null);
  }

  /** Where nobody is told of a node any more (RESET forgets, and only the master's own replicas come back), it is told by hand. */
  #adoptForgotten(group: GroupOptions): void {
    const address = this.world.hosts.map((host) => this.world.advertisedBy(host, group.name)).find((each) => each !== null);
    const masters = this.world.hosts.flatMap((host) => masterAt(host, group.name) ?? []);
    if (address === undefined || address === null || this.world.nodeAt(address)?.master !== null) return;
    for (const node of this.world.nodesIn(group.name)) {
      const key = addressText(node);
      const isKnown = masters.some((master) => `${master.address.ip}:${master.address.port}` === key || master.replicas.has(key));
      if (isKnown || !node.isRunning || node.isLoading) continue;
      // A window may have ended meanwhile, of which nobody could ask a copy of it: a partial one would lack those writes.
      node.follow(null);
      node.follow(address);
    }
  }

  #settle(host: SentinelHost, group: GroupOptions): void {
    const master = masterAt(host, group.name);
    if (master === undefined) return;
    // MONITOR with a replica's address, and nobody left who knows better.
    const isMistaken = master.configEpoch === 0 && this.world.nodeAt({ host: master.address.ip, port: master.address.port })?.master !== null;
    if (isMistaken || this.#isOutvoted(host, group)) return this.#order(host, ['REMOVE', group.name]);
    const isSet = master.quorum === group.quorum && master.downAfterMs === group.downAfterMs && master.failoverTimeoutMs === group.failoverTimeoutMs;
    if (!isSet) this.#order(host, ['SET', group.name, ...settingsOf(this.world.options, group)]);
  }

  /**
   * Two addresses in configuration 0, which no hello decides between: each sentinel says in its log that one of them is wrong. Whoever puts
   * things right leaves the one that most of them name, or that leads a replica.
   */
  #isOutvoted(host: SentinelHost, group: GroupOptions): boolean {
    const named = this.world.hosts.flatMap((each) => masterAt(each, group.name) ?? []);
    const own = masterAt(host, group.name);
    if (own === undefined || named.some(({ configEpoch }) => configEpoch !== 0)) return false;
    const followed = this.world.nodesIn(group.name).flatMap(({ master }) => (master === null ? [] : `${master.host}:${master.port}`));
    const count = (all: readonly string[], address: string): number => all.filter((each) => each === address).length;
    const names = named.map(({ address }) => `${address.ip}:${address.port}`);
    // One replica more decides between addresses that equally many name.
    const weight = (address: string): number => count(names, address) * 100 + count(followed, address);
    const best = [...names].sort().reduce((a, b) => (weight(b) > weight(a) ? b : a));
    return best !== `${own.address.ip}:${own.address.port}`;
  }

  #meddleWith(kind: MeddlingKind, group: GroupOptions): void {
    const { draw } = this;
    const count = draw.oneOf([1, 1, 2]);
    for (const host of draw.shuffled(this.world.hosts).slice(0, count)) {
      for (let times = draw.oneOf([1, 1, 1, 2]); times > 0; times--) this.#meddleAt(kind, group, host);
    }
  }

  #meddleAt(kind: MeddlingKind, group: GroupOptions, host: SentinelHost): void {
    const { draw, world } = this;
    switch (kind) {
      case 'failover':
        return this.#say(host, ['FAILOVER', group.name]);
      case 'reset':
        return this.#say(host, ['RESET', draw.oneOf([group.name, '*'])]);
      case 'set': {
        const choice = draw.oneOf([
          ['quorum', String(draw.between(1, world.hosts.length))],
          ['down-after-milliseconds', String(draw.between(10, 50) * 100)],
          ['failover-timeout', String(draw.between(5, 20) * 1_000)],
          ['parallel-syncs', String(draw.between(1, 3))],
        ]);
        return this.#say(host, ['SET', group.name, ...choice]);
      }
      case 'remonitor':
        this.#say(host, ['REMOVE', group.name]);
        this.#after(draw.oneOf([0, 50, 3_000]), () => (this.#isActive ? this.#monitor(host, group, draw, true) : undefined));
        return;
    }
  }

  /** With the address of whom somebody calls the master, or by mistake of any node. */
  #monitor(host: SentinelHost, group: GroupOptions, draw: Draw, isRecorded: boolean): void {
    const advertised = this.world.hosts.map((each) => this.world.advertisedBy(each, group.name)).find((address) => address !== null);
    const nodes = this.world.nodesIn(group.name);
    const any = draw.oneOf(isRecorded ? nodes : nodes.filter((node) => node.master === null || nodes.every((each) => each.master !== null))).machine;
    // Who puts things right does not name the target of a window: a sentinel that knows nothing of windows would find no master there.
    const isFit = advertised != null && (isRecorded ? draw.chance(0.8) : this.world.nodeAt(advertised)?.master === null);
    const { host: ip, port } = isFit ? advertised : { host: any.ip, port: any.port };
    const say = (words: readonly string[]): void => (isRecorded ? this.#say(host, words) : this.#order(host, words));
    say(['MONITOR', group.name, ip, String(port), String(group.quorum)]);
    say(['SET', group.name, ...settingsOf(this.world.options, group)]);
  }

  #operate(kind: OperationKind, group: GroupOptions, oneAtATime: boolean): void {
    const busy = this.world.hosts.some((host) => {
      const master = masterAt(host, group.name);
      return master !== undefined && (master.failover !== null || master.silent !== null || master.prepareRequest !== null);
    });
    // A forced failover collides with anything, in stock as here: who gives such orders looks around first.
    if (oneAtATime && busy) return;
    switch (kind) {
      case 'silent':
        return this.#silentMove(group.name);
      case 'stray':
        return this.#stray(group.name, this.#anyNode(group.name));
      case 'coordinated':
        for (let times = this.draw.oneOf([1, 1, 1, 2]); times > 0; times--) {
          const wanted = this.draw.chance(0.4) ? [this.#anyNode(group.name)] : [];
          this.#say(this.#anyone(), ['FAILOVER', group.name, 'COORDINATED', ...wanted]);
        }
        return;
      case 'plain':
        return this.#say(this.#anyone(), ['FAILOVER', group.name]);
    }
  }

  #anyone(): SentinelHost {
    return this.draw.oneOf(this.world.awareHosts);
  }

  #anyNode(group: string): string {
    return addressText(this.draw.oneOf(this.world.nodesIn(group)));
  }

  #stray(group: string, target: string): void {
    this.#say(this.#anyone(), ['SILENT-FAILOVER', group, target, this.draw.oneOf(['prepare', 'done', 'abort'])]);
  }

  #silentMove(group: string): void {
    const replicas = this.world.nodesIn(group).filter((node) => node.isRunning && node.master !== null);
    if (replicas.length === 0) return;
    const target = this.draw.oneOf(replicas);
    const again = this.draw.chance(0.25) ? this.draw.oneOf(this.draw.chance(0.5) ? replicas : [target]) : null;
    this.#prepare(group, target);
    if (again !== null) this.#after(this.draw.oneOf([0, 5, 500]), () => this.#prepare(group, again));
  }

  #prepare(group: string, target: RedisNode): void {
    const conclude = (): void => this.#conclude(group, addressText(target), this.draw.between(1, MAX_TRIES));
    this.#say(this.#anyone(), ['SILENT-FAILOVER', group, addressText(target), 'prepare'], conclude, target.machine.name);
  }

  /** Done or abort somewhere, after a while; tried again when it is refused. */
  #conclude(group: string, target: string, tries: number): void {
    if (!this.#isActive || this.draw.chance(0.1)) return;
    const { planned } = this.world.options;
    this.#after(1 + this.draw.waitMs(planned?.meanStepMs ?? 1), () => {
      const phase = this.draw.oneOf(['done', 'done', 'done', 'abort']);
      if (this.draw.chance(0.1)) this.#stray(group, target);
      this.#say(this.#anyone(), ['SILENT-FAILOVER', group, target, phase], (reply) => {
        if (reply.kind === 'error' && tries > 0) this.#conclude(group, target, tries - 1);
      });
    });
  }

  #say(host: SentinelHost, words: readonly string[], then: (reply: RespValue) => void = () => undefined, prepares: string | null = null): void {
    this.deeds.perform({ atMs: this.world.clock.nowMs - this.world.startMs, kind: 'say', who: host.name, words, prepares }, then);
  }

  /** Outside the schedule. */
  #order(host: SentinelHost, words: readonly string[]): void {
    host.machine.deliver(() => {
      if (!host.isRunning) return;
      host.command(['SENTINEL', ...words], (reply) => {
        this.world.trace.add('op', `${host.name} ${words.join(' ')}: ${'text' in reply ? reply.text : reply.kind}`);
      });
    });
  }
}

function addressText(node: RedisNode): string {
  return formatAddress({ host: node.machine.ip, port: node.machine.port });
}

function masterAt(host: SentinelHost, group: string): Master | undefined {
  return host.state?.masters.get(group);
}
