/**
 * After the switch: wait until everybody agrees and every node has its copy, look for the marker on each, count what it cost.
 *
 * Nothing here can be undone any more, so what does not come true is said and left over, not a reason to go back.
 */
import { messageOf } from '../../errors.js';
import type { Address } from '../../sentinel/wire/address.js';
import { formatAddress, sameAddress } from '../../sentinel/wire/address.js';
import type { Context } from '../context.js';
import { allNodes, fail, waitUntil } from '../context.js';
import { describeClients, parseClients } from '../drain-rules.js';
import { infoFields, numberIn } from '../fields.js';
import { OWN_NAME, PROBE_NAME, Refusal } from '../links.js';
import type { Facts } from '../move-state.js';
import { Copies } from './copies.js';
import { acknowledged, TTL_GRACE_MS } from './window.js';

const FAILOVER_LIMIT_MS = 60_000;
const AGREE_LIMIT_MS = 60_000;
const MARKER_LIMIT_MS = 10_000;
const RETRY_MS = 500;
/** What a `pre` hook's refusal begins with. */
const VETO = /^ERR hook /;
const PASSING = /INPROG|INFO|no connection|disconnected|NOQUORUM|link|already in progress/i;

/** The coordinated way: one command, and what it leads to. */
export async function failover(context: Context): Promise<Facts> {
  const { plan, group, links } = context;
  context.probe.start();
  const argv = ['SENTINEL', 'FAILOVER', plan.master, 'COORDINATED', formatAddress(plan.target)];
  let refusal = '';
  let sent = 0;
  await waitUntil(context, FAILOVER_LIMIT_MS, RETRY_MS / 5, async () => {
    const world = await group.world(plan.sentinels, plan.original);
    if (!sameAddress(world.master, plan.original)) return null;
    if (world.failingOver) return 'the failover is under way';
    const ours = (await group.views(plan.sentinels)).find(({ status }) => status !== null);
    if (ours === undefined) throw fail('no sentinel that knows FAILOVER … COORDINATED answers');
    const isRetry = sent++ > 0;
    if (isRetry) await new Promise((later) => void setTimeout(later, RETRY_MS));
    try {
      await links.ask(ours.sentinel, argv, 30_000);
      refusal = 'the failover did not come to its end';
    } catch (fault) {
      refusal = messageOf(fault);
      if (fault instanceof Refusal && (!PASSING.test(refusal) || VETO.test(refusal))) throw fail(`the failover is refused: ${refusal}`);
    }
    return refusal;
  });
  return { sent };
}

export async function settle(context: Context): Promise<Facts> {
  const { plan, group, links } = context;
  await context.hold.stop(true);
  const problems: string[] = [];
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    await work().catch((fault: unknown) => void problems.push(messageOf(fault)));
  };
  await attempt(() => waitUntil(context, AGREE_LIMIT_MS, 50, () => whyNotAgreed(context)));
  const views = await group.views(plan.sentinels);
  const epoch = Math.max(0, ...views.map(({ fields }) => numberIn(fields, 'config-epoch')));
  let ttlMs = 0;
  await attempt(async () => void ({ ttlMs } = await acknowledged(context, 2 * epoch)));
  const swept = await sweep(context, ttlMs);
  const nodes = allNodes(plan).filter((address) => !sameAddress(address, plan.target));
  const copies = new Copies(context, nodes);
  let successor: Address | null = null;
  await attempt(() => waitUntil(context, plan.resyncTimeoutMs, 100, async () => {
    successor = await otherMaster(context);
    return successor === null ? copies.whyNotDone() : null;
  }, () => copies.progress()));
  // Nobody will copy the target any more. What is left is decided by who is the master (decide.ts).
  if (successor !== null) throw fail(`${formatAddress(successor)} has become the master meanwhile`);
  const absent = copies.absences.names;
  problems.push(...copies.absences.problems());
  await context.probe.stop();
  await attempt(() => checkMarker(context, nodes.filter((address) => !absent.has(formatAddress(address)))));
  // Kept (for a day) as long as somebody has to be looked at again.
  if (problems.length === 0) await links.ask(plan.target, ['DEL', context.marker, context.probe.key]).catch(() => undefined);
  const list = absent.has(formatAddress(plan.original)) ? '' : await links.text(plan.original, 'CLIENT', 'LIST').catch(() => '');
  const left = describeClients(parseClients(list, OWN_NAME).filter(({ name }) => name !== PROBE_NAME));
  const before = Number(context.move().finished.get('save')?.facts['targetSyncFull'] ?? NaN);
  const made = numberIn(infoFields(await links.text(plan.target, 'INFO', 'stats').catch(() => '')), 'sync_full', NaN) - before;
  return { problems, epoch, swept, stillAtOld: left, fullCopies: Number.isFinite(made) ? made : null, longestBlindMs: Math.round(context.probe.longestGapMs) };
}

/**
 * Who was cut by the switch and asked for the name before its answer had changed is at the old master again: a subscriber would
 * listen there for ever. Cut once more, now that every answer is the new one.
 */
async function sweep({ plan, links, say }: Context, ttlMs: number): Promise<number> {
  const count = async (): Promise<number[]> =>
    parseClients(await links.text(plan.original, 'CLIENT', 'LIST').catch(() => ''), OWN_NAME).map(({ id }) => id);
  if ((await count()).length === 0) return 0;
  say({ text: `waiting out a TTL of ${ttlMs} ms, then whoever is at the old master is cut once more` });
  await new Promise((later) => void setTimeout(later, ttlMs === 0 ? 0 : ttlMs + TTL_GRACE_MS));
  const ids = await count();
  for (const id of ids) await links.ask(plan.original, ['CLIENT', 'KILL', 'ID', String(id)]).catch(() => undefined);
  return ids.length;
}

/** The node that took the target's place after the switch; null: nobody did, or nobody says. */
async function otherMaster({ group, plan }: Context): Promise<Address | null> {
  const world = await group.world(plan.sentinels, plan.original).catch(() => null);
  return world === null || sameAddress(world.master, plan.target) ? null : world.master;
}

async function whyNotAgreed({ group, plan }: Context): Promise<string | null> {
  const views = await group.views(plan.sentinels);
  const named = new Set(views.map(({ fields }) => `${fields.get('ip')} ${fields.get('port')}`));
  // All of them at a third node: the target died right behind the switch.
  const isThird = named.size === 1 && !named.has(`${plan.original.host} ${plan.original.port}`) && !named.has(`${plan.target.host} ${plan.target.port}`);
  if (isThird) return null;
  const behind = views.filter(({ fields, status }) => {
    const named = { host: fields.get('ip') ?? '', port: numberIn(fields, 'port') };
    return !sameAddress(named, plan.target) || (status?.get('state') ?? 'none') !== 'none';
  });
  return behind.length === 0 ? null : `${behind.map(({ sentinel }) => formatAddress(sentinel)).join(', ')} has not heard of the new master yet`;
}

/** What was written to the target in the window (or, coordinated, just now) is on every node. */
async function checkMarker(context: Context, nodes: readonly Address[]): Promise<void> {
  const { plan, links, marker } = context;
  const wasPrepared = context.move().finished.has('prepare');
  if (!wasPrepared) await links.ask(plan.target, ['SET', marker, plan.id, 'EX', '86400']);
  await waitUntil(context, MARKER_LIMIT_MS, 50, async () => {
    const values = await Promise.all([plan.target, ...nodes].map((address) => links.text(address, 'GET', marker).catch(messageOf)));
    const missing = [plan.target, ...nodes].filter((_, index) => values[index] !== plan.id);
    return missing.length === 0 ? null : `a write of the window is missing on ${missing.map(formatAddress).join(', ')}`;
  });
}

/** The last step: the numbers of the others, in one place. */
export function report(context: Context): Promise<Facts> {
  const { finished } = context.move();
  const number = (step: 'drain' | 'settle', fact: string): unknown => finished.get(step)?.facts[fact] ?? null;
  const times = Object.fromEntries([...finished].map(([step, { ms }]) => [step, ms]));
  return Promise.resolve({
    cut: number('drain', 'cut'), longestBlindMs: number('settle', 'longestBlindMs'), fullCopies: number('settle', 'fullCopies'),
    stillAtOld: number('settle', 'stillAtOld'), times,
  });
}
