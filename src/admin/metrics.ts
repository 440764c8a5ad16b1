/**
 * `/metrics`: the agent's view as Prometheus reads it, made from the same value as `status` at the moment of the question.
 *
 * One gauge a fact; states are labels with the value 1, so that an alert names what it sees. Times are seconds. docs/metrics.md lists them.
 */
import { Counter, Gauge, Registry, collectDefaultMetrics } from 'prom-client';
import type { AgentStatus, MasterStatus } from './status.js';

/** What the process has counted since its start. */
export interface AgentCounters {
  readonly silentFailovers: { readonly prepare: number; readonly done: number; readonly abort: number };
}

type Gauges = ReturnType<typeof makeGauges>;

const MASTER_STATES: readonly MasterStatus['state'][] = ['ok', 'sdown', 'odown', 'failover'];

function makeGauges(registry: Registry) {
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[]): Gauge<L> =>
    new Gauge({ name: `pointsman_${name}`, help, labelNames: [...labelNames], registers: [registry] });
  return {
    epoch: gauge('epoch', 'currentEpoch of this sentinel', []),
    tilt: gauge('tilt', '1 in TILT: verdicts and actions pause', []),
    state: gauge('master_state', '1 for the state that the master is in', ['master', 'state']),
    configEpoch: gauge('master_config_epoch', 'configEpoch of the master, higher at each failover', ['master']),
    primary: gauge('route_primary', '1 for the address that clients are sent to', ['master', 'address']),
    trusted: gauge('route_trusted', '1 while a majority of the sentinels is heard', ['master']),
    confirmed: gauge('route_confirmed', '1 when the state file was confirmed since the start', ['master']),
    prepared: gauge('route_prepared', '1 while a silent failover is prepared', ['master']),
    alarms: gauge('alarms', 'things that somebody should look at, see pointsman status', ['master']),
    replicas: gauge('replicas', 'replicas by state; eligible: could be promoted now', ['master', 'state', 'eligible']),
    sentinels: gauge('peers', 'other sentinels by state', ['master', 'state']),
    output: gauge('output_state', '1 for the state that the output is in', ['master', 'output', 'state']),
    wanted: gauge('output_wanted_epoch', 'configEpoch that the output should show', ['master', 'output']),
    published: gauge('output_published_epoch', 'configEpoch that the output shows', ['master', 'output']),
    lag: gauge('output_lag_seconds', 'from the change of the Route to its publication', ['master', 'output']),
    attempts: gauge('output_attempts', 'attempts for the Route that is wanted now', ['master', 'output']),
  };
}

/** One page of metrics. `status` and `counters` are asked at each question. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #gauges: Gauges;
  readonly #moves: Counter<'step'>;

  constructor(
    readonly status: () => AgentStatus,
    readonly counters: () => AgentCounters,
  ) {
    collectDefaultMetrics({ register: this.#registry });
    this.#gauges = makeGauges(this.#registry);
    this.#moves = new Counter({
      name: 'pointsman_silent_failovers_total',
      help: 'silent failovers prepared, done and aborted, as INFO counts them',
      labelNames: ['step'],
      registers: [this.#registry],
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async page(): Promise<string> {
    const view = this.status();
    // A master that is gone, or a state that was left, must not stay on the page.
    for (const gauge of Object.values(this.#gauges)) gauge.reset();
    this.#gauges.epoch.set(view.sentinel.epoch);
    this.#gauges.tilt.set(Number(view.sentinel.tilt));
    for (const master of view.masters) this.#setMaster(master);
    this.#moves.reset();
    for (const [step, count] of Object.entries(this.counters().silentFailovers)) this.#moves.inc({ step }, count);
    return await this.#registry.metrics();
  }

  #setMaster(view: MasterStatus): void {
    const { name: master } = view;
    const gauges = this.#gauges;
    for (const state of MASTER_STATES) gauges.state.set({ master, state }, Number(view.state === state));
    gauges.configEpoch.set({ master }, view.configEpoch);
    gauges.primary.set({ master, address: view.primary }, 1);
    gauges.trusted.set({ master }, Number(view.trusted));
    gauges.confirmed.set({ master }, Number(view.confirmed));
    gauges.prepared.set({ master }, Number(view.phase === 'prepared'));
    gauges.alarms.set({ master }, view.alarms.length);
    for (const { state, notEligible } of view.replicas) gauges.replicas.inc({ master, state, eligible: notEligible === null ? 'yes' : 'no' });
    for (const { state } of view.sentinels) gauges.sentinels.inc({ master, state });
    for (const { output, state, wantedEpoch, publishedEpoch, lagMs, attempts } of view.outputs) {
      gauges.output.set({ master, output, state }, 1);
      gauges.wanted.set({ master, output }, wantedEpoch);
      if (publishedEpoch !== null) gauges.published.set({ master, output }, publishedEpoch);
      if (lagMs !== null) gauges.lag.set({ master, output }, lagMs / 1000);
      gauges.attempts.set({ master, output }, attempts);
    }
  }
}
