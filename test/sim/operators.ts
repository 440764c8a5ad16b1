/**
 * People at the command line: planned moves at drawn moments and sentinels, now and then twice, or two at once.
 *
 * They make a target writable before they ask for it, and take that back once it is a master. `finish` is the patience of an
 * operator after the storm: every prepared state is ended by done or abort, tried until one works.
 */
import { formatAddress } from '../../src/sentinel/wire/address.js';
import type { RespValue } from '../../src/sentinel/wire/resp-value.js';
import type { Master } from '../../src/sentinel/index.js';
import type { Draw } from './draw.js';
import type { GroupOptions } from './options.js';
import type { OperationKind } from './planned-options.js';
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
  ) {}

  start(): void {
    const { planned } = this.world.options;
    if (planned === null) return;
    this.world.clock.after(1 + this.draw.waitMs(planned.meanGapMs), () => {
      if (!this.#isActive) return;
      this.#operate(this.draw.oneOf(planned.operations), this.draw.oneOf(this.world.options.groups), planned.operations.includes('plain'));
      this.start();
    });
  }

  /** No new moves; what is prepared is brought to an end. */
  finish(): void {
    this.#isActive = false;
    if (this.world.options.planned === null) return;
    this.world.clock.after(FINISH_EVERY_MS, () => {
      for (const { name } of this.world.options.groups) this.#endOne(name);
      this.finish();
    });
  }

  #endOne(group: string): void {
    for (const host of this.draw.shuffled(this.world.hosts)) {
      const silent = masterAt(host, group)?.silent;
      if (silent == null) continue;
      return this.#say(host, ['SILENT-FAILOVER', group, silent.target, this.draw.oneOf(['done', 'abort'])], () => undefined);
    }
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
    if (again !== null) this.world.clock.after(this.draw.oneOf([0, 5, 500]), () => this.#prepare(group, again));
  }

  #prepare(group: string, target: RedisNode): void {
    target.isReadOnly = target.master === null;
    this.#say(this.#anyone(), ['SILENT-FAILOVER', group, addressText(target), 'prepare'], () => {
      this.#conclude(group, addressText(target), this.draw.between(1, MAX_TRIES));
    });
  }

  /** Done or abort somewhere, after a while; tried again when it is refused. */
  #conclude(group: string, target: string, tries: number): void {
    if (!this.#isActive || this.draw.chance(0.1)) return;
    const { planned } = this.world.options;
    this.world.clock.after(1 + this.draw.waitMs(planned?.meanStepMs ?? 1), () => {
      const phase = this.draw.oneOf(['done', 'done', 'done', 'abort']);
      if (this.draw.chance(0.1)) this.#stray(group, target);
      this.#say(this.#anyone(), ['SILENT-FAILOVER', group, target, phase], (reply) => {
        if (reply.kind === 'error' && tries > 0) this.#conclude(group, target, tries - 1);
      });
    });
  }

  #say(host: SentinelHost, words: readonly string[], then: (reply: RespValue) => void = () => undefined): void {
    host.machine.deliver(() => {
      if (!host.isRunning) return;
      this.world.trace.add('op', `${host.name} ${words.join(' ')}`);
      host.command(['SENTINEL', ...words], (reply) => {
        this.world.trace.add('op', `${host.name} ${words.join(' ')}: ${'text' in reply ? reply.text : reply.kind}`);
        then(reply);
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
