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
  /** Of all DNS listeners; null without the DNS. Replies by the rcode of their header. */
  readonly dns: DnsCounts | null;
}

export interface DnsCounts {
  readonly udpQueries: number;
  readonly tcpQueries: number;
  readonly replies: Readonly<Record<number, number>>;
  readonly silent: number;
  readonly slipped: number;
  readonly dropped: number;
  readonly exceptions: number;
  readonly socketErrors: number;
  readonly tcpOpen: number;
  readonly tcpRefused: number;
  readonly tcpTimeouts: number;
  readonly transfers: number;
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

const RCODE_NAMES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED', 'YXDOMAIN', 'YXRRSET', 'NXRRSET', 'NOTAUTH'];

function makeDnsMetrics(registry: Registry) {
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> =>
    new Counter({ name: `pointsman_dns_${name}_total`, help, labelNames: [...labelNames], registers: [registry] });
  return {
    queries: counter('queries', 'messages received', ['transport']),
    replies: counter('replies', 'replies by rcode, before any limit', ['rcode']),
    ignored: counter('ignored', 'messages that deserve no reply', []),
    limited: counter('limited', 'replies beyond dns.rate-limit', ['how']),
    errors: counter('errors', 'exception: a fault of ours; socket: what strangers cause, too', ['kind']),
    transfers: counter('transfers', 'zone transfers given to their end', []),
    closed: counter('tcp_closed', 'TCP connections refused, or closed for their slowness', ['why']),
    open: new Gauge({ name: 'pointsman_dns_tcp_open', help: 'TCP connections now', registers: [registry] }),
  };
}

/** One page of metrics. `status` and `counters` are asked at each question. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #gauges: Gauges;
  readonly #moves: Counter<'step'>;
  readonly #dns: ReturnType<typeof makeDnsMetrics>;

  constructor(
    readonly status: () => AgentStatus,
    readonly counters: () => AgentCounters,
  ) {
    collectDefaultMetrics({ register: this.#registry });
    this.#gauges = makeGauges(this.#registry);
    this.#dns = makeDnsMetrics(this.#registry);
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
    const { silentFailovers, dns } = this.counters();
    this.#moves.reset();
    for (const [step, count] of Object.entries(silentFailovers)) this.#moves.inc({ step }, count);
    for (const metric of Object.values(this.#dns)) metric.reset();
    if (dns !== null) this.#setDns(dns);
    return await this.#registry.metrics();
  }

  #setDns(counts: DnsCounts): void {
    const { queries, replies, ignored, limited, errors, transfers, closed, open } = this.#dns;
    queries.inc({ transport: 'udp' }, counts.udpQueries);
    queries.inc({ transport: 'tcp' }, counts.tcpQueries);
    for (const [rcode, count] of Object.entries(counts.replies)) replies.inc({ rcode: RCODE_NAMES[Number(rcode)] ?? rcode }, count);
    ignored.inc(counts.silent);
    limited.inc({ how: 'truncated' }, counts.slipped);
    limited.inc({ how: 'dropped' }, counts.dropped);
    errors.inc({ kind: 'exception' }, counts.exceptions);
    errors.inc({ kind: 'socket' }, counts.socketErrors);
    transfers.inc(counts.transfers);
    closed.inc({ why: 'refused' }, counts.tcpRefused);
    closed.inc({ why: 'slow' }, counts.tcpTimeouts);
    open.set(counts.tcpOpen);
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
