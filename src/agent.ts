/**
 * Wiring: builds the parts of one agent and starts and stops them in order. Nothing is decided here.
 *
 * Order of the start: outputs, ports (DNS, RESP, admin), state file, then the sentinel. The reverse at the stop; what was
 * published stays (fail static).
 */
import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { EventFeed } from './admin/event-feed.js';
import type { AdminServer } from './admin/server.js';
import { startAdminServer } from './admin/server.js';
import type { AgentStatus } from './admin/status.js';
import { statusOf } from './admin/status.js';
import { must } from './assert.js';
import type { DnsSection, PointsmanConfig } from './config/config.js';
import type { DnsListeners } from './dns/listeners.js';
import { startDnsListeners } from './dns/listeners.js';
import type { WorkerService } from './dns/workers/messages.js';
import { WorkerPool } from './dns/workers/worker-pool.js';
import type { Zone } from './dns/zone.js';
import { workerServiceOf } from './dns-wiring.js';
import { EXIT, FatalError, messageOf } from './errors.js';
import type { Log } from './log.js';
import type { Outputs, OutputsWiring } from './outputs.js';
import { makeOutputs, publishersOf } from './outputs.js';
import type { DnsPublisher } from './publishers/dns-publisher.js';
import { Journal } from './publishers/journal.js';
import { Reconciler } from './publishers/reconciler.js';
import { projectRoute } from './route/project.js';
import type { Route } from './route/route.js';
import { sameRoute } from './route/route.js';
import { createState } from './sentinel/index.js';
import type { OutputView } from './sentinel/runtime/command-gate.js';
import { SentinelGate } from './sentinel/runtime/command-gate.js';
import type { ConfFile } from './sentinel/runtime/conf-file.js';
import { ConfigStore } from './sentinel/runtime/config-store.js';
import { Sentinel } from './sentinel/runtime/sentinel.js';
import { SentinelServer } from './sentinel/runtime/server/server.js';
import { linkOptionsOf, serverLines, serverOptionsOf } from './sentinel/runtime/server-settings.js';
import type { UsersNow } from './sentinel/runtime/server-settings.js';
import type { TlsSettings } from './sentinel/runtime/tls-settings.js';
import type { LogLevelName } from './sentinel/index.js';
import { formatAddress } from './sentinel/wire/address.js';
import type { ServerIdentity } from './sentinel/wire/identity.js';
import { millis } from './time.js';

export interface AgentOptions {
  readonly file: ConfFile;
  /** Null for a plain drop-in sentinel. */
  readonly config: PointsmanConfig | null;
  readonly identity: ServerIdentity;
  readonly tls: TlsSettings;
  readonly log: Log;
  /** SENTINEL CONFIG SET loglevel. */
  readonly onLogLevel: (level: LogLevelName) => void;
  /** SHUTDOWN on the port. */
  readonly onShutdown: () => void;
  /** SENTINEL SIMULATE-FAILURE. */
  readonly onCrash: (code: number) => void;
}

const now = (): ReturnType<typeof millis> => millis(Date.now());

export class Agent {
  readonly #options: AgentOptions;
  readonly #log: Log;
  readonly #feed = new EventFeed();
  readonly #reconciler: Reconciler;
  readonly #journal: Journal;
  readonly #server: SentinelServer;
  readonly #wiring: OutputsWiring;
  readonly sentinel: Sentinel;
  #outputs: Outputs;
  /** Whose zone is answered from; on a reload the new one takes over when it knows what the old one knew. */
  #served: DnsPublisher | null;
  #listeners: DnsListeners | null = null;
  #workers: WorkerPool | null = null;
  /** Until a command changes them, the lines of the file and its includes say it all. */
  #usersChanged = false;
  #admin: AdminServer | null = null;
  #reloading: Promise<unknown> = Promise.resolve();

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#log = options.log;
    const { file, config, log } = options;
    const state = createState({ conf: file.conf, freshId: randomBytes(20).toString('hex'), seed: randomBytes(6).readUIntBE(0, 6), now: now() });
    state.settings.isolationAfterMs = config?.route.isolationAfterMs ?? null;
    state.settings.identity = options.identity;

    this.#wiring = {
      ...{ state, stateFile: file.path, log },
      listeners: () => this.#listeners?.addresses ?? [],
      reconciler: () => this.#reconciler,
      followersOf: (publisher) => (publisher === this.#served ? this.#workers : null),
      onScriptFailure: (path, signal, exitCode) => this.sentinel.dispatch({ kind: 'scriptFailed', path, signal, exitCode }),
    };
    this.#outputs = makeOutputs(this.#wiring, config);
    this.#served = this.#outputs.dns.made;
    this.#journal = new Journal({ path: null, ...config?.journal, log: log.child({ part: 'journal' }), onEntry: (entry) => this.#feed.push(entry) });
    this.#reconciler = new Reconciler({
      publishers: publishersOf(this.#outputs),
      log: log.child({ part: 'outputs' }),
      onResult: (result) => this.#journal.output(result),
    });

    const gate = new SentinelGate({
      sentinel: () => this.sentinel,
      whyVetoed: (argv) => this.#outputs.hooks.made.whyVetoed(argv),
      otherScripts: () => this.#outputs.hooks.made.publishers.flatMap((hook) => hook.pending()).map((script) => ({
        argv: script.argv,
        runs: script.runs,
        pid: script.pid ?? 0,
        atMs: script.running ? script.startedAtMs : script.dueAtMs,
      })),
      reply: (client, value) => this.#server.reply(client, value),
      outputs: (master, recheck) => this.#outputsOf(master, recheck),
      whyNotMonitorable: (name) => this.#outputs.dns.made?.whyNotAddable(name) ?? this.#outputs.consul.made?.whyNotAddable(name) ?? null,
    });
    this.#server = new SentinelServer(serverOptionsOf(file, options.identity, options.tls.server, log.child({ part: 'server' })), gate);
    this.#server.onShutdown(options.onShutdown);
    this.#server.onUsersChanged(() => {
      this.#usersChanged = true;
      void this.sentinel.persist();
    });
    this.sentinel = new Sentinel({
      state,
      store: new ConfigStore(file.path),
      links: linkOptionsOf(file, options.tls),
      extraLines: () => serverLines(this.#usersNow(), state.settings.logLevel),
      onLogLevel: options.onLogLevel,
      log: log.child({ part: 'sentinel' }),
      projectRoute,
      sameRoute,
      listener: {
        reply: (client, value) => this.#server.reply(client, value),
        publish: (name, payload) => {
          this.#server.publish(name, payload);
          this.#feed.push({ kind: 'event', at: new Date().toISOString(), name, payload });
        },
        routeChanged: (master, route) => this.#routeChanged(master, route),
        exit: options.onCrash,
      },
    });
  }

  /** Opens everything and begins to monitor. Rejects with FatalError; nothing is left open then. */
  async start(): Promise<void> {
    try {
      // Before anybody can command: what is published then is read back from here.
      await this.#openDns();
      const bound = await this.#server.listen();
      for (const address of bound) this.#log.info({ address: formatAddress({ host: address.address, port: address.port }) }, 'sentinel listens');
      await this.#openAdmin();
      await this.#claimStateFile();
    } catch (fault) {
      await this.stop();
      throw fault;
    }
    this.sentinel.start();
  }

  async stop(): Promise<void> {
    await this.#reloading;
    await this.sentinel.stop();
    await this.#reconciler.close();
    await this.#listeners?.close();
    this.#workers?.close();
    await this.#admin?.close();
    await this.#server.close();
    await this.#journal.close();
  }

  /** A new sentinel gets its id on disk before anybody hears it (8.4); a file that has one is not touched. */
  async #claimStateFile(): Promise<void> {
    if (this.#options.file.conf.globals.myId !== null || (await this.sentinel.persist())) return;
    throw new FatalError('STATE_UNWRITABLE', `state file ${this.#options.file.path} cannot be written`, EXIT.stateUnwritable);
  }

  #usersNow(): UsersNow | null {
    return this.#usersChanged ? { lines: this.#server.userLines(), implied: this.#server.impliedUserLine() } : null;
  }

  async #openDns(): Promise<void> {
    const section = this.#outputs.config?.dns ?? null;
    if (section !== null && section.workers > 0) await this.#startWorkers(section.workers);
    if (section !== null) this.#listeners = await this.#listenDns(section);
    this.#served?.transfers?.open();
  }

  async #startWorkers(count: number): Promise<void> {
    const startedAt = now();
    const zone = (): Zone => must(this.#served, 'dns workers without a zone').zone();
    const service = (): WorkerService => workerServiceOf(must(this.#outputs.config?.dns, 'dns workers without their settings'), startedAt);
    this.#workers = new WorkerPool(count, () => ({ zone: zone(), service: service() }), this.#log.child({ part: 'dns' }));
    await this.#workers.start().catch((error: unknown) => {
      throw new FatalError('LISTEN_FAILED', `dns workers cannot begin: ${messageOf(error)}`, EXIT.portInUse, {}, { cause: error });
    });
    this.#log.info({ workers: count }, 'dns workers answer udp');
  }

  async #listenDns(section: DnsSection): Promise<DnsListeners> {
    const zone = (): Zone => must(this.#served, 'dns listens without a zone').zone();
    const listeners = await startDnsListeners({
      listen: section.listen.map(formatAddress),
      zone,
      gate: () => this.#served?.transfers?.gate ?? null,
      rateLimit: () => this.#served?.rateLimit ?? null,
      workers: this.#workers,
      log: this.#log.child({ part: 'dns' }),
    });
    for (const address of listeners.addresses) this.#log.info({ address: formatAddress(address), zone: section.zone }, 'dns listens');
    return listeners;
  }

  async #openAdmin(): Promise<void> {
    const section = this.#options.config?.admin ?? null;
    if (section === null) return;
    const status = (): AgentStatus => statusOf(this.sentinel.state, this.#reconciler.status(), this.sentinel.missingRights);
    const pages = {
      ...{ status, feed: this.#feed },
      counters: () => ({ silentFailovers: this.sentinel.state.silentCounters, dns: this.#listeners?.counters ?? null }),
      publish: (master: string, force: boolean) => this.#publishAgain(master, force),
    };
    this.#admin = await startAdminServer(section.listen, pages, this.#log.child({ part: 'admin' }));
    this.#log.info({ address: formatAddress(this.#admin.address) }, 'admin listens');
  }

  #outputsOf(master: string, recheck: boolean): OutputView[] {
    if (recheck) this.#recheck(master);
    const ttlMs = (this.#outputs.config?.dns?.ttlSeconds ?? 0) * 1_000;
    return this.#reconciler.status().filter((each) => each.master === master).map((each) => ({
      name: each.output,
      state: each.state,
      wantedOrder: each.wantedOrder,
      publishedOrder: each.publishedOrder,
      sinceMs: each.sinceMs,
      error: each.lastError?.message ?? '',
      ttlMs: each.output === 'dns' ? ttlMs : 0,
    }));
  }

  /**
   * SIGHUP: the outputs as a newly read pointsman.yaml has them; sentinel and ports stay. One after the other. Resolves to what differs in
   * the file and takes effect only with a restart. Rejects with FatalError when a new DNS address can't be opened: all stays as it was.
   */
  reload(config: PointsmanConfig): Promise<readonly string[]> {
    const done = this.#reloading.then(() => this.#applyConfig(config));
    this.#reloading = done.catch(() => undefined);
    return done;
  }

  async #applyConfig(config: PointsmanConfig): Promise<readonly string[]> {
    const before = this.#outputs;
    const isSame = (a: unknown, b: unknown): boolean => isDeepStrictEqual(a, b);
    const listensAnew = !isSame(before.config?.dns?.listen, config.dns?.listen);
    // Opened first: a port that is taken must cost nothing.
    const opened = listensAnew && config.dns !== null ? await this.#listenDns(config.dns) : null;
    try {
      this.#outputs = makeOutputs(this.#wiring, config, before);
    } catch (fault) {
      await opened?.close();
      throw fault;
    }
    const oldListeners = listensAnew ? this.#listeners : null;
    if (listensAnew) this.#listeners = opened;
    this.#wiring.state.settings.isolationAfterMs = config.route.isolationAfterMs;
    const { made: dns } = this.#outputs.dns;
    // Until the new zone has every Route, which it has at once, the old one answers: no client's question meets an empty zone.
    this.#served ??= dns;
    await this.#reconciler.replace(publishersOf(this.#outputs));
    this.#served = dns ?? this.#served;
    if (dns !== null) await this.#workers?.replaced();
    await oldListeners?.close();
    this.#served = dns;
    // Not before: who is told of the new zone must find it.
    dns?.transfers?.open();
    const fixed = ['sentinel', 'admin', 'journal'] as const;
    const waiting: string[] = fixed.filter((section) => !isSame(before.config?.[section], config[section]));
    if ((before.config?.dns?.workers ?? 0) !== (config.dns?.workers ?? 0)) waiting.push('dns.workers');
    return before.config?.log.format === config.log.format ? waiting : [...waiting, 'log.format'];
  }

  #recheck(master: string): string[] {
    const names = publishersOf(this.#outputs).map(({ name }) => name);
    for (const name of names) this.#reconciler.recheck(name, master);
    return names;
  }

  #publishAgain(master: string, force: boolean): readonly string[] | null {
    if (!this.sentinel.state.masters.has(master)) return null;
    return force ? this.#reconciler.force(master) : this.#recheck(master);
  }

  #routeChanged(master: string, route: Route | null): void {
    if (route === null) {
      this.#journal.forget(master);
      return this.#reconciler.forget(master);
    }
    this.#journal.route(route);
    this.#reconciler.submit(route);
  }
}

/** The folder that relative paths of the state file start from. */
export function enterDirectory(file: ConfFile): void {
  try {
    process.chdir(file.directory);
  } catch (fault) {
    const what = `directory ${file.directory} of ${dirname(file.path)}`;
    throw new FatalError('CONFIG_INVALID', `${what} cannot be entered: ${messageOf(fault)}`, EXIT.badConfig);
  }
}
