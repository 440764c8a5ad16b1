/**
 * Steps 2 to 7 and 11: what is written down, changed, and put back at nodes and sentinels.
 *
 * Settings are changed by CONFIG SET alone. A sentinel that moves nodes has them rewrite their files (CONFIG REWRITE) while they
 * hold the values of the move, so what is put back is rewritten too, where a node has a file.
 */
import { AgentError, messageOf } from '../../errors.js';
import type { Address } from '../../sentinel/wire/address.js';
import { formatAddress, sameAddress } from '../../sentinel/wire/address.js';
import type { Context } from '../context.js';
import { allNodes, checkSignal, fail, waitUntil } from '../context.js';
import { infoFields, numberIn, pairsOf } from '../fields.js';
import { Refusal } from '../links.js';
import type { Links } from '../links.js';
import type { Facts, Saved, SavedNode, SavedSentinel } from '../move-state.js';

const SAVED_SETTINGS = ['replica-read-only', 'replica-priority', 'repl-backlog-size'] as const;
const AUTO_REVERT = 'slave-can-auto-revert-to-configured-master';
const LINK_LIMIT_MS = 60_000;
/** Attempts to put something back, a second apart. */
const RESTORE_TRIES = 3;

export async function save({ plan, links, group, journal }: Context): Promise<Facts> {
  const nodes = await Promise.all(allNodes(plan).map(async (address): Promise<SavedNode> => {
    const settings = Object.fromEntries(await Promise.all(SAVED_SETTINGS.map(async (name) => [name, await setting(links, address, name)] as const)));
    const info = infoFields(await links.text(address, 'INFO', 'replication'));
    const host = info.get('master_host');
    return { address, settings, follows: host === undefined ? null : { host, port: numberIn(info, 'master_port') } };
  }));
  const views = await group.views(plan.sentinels);
  const sentinels = views.map(({ sentinel, status }): SavedSentinel => ({ address: sentinel, autoRevert: status?.get('auto-revert') ?? null }));
  journal.note({ kind: 'saved', at: Date.now(), saved: { nodes, sentinels } });
  const syncFull = numberIn(infoFields(await links.text(plan.target, 'INFO', 'stats')), 'sync_full');
  return { nodes: nodes.length, sentinels: sentinels.length, targetSyncFull: syncFull };
}

async function setting(links: Links, address: Address, name: string): Promise<string> {
  return pairsOf(await links.ask(address, ['CONFIG', 'GET', name])).get(name) ?? '';
}

export async function waitSync(context: Context): Promise<Facts> {
  const { plan, links } = context;
  let total = 0;
  const whyNotInSync = async (): Promise<string | null> => {
    const [ours, theirs] = await Promise.all([plan.target, plan.original].map(async (address) => infoFields(await links.text(address, 'INFO', 'replication'))));
    const left = numberIn(ours ?? new Map(), 'master_sync_left_bytes');
    total = Math.max(total, left);
    if (ours?.get('master_sync_in_progress') === '1') return `${formatAddress(plan.target)} is still copying`;
    if (ours?.get('master_link_status') !== 'up') return `the replication link of ${formatAddress(plan.target)} is down`;
    const lag = numberIn(theirs ?? new Map(), 'master_repl_offset') - numberIn(ours, 'slave_repl_offset');
    return lag > 1024 * 1024 ? `${formatAddress(plan.target)} lags ${lag} bytes` : null;
  };
  await waitUntil(context, Math.max(plan.waitSyncMs, 10_000), 250, whyNotInSync);
  return {};
}

export async function noAutoRevert(context: Context): Promise<Facts> {
  const { move, links, plan } = context;
  const { sentinels } = savedOf(context);
  const problems: string[] = [];
  for (const { address, autoRevert } of sentinels) {
    if (autoRevert === null) continue;
    checkSignal(context);
    const argv = ['SENTINEL', 'SET', plan.master, AUTO_REVERT, 'no'];
    await links.ask(address, argv).catch((fault: unknown) => void problems.push(`${formatAddress(address)}: ${messageOf(fault)}`));
  }
  // One that is down revives with its old setting and re-points a replica: a nuisance, no danger.
  if (problems.length > sentinels.length / 2) throw fail(`the sentinels can't be told to leave replicas alone: ${problems.join('; ')}`);
  return { told: sentinels.length - problems.length, ...(move().plan.others.length === 0 ? {} : { untold: problems }) };
}

/**
 * The target becomes the original's only replica: a full resync of anybody else can't taint the window.
 *
 * A node goes on from where it is only if the target's backlog begins before that. So the backlog is given first, and who has just copied,
 * and still catches up, is waited for. If it copies the target all the same, that is waited for as well: nothing has begun yet.
 */
export async function chain(context: Context): Promise<Facts> {
  const { plan, links } = context;
  const backlogRaised = await raiseBacklogs(context);
  for (const address of plan.others) {
    checkSignal(context);
    if (!(await follows(links, address, plan.target))) {
      await waitUntil(context, plan.resyncTimeoutMs, 100, () => whyNotNear(context, address));
      await links.ask(address, ['REPLICAOF', plan.target.host, String(plan.target.port)]);
    }
    await awaitLink(context, address);
  }
  await waitUntil(context, LINK_LIMIT_MS, 100, async () => {
    const count = numberIn(infoFields(await links.text(plan.original, 'INFO', 'replication')), 'connected_slaves');
    return count <= 1 ? null : `${formatAddress(plan.original)} still has ${count} replicas`;
  });
  return { repointed: plan.others.length, backlogRaised };
}

/** Null when the target still has, in the newer half of its backlog, what the node gets next. */
async function whyNotNear({ plan, links }: Context, address: Address): Promise<string | null> {
  const [theirs, ours] = await Promise.all([plan.target, address].map(async (each) => infoFields(await links.text(each, 'INFO', 'replication'))));
  if (theirs === undefined || ours === undefined || ours.get('role') !== 'slave') return null;
  const lag = numberIn(theirs, 'slave_repl_offset') - numberIn(ours, 'slave_repl_offset');
  const held = numberIn(theirs, 'repl_backlog_histlen');
  return held === 0 || lag <= held / 2 ? null : `${formatAddress(address)} is ${lag} bytes behind ${formatAddress(plan.target)}`;
}

async function awaitLink(context: Context, address: Address): Promise<void> {
  const { plan, links } = context;
  let aliveMs = performance.now();
  await waitUntil(context, plan.resyncTimeoutMs, 100, async () => {
    // One that drops what it had before a copy answers nothing for a while.
    const info = infoFields(await links.text(address, 'INFO', 'replication').catch(() => ''));
    const isCopying = info.get('master_sync_in_progress') === '1';
    if (isCopying) aliveMs = performance.now();
    if (info.get('master_link_status') === 'up' && !isCopying) return null;
    const reason = `${formatAddress(address)} ${isCopying ? 'copies' : 'has no link to'} ${formatAddress(plan.target)}${isCopying ? '' : ' yet'}`;
    if (performance.now() - aliveMs > LINK_LIMIT_MS) throw fail(`${reason} (waited ${LINK_LIMIT_MS / 1000} s)`);
    return reason;
  });
}

async function follows(links: Links, address: Address, master: Address): Promise<boolean> {
  const info = infoFields(await links.text(address, 'INFO', 'replication'));
  const host = info.get('master_host');
  return host !== undefined && sameAddress({ host, port: numberIn(info, 'master_port') }, master);
}

export async function prefer(context: Context): Promise<Facts> {
  const { plan, links } = context;
  await links.ask(plan.target, ['CONFIG', 'SET', 'replica-priority', '1']);
  for (const address of [plan.original, ...plan.others]) {
    // 0 stays 0: never to be promoted.
    if ((await setting(links, address, 'replica-priority')) === '1') await links.ask(address, ['CONFIG', 'SET', 'replica-priority', '2']);
  }
  return {};
}

/** Who had less than the window needs. */
async function raiseBacklogs({ plan, links }: Context): Promise<string[]> {
  const raised: string[] = [];
  for (const address of [plan.original, plan.target]) {
    if (Number(await setting(links, address, 'repl-backlog-size')) >= plan.backlogBytes) continue;
    await links.ask(address, ['CONFIG', 'SET', 'repl-backlog-size', String(plan.backlogBytes)]);
    raised.push(formatAddress(address));
  }
  return raised;
}

/** The target alone takes writes: whoever is still at another replica shall be told READONLY, not OK. */
export async function makeWritable({ plan, links }: Context): Promise<Facts> {
  for (const address of [plan.original, ...plan.others]) await links.ask(address, ['CONFIG', 'SET', 'replica-read-only', 'yes']);
  await links.ask(plan.target, ['CONFIG', 'SET', 'replica-read-only', 'no']);
  return {};
}

export function savedOf({ move }: Pick<Context, 'move'>): Saved {
  const { saved } = move();
  if (saved === null) throw fail('the journal has no saved settings');
  return saved;
}

/** Everything that was saved is put back; what can't be is said, and the rest goes on. */
export async function restore(context: Context): Promise<Facts> {
  const saved = savedOf(context);
  const world = await context.group.world(context.plan.sentinels, context.plan.original);
  const problems: string[] = [];
  for (const node of saved.nodes) {
    const isMaster = sameAddress(world.master, node.address);
    const follow = sameAddress(world.master, context.plan.original) && !isMaster ? node.follows : null;
    const isRewritten = context.move().begun.has('prepare') || context.move().begun.has('failover');
    const leftover = `${formatAddress(node.address)} keeps the move's settings (${describe(node)})`;
    problems.push(...await withTries(context, () => restoreNode(context.links, node, follow, isRewritten), leftover));
  }
  for (const { address, autoRevert } of saved.sentinels) {
    if (autoRevert === null) continue;
    const back = (): Promise<void> => restoreSentinel(context, address, autoRevert);
    problems.push(...await withTries(context, back, `sentinel ${formatAddress(address)} keeps ${AUTO_REVERT} no (it was ${autoRevert})`));
  }
  return { problems };
}

async function restoreSentinel({ links, plan }: Context, address: Address, autoRevert: string): Promise<void> {
  const status = pairsOf(await links.ask(address, ['SENTINEL', 'SILENT-FAILOVER', plan.master, 'status']));
  if (status.get('auto-revert') !== autoRevert) await links.ask(address, ['SENTINEL', 'SET', plan.master, AUTO_REVERT, autoRevert]);
}

const describe = ({ settings }: SavedNode): string => `they were ${Object.entries(settings).map(([name, value]) => `${name} ${value}`).join(', ')}`;

async function withTries({ say }: Context, attempt: () => Promise<void>, leftover: string): Promise<string[]> {
  let reason = '';
  for (let tries = 0; tries < RESTORE_TRIES; tries++) {
    try {
      await attempt();
      return [];
    } catch (fault) {
      if (!(fault instanceof AgentError || fault instanceof Refusal)) throw fault;
      reason = messageOf(fault);
      say({ text: reason });
      await new Promise((done) => void setTimeout(done, 1_000));
    }
  }
  return [`${leftover}: ${reason}`];
}

async function restoreNode(links: Links, node: SavedNode, follow: Address | null, isRewritten: boolean): Promise<void> {
  for (const [name, value] of Object.entries(node.settings)) {
    if (value !== '' && (await setting(links, node.address, name)) !== value) await links.ask(node.address, ['CONFIG', 'SET', name, value]);
  }
  // One that is dead is followed by nobody: whoever replaces it, the sentinels point the others there.
  if (follow !== null && !(await follows(links, node.address, follow)) && (await links.isAlive(follow))) {
    await links.ask(node.address, ['REPLICAOF', follow.host, String(follow.port)]);
  }
  // Before that no sentinel has moved anybody: the files hold what they held.
  if (!isRewritten) return;
  const file = infoFields(await links.text(node.address, 'INFO', 'server')).get('config_file') ?? '';
  // A file that can't be written is the site's matter; the running node is right.
  if (file !== '') await links.ask(node.address, ['CONFIG', 'REWRITE']).catch((fault: unknown) => ignoreRefusal(fault));
}

function ignoreRefusal(fault: unknown): void {
  if (!(fault instanceof Refusal)) throw fault;
}
