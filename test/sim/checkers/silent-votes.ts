/**
 * The rules of votes around a silent state (silent-failover.md, section 3), held against what the sentinels really know, not
 * against what they have heard: a vote goes only to a candidate that has the state (or a later configuration), and after its end
 * only to one that has the end; a done is elected by a majority that has the state; nobody enters a state while the leader of
 * another failover, for whom it has voted, is at work; who lost its disk holds no state for failover-timeout.
 *
 * Exempt: candidates that are down or could not save, or were told to REMOVE the master; sentinels with different lists of each
 * other; what a restart forgets; a promise that ended early by a clock that jumped. Who lost its disk counts as what it last said it is: the
 * others cannot know.
 */
import type { Effect, Input, Master } from '../../../src/sentinel/index.js';
import type { SentinelHost } from '../sentinel-host.js';
import type { World } from '../world.js';
import type { Checker, Verdict } from './checker.js';
import { masterInEvent, mastersOf } from './checker.js';

interface Vote {
  readonly epoch: number;
  readonly atMs: number;
  /** By the clock of who voted. */
  readonly ownMs: number;
}

/** A master as a sentinel held it after its last turn; `hadState` null: not looked at since the start. */
interface Glance {
  hadState: boolean | null;
  purpose: string;
}

export class SilentVotes implements Checker {
  readonly name = 'votes around a silent state';
  /** The last vote for each leader, by sentinel and group. */
  readonly #votes = new Map<string, Map<string, Vote>>();
  /** All votes; true: of who had the state. */
  readonly #cast = new Map<string, boolean>();
  readonly #glances = new Map<SentinelHost, Map<string, Glance>>();
  readonly #endedAt = new Map<string, number>();
  readonly #bornMs = new Map<string, number>();
  readonly #hadEpoch = new Set<string>();
  readonly #wereTold = new Set<string>();

  constructor(readonly world: World) {}

  forgot(host: SentinelHost, group: string | null): void {
    // Where it had heard of no epoch, it had neither voted nor known of a state: there was nothing to forget.
    if (group === null && this.#hadEpoch.has(host.name)) this.#bornMs.set(host.name, Number.POSITIVE_INFINITY);
    else this.#wereTold.add(`${host.name}/${group}`);
    for (const key of this.#votes.keys()) {
      const [name, about] = key.split('/');
      if (name === host.name && (group === null || about === group)) this.#votes.delete(key);
    }
  }

  started(host: SentinelHost): Verdict {
    // Its new id is on disk after that: at another start it can't know any more that it had lost one. A line in the file that says so would
    // keep a stock sentinel from reading it.
    if (this.#bornMs.get(host.name) === Number.POSITIVE_INFINITY) this.#bornMs.set(host.name, this.world.clock.nowMs);
    else this.#bornMs.delete(host.name);
    for (const { name } of this.world.options.groups) {
      this.#endedAt.delete(`${host.name}/${name}`);
      this.#glanceAt(host, name).hadState = null;
      this.#votes.delete(`${host.name}/${name}`);
    }
    return null;
  }

  stepped(host: SentinelHost, _input: Input, effects: readonly Effect[]): Verdict {
    for (const effect of effects) {
      if (effect.kind !== 'event') continue;
      const verdict = effect.name === '+vote-for-leader' ? this.#vote(host, effect.payload) : effect.name === '+elected-leader' ? this.#elected(host, effect) : null;
      if (verdict !== null) return verdict;
    }
    if ((host.state?.currentEpoch ?? 0) > 0) this.#hadEpoch.add(host.name);
    for (const master of mastersOf(host)) {
      const verdict = this.#look(host, master);
      if (verdict !== null) return verdict;
    }
    return null;
  }

  #glanceAt(host: SentinelHost, name: string): Glance {
    let glances = this.#glances.get(host);
    if (glances === undefined) this.#glances.set(host, (glances = new Map<string, Glance>()));
    let glance = glances.get(name);
    if (glance === undefined) glances.set(name, (glance = { hadState: null, purpose: '' }));
    return glance;
  }

  #look(host: SentinelHost, master: Master): Verdict {
    const last = this.#glanceAt(host, master.name);
    const had = last.hadState;
    last.hadState = master.silent !== null;
    last.purpose = master.failover?.purpose ?? '';
    if (had === last.hadState) return null;
    const key = `${host.name}/${master.name}`;
    if (had === true && master.silent === null) this.#endedAt.set(key, master.configEpoch);
    if (master.silent === null || had !== false) return null;
    this.#endedAt.delete(key);
    // In a group that never had a failover there was nothing to forget: it may begin one.
    const mayBegin = master.silent.initiator && master.configEpoch === 0;
    if (this.#isYoung(host, master) && !mayBegin) return `${host.name} lost its disk and echoes a state of ${master.name} already`;
    return this.#whoseFailover(host, master);
  }

  /** Within failover-timeout of its life after it lost its disk. */
  #isYoung(host: SentinelHost, master: Master): boolean {
    const bornMs = this.#bornMs.get(host.name) ?? Number.NEGATIVE_INFINITY;
    return this.world.clock.nowMs - bornMs < master.failoverTimeoutMs - Math.abs(host.clockOffsetMs);
  }

  #whoseFailover(host: SentinelHost, master: Master): Verdict {
    for (const [leaderId, vote] of this.#votes.get(`${host.name}/${master.name}`) ?? []) {
      // The promise lasts by the clock of who gave it: one that jumped on sees its end too early.
      const ageMs = Math.max(this.world.clock.nowMs - vote.atMs, host.nowMs() - vote.ownMs);
      if (leaderId === host.state?.myId || ageMs >= master.failoverTimeoutMs - 1_000) continue;
      const leader = this.world.hosts.find((other) => other.state?.myId === leaderId);
      const theirs = leader?.machine.isPaused === true ? undefined : leader?.state?.masters.get(master.name);
      const failover = theirs?.failover;
      // A leader that has the state decides in its light.
      if (theirs?.silent != null || failover == null || failover.epoch !== vote.epoch || master.configEpoch >= vote.epoch) continue;
      const isAtWork = failover.purpose === 'failover' && failover.state !== 'wait_start';
      if (isAtWork) return `${host.name} enters a state of ${master.name} beside the failover of ${leader?.name}, which has its vote of ${vote.epoch}`;
    }
    return null;
  }

  #vote(host: SentinelHost, payload: string): Verdict {
    for (const master of mastersOf(host)) {
      const { leader, leaderEpoch, silent, name } = master;
      if (leader === null || payload !== `${leader} ${leaderEpoch}`) continue;
      const key = `${host.name}/${name}`;
      const votes = this.#votes.get(key) ?? new Map<string, Vote>();
      this.#votes.set(key, votes.set(leader, { epoch: leaderEpoch, atMs: this.world.clock.nowMs, ownMs: host.nowMs() }));
      this.#cast.set(`${key}/${leaderEpoch} ${leader}`, silent !== null);
      const candidate = this.world.hosts.find((other) => other.state?.myId === leader);
      const theirs = candidate?.state?.masters.get(name);
      if (candidate === undefined || candidate === host || theirs === undefined || candidate.disk.lastWriteFailed) continue;
      if (this.#wereTold.has(`${candidate.name}/${name}`)) continue;
      const ended = this.#endedAt.get(key) ?? 0;
      if (theirs.configEpoch < ended) return `${host.name} votes for ${candidate.name}, which knows ${name} at ${theirs.configEpoch} and not the end at ${ended}`;
      if (silent === null || theirs.configEpoch >= silent.doneEpoch) continue;
      // A mere reservation may have given way to another target since the candidate said that it has it.
      const isReplaced = !silent.effective && (theirs.silent?.doneEpoch ?? 0) > silent.doneEpoch;
      const knows = isReplaced || (theirs.silent?.target === silent.target && theirs.silent.doneEpoch >= silent.doneEpoch);
      if (!knows) return `${host.name} votes for ${candidate.name}, which does not know D ${silent.doneEpoch} of ${name}`;
    }
    return null;
  }

  #elected(host: SentinelHost, effect: Extract<Effect, { kind: 'event' }>): Verdict {
    const name = masterInEvent(effect);
    const master = host.state?.masters.get(name);
    if (master === undefined || this.#glanceAt(host, name).purpose !== 'done' || master.peers.size !== this.world.hosts.length - 1) return null;
    const epoch = host.state?.currentEpoch ?? 0;
    // Who had voted before it heard of the state, and has it now, counts.
    const ready = this.world.hosts.filter((other) => {
      if (this.#isYoung(other, master)) return true;
      const wasInformed = this.#cast.get(`${other.name}/${name}/${epoch} ${host.state?.myId}`);
      return wasInformed === true || (wasInformed === false && other.state?.masters.get(name)?.silent != null);
    });
    if (2 * ready.length > this.world.hosts.length) return null;
    return `${host.name} was elected for a done of ${name} with votes of ${ready.map((each) => each.name).join(' ')} only, which know the state`;
  }
}
